"""The form: a DAG per queue, so that a person without a DAG can submit a job from Airflow's trigger page."""

from collections.abc import Mapping
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from gpupool.exceptions import RequestRefused
from gpupool.pool.config import Pool
from gpupool.pool.quantities import DURATION_PATTERN, format_duration, parse_duration

if TYPE_CHECKING:
    from airflow.sdk import DAG

_PREFIX = "submit__"


def form_dag_id(queue: str) -> str:
    """Id of the form DAG of a queue."""
    return _PREFIX + queue


def is_form(dag_id: str) -> bool:
    """Is this the id of a form DAG?"""
    return dag_id.startswith(_PREFIX)


def asked_in_form(pool: Pool, dag_id: str, conf: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments of ``check_request`` from a form's values; missing ones take the queue's defaults."""
    queue = dag_id.removeprefix(_PREFIX)
    if queue not in pool.queues:
        raise RequestRefused(f"Queue {queue!r} left the pool file. Submit to one of: {', '.join(pool.queues)}.")
    runtime = conf.get("max_runtime")
    return {
        "queue": queue,
        "flavor": conf.get("flavor"),
        "devices": conf.get("devices", 1),
        "max_runtime": parse_duration(runtime) if runtime else None,
    }


def form_dags(pool: Pool) -> "list[DAG]":
    """One form DAG per queue; their ids differ, so that a full queue never holds up another."""
    return [_form_dag(pool, name) for name in pool.queues]


def _form_dag(pool: Pool, name: str) -> "DAG":
    from airflow.sdk import DAG, Param

    from gpupool.airflow.operators import SubmittedJobOperator

    queue = pool.queues[name]
    largest = max(queue.largest_job(flavor) for flavor in queue.quota)
    with DAG(
        form_dag_id(name),
        schedule=None,
        tags=["gpupool", "form", f"team:{queue.team}"],
        default_args={"owner": queue.team},
        max_active_runs=1000,
        max_active_tasks=1000,
        dag_display_name=f"Submit to {name}",
        doc_md=f"Submit one job to queue **{name}** of team {queue.team} ({queue.workload}). {queue.description}",
        params={
            "command": Param("nvidia-smi -L || nproc", type="string", minLength=1, description="Run by bash."),
            "devices": Param(1, type="integer", minimum=1, maximum=largest, description="How many devices."),
            "flavor": Param(queue.default_flavor, type="string", enum=list(queue.quota), description="Device class."),
            "max_runtime": Param(
                format_duration(min(queue.max_runtime, timedelta(hours=1))),
                type="string",
                pattern=DURATION_PATTERN,
                description=f"Stopped after this; at most {format_duration(queue.max_runtime)}.",
            ),
        },
    ) as dag:
        SubmittedJobOperator(task_id="run", queue=name)
    return dag
