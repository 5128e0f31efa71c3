"""The expectations that a sample must meet, each with the reason given when it does not.

Great Expectations is imported where the suite is built, as the import alone takes seconds.
"""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any

from gpupool.telemetry.candidates import READ_WELL
from gpupool.telemetry.source import METRICS

Reason = Callable[[dict[str, Any]], str]


@dataclass(frozen=True)
class Rule:
    """One expectation (of class ``kind``, with its arguments) and the sentence for a row that fails it."""

    kind: str
    arguments: dict[str, Any]
    reason: Reason


_RANGES = {
    "utilization_percent": (0, 100, "a percentage is between 0 and 100"),
    "memory_used_bytes": (0, None, "bytes cannot be negative"),
    "memory_total_bytes": (0, None, "bytes cannot be negative"),
    "power_watts": (0, 100_000, "one device draws between 0 and 100,000 W"),
    "temperature_celsius": (-60, 200, "a device lives between -60 and 200 degrees"),
}


def sample_rules(known_devices: Collection[str]) -> list[Rule]:
    """The rules of table ``device_sample``."""
    return [*_identity(known_devices), *_times(), *_metrics(), *_memory()]


def _identity(known_devices: Collection[str]) -> list[Rule]:
    return [
        Rule("ExpectColumnValuesToNotBeNull", {"column": "device_id"}, lambda _: "device_id is missing."),
        Rule("ExpectColumnValuesToNotBeNull", {"column": "node"}, lambda _: "node is missing."),
        Rule(
            "ExpectColumnValuesToBeInSet",
            {"column": "device_id", "value_set": sorted(known_devices)},
            lambda row: f"Device {row['device_id']} is not in the inventory.",
        ),
    ]


def _times() -> list[Rule]:
    return [
        Rule(
            "ExpectColumnValuesToBeInSet",
            {"column": "sampled_at_reading", "value_set": ["time"]},
            lambda row: f"sampled_at is not a time with its UTC offset ({row['sampled_at_reading']}).",
        ),
        Rule(
            "ExpectColumnValuesToBeBetween",
            {"column": "seconds_ahead", "max_value": 60},
            lambda row: f"sampled_at lies {row['seconds_ahead']:.0f} s in the future.",
        ),
        Rule(
            "ExpectColumnValuesToBeBetween",
            {"column": "seconds_since_previous", "min_value": 0},
            lambda row: f"sampled_at goes back by {-row['seconds_since_previous']:.0f} s for this device.",
        ),
        Rule(
            "ExpectColumnValuesToBeBetween",
            {"column": "copies_before", "max_value": 0},
            lambda row: "The same device was sampled at the same time before in this batch (duplicate).",
        ),
    ]


def _metrics() -> list[Rule]:
    rules = []
    for metric in METRICS:
        rules.append(
            Rule(
                "ExpectColumnValuesToBeInSet",
                {"column": f"{metric}_reading", "value_set": list(READ_WELL)},
                lambda row, m=metric: f"{m} is not a number ({row[f'{m}_reading']}).",
            )
        )
        low, high, law = _RANGES[metric]
        rules.append(
            Rule(
                "ExpectColumnValuesToBeBetween",
                {"column": metric, "min_value": low, "max_value": high},
                lambda row, m=metric, law=law: f"{m} is {row[m]:g}; {law}.",
            )
        )
    return rules


def _memory() -> list[Rule]:
    return [
        Rule(
            "ExpectColumnPairValuesAToBeGreaterThanB",
            {
                "column_A": "memory_total_bytes",
                "column_B": "memory_used_bytes",
                "or_equal": True,
                "ignore_row_if": "either_value_is_missing",
            },
            lambda row: f"memory_used_bytes {row['memory_used_bytes']:.0f} is more than "
            f"memory_total_bytes {row['memory_total_bytes']:.0f}.",
        ),
        Rule(
            "ExpectColumnValuesToBeBetween",
            {"column": "memory_share", "min_value": 0.5, "max_value": 2},
            lambda row: f"memory_total_bytes {row['memory_total_bytes']:.0f} is {row['memory_share']:.3g} times what "
            "the device has (wrong unit? bytes are expected).",
        ),
    ]
