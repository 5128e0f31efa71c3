"""CPU cores as devices, on a node that has no accelerator (psutil)."""

import os
import platform
import socket
from datetime import UTC, datetime

import psutil

from gpupool.pool.inventory import KIND_LABEL, Device, DeviceKind, NodeReport, cpu_device_id
from gpupool.telemetry.source import METRICS, Reading

_UNSUPPORTED = tuple(metric for metric in METRICS if metric != "utilization_percent")


class CpuSource:
    """Each core that this process may run on is a device; its utilization is its busy share since the last read."""

    name = "cpu"

    def __init__(self) -> None:
        self._node = socket.gethostname()
        psutil.cpu_percent(percpu=True)  # the first call only sets the baseline

    def discover(self) -> NodeReport:
        """The node and its usable cores."""
        model = platform.processor() or platform.machine()
        devices = tuple(
            Device(
                cpu_device_id(self._node, core),
                core,
                DeviceKind.CPU,
                model,
                None,
                {KIND_LABEL: DeviceKind.CPU},
            )
            for core in _cores()
        )
        return NodeReport(
            node=self._node,
            devices=devices,
            cpu_cores=len(devices),
            memory_bytes=psutil.virtual_memory().total,
            labels={"kubernetes.io/arch": platform.machine(), "kubernetes.io/os": platform.system().lower()},
        )

    def read(self) -> list[Reading]:
        """Utilization per core in percent; a core has no memory of its own."""
        busy = psutil.cpu_percent(percpu=True)
        now = datetime.now(UTC)
        return [
            Reading(
                sampled_at=now,
                node=self._node,
                device_id=cpu_device_id(self._node, core),
                source=self.name,
                utilization_percent=min(busy[core], 100.0),
                unsupported=_UNSUPPORTED,
            )
            for core in _cores()
        ]


def _cores() -> list[int]:
    """Cores that cgroup cpusets and affinity leave to this process."""
    if hasattr(os, "sched_getaffinity"):
        return sorted(os.sched_getaffinity(0))
    return list(range(os.cpu_count() or 1))
