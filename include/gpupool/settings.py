"""Where one installation keeps its things; the only reader of ``GPUPOOL_*`` environment variables."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Settings:
    """Paths and addresses of this installation.

    ``pool_file``: the pool file. ``lake``: root of the Delta tables (a folder or an object-store URL).
    ``state``: node-local folder of device locks, must be on a local disk. ``artifacts``: what jobs leave behind.
    ``reports``: finished reports. ``api_*``: how system DAGs reach gpupool's routes in the API server.
    """

    pool_file: Path
    lake: str
    state: Path
    artifacts: Path
    reports: Path
    api_url: str
    api_user: str
    api_password_file: Path

    @classmethod
    def from_env(cls, env: Mapping[str, str] = os.environ) -> "Settings":
        home = Path(env.get("GPUPOOL_HOME") or env.get("AIRFLOW_HOME") or ".airflow").absolute()

        def place(name: str, default: Path) -> Path:
            return Path(env.get(name) or default).absolute()

        return cls(
            pool_file=place("GPUPOOL_POOL_FILE", Path("include/pool.yaml")),
            lake=env.get("GPUPOOL_LAKE") or str(home / "lake"),
            state=place("GPUPOOL_STATE", home / "state"),
            artifacts=place("GPUPOOL_ARTIFACTS", home / "artifacts"),
            reports=place("GPUPOOL_REPORTS", home / "reports"),
            api_url=env.get("GPUPOOL_API_URL", "http://127.0.0.1:8080"),
            api_user=env.get("GPUPOOL_API_USER", "gpupool"),
            api_password_file=place("GPUPOOL_API_PASSWORD_FILE", home / "api_password"),
        )
