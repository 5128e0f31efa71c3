"""A whole gpupool for a test: the real Airflow on a free port, in a folder of its own, on SQLite or Postgres."""

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import httpx
import psutil

from tests.conftest import ROOT

T = TypeVar("T")
TERMINAL = ("success", "failed")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def wait_for(what: str, probe: Callable[[], T | None], timeout_s: float = 120) -> T:
    end = time.monotonic() + timeout_s
    while time.monotonic() < end:
        if found := probe():
            return found
        time.sleep(0.3)
    raise AssertionError(f"{what} did not happen within {timeout_s} s")


@dataclass
class Stack:
    """``home``: its folder. ``api``: an authenticated client of the admin."""

    home: Path
    port: int
    env: dict[str, str]
    api: httpx.Client = field(init=False)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def password(self) -> str:
        return json.loads((self.home / "secrets/passwords.json").read_text())["admin"]

    def log_in(self) -> None:
        token = httpx.post(f"{self.url}/auth/token", json={"username": "admin", "password": self.password}, timeout=30)
        self.api = httpx.Client(
            base_url=self.url, timeout=60, headers={"Authorization": f"Bearer {token.json()['access_token']}"}
        )

    def get(self, path: str, **params: Any) -> Any:
        answer = self.api.get(path, params=params)
        answer.raise_for_status()
        return answer.json()

    def trigger(self, dag_id: str, **conf: Any) -> httpx.Response:
        return self.api.post(f"/api/v2/dags/{dag_id}/dagRuns", json={"logical_date": None, "conf": conf})

    def start(self, dag_id: str, **conf: Any) -> str:
        """Trigger a run as soon as its DAG is known; returns the run's id."""
        wait_for(f"DAG {dag_id}", lambda: self.api.get(f"/api/v2/dags/{dag_id}").is_success)
        answer = self.trigger(dag_id, **conf)
        assert answer.is_success, answer.text
        return answer.json()["dag_run_id"]

    def finish(self, dag_id: str, run_id: str, timeout_s: float = 180) -> list[dict[str, Any]]:
        """Wait for a run's end; returns its task instances."""

        def ended() -> bool:
            return self.get(f"/api/v2/dags/{dag_id}/dagRuns/{run_id}")["state"] in TERMINAL

        wait_for(f"{dag_id} {run_id}", ended, timeout_s)
        return self.tasks(dag_id, run_id)

    def tasks(self, dag_id: str, run_id: str) -> list[dict[str, Any]]:
        return self.get(f"/api/v2/dags/{dag_id}/dagRuns/{run_id}/taskInstances", limit=100)["task_instances"]

    def run(self, dag_id: str, timeout_s: float = 180, **conf: Any) -> list[dict[str, Any]]:
        return self.finish(dag_id, self.start(dag_id, **conf), timeout_s)

    def attempts(self) -> dict[str, dict[str, Any]]:
        """Facts of all attempts, by ``dag/task``."""
        rows = self.get("/gpupool/attempts", since="2020-01-01T00:00:00Z")
        return {f"{row['dag_id']}/{row['task_id']}": row for row in rows}

    def log_of(self, dag_id: str, run_id: str, task_id: str, attempt: int = 1) -> str:
        answer = self.api.get(f"/api/v2/dags/{dag_id}/dagRuns/{run_id}/taskInstances/{task_id}/logs/{attempt}")
        return answer.text

    def guardians(self) -> list[psutil.Process]:
        """Guardians of this stack's jobs."""
        manager = psutil.Process(int((self.home / "stack.pid").read_text()))
        below = [
            p.as_dict(["pid", "cmdline"], ad_value=[]) for p in manager.children(recursive=True)
        ]  # zombies have none
        return [psutil.Process(p["pid"]) for p in below if "guardian.py" in " ".join(p["cmdline"] or [])]


@contextmanager
def running(home: Path, pool_file: Path, dags: Path, **env: str) -> Iterator[Stack]:
    """Start the stack with `deploy/stack.py`, as `make up` does, on the first two cores; stop it and check that nothing is left."""
    port = free_port()
    given = os.environ | {
        "GPUPOOL_HOME": str(home),
        "GPUPOOL_PORT": str(port),
        "GPUPOOL_POOL_FILE": str(pool_file),
        "AIRFLOW__CORE__DAGS_FOLDER": str(dags),
        "AIRFLOW__DAG_PROCESSOR__REFRESH_INTERVAL": "5",
        **env,
    }
    cores = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, cores[:2])
    try:
        _stack_command("up", given)
    finally:
        os.sched_setaffinity(0, cores)
    everyone: list[psutil.Process] = []
    try:
        stack = Stack(home, port, given)
        stack.log_in()
        yield stack
        manager = psutil.Process(int((home / "stack.pid").read_text()))
        everyone = [manager, *manager.children(recursive=True)]
    finally:
        _stack_command("down", given)
    assert [p for p in everyone if p.is_running()] == []


def _stack_command(word: str, env: dict[str, str]) -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "deploy/stack.py", word], check=False, env=env, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
