"""The lake's tables: their columns, keys and partitions. Units stand in the names; times are UTC; money is decimal."""

from collections.abc import Mapping
from dataclasses import dataclass

import polars as pl

UTC_TIME = pl.Datetime("us", "UTC")
MONEY = pl.Decimal(18, 6)
_TEXT, _LIST = pl.String(), pl.List(pl.String())


@dataclass(frozen=True)
class Table:
    """One Delta table. ``keys`` identify a row; ``range_key`` prunes files by its minimum and
    maximum, when keys are looked up or a range is replaced."""

    name: str
    schema: Mapping[str, pl.DataType]
    keys: tuple[str, ...]
    range_key: str

    def empty(self) -> pl.DataFrame:
        """A frame with this table's columns and no row."""
        return pl.DataFrame(schema=dict(self.schema))

    def conform(self, frame: pl.DataFrame) -> pl.DataFrame:
        """The frame with exactly this table's columns, in order and type. Raises polars errors if it cannot be."""
        return frame.select(pl.col(name).cast(kind) for name, kind in self.schema.items())


INVENTORY_SNAPSHOT = Table(
    "inventory_snapshot",
    {
        "date": pl.Date(),
        "snapshot_at": UTC_TIME,
        "node": _TEXT,
        "device_id": _TEXT,
        "device_index": pl.Int32(),
        "kind": _TEXT,
        "model": _TEXT,
        "memory_bytes": pl.Int64(),
        "flavor": _TEXT,
        "state": _TEXT,
        "why": _TEXT,
        "driver": _TEXT,
        "cuda": _TEXT,
        "site": _TEXT,
        "cluster": _TEXT,
        "owner": _TEXT,
        "labels": _TEXT,
    },
    keys=("snapshot_at", "node", "device_id"),
    range_key="snapshot_at",
)

DEVICE_SAMPLE = Table(
    "device_sample",
    {
        "date": pl.Date(),
        "sampled_at": UTC_TIME,
        "node": _TEXT,
        "device_id": _TEXT,
        "source": _TEXT,
        "utilization_percent": pl.Float64(),
        "memory_used_bytes": pl.Int64(),
        "memory_total_bytes": pl.Int64(),
        "power_watts": pl.Float64(),
        "temperature_celsius": pl.Float64(),
        "attempt_id": _TEXT,
        "batch_id": _TEXT,
    },
    keys=("device_id", "sampled_at"),
    range_key="sampled_at",
)

QUARANTINE = Table(
    "quarantine",
    {
        "date": pl.Date(),
        "judged_at": UTC_TIME,
        "target": _TEXT,
        "batch_id": _TEXT,
        "row_number": pl.Int32(),
        "reasons": _LIST,
        "row": _TEXT,
    },
    keys=("batch_id", "row_number"),
    range_key="batch_id",
)

JOB_ATTEMPT = Table(
    "job_attempt",
    {
        "date": pl.Date(),
        "attempt_id": _TEXT,
        "dag_id": _TEXT,
        "run_id": _TEXT,
        "task_id": _TEXT,
        "map_index": pl.Int32(),
        "try_number": pl.Int32(),
        "user": _TEXT,
        "team": _TEXT,
        "queue": _TEXT,
        "workload": _TEXT,
        "flavor": _TEXT,
        "devices": pl.Int32(),
        "device_ids": _LIST,
        "node": _TEXT,
        "airflow_state": _TEXT,
        "submitted_at": UTC_TIME,
        "started_at": UTC_TIME,
        "ended_at": UTC_TIME,
        "outcome": _TEXT,
        "evidence": _TEXT,
        "exit_code": pl.Int32(),
        "max_rss_bytes": pl.Int64(),
        "cpu_seconds": pl.Float64(),
    },
    keys=("attempt_id",),
    range_key="attempt_id",
)

DEVICE_HOUR = Table(
    "device_hour",
    {
        "date": pl.Date(),
        "hour": UTC_TIME,
        "node": _TEXT,
        "device_id": _TEXT,
        "flavor": _TEXT,
        "samples": pl.Int32(),
        "covered_seconds": pl.Float64(),
        "allocated_seconds": pl.Float64(),
        "utilization_percent": pl.Float64(),
        "allocated_utilization_percent": pl.Float64(),
        "memory_used_bytes": pl.Int64(),
        "power_watts": pl.Float64(),
    },
    keys=("hour", "device_id"),
    range_key="hour",
)

JOB_USAGE = Table(
    "job_usage",
    {
        "date": pl.Date(),
        "attempt_id": _TEXT,
        "dag_id": _TEXT,
        "task_id": _TEXT,
        "user": _TEXT,
        "team": _TEXT,
        "queue": _TEXT,
        "flavor": _TEXT,
        "devices": pl.Int32(),
        "outcome": _TEXT,
        "submitted_at": UTC_TIME,
        "started_at": UTC_TIME,
        "ended_at": UTC_TIME,
        "wait_seconds": pl.Float64(),
        "run_seconds": pl.Float64(),
        "device_seconds": pl.Float64(),
        "covered_device_seconds": pl.Float64(),
        "utilization_percent": pl.Float64(),
        "price_per_device_hour": MONEY,
        "cost": MONEY,
    },
    keys=("attempt_id",),
    range_key="attempt_id",
)
