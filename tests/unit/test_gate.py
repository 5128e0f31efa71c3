"""The gate: good rows pass, bad rows are quarantined with reasons, none is lost, twice changes nothing."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from gpupool.exceptions import BadBatch
from gpupool.lake.store import Lake
from gpupool.lake.tables import DEVICE_SAMPLE, QUARANTINE
from gpupool.telemetry.gate import Judgement, judge

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
GIB = 2**30
MEMORY = {"GPU-1": 80 * GIB, "GPU-2": 80 * GIB, "CPU-1": None}


def at(seconds: float) -> str:
    return (NOW + timedelta(seconds=seconds)).isoformat()


def row(seconds: float, **changes: Any) -> dict[str, Any]:
    return {
        "node": "n1",
        "device_id": "GPU-1",
        "source": "nvml",
        "sampled_at": at(seconds),
        "utilization_percent": 50.0,
        "memory_used_bytes": 40 * GIB,
        "memory_total_bytes": 80 * GIB,
        "power_watts": 300.0,
        "temperature_celsius": 55.0,
        "unsupported": [],
        "attempt_id": None,
    } | changes


def without(name: str, seconds: float) -> dict[str, Any]:
    return {key: value for key, value in row(seconds).items() if key != name}


BAD = {
    "null": (row(-90, utilization_percent=None), "utilization_percent is not a number (null)."),
    "negative": (row(-89, utilization_percent=-1), "utilization_percent is -1; a percentage is between 0 and 100."),
    "101 %": (row(-88, utilization_percent=101), "utilization_percent is 101; a percentage is between 0 and 100."),
    "used > total": (row(-87, memory_used_bytes=81 * GIB), "memory_used_bytes 86973087744 is more than memory_total_bytes 85899345920."),
    "future time": (row(3600), "sampled_at lies 3600 s in the future."),
    "unknown device": (row(-86, device_id="GPU-9"), "Device GPU-9 is not in the inventory."),
    "duplicate": (row(-100), "The same device was sampled at the same time before in this batch (duplicate)."),
    "wrong unit": (row(-85, memory_total_bytes=81920, memory_used_bytes=40000), "memory_total_bytes 81920 is 9.54e-07 times what the device has (wrong unit? bytes are expected)."),
    "NaN": (row(-84, utilization_percent=float("nan")), "utilization_percent is not a number (NaN)."),
    "text in number": (row(-83, utilization_percent="45 %"), "utilization_percent is not a number (text)."),
    "time going back": (row(-500), "sampled_at goes back by 417 s for this device."),
    "missing column": (without("utilization_percent", -82), "utilization_percent is not a number (absent)."),
    "no offset": (row(-81, sampled_at="2026-03-01T11:00:00"), "sampled_at is not a time with its UTC offset (no UTC offset)."),
    "no time": (row(-80, sampled_at="noon"), "sampled_at is not a time with its UTC offset (text)."),
    "missing time": (without("sampled_at", -79), "sampled_at is not a time with its UTC offset (absent)."),
    "no device": (row(-78, device_id=None), "device_id is missing."),
    "no node": (row(-77, node=None), "node is missing."),
    "negative bytes": (row(-76, memory_used_bytes=-1), "memory_used_bytes is -1; bytes cannot be negative."),
    "milliwatts": (row(-75, power_watts=300_000), "power_watts is 300000; one device draws between 0 and 100,000 W."),
    "kelvin": (row(-74, temperature_celsius=328), "temperature_celsius is 328; a device lives between -60 and 200 degrees."),
    "infinite": (row(-73, utilization_percent=float("inf")), "utilization_percent is inf; a percentage is between 0 and 100."),
    "boolean": (row(-72, utilization_percent=True), "utilization_percent is not a number (true or false)."),
}  # fmt: skip
GOOD = [
    row(-100),
    row(-100, device_id="GPU-2"),
    row(-71, utilization_percent=None, unsupported=["utilization_percent"]),
    row(-70, utilization_percent=0),
    row(-69, utilization_percent="100"),
]


def judged(rows: list[dict[str, Any]]) -> Judgement:
    return judge(rows, now=NOW, memory_bytes=MEMORY)


@pytest.fixture(scope="module")
def mixed() -> tuple[list[dict[str, Any]], Judgement]:
    rows = [*GOOD[:2], *(bad for bad, _ in BAD.values()), *GOOD[2:]]
    return rows, judged(rows)


@pytest.mark.parametrize("kind", BAD)
def test_each_bad_row_is_quarantined_with_its_reason(mixed, kind):
    rows, judgement = mixed
    bad, reason = BAD[kind]
    number = next(i for i, candidate in enumerate(rows) if candidate is bad)
    found = {r["row_number"]: r["reasons"] for r in judgement.bad.to_dicts()}
    assert reason in found[number]


def test_good_rows_pass_and_nothing_is_lost(mixed):
    rows, judgement = mixed
    assert judgement.good.height == len(GOOD)
    assert judgement.good.height + judgement.bad.height == len(rows)
    texts = [json.loads(text) for text in judgement.bad["row"]]
    assert [t.get("node") for t in texts] == [bad.get("node") for bad, _ in BAD.values()]


def test_unsupported_metrics_stay_missing_and_are_not_zero(mixed):
    values = mixed[1].good.filter(device_id="GPU-1")["utilization_percent"].to_list()
    assert values == [50.0, None, 0.0, 100.0]


def test_landing_the_same_batch_twice_changes_nothing(tmp_path, mixed):
    lake, (rows, judgement) = Lake(str(tmp_path)), mixed
    assert lake.insert_new(DEVICE_SAMPLE, judgement.good) == len(GOOD)
    assert lake.insert_new(QUARANTINE, judgement.bad) == len(BAD)
    versions = [lake.version(table) for table in (DEVICE_SAMPLE, QUARANTINE)]
    again = judge(rows, now=NOW + timedelta(seconds=30), memory_bytes=MEMORY)
    assert again.batch_id == judgement.batch_id
    assert lake.insert_new(DEVICE_SAMPLE, again.good) == 0
    assert lake.insert_new(QUARANTINE, again.bad) == 0
    assert [lake.version(table) for table in (DEVICE_SAMPLE, QUARANTINE)] == versions


def test_the_run_is_marked_as_the_rule_says(mixed):
    _, judgement = mixed
    judgement.require(0.9)
    with pytest.raises(BadBatch, match=r"22 of 27 rows of batch .* are bad \(81%, allowed 20%\); the first because: "):
        judgement.require(0.2)


def test_a_batch_without_a_column_at_all_is_quarantined_whole():
    judgement = judged([without("utilization_percent", -i) for i in range(5, 0, -1)])
    assert (judgement.good.height, judgement.bad.height) == (0, 5)


def test_cpu_samples_pass_without_the_metrics_a_core_cannot_have():
    names = ["memory_used_bytes", "memory_total_bytes", "power_watts", "temperature_celsius"]
    judgement = judged([row(-9, device_id="CPU-1", unsupported=names, **dict.fromkeys(names))])
    assert judgement.bad.height == 0


def test_an_empty_batch_is_good():
    assert judged([]).bad_share == 0
