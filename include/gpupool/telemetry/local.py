"""The source that fits this node: NVML where there is an NVIDIA driver, else its CPU cores."""

import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from gpupool.telemetry.cpu import CpuSource
from gpupool.telemetry.nvml import NvmlSource
from gpupool.telemetry.source import Source


def local_source() -> Source:
    """Choose by what the node has. A broken NVIDIA driver is reported as such, not hidden behind CPU cores."""
    return NvmlSource() if NvmlSource.is_present() else CpuSource()


def collect(
    source: Source,
    *,
    readings: int,
    interval_s: float,
    attempts: Callable[[], Mapping[str, str]],
    sleep: Callable[[float], None] = time.sleep,
) -> list[dict[str, Any]]:
    """Raw rows of ``readings`` rounds, ``interval_s`` seconds apart.

    ``attempts``: who holds which device now (device id -> attempt id), asked at each round.
    """
    rows = []
    for _ in range(readings):
        sleep(interval_s)
        held = attempts()
        rows += [replace(r, attempt_id=held.get(r.device_id)).as_row() for r in source.read()]
    return rows
