"""The daily report's figures against hand-made tables, and the page that shows them."""

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import polars as pl
import pytest

from gpupool.lake.store import Lake
from gpupool.lake.tables import DEVICE_HOUR, INVENTORY_SNAPSHOT, JOB_ATTEMPT, JOB_USAGE, QUARANTINE, Table
from gpupool.reports.daily import Daily, figures
from gpupool.reports.render import render, write_report

DAY = date(2026, 3, 1)
T0 = datetime(2026, 3, 1, 10, tzinfo=UTC)
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


def rows(table: Table, *given: dict) -> pl.DataFrame:
    return pl.DataFrame([dict.fromkeys(table.schema) | {"date": DAY} | row for row in given], schema=dict(table.schema))


def attempt(name: str, queue: str, wait: float, run: float | None, outcome: str | None, **more) -> dict:
    start = T0 + timedelta(seconds=wait)
    return {
        "attempt_id": name,
        "queue": queue,
        "team": queue.split("-", maxsplit=1)[0],
        "flavor": "cpu",
        "devices": 1,
        "submitted_at": T0,
        "started_at": None if run is None else start,
        "ended_at": None if run is None else start + timedelta(seconds=run),
        "outcome": outcome,
        "airflow_state": "scheduled" if run is None else "success",
    } | more


@pytest.fixture
def daily(tmp_path, pool) -> Daily:
    lake = Lake(str(tmp_path))
    snapshots = [
        {"snapshot_at": T0 + timedelta(minutes=5 * i), "node": "n", "device_id": d, "flavor": "cpu", "state": s}
        for i in range(24)
        for d, s in (("c1", "ready"), ("c2", "cordoned"), ("c3", "lost"))
    ]
    lake.insert_new(INVENTORY_SNAPSHOT, rows(INVENTORY_SNAPSHOT, *snapshots))
    hour = {"hour": T0, "node": "n", "flavor": "cpu"}
    lake.replace(
        DEVICE_HOUR,
        rows(
            DEVICE_HOUR,
            hour
            | {
                "device_id": "c1",
                "covered_seconds": 3600.0,
                "allocated_seconds": 1800.0,
                "utilization_percent": 40.0,
                "allocated_utilization_percent": 80.0,
            },
            hour
            | {"device_id": "c2", "covered_seconds": 1800.0, "allocated_seconds": 0.0, "utilization_percent": 10.0},
        ),
        T0,
        T0 + timedelta(hours=1),
    )
    attempts = [
        attempt("a", "red-train", 10, 3600, "succeeded"),
        attempt("b", "red-train", 30, 1800, "failed.oom", evidence="CUDA out of memory <b>"),
        attempt("c", "blue-batch", 50, 600, "stopped.timeout"),
        attempt("d", "blue-batch", 0, None, None),
    ]
    lake.upsert(JOB_ATTEMPT, rows(JOB_ATTEMPT, *attempts))
    usage = [
        {k: v for k, v in a.items() if k in JOB_USAGE.schema}
        | {
            "run_seconds": run,
            "device_seconds": run,
            "covered_device_seconds": run,
            "utilization_percent": 50.0,
            "cost": Decimal(cost),
            "price_per_device_hour": Decimal("0.04"),
        }
        for a, run, cost in zip(attempts[:3], (3600.0, 1800.0, 600.0), ("0.04", "0.02", "0.006667"), strict=True)
    ]
    lake.upsert(JOB_USAGE, rows(JOB_USAGE, *usage))
    bad = [
        {
            "judged_at": T0,
            "batch_id": "b",
            "row_number": i,
            "reasons": [f"utilization_percent is {100 + i}; a percentage is between 0 and 100."],
        }
        for i in range(3)
    ]
    lake.insert_new(QUARANTINE, rows(QUARANTINE, *bad))
    return figures(lake, pool, DAY, now=NOON)


def test_capacity_counts_ready_and_cordoned_and_not_lost(daily):
    (cpu,) = daily.flavors.to_dicts()
    assert (cpu["devices_ready"], cpu["devices_other"]) == (1, 2)
    assert cpu["schedulable_hours"] == pytest.approx(4.0)
    assert cpu["allocated_hours"] == pytest.approx(6000 / 3600)
    assert cpu["allocation_percent"] == pytest.approx(100 * 6000 / 3600 / 4)
    assert cpu["coverage_percent"] == pytest.approx(100 * 1.5 / 4)


def test_utilization_names_its_denominator(daily):
    (cpu,) = daily.flavors.to_dicts()
    assert cpu["device_utilization_percent"] == pytest.approx(80)
    assert cpu["pool_utilization_percent"] == pytest.approx((40 * 3600 + 10 * 1800) / 5400)


def test_queues_and_waits(daily):
    blue, red = daily.queues.to_dicts()
    assert (red["submitted"], red["started"], red["succeeded"], red["failed"], red["stopped"]) == (2, 2, 1, 1, 0)
    assert (red["wait_p50_s"], red["wait_max_s"]) == (20, 30)
    assert (blue["submitted"], blue["started"], blue["waiting"], blue["stopped"]) == (2, 1, 1, 1)


def test_teams_add_up(daily):
    assert daily.teams["device_hours"].sum() == pytest.approx(6000 / 3600)
    assert daily.total_cost == Decimal("0.066667")


def test_failures_carry_their_evidence_and_refusals_are_counted(daily):
    assert daily.failures.select("outcome", "attempts").rows() == [("failed.oom", 1), ("stopped.timeout", 1)]
    assert daily.failures["evidence"][0] == "CUDA out of memory <b>"
    assert daily.refused.rows() == [("utilization_percent is …; a percentage is between … and ….", 3)]


def test_a_job_over_midnight_is_split(tmp_path, pool):
    lake = Lake(str(tmp_path))
    start = datetime(2026, 3, 1, 23, tzinfo=UTC)
    usage = attempt("a", "red-train", 0, 7200, "succeeded") | {
        "started_at": start,
        "ended_at": start + timedelta(hours=2),
    }
    usage = {k: v for k, v in usage.items() if k in JOB_USAGE.schema} | {
        "run_seconds": 7200.0,
        "price_per_device_hour": Decimal("0.04"),
    }
    lake.upsert(JOB_USAGE, rows(JOB_USAGE, usage))
    later = NOON + timedelta(days=3)
    for day in (DAY, DAY + timedelta(days=1)):
        daily = figures(lake, pool, day, now=later)
        assert daily.is_complete
        assert daily.teams["device_hours"].to_list() == [1.0]
        assert daily.total_cost == Decimal("0.04")


def test_the_page_needs_nothing_but_itself_and_escapes_what_it_shows(daily, tmp_path):
    path = write_report(daily, tmp_path / "reports")
    page = path.read_text()
    assert path.name == "daily-2026-03-01.html"
    assert "http://" not in page.replace("http://www.w3.org/", "")
    assert "https://" not in page
    assert "<script" not in page
    assert "<svg" in page
    assert "CUDA out of memory &lt;b&gt;" in page
    assert "37.5 %" in page


def test_the_same_figures_give_the_same_bytes(daily):
    assert render(daily) == render(daily)


def test_an_empty_lake_gives_an_honest_page(tmp_path, pool):
    page = render(figures(Lake(str(tmp_path)), pool, DAY, now=NOON))
    assert "No device has been seen yet." in page
    assert "No job held a device." in page
