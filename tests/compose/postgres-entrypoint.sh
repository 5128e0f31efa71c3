#!/bin/bash
# Makes the database on the first start, then serves it.
set -euo pipefail
data=/var/lib/postgresql/data
mkdir -p "$data"
chown -R postgres "$data"
chmod 700 "$data"
as() { runuser -u postgres -- "$@"; }
if [ ! -s "$data/PG_VERSION" ]; then
    install -o postgres -m 600 "$POSTGRES_PASSWORD_FILE" /tmp/password
    as initdb -D "$data" -U "$POSTGRES_USER" --auth-local=trust --auth-host=scram-sha-256 \
        --pwfile=/tmp/password -E UTF8 >/dev/null
    echo "host all all all scram-sha-256" >>"$data/pg_hba.conf"
    as pg_ctl -D "$data" -w -o "-c listen_addresses=" start >/dev/null
    as createdb -U "$POSTGRES_USER" "$POSTGRES_DB"
    as pg_ctl -D "$data" -w stop >/dev/null
fi
exec setpriv --reuid=postgres --regid=postgres --clear-groups postgres -D "$data" -c "listen_addresses=*"
