"""Table ``device_hour``: what each device did in each hour, from samples."""

from datetime import datetime, timedelta

import polars as pl

from gpupool.metering.intervals import by_hour, clipped, held, weighted_mean


def device_hour(
    samples: pl.LazyFrame,
    flavors: pl.LazyFrame,
    *,
    start: datetime,
    end: datetime,
    max_gap: timedelta,
) -> pl.LazyFrame:
    """One row per device and hour with at least one covered second in ``[start, end)``.

    ``samples``: table ``device_sample``, from ``start - max_gap`` on, so that a sample just before the hour counts.
    ``flavors``: ``device_id``, ``flavor``. ``covered_seconds`` is the time that samples speak for, out of 3,600;
    ``allocated_seconds`` the part of it in which a job held the device. Utilization is the time-weighted mean over
    the covered time (``allocated_utilization_percent``: over the allocated part).
    """
    allocated = pl.col("attempt_id").is_not_null()
    hours = by_hour(clipped(held(samples, key="device_id", time="sampled_at", max_gap=max_gap, until=end), start, end))
    return (
        hours.group_by("hour", "device_id")
        .agg(
            node=pl.col("node").last(),
            samples=pl.len(),
            covered_seconds=pl.col("seconds").sum(),
            allocated_seconds=pl.col("seconds").filter(allocated).sum(),
            utilization_percent=weighted_mean("utilization_percent"),
            allocated_utilization_percent=weighted_mean("utilization_percent", where=allocated),
            memory_used_bytes=weighted_mean("memory_used_bytes").round(),
            power_watts=weighted_mean("power_watts"),
        )
        .join(flavors, on="device_id", how="left")
        .with_columns(date=pl.col("hour").dt.date())
        .sort("hour", "node", "device_id")
    )
