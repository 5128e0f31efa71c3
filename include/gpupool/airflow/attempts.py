"""Attempts as Airflow knows them: task instances, their earlier tries, and the facts their workers stored."""

import json
from collections.abc import Iterator
from datetime import datetime
from typing import TYPE_CHECKING, Any

from sqlalchemy import or_, select

from gpupool.airflow.attempt import STORE_PREFIX
from gpupool.pool.config import Pool
from gpupool.pool.outcomes import Outcome
from gpupool.pool.request import pool_name

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

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
    facts = _facts(session, since)
    for model, id_column in ((TaskInstance, TaskInstance.id), (TaskInstanceHistory, TaskInstanceHistory.task_instance_id)):
        rows = session.execute(
            select(model, id_column, DagRun.triggering_user_name)
            .join(DagRun, (DagRun.dag_id == model.dag_id) & (DagRun.run_id == model.run_id))
            .where(model.pool.in_(places), or_(model.end_date.is_(None), model.end_date >= since))
            .where(model.scheduled_dttm.is_not(None))
        ).all()
        for ti, attempt_id, user in rows:
            queue, flavor = places[ti.pool]
            is_over = model is TaskInstanceHistory or ti.state in _FINISHED
            yield _row(ti, str(attempt_id), user, facts.get(str(attempt_id), {}), pool, queue, flavor, is_over=is_over)


def _facts(session: "Session", since: datetime) -> dict[str, dict[str, Any]]:
    """What workers stored, by attempt id."""
    from airflow.models.task_state_store import TaskStateStoreModel as Store

    rows = session.execute(
        select(Store.key, Store.value).where(Store.key.startswith(STORE_PREFIX), Store.updated_at >= since)
    ).all()
    return {key.removeprefix(STORE_PREFIX): json.loads(value) for key, value in rows}


def _row(
    ti: Any,
    attempt_id: str,
    user: str | None,
    facts: dict[str, Any],
    pool: Pool,
    queue: str,
    flavor: str,
    *,
    is_over: bool,
) -> dict[str, Any]:
    ended, outcome = facts.get("ended_at"), facts.get("outcome")
    evidence = facts.get("evidence")
    if facts.get("started_at") and not ended and is_over and ti.end_date:
        ended, outcome = ti.end_date.isoformat(), Outcome.LOST.value
        evidence = f"Airflow finished the task as {ti.state}; its worker reported no end."
    submitted = ti.scheduled_dttm
    return {
        "date": submitted.date().isoformat(),
        "attempt_id": attempt_id,
        "dag_id": ti.dag_id,
        "run_id": ti.run_id,
        "task_id": ti.task_id,
        "map_index": ti.map_index,
        "try_number": facts.get("try_number", ti.try_number),
        "user": user,
        "team": facts.get("team", pool.queues[queue].team),
        "queue": queue,
        "workload": facts.get("workload", pool.queues[queue].workload.value),
        "flavor": flavor,
        "devices": ti.pool_slots,
        "device_ids": facts.get("device_ids", []),
        "node": facts.get("node"),
        "airflow_state": ti.state,
        "submitted_at": submitted.isoformat(),
        "started_at": facts.get("started_at"),
        "ended_at": ended,
        "outcome": outcome,
        "evidence": evidence,
        "exit_code": facts.get("exit_code"),
        "max_rss_bytes": facts.get("max_rss_bytes"),
        "cpu_seconds": facts.get("cpu_seconds"),
    }
