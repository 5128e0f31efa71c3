"""The form: a DAG per queue, so that a person without a DAG can submit a job from Airflow's trigger page."""

from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from airflow.sdk import DAG, Param

from gpupool.airflow.operators import GpuJobOperator
from gpupool.airflow.pool_file import current_pool
from gpupool.airflow.submission import asked_in_form, form_dag_id
from gpupool.pool.config import Pool
from gpupool.pool.quantities import DURATION_PATTERN, format_duration
from gpupool.pool.request import Request, check_request

if TYPE_CHECKING:
    from airflow.sdk import Context


class SubmittedJobOperator(GpuJobOperator):
    """The job of a form DAG: what it runs, and on what, stands in the run's parameters."""

    template_fields = ()

    def _request(self, context: "Context") -> Request:
        pool, dag_id = current_pool(), context["dag"].dag_id
        asked = asked_in_form(pool, dag_id, context["params"])
        return check_request(pool, owner=pool.queues[asked["queue"]].team, **asked)

    def _require_admission(self, request: Request) -> None:
        """The policy gave the run its pool and slots from the same parameters, when it was triggered."""

    def _command(self, context: "Context", folder: Path) -> list[str]:  # noqa: ARG002
        return ["bash", "-c", context["params"]["command"]]


def form_dags(pool: Pool) -> list[DAG]:
    """One form DAG per queue; their ids differ, so that a full queue never holds up another."""
    return [_form_dag(pool, name) for name in pool.queues if _largest_job(pool, name)]


def _largest_job(pool: Pool, name: str) -> int:
    queue = pool.queues[name]
    return max(queue.largest_job(flavor) for flavor in queue.quota)


def _form_dag(pool: Pool, name: str) -> DAG:
    queue = pool.queues[name]
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
            "devices": Param(
                1, type="integer", minimum=1, maximum=_largest_job(pool, name), description="How many devices."
            ),
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
