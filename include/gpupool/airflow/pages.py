"""Pages inside Airflow's UI: all queues, and the place of one job in its queue."""

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from gpupool.scheduling.waiting import QueuedJob, QueueState, why_it_waits

if TYPE_CHECKING:
    from jinja2 import Environment


def queues_page(states: list[QueueState]) -> str:
    """All queues with who holds, who waits, and why."""
    return _environment().get_template("queues.html.j2").render(states=states, now=datetime.now(UTC))


def job_page(job: QueuedJob | None, state: QueueState | None) -> str:
    """Where one job stands; ``job`` is None if it neither holds devices nor waits for any."""
    return _environment().get_template("job.html.j2").render(job=job, state=state, now=datetime.now(UTC))


def find_job(
    states: list[QueueState], dag_id: str, run_id: str, task_id: str, map_index: int
) -> tuple[QueuedJob, QueueState] | None:
    """The job and its queue, if it holds devices or waits for some."""
    wanted = (dag_id, run_id, task_id, map_index)
    return next(
        (
            (job, state)
            for state in states
            for job in (*state.holding, *state.waiting)
            if (job.dag_id, job.run_id, job.task_id, job.map_index) == wanted
        ),
        None,
    )


def _environment() -> "Environment":
    from jinja2 import Environment, PackageLoader

    environment = Environment(loader=PackageLoader("gpupool.airflow", "page_templates"), autoescape=True)
    environment.filters["ago"] = _ago
    environment.globals["why"] = why_it_waits
    return environment


def _ago(since: datetime, now: datetime) -> str:
    minutes, seconds = divmod(int((now - since).total_seconds()), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {seconds} s"
