"""A real Postgres on a free port, in a folder of its own, gone after the test."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.integration.stack import free_port


def binaries() -> Path | None:
    """The folder of Debian's newest Postgres server, or of whichever is on the PATH."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    on_path = shutil.which("initdb")
    return found[-1].parent if found else Path(on_path).parent if on_path else None


@contextmanager
def postgres() -> Iterator[str]:
    """Start it; yields an SQLAlchemy address of an empty database."""
    programs, port = binaries(), free_port()
    assert programs is not None, "Postgres is not installed; run tests/install_packages as root"
    # The server refuses to run as root, and its user must be able to reach its folder.
    as_user = ["runuser", "-u", "postgres", "--"] if os.geteuid() == 0 else []
    folder = Path(tempfile.mkdtemp(prefix="gpupool-pg-"))
    data = folder / "data"
    if as_user:
        shutil.chown(folder, "postgres")

    def call(program: str, *arguments: str) -> None:
        subprocess.run([*as_user, programs / program, *arguments], check=True, stdout=subprocess.DEVNULL, cwd=folder)

    try:
        call("initdb", "-D", str(data), "-A", "trust", "-U", "gpupool", "-E", "UTF8", "--no-sync")
        options = f"-h 127.0.0.1 -p {port} -k {folder} -c fsync=off"
        call("pg_ctl", "-D", str(data), "-w", "-l", str(folder / "log"), "-o", options, "start")
        try:
            call("createdb", "-h", "127.0.0.1", "-p", str(port), "-U", "gpupool", "airflow")
            yield f"postgresql+psycopg2://gpupool@127.0.0.1:{port}/airflow"
        finally:
            call("pg_ctl", "-D", str(data), "-w", "-m", "immediate", "stop")
    finally:
        shutil.rmtree(folder, ignore_errors=True)
