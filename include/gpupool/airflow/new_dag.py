"""DAGs to start from, one template per kind of job."""

from enum import StrEnum

from gpupool.exceptions import RequestRefused
from gpupool.pool.config import Pool
from gpupool.pool.quantities import format_duration


class DagTemplate(StrEnum):
    """Kinds of job that have a template."""

    TRAINING = "training"
    FINETUNE = "finetune"
    BATCH = "batch"
    EXPERIMENT = "experiment"


def new_dag(pool: Pool, template: DagTemplate, queue: str, dag_id: str) -> str:
    """Source of a DAG file for a queue. Raises RequestRefused if the pool file has no such queue."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    if queue not in pool.queues:
        raise RequestRefused(f"Queue {queue!r} is not in the pool file. Use one of: {', '.join(pool.queues)}.")
    rules = pool.queues[queue]
    loader = PackageLoader("gpupool.airflow", "dag_templates")
    environment = Environment(loader=loader, undefined=StrictUndefined, keep_trailing_newline=True, autoescape=False)  # noqa: S701 - Python, not HTML
    return environment.get_template(f"{template}.py.j2").render(
        dag_id=dag_id,
        queue=queue,
        team=rules.team,
        flavor=rules.default_flavor,
        max_runtime=format_duration(rules.max_runtime),
    )
