"""The figures of the daily report. Every rate names its denominator, every figure from samples its coverage."""

from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from decimal import Decimal

import polars as pl

from gpupool.lake.store import Lake
from gpupool.lake.tables import DEVICE_HOUR, INVENTORY_SNAPSHOT, JOB_ATTEMPT, JOB_USAGE, QUARANTINE
from gpupool.metering.intervals import clipped, held, seconds_between, weighted_mean
from gpupool.metering.job_usage import cost_of, device_micros
from gpupool.pool.config import Pool
from gpupool.pool.outcomes import Outcome

_SNAPSHOT_GAP = timedelta(minutes=15)  # three missed snapshots: nothing is known of the inventory any more
_COUNTED = ("ready", "cordoned")


@dataclass(frozen=True)
class Daily:
    """All figures of one day. Frames are small: a row per flavor, queue, team, outcome or reason.

    ``flavors``: flavor, devices_ready, devices_other, schedulable_hours, allocated_hours, allocation_percent,
    device_utilization_percent, pool_utilization_percent, coverage_percent.
    ``queues``: queue, team, submitted, started, waiting, wait_p50_s, wait_p95_s, wait_max_s, succeeded, failed,
    stopped, device_hours, cost. ``teams``: team, attempts, device_hours, utilization_percent, cost.
    ``failures``: outcome, attempts, queues, evidence, sentence. ``refused``: reason, rows.
    ``hours``: hour (report time zone), flavor, kind, device_hours.
    """

    day: date
    start: datetime
    end: datetime
    is_complete: bool
    currency: str
    flavors: pl.DataFrame
    queues: pl.DataFrame
    teams: pl.DataFrame
    failures: pl.DataFrame
    refused: pl.DataFrame
    hours: pl.DataFrame

    @property
    def total_cost(self) -> Decimal:
        """Cost of all teams' device time of the day, in ``currency``."""
        return sum(self.teams["cost"].to_list(), Decimal(0))


def figures(lake: Lake, pool: Pool, day: date, *, now: datetime) -> Daily:
    """Compute the report of ``day`` in the pool's time zone, up to ``now`` if the day is not over."""
    start = datetime.combine(day, time.min, pool.zone).astimezone(now.tzinfo)
    midnight = datetime.combine(day + timedelta(days=1), time.min, pool.zone).astimezone(now.tzinfo)
    end = min(midnight, now)
    usage = _usage(lake, start, end)
    hours = lake.scan(DEVICE_HOUR).filter(pl.col("hour") >= start, pl.col("hour") < end)
    attempts = lake.scan(JOB_ATTEMPT).filter(
        pl.col("submitted_at") < end, pl.col("ended_at").is_null() | (pl.col("ended_at") >= start)
    )
    return Daily(
        day=day,
        start=start,
        end=end,
        is_complete=end == midnight,
        currency=pool.currency,
        flavors=_flavors(lake, hours, usage, start, end).collect(),
        queues=_queues(pool, attempts, usage, start).collect(),
        teams=_teams(usage).collect(),
        failures=_failures(attempts, start).collect(),
        refused=_refused(lake, start, end).collect(),
        hours=_hours(hours, pool).collect(),
    )


def _usage(lake: Lake, start: datetime, end: datetime) -> pl.LazyFrame:
    """Each attempt's part of the day, with ``device_hours`` and ``cost`` of that part."""
    spans = lake.scan(JOB_USAGE).with_columns(since=pl.col("started_at"), till=pl.col("ended_at").fill_null(end))
    micros = device_micros("since", "till")
    return clipped(spans, start, end).with_columns(device_hours=micros / 3.6e9, cost=cost_of(micros))


def _flavors(lake: Lake, hours: pl.LazyFrame, usage: pl.LazyFrame, start: datetime, end: datetime) -> pl.LazyFrame:
    snapshots = lake.scan(INVENTORY_SNAPSHOT).filter(pl.col("flavor").is_not_null())
    known = held(snapshots, key="device_id", time="snapshot_at", max_gap=_SNAPSHOT_GAP, until=end)
    schedulable = (
        clipped(known.filter(pl.col("state").is_in(_COUNTED)), start, end)
        .group_by("flavor")
        .agg(schedulable_hours=seconds_between("since", "till").sum() / 3600)
    )
    latest = snapshots.filter(pl.col("snapshot_at") == pl.col("snapshot_at").max())
    devices = latest.group_by("flavor").agg(
        devices_ready=(pl.col("state") == "ready").sum(), devices_other=(pl.col("state") != "ready").sum()
    )
    measured = hours.group_by("flavor").agg(
        covered_hours=pl.col("covered_seconds").sum() / 3600,
        pool_utilization_percent=weighted_mean("utilization_percent", "covered_seconds"),
        device_utilization_percent=weighted_mean("allocated_utilization_percent", "allocated_seconds"),
    )
    allocated = usage.group_by("flavor").agg(allocated_hours=pl.col("device_hours").sum())
    return (
        devices.join(schedulable, on="flavor", how="left")
        .join(allocated, on="flavor", how="left")
        .join(measured, on="flavor", how="left")
        .with_columns(pl.col("allocated_hours", "schedulable_hours", "covered_hours").fill_null(0.0))
        .with_columns(
            allocation_percent=_percent("allocated_hours", "schedulable_hours"),
            coverage_percent=_percent("covered_hours", "schedulable_hours").clip(upper_bound=100),
        )
        .sort("flavor")
    )


