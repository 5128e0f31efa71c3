"""The queues as they stand in Airflow's metadata database now."""

from collections import defaultdict
from typing import TYPE_CHECKING

from sqlalchemy import select

from gpupool.pool.config import Pool
from gpupool.pool.request import pool_name
from gpupool.scheduling.waiting import QueuedJob, QueueState, in_order

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

_HOLDING = ("queued", "running", "deferred")
_WAITING = ("scheduled",)


def read_queues(session: "Session", pool: Pool) -> list[QueueState]:
    """Every (queue, flavor) of the pool file with its jobs, in two queries."""
    from airflow.models.pool import Pool as AirflowPool

    places = {pool_name(name, flavor): (name, flavor) for name, queue in pool.queues.items() for flavor in queue.quota}
    slots: dict[str, int] = dict(session.execute(select(AirflowPool.pool, AirflowPool.slots)).all())
    jobs = _jobs(session, list(places))
    return [
        QueueState(
            queue=queue,
            flavor=flavor,
            nominal=pool.queues[queue].quota[flavor].nominal,
            slots=slots.get(name, 0),
            holding=in_order(jobs[name, True]),
            waiting=in_order(jobs[name, False]),
        )
        for name, (queue, flavor) in places.items()
    ]


def _jobs(session: "Session", pools: list[str]) -> dict[tuple[str, bool], list[QueuedJob]]:
    """Jobs by (pool, do they hold its slots)."""
    from airflow.models.taskinstance import TaskInstance as Ti

    rows = session.execute(select(Ti).where(Ti.pool.in_(pools), Ti.state.in_([*_HOLDING, *_WAITING]))).scalars()
    jobs: dict[tuple[str, bool], list[QueuedJob]] = defaultdict(list)
    for ti in rows:
        holds = ti.state in _HOLDING
        since = (ti.start_date or ti.queued_dttm or ti.scheduled_dttm) if holds else ti.scheduled_dttm
        jobs[ti.pool, holds].append(
            QueuedJob(ti.dag_id, ti.run_id, ti.task_id, ti.map_index, ti.pool_slots, ti.priority_weight, since)
        )
    return jobs
