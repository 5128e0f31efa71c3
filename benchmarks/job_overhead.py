"""What a job costs on top of its command: 200 short jobs through gpupool against 200 BashOperator tasks.

Both run on the same real Airflow (LocalExecutor, SQLite), in one run, in alternating blocks, each block holding two
slots of a pool. Time is from a run's start to its end, as Airflow recorded them.

    python benchmarks/job_overhead.py [--jobs 200] [--blocks 4]
"""

import argparse
import json
import statistics
import sys
import tempfile
from datetime import datetime
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tests.integration.stack import Stack, running

GOAL = 1.1
POOL = """\
version: 1
teams: {bench: {}}
flavors: {cpu: {match: {gpupool.dev/kind: cpu}, price_per_device_hour: 0}}
queues: {bench: {team: bench, workload: batch, quota: {cpu: {nominal: 2}}}}
"""
DAGS = """\
from airflow.providers.standard.operators.bash import BashOperator
from airflow.sdk import DAG
from gpupool.airflow.operators import GpuJobOperator
with DAG("through_gpupool", schedule=None, default_args={{"owner": "bench"}}):
    GpuJobOperator.partial(task_id="job", queue="bench").expand(command=["true"] * {size})
with DAG("plain_bash", schedule=None):
    BashOperator.partial(task_id="job", pool="plain").expand(bash_command=["true"] * {size})
"""


def main() -> None:
    """Measure, and print one JSON object on the last line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=200)
    parser.add_argument("--blocks", type=int, default=4)
    options = parser.parse_args()
    size = options.jobs // options.blocks
    seconds: dict[str, list[float]] = {"plain_bash": [], "through_gpupool": []}
    with tempfile.TemporaryDirectory(prefix="gpupool-bench-") as name:
        folder = Path(name)
        (folder / "pool.yaml").write_text(POOL)
        (folder / "dags").mkdir()
        (folder / "dags/bench.py").write_text(DAGS.format(size=size))
        with running(folder / "home", folder / "pool.yaml", folder / "dags") as stack:
            stack.api.post(
                "/api/v2/pools", json={"name": "plain", "slots": 2, "include_deferred": True}
            ).raise_for_status()
            for dag_id in seconds:  # once to warm up
                _block(stack, dag_id)
            for i in range(options.blocks):
                for dag_id in sorted(seconds, reverse=bool(i % 2)):
                    seconds[dag_id].append(_block(stack, dag_id))
                    print(
                        f"block {i + 1} of {options.blocks}: {dag_id} {seconds[dag_id][-1]:.1f} s for {size}",
                        flush=True,
                    )
    ratios = [ours / plain for ours, plain in zip(seconds["through_gpupool"], seconds["plain_bash"], strict=True)]
    ratio = sum(seconds["through_gpupool"]) / sum(seconds["plain_bash"])
    print(
        json.dumps(
            {
                "jobs_each": size * options.blocks,
                "gpupool_s": round(sum(seconds["through_gpupool"]), 2),
                "bash_s": round(sum(seconds["plain_bash"]), 2),
                "ratio": round(ratio, 3),
                "ratio_median_of_blocks": round(statistics.median(ratios), 3),
                "goal": f"200 short jobs take at most {GOAL} times what 200 BashOperator tasks take on the same executor",
                "met": ratio <= GOAL,
            }
        )
    )


def _block(stack: Stack, dag_id: str) -> float:
    run_id = stack.start(dag_id)
    states = {ti["state"] for ti in stack.finish(dag_id, run_id, timeout_s=600)}
    assert states == {"success"}, states
    run = stack.get(f"/api/v2/dags/{dag_id}/dagRuns/{run_id}")
    return (datetime.fromisoformat(run["end_date"]) - datetime.fromisoformat(run["start_date"])).total_seconds()


if __name__ == "__main__":
    main()
