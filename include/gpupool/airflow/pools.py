"""Airflow's pools in its metadata database: read them, and apply changes with an audit row each."""

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from sqlalchemy import delete, func, or_, select, update

from gpupool.pool.config import Pool
from gpupool.scheduling.changes import LivePool, PoolChange, pool_changes
from gpupool.scheduling.slots import queue_pools

if TYPE_CHECKING:
    from sqlalchemy.orm import Session


def apply_pool(session: "Session", pool: Pool, capacity: Mapping[str, int], *, who: str) -> list[PoolChange]:
    """Bring Airflow's pools to what the pool file and the capacity say; returns the steps taken."""
    changes = planned_changes(session, pool, capacity)
    for change in changes:
        _apply(session, change, who)
    return changes


def planned_changes(session: "Session", pool: Pool, capacity: Mapping[str, int]) -> list[PoolChange]:
    """The steps that :func:`apply_pool` would take now."""
    return pool_changes(_live_pools(session), queue_pools(pool, capacity, _waiting_devices(session)))


def _live_pools(session: "Session") -> list[LivePool]:
    from airflow.models.pool import Pool as AirflowPool
    from airflow.models.taskinstance import TaskInstance
    from airflow.utils.state import State

    unfinished = or_(TaskInstance.state.is_(None), TaskInstance.state.in_([s for s in State.unfinished if s]))
    jobs: dict[str, int] = dict(
        session.execute(select(TaskInstance.pool, func.count()).where(unfinished).group_by(TaskInstance.pool)).all()
    )
    rows = session.execute(select(AirflowPool.pool, AirflowPool.slots, AirflowPool.description)).all()
    return [LivePool(name, slots, description or "", jobs.get(name, 0)) for name, slots, description in rows]


def _waiting_devices(session: "Session") -> dict[str, int]:
    from airflow.models.taskinstance import TaskInstance

    rows = session.execute(
        select(TaskInstance.pool, func.sum(TaskInstance.pool_slots))
        .where(TaskInstance.state == "scheduled")
        .group_by(TaskInstance.pool)
    ).all()
    return {name: int(devices) for name, devices in rows}


def _apply(session: "Session", change: PoolChange, who: str) -> None:
    from airflow.models.log import Log
    from airflow.models.pool import Pool as AirflowPool

    mine = AirflowPool.pool == change.pool
    if change.action == "create":
        session.add(
            AirflowPool(
                pool=change.pool,
                slots=change.slots_after,
                description=change.description,
                include_deferred=True,
            )
        )
    elif change.action == "delete":
        session.execute(delete(AirflowPool).where(mine))
    else:
        session.execute(
            update(AirflowPool)
            .where(mine)
            .values(slots=change.slots_after, description=change.description, include_deferred=True)
        )
    if change.action != "describe":  # how many wait is no news for an audit
        facts = {
            "pool": change.pool,
            "before": change.slots_before,
            "after": change.slots_after,
            "why": change.reason,
        }
        session.add(Log(event=f"gpupool_{change.action}", owner=who, extra=json.dumps(facts)))
    session.flush()


def as_lines(changes: Sequence[PoolChange]) -> list[str]:
    """The steps as people read them."""
    return [
        f"{c.action:8} {c.pool:32} {_slots(c.slots_before):>5} -> {_slots(c.slots_after):>5}  {c.reason}"
        for c in changes
    ]


def _slots(slots: int | None) -> str:
    return "none" if slots is None else str(slots)
