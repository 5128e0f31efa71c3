"""The expectations that a sample must meet, each with the reason given when it does not."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from gpupool.telemetry.candidates import FUTURE_TOLERANCE_S, READ_WELL
from gpupool.telemetry.source import METRICS


@dataclass(frozen=True)
class Rule:
    """One expectation of Great Expectations, by class name and arguments.

    ``reason``: the sentence for a row that fails it, filled in with the row's candidate columns.
    """

    kind: str
    reason: str
    arguments: Mapping[str, Any] = field(default_factory=dict)

    def reason_for(self, row: Mapping[str, Any]) -> str:
        """Why this row fails."""
        return self.reason.format_map(row)


_RANGES = {
    "utilization_percent": (0, 100, "a percentage is between 0 and 100"),
    "memory_used_bytes": (0, None, "bytes cannot be negative"),
    "memory_total_bytes": (0, None, "bytes cannot be negative"),
    "power_watts": (0, 100_000, "one device draws between 0 and 100,000 W"),
    "temperature_celsius": (-60, 200, "a device lives between -60 and 200 degrees"),
}


def sample_rules(known_devices: Collection[str]) -> list[Rule]:
    """The rules of table ``device_sample``."""
    return [
        _not_null("device_id", "device_id is missing."),
        _not_null("node", "node is missing."),
        _in_set("device_id", sorted(known_devices), "Device {device_id} is not in the inventory."),
        _in_set("sampled_at_reading", ["time"], "sampled_at is not a time with its UTC offset ({sampled_at_reading})."),
        _between("seconds_ahead", None, FUTURE_TOLERANCE_S, "sampled_at lies {seconds_ahead:.0f} s in the future."),
        _between("seconds_back", None, 0, "sampled_at goes back by {seconds_back:.0f} s for this device."),
        _between(
            "copies_before",
            None,
            0,
            "The same device was sampled at the same time before in this batch (duplicate).",
        ),
        *(rule for metric in METRICS for rule in _metric(metric)),
        _used_within_total(),
        _between(
            "memory_share",
            0.5,
            2,
            "memory_total_bytes {memory_total_bytes:.0f} is {memory_share:.3g} times what the device has "
            "(wrong unit? bytes are expected).",
        ),
    ]


def _metric(name: str) -> list[Rule]:
    low, high, law = _RANGES[name]
    return [
        _in_set(f"{name}_reading", list(READ_WELL), f"{name} is not a number ({{{name}_reading}})."),
        _between(name, low, high, f"{name} is {{{name}:g}}; {law}."),
    ]


def _used_within_total() -> Rule:
    return Rule(
        "ExpectColumnPairValuesAToBeGreaterThanB",
        "memory_used_bytes {memory_used_bytes:.0f} is more than memory_total_bytes {memory_total_bytes:.0f}.",
        {
            "column_A": "memory_total_bytes",
            "column_B": "memory_used_bytes",
            "or_equal": True,
            "ignore_row_if": "either_value_is_missing",
        },
    )


def _not_null(column: str, reason: str) -> Rule:
    return Rule("ExpectColumnValuesToNotBeNull", reason, {"column": column})


def _in_set(column: str, allowed: list[str], reason: str) -> Rule:
    return Rule("ExpectColumnValuesToBeInSet", reason, {"column": column, "value_set": allowed})


def _between(column: str, low: float | None, high: float | None, reason: str) -> Rule:
    return Rule("ExpectColumnValuesToBeBetween", reason, {"column": column, "min_value": low, "max_value": high})
