"""The cluster policy, shown as a data team meets it: a real DAG file, parsed by Airflow, and its import error."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import POOL_TEXT, ROOT

_PARSE = """
import json, sys, time
from airflow.dag_processing.dagbag import DagBag
start = time.perf_counter()
bag = DagBag(sys.argv[1])
seconds = time.perf_counter() - start
tasks = {
    f"{dag.dag_id}.{task.task_id}": [task.pool, task.pool_slots, task.priority_weight, getattr(task.weight_rule, 'value', task.weight_rule), task.retries]
    for dag in bag.dags.values() for task in dag.tasks
}
errors = {path.rsplit("/", 1)[-1]: text for path, text in bag.import_errors.items()}
print(json.dumps({"errors": errors, "tasks": tasks, "seconds": seconds, "dags": sorted(bag.dags)}))
"""
_HEAD = """
from datetime import timedelta
from airflow.sdk import DAG, task
from airflow.providers.standard.operators.bash import BashOperator
from gpupool.airflow.operators import GpuJobOperator
with DAG("{name}", schedule=None, default_args={{"owner": "red"}}):
"""
_POD = "from airflow.providers.cncf.kubernetes.operators.pod import KubernetesPodOperator\n    from kubernetes.client import models as k8s\n    "

GOOD = {
    "plain": ('GpuJobOperator(task_id="t", queue="red-train", command=["true"])', ["red-train.cpu", 1, 200, "absolute", 2]),
    "flavor": ('GpuJobOperator(task_id="t", queue="red-train", flavor="h100", devices=8, command=["true"])', ["red-train.h100", 8, 200, "absolute", 2]),
    "own_retries": ('GpuJobOperator(task_id="t", queue="red-train", command=["true"], retries=7)', ["red-train.cpu", 1, 200, "absolute", 7]),
    "decorated": ('@task.gpu(queue="red-train", devices=2, max_runtime="1h")\n    def t(x: float = 1.0): ...\n    t()', ["red-train.cpu", 2, 200, "absolute", 2]),
    "mapped": ('GpuJobOperator.partial(task_id="t", queue="red-train", devices=2).expand(command=[["a"], ["b"]])', ["red-train.cpu", 2, 200, "absolute", 2]),
    "mapped_decorated": ('@task.gpu(queue="red-train")\n    def t(x): ...\n    t.expand(x=[1, 2])', ["red-train.cpu", 1, 200, "absolute", 2]),
    "no_gpu": ('BashOperator(task_id="t", bash_command="true")', ["default_pool", 1, 1, "downstream", 0]),
    "zero_gpus": (_POD + 'KubernetesPodOperator(task_id="t", image="i", container_resources=k8s.V1ResourceRequirements(limits={"nvidia.com/gpu": "0", "cpu": "1"}))', ["default_pool", 1, 1, "downstream", 0]),
}  # fmt: skip

REFUSED = {
    "unknown_queue": ('GpuJobOperator(task_id="t", queue="gold", command=["true"])', "Queue 'gold' is not in the pool file. Use one of: red-train, blue-batch."),
    "foreign_team": ('GpuJobOperator(task_id="t", queue="blue-batch", command=["true"])', "Queue 'blue-batch' belongs to team 'blue', and 'red' is not of it."),
    "over_ask": ('GpuJobOperator(task_id="t", queue="red-train", flavor="h100", devices=9, command=["true"])', "9 devices of 'h100' are more than queue 'red-train' may ever give one job: 8"),
    "unknown_flavor": ('GpuJobOperator(task_id="t", queue="red-train", flavor="a10", command=["true"])', "Queue 'red-train' has no quota of flavor 'a10'."),
    "too_long": ('GpuJobOperator(task_id="t", queue="red-train", max_runtime="2d", command=["true"])', "max_runtime 2d is longer than queue 'red-train' allows (6h)."),
    "decorated_over_ask": ('@task.gpu(queue="red-train", devices=3)\n    def t(): ...\n    t()', "3 devices of 'cpu' are more than"),
    "mapped_over_ask": ('GpuJobOperator.partial(task_id="t", queue="red-train", devices=3).expand(command=[["a"]])', "3 devices of 'cpu' are more than"),
    "mapped_devices": ('GpuJobOperator.partial(task_id="t", queue="red-train", command="a").expand(devices=[1, 2])', "devices cannot differ between mapped copies"),
    "mapped_kwargs": ('GpuJobOperator.partial(task_id="t", queue="red-train").expand_kwargs([{"command": "a"}, {"command": "b", "devices": 2}])', "devices cannot differ between mapped copies"),
    "start_from_trigger": ('class Bypass(GpuJobOperator):\n        start_from_trigger = True\n    Bypass(task_id="t", queue="red-train", command=["true"])', "start_from_trigger bypasses the queue. Remove it."),
    "pod_resources": (_POD + 'KubernetesPodOperator(task_id="t", image="i", container_resources=k8s.V1ResourceRequirements(limits={"nvidia.com/gpu": "2"}))', "takes accelerators behind the pool's back (nvidia.com/gpu=2 in container_resources)."),
    "pod_mig": (_POD + 'KubernetesPodOperator(task_id="t", image="i", container_resources=k8s.V1ResourceRequirements(requests={"nvidia.com/mig-1g.10gb": 1}))', "nvidia.com/mig-1g.10gb=1 in container_resources"),
    "pod_spec": (_POD + 'KubernetesPodOperator(task_id="t", full_pod_spec=k8s.V1Pod(spec=k8s.V1PodSpec(containers=[k8s.V1Container(name="c", resources=k8s.V1ResourceRequirements(limits={"huawei.com/Ascend910": "1"}))])))', "huawei.com/Ascend910=1 in full_pod_spec"),
    "mapped_pod": (_POD + 'KubernetesPodOperator.partial(task_id="t", image="i", container_resources=k8s.V1ResourceRequirements(limits={"amd.com/gpu": "1"})).expand(cmds=[["a"]])', "amd.com/gpu=1 in container_resources"),
    "executor_config": (_POD + 'BashOperator(task_id="t", bash_command="true", executor_config={"pod_override": k8s.V1Pod(spec=k8s.V1PodSpec(containers=[k8s.V1Container(name="base", resources=k8s.V1ResourceRequirements(limits={"nvidia.com/gpu": "1"}))]))})', "nvidia.com/gpu=1 in executor_config"),
    "visible_devices": ('BashOperator(task_id="t", bash_command="true", env={"CUDA_VISIBLE_DEVICES": "0"})', "CUDA_VISIBLE_DEVICES in env"),
    "device_requests": ('class Docker(BashOperator):\n        device_requests = [{"Capabilities": [["gpu"]]}]\n    Docker(task_id="t", bash_command="true")', "takes accelerators behind the pool's back (GPU device_requests)."),
    "borrowed_pool": ('BashOperator(task_id="t", bash_command="true", pool="red-train.cpu")', "uses pool 'red-train.cpu', which belongs to gpupool's queues."),
}  # fmt: skip


def parse(folder: Path, pool_file: Path, home: Path) -> dict:
    """Parse a DAG folder as Airflow does, with gpupool's plugins, in a process of its own."""
    env = os.environ | {
        "AIRFLOW_HOME": str(home),
        "AIRFLOW__CORE__PLUGINS_FOLDER": str(ROOT / "plugins"),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "GPUPOOL_POOL_FILE": str(pool_file),
    }
    done = subprocess.run([sys.executable, "-c", _PARSE, folder], check=False, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])


