"""The whole loop on a real Airflow, on SQLite and on Postgres: jobs through two queues, samples, tables, report."""

import json
import os
import shutil
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import nullcontext
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path

import polars as pl
import psutil
import pytest

from gpupool.jobs.leases import DeviceLocks
from gpupool.lake.store import Lake
from gpupool.lake.tables import DEVICE_HOUR, DEVICE_SAMPLE, INVENTORY_SNAPSHOT, JOB_ATTEMPT, JOB_USAGE
from tests.conftest import POOL_TEXT, ROOT
from tests.integration.postgres import binaries, postgres
from tests.integration.stack import Stack, running, wait_for

pytestmark = pytest.mark.slow

TELEMETRY = "telemetry: {readings: 3, interval: 1s}\n"


@pytest.fixture(scope="module", params=["sqlite", "postgres"])
def stack(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    folder = tmp_path_factory.mktemp(request.param)
    (folder / "pool.yaml").write_text(POOL_TEXT + TELEMETRY)
    shutil.copytree(Path(__file__).parent / "dags", folder / "dags")
    shutil.copytree(ROOT / "dags/system", folder / "dags/system")
    shutil.copy(ROOT / "dags/gpupool_submit.py", folder / "dags")
    (folder / "facts").mkdir()
    if request.param == "postgres" and binaries() is None and not os.environ.get("CI"):
        pytest.skip("Postgres is not installed (tests/install_packages brings it)")
    database = postgres() if request.param == "postgres" else nullcontext()
    with database as address:
        env = {"AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": address} if address else {}
        with running(
            folder / "home", folder / "pool.yaml", folder / "dags", TEST_FACTS=str(folder / "facts"), **env
        ) as it:
            yield it


def locks(stack: Stack) -> DeviceLocks:
    return DeviceLocks(stack.home / "state/leases")


def test_pools_are_there_with_words_for_people(stack):
    pools = {pool["name"]: pool for pool in stack.get("/api/v2/pools")["pools"]}
    assert {name: pool["slots"] for name, pool in pools.items() if name != "default_pool"} == {
        "red-train.cpu": 1,
        "red-train.h100": 0,
        "blue-batch.cpu": 1,
    }
    assert pools["red-train.cpu"]["description"] == "gpupool: team red, training; nominal 1 x cpu, priority 200."
    assert pools["red-train.cpu"]["include_deferred"] is True
    assert "only 0 now, as the pool has 0 ready h100" in pools["red-train.h100"]["description"]


def test_twenty_jobs_over_two_devices_never_overlap(stack):
    runs = {dag_id: stack.start(dag_id) for dag_id in ("many_red", "many_blue")}
    pools = defaultdict(set)
    for dag_id, run_id in runs.items():
        for ti in stack.finish(dag_id, run_id):
            assert (ti["state"], ti["try_number"]) == ("success", 1)
            pools[dag_id].add((ti["pool"], ti["pool_slots"], ti["queue"]))
    assert pools == {
        "many_red": {("red-train.cpu", 1, "default")},
        "many_blue": {("blue-batch.cpu", 1, "default")},
    }
    facts = [json.loads(path.read_text()) for path in (stack.home.parent / "facts").glob("*.json")]
    assert len(facts) == 20
    held = defaultdict(list)
    for fact in facts:
        assert len(fact["devices"]) == len(fact["cores"]) == 1
        held[fact["devices"][0]].append((fact["start"], fact["end"]))
    assert len(held) == 2
    for spans in held.values():
        spans.sort()
        assert all(end <= start for (_, end), (start, _) in pairwise(spans))
    assert locks(stack).holders() == {}


def test_a_function_runs_on_its_device_and_its_result_goes_on(stack):
    run_id = stack.start("function")
    assert {ti["task_id"]: ti["state"] for ti in stack.finish("function", run_id)} == {
        "train": "success",
        "use": "success",
    }
    result = stack.get(f"/api/v2/dags/function/dagRuns/{run_id}/taskInstances/use/xcomEntries/return_value")
    assert result["value"] == "function at 0.1"
    assert (stack.home / "artifacts/function" / run_id / "train/model.txt").read_text() == "function"
    assert "training function at 0.1" in stack.log_of("function", run_id, "train")
    fact = stack.attempts()["function/train"]
    assert (fact["outcome"], fact["team"], len(fact["device_ids"])) == ("succeeded", "red", 1)


def test_outcomes_and_retries_follow_the_rule(stack):
    tasks = {ti["task_id"]: ti for ti in stack.run("fails")}
    assert {name: (ti["state"], ti["try_number"]) for name, ti in tasks.items()} == {
        "oom": ("failed", 1),
        "flaky": ("success", 2),
        "slow": ("failed", 1),
    }
    facts = stack.attempts()
    assert facts["fails/oom"]["outcome"] == "failed.oom"
    assert facts["fails/oom"]["evidence"] == "CUDA out of memory. Tried 2 GiB"
    assert facts["fails/slow"]["outcome"] == "stopped.timeout"
    tries = [row for row in stack.get("/gpupool/attempts", since="2020-01-01T00:00:00Z") if row["task_id"] == "flaky"]
    assert sorted((row["try_number"], row["outcome"]) for row in tries) == [
        (1, "failed.network"),
        (2, "succeeded"),
    ]


def test_a_job_never_takes_more_devices_than_it_was_admitted_with(stack):
    run_id = stack.start("sneaky")
    states = {ti["map_index"]: ti["state"] for ti in stack.finish("sneaky", run_id) if ti["task_id"] == "job"}
    assert states == {0: "failed", 1: "success"}
    log = stack.api.get(f"/api/v2/dags/sneaky/dagRuns/{run_id}/taskInstances/job/logs/1", params={"map_index": 0}).text
    assert "asks for 2 slots of pool 'red-train.cpu' and was admitted to 1" in log


def outcome_of(stack: Stack, run_id: str) -> str | None:
    """Of the run's first attempt; ids of attempts grow with time."""
    rows = stack.get("/gpupool/attempts", since="2020-01-01T00:00:00Z")
    return min((row for row in rows if row["run_id"] == run_id), key=lambda row: row["attempt_id"])["outcome"]


def begin_long(stack: Stack) -> tuple[str, psutil.Process]:
    run_id = stack.start("long")
    wait_for("its output while it runs", lambda: "ready" in stack.log_of("long", run_id, "job"))
    (guardian,) = stack.guardians()
    assert len(locks(stack).holders()) == 1
    (alive,) = stack.get("/gpupool/attempts", since=datetime.now(UTC).isoformat())
    assert (alive["airflow_state"], alive["outcome"]) == ("running", None)
    assert alive["started_at"] < datetime.now(UTC).isoformat()
    return run_id, guardian


def test_a_waiting_job_says_why(stack):
    first, guardian = begin_long(stack)
    second = stack.start("long")
    place = {"dag_id": "long", "run_id": second, "task_id": "job"}
    wait_for("the second to wait", lambda: stack.get("/gpupool/why", **place)["waits"])
    sentence = "It needs 1 cpu; 0 of the 1 of queue red-train are free, 1 more must end. Held by long.job (1)."
    assert stack.get("/gpupool/why", **place)["why"] == sentence
    assert sentence in stack.api.get("/gpupool/queues").text
    assert "Waits for" in stack.api.get("/gpupool/job", params=place).text
    assert "Holds 1 cpu of queue red-train" in stack.api.get("/gpupool/job", params=place | {"run_id": first}).text
    for run_id in (second, first):
        stack.api.patch(f"/api/v2/dags/long/dagRuns/{run_id}", json={"state": "failed"}).raise_for_status()
    psutil.wait_procs([guardian], timeout=15)
    assert "holds no device and waits for none" in stack.api.get("/gpupool/job", params=place).text


def test_kill_9_of_the_worker_frees_the_lease_and_leaves_no_child(stack):
    run_id, guardian = begin_long(stack)
    below = [guardian, *guardian.children(recursive=True)]
    worker = guardian.parent()
    assert worker is not None
    worker.kill()
    _, alive = psutil.wait_procs(below, timeout=10)
    assert alive == []
    assert locks(stack).holders() == {}
    stack.api.patch(f"/api/v2/dags/long/dagRuns/{run_id}", json={"state": "failed"})
    wait_for("the attempt closed as lost", lambda: outcome_of(stack, run_id) == "lost")


def test_a_user_who_stops_a_job_gets_its_checkpoint_and_the_device_back(stack):
    run_id, guardian = begin_long(stack)
    below = [guardian, *guardian.children(recursive=True)]
    stack.api.patch(
        f"/api/v2/dags/long/dagRuns/{run_id}/taskInstances/job", json={"new_state": "failed"}
    ).raise_for_status()
    _, alive = psutil.wait_procs(below, timeout=15)
    assert alive == []
    assert locks(stack).holders() == {}
    wait_for("the checkpoint in the log", lambda: "saving a checkpoint" in stack.log_of("long", run_id, "job"), 15)
    wait_for("the attempt closed by its user", lambda: outcome_of(stack, run_id) == "stopped.user", 15)


def test_a_cleared_job_starts_again_only_when_the_first_copy_is_gone(stack):
    run_id, first = begin_long(stack)
    clear = {"dry_run": False, "dag_run_id": run_id, "task_ids": ["job"], "only_failed": False, "only_running": False}
    stack.api.post("/api/v2/dags/long/clearTaskInstances", json=clear).raise_for_status()

    def second() -> psutil.Process | None:
        guardians = stack.guardians()
        assert len(guardians) <= 1, "two copies run at once"
        return next((g for g in guardians if g.pid != first.pid), None)

    guardian = wait_for("the second copy", second, 60)
    assert not first.is_running() or first.status() == psutil.STATUS_ZOMBIE
    stack.api.patch(f"/api/v2/dags/long/dagRuns/{run_id}", json={"state": "failed"}).raise_for_status()
    _, alive = psutil.wait_procs([guardian], timeout=15)
    assert alive == []


def test_the_form_runs_a_command_and_refuses_what_cannot_run(stack):
    run_id = stack.start("submit__blue-batch", command="echo hello from $GPUPOOL_QUEUE", devices=1)
    (ti,) = stack.finish("submit__blue-batch", run_id)
    assert (ti["state"], ti["pool"], ti["pool_slots"]) == ("success", "blue-batch.cpu", 1)
    assert "hello from blue-batch" in stack.log_of("submit__blue-batch", run_id, "run")
    assert stack.attempts()["submit__blue-batch/run"]["user"] == "admin"
    stranger = stack.trigger("submit__red-train", command="true")
    assert stranger.status_code == 400
    assert "Queue 'red-train' belongs to team 'red', and 'admin' is not of it." in stranger.text
    refused = stack.trigger("submit__blue-batch", command="true", max_runtime="9d")
    assert refused.status_code == 400
    assert "max_runtime 9d is longer than queue 'blue-batch' allows (1d)." in refused.text


def test_the_service_user_may_and_a_stranger_may_not(stack):
    import httpx

    assert httpx.get(f"{stack.url}/gpupool/attempts?since=2020-01-01T00:00:00Z").status_code == 401
    assert httpx.post(f"{stack.url}/gpupool/pools", json={"capacity": {}}).status_code == 401


def test_samples_land_tables_are_built_and_the_report_names_real_figures(stack):
    for dag_id in ("gpupool_inventory", "gpupool_collect", "gpupool_build", "gpupool_report"):
        states = [ti["state"] for ti in stack.run(dag_id)]
        assert states == ["success"], dag_id
    lake = Lake(str(stack.home / "lake"))
    assert lake.scan(INVENTORY_SNAPSHOT).filter(pl.col("state") == "ready").collect().height >= 2
    assert lake.scan(DEVICE_SAMPLE).collect()["device_id"].n_unique() == 2
    hours = lake.scan(DEVICE_HOUR).collect()
    assert set(hours["flavor"]) == {"cpu"}
    assert hours["covered_seconds"].max() > 0
    attempts = lake.scan(JOB_ATTEMPT).collect()
    assert attempts.filter(dag_id="many_red", outcome="succeeded").height == 10
    usage = lake.scan(JOB_USAGE).collect()
    assert usage.filter(team="blue")["device_seconds"].sum() > 5
    page = stack.api.get("/gpupool/report")
    assert page.status_code == 200
    assert "blue-batch" in page.text
    assert "failed.oom" in page.text


def test_building_again_changes_no_row(stack):
    stack.run("gpupool_build")
    lake = Lake(str(stack.home / "lake"))
    before = lake.scan(DEVICE_HOUR).filter(pl.col("hour") < pl.col("hour").max()).collect()
    jobs = lake.scan(JOB_USAGE).sort("attempt_id").collect()
    time.sleep(1)
    stack.run("gpupool_build")
    assert lake.scan(JOB_USAGE).sort("attempt_id").collect().equals(jobs)
    assert (
        lake.scan(DEVICE_HOUR).collect().join(before, on=before.columns, how="semi", nulls_equal=True).height
        == before.height
    )


def test_a_changed_pool_file_moves_the_pools_and_is_audited(stack):
    file = stack.home.parent / "pool.yaml"
    file.write_text(
        (POOL_TEXT + TELEMETRY).replace("      h100: {nominal: 8}\n", "").replace("priority: 200", "priority: 250")
    )
    stack.run("gpupool_inventory")
    pools = {pool["name"]: pool for pool in stack.get("/api/v2/pools")["pools"]}
    assert "red-train.h100" not in pools
    assert "priority 250" in pools["red-train.cpu"]["description"]
    events = stack.get("/api/v2/eventLogs", event="gpupool_delete")["event_logs"]
    assert events[0]["owner"] == "gpupool"
    assert json.loads(events[0]["extra"])["pool"] == "red-train.h100"
