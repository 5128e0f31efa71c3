"""Jobs of the integration test: each writes down which device it had, from when to when."""

import os
import sys
from datetime import timedelta

from airflow.sdk import DAG, task

from gpupool.airflow.operators import GpuJobOperator

FACTS = os.environ.get("TEST_FACTS", "/tmp")
RECORD = f"""
import json, os, pathlib, time
start = time.time()
time.sleep(0.5)
name = os.environ["GPUPOOL_ATTEMPT"]
facts = dict(devices=os.environ["GPUPOOL_DEVICES"].split(","), start=start, end=time.time(), queue=os.environ["GPUPOOL_QUEUE"], cores=sorted(os.sched_getaffinity(0)))
pathlib.Path({FACTS!r}, name + ".json").write_text(json.dumps(facts))
print("recorded by", name)
"""


def dag(name: str, owner: str) -> DAG:
    return DAG(name, schedule=None, default_args={"owner": owner})


with dag("many_red", "red"):
    GpuJobOperator.partial(task_id="job", queue="red-train").expand(command=[[sys.executable, "-c", RECORD]] * 10)

with dag("many_blue", "blue"):
    GpuJobOperator.partial(task_id="job", queue="blue-batch").expand(command=[[sys.executable, "-c", RECORD]] * 10)

with dag("long", "red"):
    GpuJobOperator(
        task_id="job",
        queue="red-train",
        command="trap 'echo saving a checkpoint; exit 0' TERM; echo ready; sleep 300 & wait",
    )

with dag("fails", "red"):
    GpuJobOperator(task_id="oom", queue="red-train", command="echo 'CUDA out of memory. Tried 2 GiB'; exit 1")
    GpuJobOperator(task_id="flaky", queue="red-train", retry_delay=timedelta(seconds=5),
                   command='[ -e "$GPUPOOL_ARTIFACTS/seen" ] && exit 0; touch "$GPUPOOL_ARTIFACTS/seen"; echo NCCL error: unhandled system error; exit 1')  # fmt: skip
    GpuJobOperator(task_id="slow", queue="blue-batch", owner="blue", max_runtime="2s", command="sleep 60")

with dag("sneaky", "red"):

    @task
    def wishes() -> list[dict]:
        return [{"command": "true", "devices": 2}, {"command": "true"}]

    GpuJobOperator.partial(task_id="job", queue="red-train").expand_kwargs(wishes())

with dag("function", "red"):

    @task.gpu(queue="red-train", devices=1, max_runtime="5m", env={"FLAVOUR": "vanilla"})
    def train(rate: float, name: str = "m") -> dict:
        import os
        from pathlib import Path

        print("training", name, "at", rate)
        (Path(os.environ["GPUPOOL_ARTIFACTS"]) / "model.txt").write_text(name)
        return {
            "name": name,
            "rate": rate,
            "flavour": os.environ["FLAVOUR"],
            "device": os.environ["GPUPOOL_DEVICES"],
        }

    @task
    def use(result: dict) -> str:
        return f"{result['name']} at {result['rate']}"

    use(train(0.1, name="{{ dag.dag_id }}"))
