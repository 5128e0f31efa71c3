"""From points in time to the time they speak for. Missing samples are missing, not zero."""

from datetime import datetime, timedelta

import polars as pl


def held(points: pl.LazyFrame, *, key: str, time: str, max_gap: timedelta, until: datetime) -> pl.LazyFrame:
    """Add ``since`` and ``till``: a point speaks from its time until the next point of the same ``key``.

    It speaks for ``max_gap`` at the most and never past ``until``; what lies between is not covered by anything.
    """
    following = pl.col(time).shift(-1).over(key)
    till = pl.min_horizontal(following.fill_null(until), pl.col(time) + max_gap, pl.lit(until))
    return points.sort(key, time).with_columns(since=pl.col(time), till=till).filter(pl.col("since") < pl.col("till"))


def by_hour(intervals: pl.LazyFrame) -> pl.LazyFrame:
    """Cut ``[since, till)`` at full UTC hours; adds ``hour`` and ``seconds``, one row per interval and hour."""
    hour = pl.datetime_ranges(pl.col("since").dt.truncate("1h"), pl.col("till"), "1h", closed="left")
    cut = intervals.with_columns(hour=hour).explode("hour")
    since = pl.max_horizontal("since", "hour")
    till = pl.min_horizontal(pl.col("till"), pl.col("hour").dt.offset_by("1h"))
    return cut.with_columns(since=since, till=till).with_columns(seconds=seconds_between("since", "till"))


def clipped(intervals: pl.LazyFrame, start: datetime, end: datetime) -> pl.LazyFrame:
    """The parts of ``[since, till)`` that lie within ``[start, end)``."""
    return intervals.with_columns(
        since=pl.max_horizontal(pl.col("since"), pl.lit(start)),
        till=pl.min_horizontal(pl.col("till"), pl.lit(end)),
    ).filter(pl.col("since") < pl.col("till"))


def seconds_between(since: str, till: str) -> pl.Expr:
    """Seconds from one time column to another, as a float."""
    return (pl.col(till) - pl.col(since)).dt.total_microseconds() / 1e6


def weighted_mean(value: str, weight: str = "seconds", where: pl.Expr | None = None) -> pl.Expr:
    """Mean of ``value`` weighted by ``weight`` over the rows that have a value; null if there is none."""
    counts = pl.col(value).is_not_null() if where is None else pl.col(value).is_not_null() & where
    total = pl.col(weight).filter(counts).sum()
    return pl.when(total > 0).then((pl.col(value) * pl.col(weight)).filter(counts).sum() / total)
