"""Table ``job_usage``: what each attempt held, used and cost."""

from datetime import datetime, timedelta

import polars as pl

from gpupool.lake.tables import MONEY
from gpupool.metering.intervals import held, seconds_between, weighted_mean

_HOUR_US = 3_600_000_000
_EXACT = pl.Decimal(38, 6)


def job_usage(
    attempts: pl.LazyFrame, samples: pl.LazyFrame, prices: pl.LazyFrame, *, now: datetime, max_gap: timedelta
) -> pl.LazyFrame:
    """One row per attempt that held devices.

    ``attempts``: table ``job_attempt``; an attempt without an end is metered until ``now``. ``prices``: ``flavor``,
    ``price_per_device_hour``. Device time is devices times the time from lease to end; cost is device time times
    price, to the millionth. ``utilization_percent`` is the time-weighted mean over ``covered_device_seconds`` only.
    """
    ran = attempts.filter(pl.col("started_at").is_not_null()).with_columns(until=pl.col("ended_at").fill_null(now))
    micros = device_micros("started_at", "until")
    return (
        ran.join(_use(ran, samples, now, max_gap), on="attempt_id", how="left")
        .join(prices, on="flavor", how="left")
        .with_columns(
            date=pl.col("started_at").dt.date(),
            wait_seconds=seconds_between("submitted_at", "started_at"),
            run_seconds=seconds_between("started_at", "until"),
            device_seconds=micros / 1e6,
            covered_device_seconds=pl.col("covered_device_seconds").fill_null(0.0),
            cost=cost_of(micros),
        )
        .drop("until")
        .sort("started_at", "attempt_id")
    )


def device_micros(since: str, till: str) -> pl.Expr:
    """Device time from one time column to another, in whole microseconds: devices times time."""
    return (pl.col(till) - pl.col(since)).dt.total_microseconds() * pl.col("devices").cast(pl.Int64)


def cost_of(micros: pl.Expr) -> pl.Expr:
    """Device time in microseconds times ``price_per_device_hour``, in decimal throughout."""
    price = pl.col("price_per_device_hour").cast(_EXACT)
    return (price * micros.cast(_EXACT) / pl.lit(_HOUR_US).cast(_EXACT)).cast(MONEY)


def _use(ran: pl.LazyFrame, samples: pl.LazyFrame, now: datetime, max_gap: timedelta) -> pl.LazyFrame:
    """Covered device time and mean utilization per attempt, from samples taken while it held the device."""
    spans = held(samples, key="device_id", time="sampled_at", max_gap=max_gap, until=now)
    return (
        spans.join(ran.select("attempt_id", "started_at", "until"), on="attempt_id")
        .with_columns(since=pl.max_horizontal("since", "started_at"), till=pl.min_horizontal("till", "until"))
        .filter(pl.col("since") < pl.col("till"))
        .with_columns(seconds=seconds_between("since", "till"))
        .group_by("attempt_id")
        .agg(
            covered_device_seconds=pl.col("seconds").sum(),
            utilization_percent=weighted_mean("utilization_percent"),
        )
    )
