"""Metering: time-weighted, gaps missing and not zero, money exact."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpupool.lake.tables import DEVICE_HOUR, DEVICE_SAMPLE, JOB_ATTEMPT, JOB_USAGE, MONEY
from gpupool.metering.device_hour import device_hour
from gpupool.metering.job_usage import job_usage

T0 = datetime(2026, 3, 1, 10, tzinfo=UTC)
GAP = timedelta(minutes=3)
FLAVORS = pl.LazyFrame({"device_id": ["d"], "flavor": ["cpu"]})


def samples(*rows: tuple[float, float | None, str | None], device: str = "d") -> pl.LazyFrame:
    """Rows of (seconds after T0, utilization, attempt)."""
    blank = dict.fromkeys(DEVICE_SAMPLE.schema)
    data = [
        blank
        | {
            "sampled_at": T0 + timedelta(seconds=s),
            "device_id": device,
            "node": "n",
            "utilization_percent": u,
            "attempt_id": a,
        }
        for s, u, a in rows
    ]
    return pl.DataFrame(data, schema=dict(DEVICE_SAMPLE.schema)).lazy()


def hours(frame: pl.LazyFrame, end: float = 7200) -> list[dict]:
    built = device_hour(frame, FLAVORS, start=T0, end=T0 + timedelta(seconds=end), max_gap=GAP).collect(
        engine="streaming"
    )
    return DEVICE_HOUR.conform(built).to_dicts()


def test_the_mean_is_weighted_by_time_not_by_samples():
    (hour,) = hours(samples((0, 100.0, "a"), (10, 0.0, "a"), (100, 0.0, None)), end=100)
    assert hour["utilization_percent"] == pytest.approx(10.0)
    assert (hour["covered_seconds"], hour["allocated_seconds"]) == (100, 100)


def test_a_gap_is_missing_and_not_zero():
    first, second = hours(samples((0, 80.0, None), (3600 + 60, 80.0, None)))
    assert (first["covered_seconds"], second["covered_seconds"]) == (180, 180)
    assert first["utilization_percent"] == second["utilization_percent"] == 80


def test_a_sample_is_cut_at_the_full_hour():
    first, second = hours(samples((3570, 50.0, "a"), (3630, 0.0, None)), end=3660)
    assert (first["covered_seconds"], first["allocated_seconds"]) == (30, 30)
    assert (second["covered_seconds"], second["allocated_seconds"]) == (60, 30)
    assert second["utilization_percent"] == pytest.approx(25.0)


def test_a_sample_before_the_range_speaks_into_it():
    (hour,) = hours(samples((-60, 40.0, None)), end=3600)
    assert hour["covered_seconds"] == 120


def test_an_unsupported_metric_covers_time_and_has_no_mean():
    (hour,) = hours(samples((0, None, None), (60, None, None)), end=60)
    assert (hour["covered_seconds"], hour["utilization_percent"]) == (60, None)


def test_of_allocated_time_only_the_allocated_part_counts():
    (hour,) = hours(samples((0, 100.0, "a"), (60, 0.0, None), (120, 0.0, None)), end=120)
    assert (hour["utilization_percent"], hour["allocated_utilization_percent"]) == (50, 100)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.tuples(st.integers(-400, 8000), st.floats(0, 100)),
        min_size=1,
        max_size=40,
        unique_by=lambda r: r[0],
    )
)
def test_covered_time_is_never_more_than_the_clock_and_means_stay_in_range(rows):
    built = hours(samples(*((s, u, None) for s, u in rows)))
    assert sum(h["covered_seconds"] for h in built) <= 7200
    for hour in built:
        assert 0 < hour["covered_seconds"] <= 3600
        assert min(u for _, u in rows) - 1e-9 <= hour["utilization_percent"] <= max(u for _, u in rows) + 1e-9


def attempts(**changes: object) -> pl.LazyFrame:
    row = dict.fromkeys(JOB_ATTEMPT.schema) | {
        "attempt_id": "a",
        "flavor": "cpu",
        "devices": 2,
        "submitted_at": T0,
        "started_at": T0 + timedelta(seconds=30),
        "ended_at": T0 + timedelta(seconds=630),
    }
    return pl.DataFrame([row | changes], schema=dict(JOB_ATTEMPT.schema)).lazy()


def usage(frame: pl.LazyFrame, read: pl.LazyFrame, price: str = "0.04") -> list[dict]:
    prices = pl.LazyFrame(
        {"flavor": ["cpu"], "price_per_device_hour": [Decimal(price)]},
        schema={"flavor": pl.String, "price_per_device_hour": MONEY},
    )
    built = job_usage(frame, read, prices, now=T0 + timedelta(hours=1), max_gap=GAP).collect()
    return JOB_USAGE.conform(built).to_dicts()


def test_a_job_pays_for_its_devices_from_lease_to_end():
    (job,) = usage(attempts(), samples((0, 50.0, None)), price="2.50")
    assert (job["wait_seconds"], job["run_seconds"], job["device_seconds"]) == (30, 600, 1200)
    assert job["cost"] == Decimal("0.833333")


def test_use_counts_only_while_the_job_held_the_device():
    read = samples((0, 100.0, None), (60, 40.0, "a"), (120, 60.0, "a"), (180, 0.0, None))
    (job,) = usage(attempts(), read)
    assert (job["covered_device_seconds"], job["utilization_percent"]) == (120, 50)


def test_a_running_job_is_metered_until_now():
    (job,) = usage(attempts(ended_at=None), samples((0, 1.0, None)))
    assert job["run_seconds"] == 3570


def test_a_job_that_never_started_costs_nothing():
    assert usage(attempts(started_at=None), samples((0, 1.0, None))) == []


@settings(max_examples=100, deadline=None)
@given(st.integers(1, 10**10), st.integers(1, 64), st.decimals("0.000001", "100", places=6))
def test_money_is_exact_to_the_millionth(micros: int, devices: int, price: Decimal):
    start = T0 + timedelta(seconds=30)
    (job,) = usage(
        attempts(devices=devices, started_at=start, ended_at=start + timedelta(microseconds=micros)),
        samples((0, 1.0, None)),
        price=str(price),
    )
    exact = price * micros * devices / Decimal(3_600_000_000)
    assert abs(job["cost"] - exact) <= Decimal("0.000001")
