"""Raw rows made comparable: typed columns, and a word on how each value read, so that rules can speak of them."""

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from math import isnan
from typing import Any

import polars as pl

from gpupool.telemetry.source import METRICS

READ_WELL = ("number", "unsupported")
FUTURE_TOLERANCE_S = 60
_TEXT_FIELDS = ("node", "device_id", "source", "attempt_id")

Row = Mapping[str, Any]


def candidates(rows: Sequence[Row], *, now: datetime, memory_bytes: Mapping[str, int | None]) -> pl.DataFrame:
    """One candidate per raw row, in the rows' order.

    Beside the typed values: ``<metric>_reading`` says how a value read (``number``, ``unsupported``, ``absent``,
    ``null``, ``NaN``, ``text``); ``seconds_ahead`` of ``now``; ``seconds_back`` from the latest row of
    the same device before it;
    ``copies_before`` of the same device and time; ``memory_share`` of what the device is known to have.
    """
    frame = pl.DataFrame([_candidate(i, row) for i, row in enumerate(rows)], schema=_SCHEMA)
    known = pl.DataFrame(
        {"device_id": list(memory_bytes), "known_memory_bytes": list(memory_bytes.values())},
        schema={"device_id": pl.String, "known_memory_bytes": pl.Int64},
    )
    time = pl.col("sampled_at")
    ahead = (time - pl.lit(now)).dt.total_microseconds() / 1e6
    present = pl.when(ahead <= FUTURE_TOLERANCE_S).then(time)  # a time from the future must not age the others
    return (
        frame.join(known, on="device_id", how="left", maintain_order="left")
        .with_columns(
            seconds_ahead=ahead,
            latest_before=present.cum_max().shift(1).over("device_id"),
            copies_before=pl.when(time.is_not_null()).then(pl.int_range(pl.len()).over("device_id", "sampled_at")),
            memory_share=pl.col("memory_total_bytes") / pl.col("known_memory_bytes"),
        )
        .with_columns(
            seconds_back=(pl.col("latest_before").forward_fill().over("device_id") - time)
            .dt.total_microseconds()
            .truediv(1e6)
        )
        .drop("latest_before", "known_memory_bytes")
    )


_SCHEMA: dict[str, Any] = {
    "row_number": pl.Int32,
    **dict.fromkeys(_TEXT_FIELDS, pl.String),
    "sampled_at": pl.Datetime("us", "UTC"),
    "sampled_at_reading": pl.String,
    **dict.fromkeys(METRICS, pl.Float64),
    **dict.fromkeys([f"{metric}_reading" for metric in METRICS], pl.String),
}


def _candidate(number: int, row: Row) -> dict[str, Any]:
    typed: dict[str, Any] = {"row_number": number}
    typed |= {name: None if row.get(name) is None else str(row[name]) for name in _TEXT_FIELDS}
    typed["sampled_at"], typed["sampled_at_reading"] = _read_time(row)
    unsupported = row.get("unsupported") or ()
    for metric in METRICS:
        typed[metric], typed[f"{metric}_reading"] = _read_number(row, metric, metric in unsupported)
    return typed


def _read_time(row: Row) -> tuple[datetime | None, str]:
    if "sampled_at" not in row:
        return None, "absent"
    value = row["sampled_at"]
    if value is None:
        return None, "null"
    try:
        time = value if isinstance(value, datetime) else datetime.fromisoformat(str(value))
    except ValueError:
        return None, "text"
    return (time.astimezone(UTC), "time") if time.tzinfo else (None, "no UTC offset")


def _read_number(row: Row, name: str, unsupported: bool) -> tuple[float | None, str]:
    if name not in row:
        return None, "unsupported" if unsupported else "absent"
    value = row[name]
    if value is None:
        return None, "unsupported" if unsupported else "null"
    try:
        number = float(value)
    except (TypeError, ValueError):
        return None, "text"
    if isinstance(value, bool):
        return None, "true or false"
    return (None, "NaN") if isnan(number) else (number, "number")


def row_text(row: Row) -> str:
    """A raw row as JSON text, whatever is in it; NaN and dates included."""
    return json.dumps(dict(row), default=str, sort_keys=True)
