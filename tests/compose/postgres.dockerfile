# Debian's Postgres behind the same variables as the official image, for tests without a registry.
ARG BASE_IMAGE
FROM ${BASE_IMAGE}
COPY postgres-entrypoint.sh /
RUN chmod +x /postgres-entrypoint.sh && ln -s /usr/lib/postgresql/*/bin/* /usr/local/bin/ || true
ENTRYPOINT ["/postgres-entrypoint.sh"]
