"""Attempts as Airflow knows them: task instances, their earlier tries, and the facts their workers stored."""

import json
from collections.abc import Collection, Iterator
from datetime import datetime
from typing import TYPE_CHECKING, Any

from sqlalchemy import or_, select

from gpupool.airflow.attempt import STORE_PREFIX
from gpupool.pool.config import Pool
from gpupool.pool.outcomes import Outcome
from gpupool.pool.request import pool_name

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

_WORKER_FACTS = (
    "node",
    "started_at",
    "ended_at",
    "outcome",
    "evidence",
    "exit_code",
    "max_rss_bytes",
    "cpu_seconds",
)
_FINISHED = ("success", "failed", "skipped", "upstream_failed", "removed")


def read_attempts(session: "Session", pool: Pool, since: datetime) -> Iterator[dict[str, Any]]:
    """Rows of table ``job_attempt``, JSON-ready, for every attempt alive at or after ``since``.

    A waiting job is a row without ``started_at``. An attempt whose worker never reported an end, but which Airflow
    has finished, ended when Airflow says so, as ``lost``.
    """
    from airflow.models.dagrun import DagRun
    from airflow.models.taskinstance import TaskInstance
    from airflow.models.taskinstancehistory import TaskInstanceHistory

    places = {pool_name(name, flavor): (name, flavor) for name, queue in pool.queues.items() for flavor in queue.quota}
    facts = _facts(session, places, since)
    for model, id_column in (
        (TaskInstance, TaskInstance.id),
        (TaskInstanceHistory, TaskInstanceHistory.task_instance_id),
    ):
        rows = session.execute(
            select(model, id_column, DagRun.triggering_user_name)
            .join(DagRun, (DagRun.dag_id == model.dag_id) & (DagRun.run_id == model.run_id))
            .where(model.pool.in_(places), or_(model.end_date.is_(None), model.end_date >= since))
            .where(model.scheduled_dttm.is_not(None))
        ).all()
        for ti, attempt_id, user in rows:
            stored = facts.get(str(attempt_id), {})
            is_over = model is TaskInstanceHistory or ti.state in _FINISHED
            queue, flavor = places[ti.pool]
            yield {
                **_identity(ti, str(attempt_id), user),
                "team": pool.queues[queue].team,
                "workload": pool.queues[queue].workload.value,
                **stored,
                **_end(ti, stored, is_over=is_over),
                "queue": queue,
                "flavor": flavor,
            }


def _facts(session: "Session", places: Collection[str], since: datetime) -> dict[str, dict[str, Any]]:
    """What workers stored, by attempt id, of every task that lives or ended at or after ``since``."""
    from airflow.models.task_state_store import TaskStateStoreModel as Store
    from airflow.models.taskinstance import TaskInstance

    same_task = (
        (Store.dag_id == TaskInstance.dag_id)
        & (Store.run_id == TaskInstance.run_id)
        & (Store.task_id == TaskInstance.task_id)
        & (Store.map_index == TaskInstance.map_index)
    )
    rows = session.execute(
        select(Store.key, Store.value)
        .join(TaskInstance, same_task)
        .where(Store.key.startswith(STORE_PREFIX), TaskInstance.pool.in_(places))
        .where(or_(TaskInstance.end_date.is_(None), TaskInstance.end_date >= since))
    ).all()
    return {key.removeprefix(STORE_PREFIX): json.loads(value) for key, value in rows}


def _identity(ti: Any, attempt_id: str, user: str | None) -> dict[str, Any]:
    """What Airflow knows of an attempt, and blanks for what only its worker can tell."""
    return {
        "date": ti.scheduled_dttm.date().isoformat(),
        "attempt_id": attempt_id,
        "dag_id": ti.dag_id,
        "run_id": ti.run_id,
        "task_id": ti.task_id,
        "map_index": ti.map_index,
        "try_number": ti.try_number,
        "user": user,
        "devices": ti.pool_slots,
        "airflow_state": ti.state,
        "submitted_at": ti.scheduled_dttm.isoformat(),
        "device_ids": [],
        **dict.fromkeys(_WORKER_FACTS),
    }


def _end(ti: Any, stored: dict[str, Any], *, is_over: bool) -> dict[str, Any]:
    """The end of an attempt that Airflow finished and whose worker never did."""
    if not is_over or not stored.get("started_at") or stored.get("ended_at") or ti.end_date is None:
        return {}
    return {
        "ended_at": ti.end_date.isoformat(),
        "outcome": Outcome.LOST.value,
        "evidence": f"Airflow finished the task as {ti.state}; its worker reported no end.",
    }
