"""`docker compose up` for real: all healthy, the first loop runs by itself, `down -v` leaves nothing."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.compose.engine import Docker, engine, import_base
from tests.conftest import ROOT
from tests.integration.stack import Stack, free_port, wait_for

pytestmark = [
    pytest.mark.compose,
    pytest.mark.timeout(2400),
    pytest.mark.skipif(
        os.geteuid() != 0 or not shutil.which("dockerd") or not shutil.which("debootstrap"),
        reason="needs root, Docker's engine and debootstrap (tests/install_packages brings them)",
    ),
]
SERVICES = {"postgres", "api-server", "scheduler", "dag-processor", "triggerer"}


@pytest.fixture(scope="module")
def docker() -> Iterator[Docker]:
    with engine() as it:
        import_base(it, "gpupool-test-base")
        it("build", "--build-arg", "BASE_IMAGE=gpupool-test-base", "-t", "gpupool:test", ".", timeout_s=900)
        folder = Path(__file__).parent
        it(
            "build",
            "--build-arg",
            "BASE_IMAGE=gpupool-test-base",
            "-t",
            "postgres:test",
            "-f",
            f"{folder}/postgres.dockerfile",
            f"{folder}",
        )
        it.env |= {
            "GPUPOOL_IMAGE": "gpupool:test",
            "POSTGRES_IMAGE": "postgres:test",
            "GPUPOOL_PORT": str(free_port()),
        }
        yield it


def left_over(docker: Docker) -> list[str]:
    """Containers, volumes and networks of the project."""
    mine = ("--filter", "label=com.docker.compose.project=gpupool", "-q")
    return [
        *docker("ps", "-a", *mine).split(),
        *docker("volume", "ls", *mine).split(),
        *docker("network", "ls", *mine).split(),
    ]


def test_the_same_loop_runs_on_postgres_in_containers(docker, tmp_path):
    docker.env["SECRETS_FOLDER"] = str(tmp_path / "secrets")
    subprocess.run([sys.executable, ROOT / "deploy/stack.py", "secrets"], env=docker.env, check=True)
    try:
        docker("compose", "up", "--detach", "--no-build", "--wait", "--wait-timeout", "420", timeout_s=480)
        states = [json.loads(line) for line in docker("compose", "ps", "--format", "json").splitlines()]
        assert {s["Service"]: s["Health"] for s in states} == dict.fromkeys(SERVICES, "healthy")
        assert docker("compose", "exec", "scheduler", "id", "-u").strip() == "50000"

        stack = Stack(tmp_path, int(docker.env["GPUPOOL_PORT"]), docker.env)
        stack.log_in()
        (run,) = wait_for(
            "the first loop",
            lambda: stack.get("/api/v2/dags/example_first_loop/dagRuns")["dag_runs"],
            timeout_s=120,
        )
        tasks = stack.finish("example_first_loop", run["dag_run_id"], timeout_s=420)
        assert {ti["state"] for ti in tasks} == {"success"}
        outcomes = {name: row["outcome"] for name, row in stack.attempts().items()}
        assert outcomes == {
            "example_nlp_training/train": "succeeded",
            "example_vision_batch/score": "succeeded",
        }
        assert "nlp-training" in stack.api.get("/gpupool/report").text
    except AssertionError:
        print(docker("compose", "logs", "--tail", "60", check=False))
        raise
    finally:
        docker("compose", "down", "--volumes", "--timeout", "20", check=False)
    assert left_over(docker) == []
