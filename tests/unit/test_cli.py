"""The command line as an admin uses it."""

import os
import subprocess
import sys
from pathlib import Path

from typer.testing import CliRunner

from gpupool.airflow.cli import app
from tests.conftest import POOL_TEXT

RUN = CliRunner()


def write(folder: Path, name: str, text: str) -> str:
    (folder / name).write_text(text)
    return str(folder / name)


def test_check_says_good(tmp_path):
    result = RUN.invoke(app, ["check", write(tmp_path, "pool.yaml", POOL_TEXT)])
    assert result.exit_code == 0
    assert result.stdout.endswith("pool.yaml: good. 2 teams, 2 flavors, 2 queues.\n")


def test_check_ends_with_1_and_tells_every_mistake(tmp_path):
    bad = POOL_TEXT.replace("nominal: 8", "nominal: x").replace("priority: 100", "priority: -1")
    result = RUN.invoke(app, ["check", write(tmp_path, "pool.yaml", bad)])
    assert result.exit_code == 1
    assert "pool.yaml:17: queues.red-train.quota.h100.nominal: " in result.stderr
    assert "queues.blue-batch.priority: " in result.stderr


def test_check_shows_what_changes(tmp_path):
    old, new = (
        write(tmp_path, "old.yaml", POOL_TEXT),
        write(tmp_path, "new.yaml", POOL_TEXT.replace("nominal: 8", "nominal: 4")),
    )
    result = RUN.invoke(app, ["check", new, "--against", old])
    assert "queues.red-train.quota.h100.nominal: 8 -> 4" in result.stdout


def test_check_needs_no_airflow(tmp_path):
    """A team's CI checks the file in a fraction of the time that importing Airflow takes."""
    code = "import sys; from gpupool.airflow.cli import app; sys.argv = ['gpupool', 'check', sys.argv[1]]\ntry: app()\nexcept SystemExit: pass\nassert 'airflow' not in sys.modules and 'polars' not in sys.modules"
    file = write(tmp_path, "pool.yaml", POOL_TEXT)
    subprocess.run([sys.executable, "-c", code, file], check=True, capture_output=True)


def test_devices_lists_cores_and_who_holds_them(tmp_path, monkeypatch):
    from gpupool.jobs.leases import DeviceLocks, Holder
    from gpupool.telemetry.cpu import CpuSource

    monkeypatch.setenv("GPUPOOL_POOL_FILE", write(tmp_path, "pool.yaml", POOL_TEXT))
    monkeypatch.setenv("GPUPOOL_HOME", str(tmp_path))
    device = CpuSource().discover().devices[0].device_id
    lease = DeviceLocks(tmp_path / "state/leases").acquire(
        [device], 1, Holder("a", "dag/run/job", "red-train"), timeout_s=1
    )
    lines = RUN.invoke(app, ["devices"]).stdout.splitlines()
    lease.release()
    assert len(lines) == 1 + len(os.sched_getaffinity(0))
    assert f"{device}  cpu          ready" in lines[1]
    assert lines[1].endswith("held by dag/run/job (red-train)")
