"""The source that fits this node: NVML where there is an NVIDIA driver, else its CPU cores."""

import ctypes
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from gpupool.telemetry.source import Source

_NVML_LIBRARY = "libnvidia-ml.so.1"  # comes with every NVIDIA driver


def local_source() -> Source:
    """Choose by what the node has. A broken NVIDIA driver is reported as such, not hidden behind CPU cores."""
    try:
        ctypes.CDLL(_NVML_LIBRARY)
    except OSError:
        from gpupool.telemetry.cpu import CpuSource

        return CpuSource()
    from gpupool.telemetry.nvml import NvmlSource  # its import costs every job a tenth of a second

    return NvmlSource()


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
