"""What the system DAGs do, one function a step. The DAG files only say when; the other rooms say how."""

import logging
from datetime import UTC, datetime, timedelta

import polars as pl

from gpupool.airflow.client import ApiClient
from gpupool.airflow.inventory import remembered, snapshot_rows
from gpupool.airflow.pool_file import current_pool
from gpupool.exceptions import BadBatch
from gpupool.lake.store import Lake
from gpupool.lake.tables import (
    DEVICE_HOUR,
    DEVICE_SAMPLE,
    INVENTORY_SNAPSHOT,
    JOB_ATTEMPT,
    JOB_USAGE,
    MONEY,
    QUARANTINE,
)
from gpupool.settings import Settings

_REBUILD = timedelta(hours=3)

log = logging.getLogger(__name__)


def discover() -> dict[str, int]:
    """Discover this node, land the ledger, report drift, and bring Airflow's pools to it. Returns the capacity."""
    from gpupool.pool.drift import find_drift
    from gpupool.pool.ledger import merge
    from gpupool.telemetry.local import local_source

    settings, pool, now = Settings.from_env(), current_pool(), datetime.now(UTC)
    lake = Lake(settings.lake)
    known = remembered(lake, now)
    ledger = merge(pool, [local_source().discover()], known)
    lake.insert_new(INVENTORY_SNAPSHOT, snapshot_rows(ledger, now))
    for finding in find_drift(ledger, known):
        log.warning("Drift: %s", finding.sentence)
    for step in ApiClient(settings).apply_pools(ledger.capacity()):
        log.info("Airflow pool: %s", step)
    return ledger.capacity()


def collect() -> dict[str, int]:
    """Sample this node's devices, judge the samples, land the good and quarantine the bad.

    Raises BadBatch if too many are bad, after all rows are safe, or if not one device answered.
    """
    from gpupool.jobs.leases import DeviceLocks
    from gpupool.telemetry.gate import judge
    from gpupool.telemetry.local import collect as read_devices
    from gpupool.telemetry.local import local_source

    settings, rules = Settings.from_env(), current_pool().telemetry
    source, locks = local_source(), DeviceLocks(settings.state / "leases")
    report = source.discover()
    rows = read_devices(
        source,
        readings=rules.readings,
        interval_s=rules.interval.total_seconds(),
        attempts=lambda: {device: holder.attempt_id for device, holder in locks.holders().items()},
    )
    if not rows:
        raise BadBatch(
            f"No device of node {report.node} answered. {report.fault or 'See its devices in the inventory.'}"
        )
    judgement = judge(rows, now=datetime.now(UTC), memory_bytes={d.device_id: d.memory_bytes for d in report.devices})
    lake = Lake(settings.lake)
    quarantined = lake.insert_new(QUARANTINE, judgement.bad)
    landed = lake.insert_new(DEVICE_SAMPLE, judgement.good)
    for row in judgement.bad.to_dicts():
        log.warning("Quarantined row %d: %s", row["row_number"], " ".join(row["reasons"]))
    judgement.require(rules.max_bad_share)
    return {"landed": landed, "quarantined": quarantined}


def build() -> dict[str, int]:
    """Rebuild ``device_hour`` and ``job_usage`` of the last hours, for samples that came late, up to now.

    It starts where the tables end if that is earlier, so nothing is missed after an outage. The same samples and
    attempts give the same tables, however often it runs.
    """
    from gpupool.metering.device_hour import device_hour
    from gpupool.metering.job_usage import job_usage

    settings, pool, now = Settings.from_env(), current_pool(), datetime.now(UTC)
    lake, max_gap = Lake(settings.lake), pool.telemetry.max_gap
    start = _build_start(lake, now)
    attempts = ApiClient(settings).attempts(start)
    lake.upsert(JOB_ATTEMPT, _attempt_frame(attempts))
    samples = lake.scan(DEVICE_SAMPLE)
    hourly = device_hour(
        samples.filter(pl.col("sampled_at") >= start - max_gap),
        _flavors(lake),
        start=start,
        end=now,
        max_gap=max_gap,
    ).collect(engine="streaming")
    lake.replace(DEVICE_HOUR, hourly, start, now)
    ours = lake.scan(JOB_ATTEMPT).filter(pl.col("attempt_id").is_in([a["attempt_id"] for a in attempts]))
    first = min((a["started_at"] for a in attempts if a["started_at"]), default=now.isoformat())
    usage = job_usage(
        ours,
        samples.filter(pl.col("sampled_at") >= datetime.fromisoformat(first)),
        _prices(),
        now=now,
        max_gap=max_gap,
    ).collect(engine="streaming")
    lake.upsert(JOB_USAGE, usage)
    return {"device_hours": hourly.height, "attempts": len(attempts), "usages": usage.height}


def report() -> str:
    """Write today's report, so far, and return its path."""
    from gpupool.reports.daily import figures
    from gpupool.reports.render import write_report

    settings, pool, now = Settings.from_env(), current_pool(), datetime.now(UTC)
    day = now.astimezone(pool.zone).date()
    path = write_report(figures(Lake(settings.lake), pool, day, now=now), settings.reports)
    log.info("Report: %s", path)
    return str(path)


def _build_start(lake: Lake, now: datetime) -> datetime:
    """The full hour from which to build again."""
    built, sampled = pl.col("hour").max(), pl.col("sampled_at").min()
    last = (
        lake.scan(DEVICE_HOUR).select(built).collect().item()
        or lake.scan(DEVICE_SAMPLE).select(sampled).collect().item()
    )
    start = min(last or now, now - _REBUILD)
    return start.replace(minute=0, second=0, microsecond=0)


def _attempt_frame(rows: list[dict[str, object]]) -> pl.DataFrame:
    times = ("submitted_at", "started_at", "ended_at")
    schema = dict(JOB_ATTEMPT.schema)
    text = dict.fromkeys(("date", *times), pl.String)
    return pl.DataFrame(rows, schema={**schema, **text}).with_columns(
        pl.col("date").str.to_date(),
        *(pl.col(name).str.to_datetime(time_unit="us", time_zone="UTC") for name in times),
    )


def _flavors(lake: Lake) -> pl.LazyFrame:
    """Each device's flavor as last snapshotted."""
    return lake.scan(INVENTORY_SNAPSHOT).sort("snapshot_at").group_by("device_id").agg(flavor=pl.col("flavor").last())


def _prices() -> pl.LazyFrame:
    flavors = current_pool().flavors
    return pl.LazyFrame(
        {
            "flavor": list(flavors),
            "price_per_device_hour": [flavor.price_per_device_hour for flavor in flavors.values()],
        },
        schema={"flavor": pl.String, "price_per_device_hour": MONEY},
    )