def _percent(part: str, whole: str) -> pl.Expr:
    return pl.when(pl.col(whole) > 0).then(100 * pl.col(part) / pl.col(whole))


def _queues(pool: Pool, attempts: pl.LazyFrame, usage: pl.LazyFrame, start: datetime) -> pl.LazyFrame:
    outcome, wait = pl.col("outcome"), seconds_between("submitted_at", "started_at")
    waits = wait.filter(pl.col("started_at") >= start)
    known = pl.LazyFrame({"queue": list(pool.queues), "team": [queue.team for queue in pool.queues.values()]})
    counted = attempts.group_by("queue").agg(
        submitted=(pl.col("submitted_at") >= start).sum(),
        started=(pl.col("started_at") >= start).sum(),
        waiting=(pl.col("started_at").is_null() & pl.col("airflow_state").is_in(["scheduled", "queued"])).sum(),
        wait_p50_s=waits.quantile(0.5, "linear"),
        wait_p95_s=waits.quantile(0.95, "linear"),
        wait_max_s=waits.max(),
        succeeded=(outcome == Outcome.SUCCEEDED).sum(),
        failed=(outcome.str.starts_with("failed") | (outcome == Outcome.LOST)).sum(),
        stopped=(outcome.str.starts_with("stopped") | (outcome == Outcome.PREEMPTED)).sum(),
    )
    used = usage.group_by("queue").agg(pl.col("device_hours").sum(), pl.col("cost").sum())
    return (
        known.join(counted, on="queue", how="left")
        .join(used, on="queue", how="left")
        .with_columns(pl.col("submitted", "started", "waiting", "succeeded", "failed", "stopped").fill_null(0))
        .with_columns(pl.col("device_hours").fill_null(0.0), pl.col("cost").fill_null(Decimal(0)))
        .sort("team", "queue")
    )


def _teams(usage: pl.LazyFrame) -> pl.LazyFrame:
    return (
        usage.group_by("team")
        .agg(
            attempts=pl.len(),
            device_hours=pl.col("device_hours").sum(),
            utilization_percent=weighted_mean("utilization_percent", "covered_device_seconds"),
            cost=pl.col("cost").sum(),
        )
        .sort("team")
    )


def _failures(attempts: pl.LazyFrame, start: datetime) -> pl.LazyFrame:
    ended_badly = (pl.col("ended_at").fill_null(pl.col("submitted_at")) >= start) & (
        pl.col("outcome") != Outcome.SUCCEEDED
    )
    return (
        attempts.filter(ended_badly)
        .group_by("outcome")
        .agg(
            attempts=pl.len(),
            queues=pl.col("queue").unique().sort().str.join(", "),
            evidence=pl.col("evidence").drop_nulls().last(),
        )
        .with_columns(
            sentence=pl.col("outcome").replace_strict({o.value: o.sentence for o in Outcome}, return_dtype=pl.String)
        )
        .sort("attempts", "outcome", descending=[True, False])
    )


def _refused(lake: Lake, start: datetime, end: datetime) -> pl.LazyFrame:
    """Quarantined rows by the shape of their first reason, its numbers struck out."""
    shape = pl.col("reasons").list.first().str.replace_all(r"(GPU|MIG|CPU)-[\w-]+|-?\d[\d.,e+-]*\d|\d", "…")
    return (
        lake.scan(QUARANTINE)
        .filter(pl.col("judged_at") >= start, pl.col("judged_at") < end)
        .group_by(reason=shape)
        .agg(rows=pl.len())
        .sort("rows", "reason", descending=[True, False])
    )


def _hours(hours: pl.LazyFrame, pool: Pool) -> pl.LazyFrame:
    """Device-hours per hour and flavor: busy, allocated but idle, free; where nothing was measured there is nothing."""
    busy = pl.col("covered_seconds") * pl.col("utilization_percent").fill_null(0) / 100
    used = pl.col("allocated_seconds") * pl.col("allocated_utilization_percent").fill_null(0) / 100
    return (
        hours.filter(pl.col("flavor").is_not_null())
        .with_columns(
            (used).alias("allocated and busy"),
            (pl.col("allocated_seconds") - used).alias("allocated, idle"),
            (busy - used).clip(lower_bound=0).alias("busy without a job"),
            (pl.col("covered_seconds") - pl.col("allocated_seconds") - (busy - used).clip(lower_bound=0))
            .clip(lower_bound=0)
            .alias("free"),
            pl.col("hour").dt.convert_time_zone(pool.timezone).dt.strftime("%H"),
        )
        .unpivot(
            on=["allocated and busy", "allocated, idle", "busy without a job", "free"],
            index=["hour", "flavor"],
            variable_name="kind",
            value_name="seconds",
        )
        .group_by("hour", "flavor", "kind")
        .agg(device_hours=pl.col("seconds").sum() / 3600)
        .sort("hour", "flavor", "kind")
    )
