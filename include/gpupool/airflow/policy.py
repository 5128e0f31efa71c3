"""The cluster policy: fills pool, slots and weight of GPU jobs, and refuses what breaks the pool file's rules.

``plugins/airflow_local_settings.py`` hands over to this module, in every Airflow process. Nothing heavy is imported.
"""

from collections.abc import Mapping
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from airflow.exceptions import AirflowClusterPolicyViolation

from gpupool.airflow.accelerators import taken_accelerators
from gpupool.airflow.pool_file import current_pool
from gpupool.airflow.submission import asked_in_form, is_form
from gpupool.exceptions import GpuPoolError, RequestRefused
from gpupool.pool.config import Pool
from gpupool.pool.quantities import parse_duration
from gpupool.pool.request import Request, check_request, pool_name

if TYPE_CHECKING:
    from airflow.models.dagrun import DagRun
    from airflow.models.taskinstance import TaskInstance

_ASKED = ("devices", "flavor", "max_runtime")


def task_policy(task: Any) -> None:
    """Called for each task when its DAG is parsed. Raises AirflowClusterPolicyViolation, shown as an import error."""
    try:
        if is_gpu_job(task):
            _admit(task)
        else:
            _refuse_hidden_use(task)
    except (GpuPoolError, ValueError) as error:
        dag_id = getattr(task.dag, "dag_id", "?")
        raise AirflowClusterPolicyViolation(f"Task {task.task_id!r} of DAG {dag_id!r}: {error}") from error


def task_instance_mutation_hook(task_instance: "TaskInstance", dag_run: "DagRun | None") -> None:
    """Called when a task instance is made: a form's choices become its pool and slots.

    A wrong choice raises ValueError, which Airflow's API answers with 400 and its text.
    """
    if is_form(task_instance.dag_id):
        if dag_run is not None:
            _apply_form(task_instance, dag_run)
    elif task_instance.queue and "." in task_instance.pool:
        queue = task_instance.pool.partition(".")[0]
        if task_instance.queue == queue:  # a mapped GPU job: `queue` was its gpupool queue, not an executor's
            task_instance.queue = "default"


def is_gpu_job(task: Any) -> bool:
    """Is this a GpuJobOperator or ``@task.gpu``, mapped or not?"""
    return bool(getattr(getattr(task, "operator_class", type(task)), "is_gpupool_job", False))


def _admit(task: Any) -> None:
    if getattr(task, "start_from_trigger", False):
        raise RequestRefused("start_from_trigger bypasses the queue. Remove it.")
    request = check_request(current_pool(), owner=task.owner, **_asked(task))
    task.pool = request.pool
    task.pool_slots = request.devices
    task.weight_rule = "absolute"
    task.priority_weight = current_pool().queues[request.queue].priority
    rule = current_pool().queues[request.queue].retry
    left = _left_to_queue(task)
    if "retries" in left:
        task.retries = rule.attempts
    if "retry_delay" in left:
        task.retry_delay = rule.delay


def _left_to_queue(task: Any) -> set[str]:
    """Which retry settings the DAG's author left out; of a mapped task Airflow only tells whether it has retries."""
    if hasattr(task, "partial_kwargs"):
        return set() if task.retries else {"retries", "retry_delay"}
    left: set[str] = task.left_to_queue
    return left


def _asked(task: Any) -> dict[str, Any]:
    """What the job asks for; a mapped task must ask the same for each of its copies."""
    if not hasattr(task, "partial_kwargs"):
        return {"queue": task.gpu_queue, **{name: getattr(task, name) for name in _ASKED}}
    fixed = task.partial_kwargs
    if mapped := _varied(task.expand_input.value) & {"queue", *_ASKED}:
        raise RequestRefused(
            f"{', '.join(sorted(mapped))} cannot differ between mapped copies, as all wait in one Airflow pool. "
            "Set it in partial()."
        )
    runtime = fixed.get("max_runtime")
    return {
        "queue": fixed.get("queue", ""),
        "flavor": fixed.get("flavor"),
        "devices": fixed.get("devices", 1),
        "max_runtime": runtime if isinstance(runtime, timedelta | None) else parse_duration(runtime),
    }


def _varied(expanded: Any) -> set[str]:
    """Arguments that differ between mapped copies, as far as they are known before the run.

    Those of ``expand_kwargs(XComArg)`` are not; the operator checks them against its slots when it runs.
    """
    if isinstance(expanded, Mapping):
        return set(expanded)
    copies = expanded if isinstance(expanded, list | tuple) else ()
    return {name for copy in copies if isinstance(copy, Mapping) for name in copy}


def _refuse_hidden_use(task: Any) -> None:
    """A task that is no GPU job must not take accelerators, nor slots of a GPU queue."""
    if taken := taken_accelerators(task):
        raise RequestRefused(
            f"takes accelerators behind the pool's back ({'; '.join(taken)}). Use GpuJobOperator or @task.gpu with "
            "a queue of your team."
        )
    if "." in task.pool and _is_ours(task.pool):
        raise RequestRefused(
            f"uses pool {task.pool!r}, which belongs to gpupool's queues. Use GpuJobOperator or @task.gpu instead."
        )


def _is_ours(name: str) -> bool:
    try:
        pool = current_pool()
    except GpuPoolError:
        return False  # a broken pool file stops GPU jobs, not everybody's DAGs
    return any(name == pool_name(queue, flavor) for queue, rules in pool.queues.items() for flavor in rules.quota)


def _apply_form(task_instance: "TaskInstance", dag_run: "DagRun") -> None:
    pool = current_pool()
    try:
        request = _form_request(pool, task_instance.dag_id, dag_run)
    except GpuPoolError as error:
        raise ValueError(str(error)) from error
    task_instance.pool = request.pool
    task_instance.pool_slots = request.devices


def _form_request(pool: Pool, dag_id: str, dag_run: "DagRun") -> Request:
    asked = asked_in_form(pool, dag_id, dag_run.conf or {})
    team = pool.queues[asked["queue"]].team
    person = dag_run.triggering_user_name if pool.teams[team].members else team
    return check_request(pool, owner=person or team, **asked)
