"""The lake: idempotent, atomic, one copy under concurrent writers, whole after kill -9."""

import os
import random
import signal
import subprocess
import sys
import time
from datetime import UTC, datetime, timedelta

import polars as pl
import pytest

from gpupool.lake.store import Lake
from gpupool.lake.tables import DEVICE_HOUR, DEVICE_SAMPLE, JOB_ATTEMPT

T0 = datetime(2026, 3, 1, tzinfo=UTC)


def samples(count: int, first: int = 0) -> pl.DataFrame:
    times = [T0 + timedelta(seconds=i) for i in range(first, first + count)]
    frame = pl.DataFrame({"sampled_at": times, "device_id": ["GPU-1"] * count, "node": ["n"] * count})
    blank = [pl.lit(None, kind).alias(name) for name, kind in DEVICE_SAMPLE.schema.items() if name not in frame.columns]
    return frame.with_columns(blank).with_columns(date=pl.col("sampled_at").dt.date())


def test_an_unwritten_table_reads_as_empty(tmp_path):
    lake = Lake(str(tmp_path))
    assert lake.scan(DEVICE_SAMPLE).collect().schema == dict(DEVICE_SAMPLE.schema)
    assert lake.version(DEVICE_SAMPLE) is None


def test_overlapping_batches_leave_each_row_once(tmp_path):
    lake = Lake(str(tmp_path))
    assert lake.insert_new(DEVICE_SAMPLE, samples(10)) == 10
    assert lake.insert_new(DEVICE_SAMPLE, samples(10, first=5)) == 5
    assert lake.scan(DEVICE_SAMPLE).collect().height == 15


def test_upsert_changes_only_what_differs(tmp_path):
    lake = Lake(str(tmp_path))
    row = dict.fromkeys(JOB_ATTEMPT.schema) | {
        "attempt_id": "a",
        "date": T0.date(),
        "device_ids": ["x"],
    }
    frame = pl.DataFrame([row], schema=dict(JOB_ATTEMPT.schema))
    lake.upsert(JOB_ATTEMPT, frame)
    version = lake.version(JOB_ATTEMPT)
    lake.upsert(JOB_ATTEMPT, frame)
    assert lake.version(JOB_ATTEMPT) == version
    lake.upsert(JOB_ATTEMPT, frame.with_columns(outcome=pl.lit("succeeded")))
    assert lake.scan(JOB_ATTEMPT).collect()["outcome"].to_list() == ["succeeded"]


def test_replace_touches_its_range_only(tmp_path):
    lake = Lake(str(tmp_path))

    def hours(*numbers: int, used: float) -> pl.DataFrame:
        row = dict.fromkeys(DEVICE_HOUR.schema) | {"device_id": "d", "utilization_percent": used}
        rows = [row | {"hour": T0 + timedelta(hours=n), "date": T0.date()} for n in numbers]
        return pl.DataFrame(rows, schema=dict(DEVICE_HOUR.schema))

    lake.replace(DEVICE_HOUR, hours(0, 1, 2, used=1.0), T0, T0 + timedelta(hours=3))
    lake.replace(DEVICE_HOUR, hours(1, used=9.0), T0 + timedelta(hours=1), T0 + timedelta(hours=2))
    assert lake.scan(DEVICE_HOUR).sort("hour").collect()["utilization_percent"].to_list() == [1.0, 9.0, 1.0]


_WRITER = """
import sys
from gpupool.lake.store import Lake
from gpupool.lake.tables import DEVICE_SAMPLE
from tests.unit.test_lake import samples
frame = samples(int(sys.argv[2]))
print("ready", flush=True)
sys.stdin.readline()
print(Lake(sys.argv[1]).insert_new(DEVICE_SAMPLE, frame), flush=True)
"""


def writer(root, count: int) -> "subprocess.Popen[str]":
    process = subprocess.Popen(
        [sys.executable, "-c", _WRITER, str(root), str(count)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    process.stdout.readline()
    return process


def go(process: "subprocess.Popen[str]") -> None:
    assert process.stdin is not None
    process.stdin.write("\n")
    process.stdin.flush()


def test_four_writers_of_the_same_rows_leave_one_copy(tmp_path):
    writers = [writer(tmp_path, 2_000) for _ in range(4)]
    for process in writers:
        go(process)
    landed = [int(process.communicate(timeout=60)[0]) for process in writers]
    assert sum(landed) == 2_000
    assert Lake(str(tmp_path)).scan(DEVICE_SAMPLE).collect().height == 2_000


@pytest.mark.parametrize("round_", range(6))
def test_kill_9_in_the_middle_leaves_old_or_new(tmp_path, round_):
    """A large batch is landed on top of a small one and killed at a random moment of it."""
    lake = Lake(str(tmp_path))
    lake.insert_new(DEVICE_SAMPLE, samples(10))
    process = writer(tmp_path, 300_000)
    go(process)
    time.sleep(random.Random(round_).uniform(0.02, 0.5))
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    assert lake.scan(DEVICE_SAMPLE).collect().height in (10, 300_000)
    assert lake.insert_new(DEVICE_SAMPLE, samples(300_000)) in (299_990, 0)
    assert lake.scan(DEVICE_SAMPLE).collect().height == 300_000