@pytest.fixture(scope="module")
def parsed(tmp_path_factory: pytest.TempPathFactory) -> dict:
    folder = tmp_path_factory.mktemp("dags")
    for name, (body, _) in {**GOOD, **REFUSED}.items():
        (folder / f"{name}.py").write_text(_HEAD.format(name=name) + "    " + body + "\n")
    pool_file = tmp_path_factory.mktemp("pool") / "pool.yaml"
    pool_file.write_text(POOL_TEXT)
    return parse(folder, pool_file, tmp_path_factory.mktemp("home"))


@pytest.mark.parametrize("name", GOOD)
def test_pool_slots_weight_and_retries_are_filled_in(parsed, name):
    assert parsed["errors"].get(f"{name}.py") is None
    assert parsed["tasks"][f"{name}.t"] == GOOD[name][1]


@pytest.mark.parametrize("name", REFUSED)
def test_refusals_are_readable_import_errors(parsed, name):
    error = parsed["errors"][f"{name}.py"]
    assert f"AirflowClusterPolicyViolation: Task 't' of DAG '{name}': " in error
    assert REFUSED[name][1] in error
    assert name not in parsed["dags"]


def test_a_broken_pool_file_stops_gpu_jobs_only(tmp_path):
    folder = tmp_path / "dags"
    folder.mkdir()
    for name in ("plain", "no_gpu"):
        (folder / f"{name}.py").write_text(_HEAD.format(name=name) + "    " + GOOD[name][0] + "\n")
    (tmp_path / "pool.yaml").write_text(POOL_TEXT.replace("team: red", "team: rad"))
    result = parse(folder, tmp_path / "pool.yaml", tmp_path)
    assert "queues.red-train.team: no team is called 'rad'" in result["errors"]["plain.py"]
    assert result["dags"] == ["no_gpu"]


def test_every_template_gives_a_dag_that_is_admitted(tmp_path, pool):
    from gpupool.airflow.new_dag import DagTemplate, new_dag

    (tmp_path / "dags").mkdir()
    for template in DagTemplate:
        (tmp_path / f"dags/{template}.py").write_text(new_dag(pool, template, "red-train", f"my_{template}"))
    (tmp_path / "pool.yaml").write_text(POOL_TEXT)
    result = parse(tmp_path / "dags", tmp_path / "pool.yaml", tmp_path)
    assert result["errors"] == {}
    assert result["dags"] == sorted(f"my_{template}" for template in DagTemplate)
    gpu_tasks = {name: facts for name, facts in result["tasks"].items() if facts[0] == "red-train.cpu"}
    assert len(gpu_tasks) == len(DagTemplate)
    assert gpu_tasks["my_experiment.try"][4] == 0


def test_the_shipped_dags_parse_fast_and_hold_no_logic(tmp_path):
    parse(ROOT / "dags", ROOT / "include/pool.yaml", tmp_path)  # warms file caches
    result = parse(ROOT / "dags", ROOT / "include/pool.yaml", tmp_path)
    assert result["errors"] == {}
    assert {
        "gpupool_collect",
        "gpupool_build",
        "gpupool_report",
        "gpupool_inventory",
        "submit__nlp-training",
    } <= set(result["dags"])
    assert result["seconds"] < 2
    for file in [*(ROOT / "dags/system").glob("*.py"), ROOT / "dags/gpupool_submit.py"]:
        source = file.read_text()
        assert "def " not in source, file
        assert "import polars" not in source, file
