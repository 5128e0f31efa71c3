"""Starts and stops the local stack: `python deploy/stack.py up|down|secrets|run COMMAND...`. The Makefile calls it.

Everything it writes lies in one folder (GPUPOOL_HOME, default `.airflow`); everything it starts hangs below one
process of honcho, so that it can be stopped without leaving any of it behind.
"""

import json
import os
import secrets
import socket
import subprocess
import sys
import time
from base64 import urlsafe_b64encode
from contextlib import suppress
from pathlib import Path

import httpx
import psutil
from dotenv import dotenv_values

ROOT = Path(__file__).resolve().parent.parent
HOME = Path(os.environ.get("GPUPOOL_HOME") or ROOT / ".airflow").absolute()
PORT = int(os.environ.get("GPUPOOL_PORT") or 8080)
BIN = Path(sys.executable).parent
PID_FILE = HOME / "stack.pid"
LOG_FILE = HOME / "stack.log"
READY_WITHIN_S, AIRFLOW_STOPS_WITHIN_S, JOBS_STOP_WITHIN_S = 180, 15, 60
COMPONENTS = ("metadatabase", "scheduler", "triggerer", "dag_processor")


def up() -> None:
    """Prepare, start, wait until all of Airflow is healthy, and say where it is."""
    if _manager() is not None:
        print(f"gpupool already runs at {_url()}. Stop it with `make down`.")
        return
    _require_free_port()
    env = environment()
    write_secrets(Path(env["GPUPOOL_SECRETS"]))
    with LOG_FILE.open("w") as log:
        for step in (["airflow", "db", "migrate"], ["gpupool", "apply"]):
            print("$", *step, flush=True)
            done = subprocess.run([BIN / step[0], *step[1:]], check=False, env=env, cwd=ROOT, stdout=log, stderr=log)
            if done.returncode:
                sys.exit(f"`{' '.join(step)}` failed:\n{_log_tail()}")
    with LOG_FILE.open("a") as log:
        command = [
            str(BIN / "honcho"),
            "--no-colour",
            "-e",
            os.devnull,
            "-f",
            str(ROOT / "Procfile"),
            "start",
        ]
        manager = subprocess.Popen(
            command,
            env=env,
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    PID_FILE.write_text(str(manager.pid))
    _wait_until_healthy(manager)
    password = json.loads((Path(env["GPUPOOL_SECRETS"]) / "passwords.json").read_text())["admin"]
    print(f"gpupool is ready: {_url()}  (user admin, password {password})")


def down() -> None:
    """Stop all processes and wait until they are gone; jobs get their grace first."""
    manager = _manager()
    if manager is None:
        print("gpupool does not run.")
        return
    everyone = [manager, *manager.children(recursive=True)]
    # Guardians see their worker go, stop their job with grace, and end by themselves; nothing else is waited for.
    jobs = [below for p in everyone if _is_guardian(p) for below in (p, *p.children(recursive=True))]
    manager.terminate()
    psutil.wait_procs([manager], timeout=AIRFLOW_STOPS_WITHIN_S)
    _kill([p for p in everyone if p not in jobs])
    psutil.wait_procs(jobs, timeout=JOBS_STOP_WITHIN_S)
    _kill(jobs)
    PID_FILE.unlink(missing_ok=True)
    print("gpupool is stopped.")


def run() -> None:
    """Run a command with the stack's environment, such as `gpupool apply` or `airflow dags list`."""
    sys.exit(subprocess.run([BIN / sys.argv[2], *sys.argv[3:]], check=False, env=environment(), cwd=ROOT).returncode)


def environment() -> dict[str, str]:
    """The environment of every process of the stack: `airflow.env`, where variables that are set already win."""
    given = {"GPUPOOL_SECRETS": str(HOME / "secrets"), **os.environ}
    given |= {"GPUPOOL_ROOT": str(ROOT), "GPUPOOL_HOME": str(HOME), "GPUPOOL_PORT": str(PORT)}
    given["PATH"] = f"{BIN}{os.pathsep}{given.get('PATH', os.defpath)}"
    os.environ.update(given)  # dotenv fills ${...} from here
    return {**{k: v for k, v in dotenv_values(ROOT / "airflow.env").items() if v is not None}, **given}


def write_secrets(folder: Path | None = None) -> None:
    """Make the secrets once. The folder is this user's alone; the files can be read in containers that mount them."""
    folder = folder or Path(os.environ.get("SECRETS_FOLDER") or ROOT / ".secrets")
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    service, database = secrets.token_urlsafe(24), secrets.token_urlsafe(24)
    contents = {
        "jwt_secret": secrets.token_urlsafe(64),
        "fernet_key": urlsafe_b64encode(secrets.token_bytes(32)).decode(),
        "gpupool_password": service,
        "passwords.json": json.dumps({"admin": secrets.token_urlsafe(12), "gpupool": service}),
        "postgres_password": database,
        "database_url": f"postgresql+psycopg2://gpupool:{database}@postgres/airflow",
    }
    if not all((folder / name).exists() for name in contents):
        for name, content in contents.items():
            (folder / name).write_text(content)
            (folder / name).chmod(0o644)


def _wait_until_healthy(manager: "subprocess.Popen[bytes]") -> None:
    end = time.monotonic() + READY_WITHIN_S
    while not _is_healthy():
        if manager.poll() is not None:
            sys.exit(f"Airflow ended while starting:\n{_log_tail()}")
        if time.monotonic() > end:
            down()
            sys.exit(f"Airflow was not healthy within {READY_WITHIN_S} s:\n{_log_tail()}")
        time.sleep(0.5)


def _is_healthy() -> bool:
    try:
        health = httpx.get(f"{_url()}/api/v2/monitor/health", timeout=5).json()
    except (httpx.HTTPError, ValueError):
        return False
    return all((health.get(part) or {}).get("status") == "healthy" for part in COMPONENTS)


def _manager() -> psutil.Process | None:
    """The running honcho of this folder, if any; a recycled process id is not mistaken for it."""
    try:
        process = psutil.Process(int(PID_FILE.read_text()))
        return process if "honcho" in " ".join(process.cmdline()) else None
    except (OSError, ValueError, psutil.Error):
        return None


def _require_free_port() -> None:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", PORT))
        except OSError:
            sys.exit(f"Port {PORT} is in use. Stop what uses it, or choose another: make up GPUPOOL_PORT=8090")


def _is_guardian(process: psutil.Process) -> bool:
    try:
        return "guardian.py" in " ".join(process.cmdline())
    except psutil.Error:
        return False


def _kill(processes: list[psutil.Process]) -> None:
    for process in processes:
        with suppress(psutil.NoSuchProcess):
            process.kill()
    psutil.wait_procs(processes, timeout=10)


def _url() -> str:
    return f"http://127.0.0.1:{PORT}"


def _log_tail() -> str:
    return "\n".join(LOG_FILE.read_text(errors="replace").splitlines()[-25:]) + f"\n(whole log: {LOG_FILE})"


if __name__ == "__main__":
    {"up": up, "down": down, "secrets": write_secrets, "run": run}[sys.argv[1]]()
