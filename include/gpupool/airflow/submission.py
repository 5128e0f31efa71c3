"""What a person asks for in a form: its DAG's id and its values, as a request. Light, as every process loads it."""

from collections.abc import Mapping
from typing import Any

from gpupool.exceptions import RequestRefused
from gpupool.pool.config import Pool
from gpupool.pool.quantities import parse_duration

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
