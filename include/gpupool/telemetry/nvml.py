"""NVIDIA devices of this node through NVML, the driver's own library.

Labels carry the names of NVIDIA's GPU feature discovery, so that one flavor rule matches bare metal and Kubernetes.
A MIG-enabled GPU is not a device; its instances are.
"""

import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

import psutil
import pynvml

from gpupool.pool.inventory import KIND_LABEL, Device, DeviceKind, NodeReport
from gpupool.telemetry.source import Reading

_MIB = 2**20
_NO_SUCH_METRIC = (pynvml.NVML_ERROR_NOT_SUPPORTED, pynvml.NVML_ERROR_NO_PERMISSION)


class NvmlSource:
    """The NVIDIA devices of this node, which has the driver's library, working or not."""

    name = "nvml"

    def __init__(self) -> None:
        self._node = socket.gethostname()

    def discover(self) -> NodeReport:
        """The node with its devices; a driver that does not start is the node's fault, in its own words."""
        memory, cores = psutil.virtual_memory().total, psutil.cpu_count()
        try:
            with _session():
                driver, cuda = pynvml.nvmlSystemGetDriverVersion(), _cuda_version()
                devices = tuple(device for i in range(pynvml.nvmlDeviceGetCount()) for device in _devices(i))
        except pynvml.NVMLError as error:
            fault = f"NVML does not work on node {self._node}: {_said(error)}."
            return NodeReport(self._node, (), cpu_cores=cores, memory_bytes=memory, fault=fault)
        labels = {"nvidia.com/cuda.driver-version.full": driver, "nvidia.com/cuda.runtime-version.full": cuda}
        return NodeReport(self._node, devices, driver, cuda, cores, memory, labels)

    def read(self) -> list[Reading]:
        """One reading per device that answers."""
        try:
            with _session():
                return [
                    reading
                    for i in range(pynvml.nvmlDeviceGetCount())
                    for handle in _answering(i)
                    if (reading := self._reading(handle)) is not None
                ]
        except pynvml.NVMLError:
            return []

    def _reading(self, handle: Any) -> Reading | None:
        unsupported: list[str] = []

        def metric(name: str, read: Callable[[], float]) -> float | None:
            try:
                return read()
            except pynvml.NVMLError as error:
                if error.value not in _NO_SUCH_METRIC:
                    raise
                unsupported.append(name)
                return None

        try:
            memory = pynvml.nvmlDeviceGetMemoryInfo(handle)
            return Reading(
                sampled_at=datetime.now(UTC),
                node=self._node,
                device_id=pynvml.nvmlDeviceGetUUID(handle),
                source=self.name,
                utilization_percent=metric(
                    "utilization_percent", lambda: float(pynvml.nvmlDeviceGetUtilizationRates(handle).gpu)
                ),
                memory_used_bytes=int(memory.used),
                memory_total_bytes=int(memory.total),
                power_watts=metric("power_watts", lambda: pynvml.nvmlDeviceGetPowerUsage(handle) / 1000),
                temperature_celsius=metric(
                    "temperature_celsius",
                    lambda: float(pynvml.nvmlDeviceGetTemperature(handle, pynvml.NVML_TEMPERATURE_GPU)),
                ),
                unsupported=tuple(unsupported),
            )
        except pynvml.NVMLError:
            return None  # lost in the middle of the reading; discovery says so with its reason


@contextmanager
def _session() -> Iterator[None]:
    pynvml.nvmlInit()
    try:
        yield
    finally:
        pynvml.nvmlShutdown()


def _cuda_version() -> str:
    number = pynvml.nvmlSystemGetCudaDriverVersion()
    return f"{number // 1000}.{number % 1000 // 10}"


def _devices(index: int) -> Iterator[Device]:
    """The allocatable devices of one physical GPU; a GPU that does not answer is one device with a fault."""
    try:
        handles = _allocatable(index)
    except pynvml.NVMLError as error:
        yield _broken(index, error)
        return
    for handle in handles:
        try:
            yield _device(index, handle)
        except pynvml.NVMLError as error:
            yield _broken(index, error, handle)


def _allocatable(index: int) -> list[Any]:
    """The GPU's own handle, or those of its MIG instances where MIG is on. Raises NVMLError if it is lost."""
    gpu = pynvml.nvmlDeviceGetHandleByIndex(index)
    try:
        mode, _pending = pynvml.nvmlDeviceGetMigMode(gpu)
    except pynvml.NVMLError as error:
        if error.value in _NO_SUCH_METRIC:
            return [gpu]
        raise
    if mode != pynvml.NVML_DEVICE_MIG_ENABLE:
        return [gpu]
    instances = []
    for i in range(pynvml.nvmlDeviceGetMaxMigDeviceCount(gpu)):
        try:
            instances.append(pynvml.nvmlDeviceGetMigDeviceHandleByIndex(gpu, i))
        except pynvml.NVMLError as error:
            if error.value != pynvml.NVML_ERROR_NOT_FOUND:
                raise
    return instances


def _answering(index: int) -> list[Any]:
    """Like :func:`_allocatable`, but empty for a GPU that is lost; its neighbours are read all the same."""
    try:
        return _allocatable(index)
    except pynvml.NVMLError:
        return []


def _device(index: int, handle: Any) -> Device:
    kind = DeviceKind.MIG if pynvml.nvmlDeviceIsMigDeviceHandle(handle) else DeviceKind.GPU
    model, memory = pynvml.nvmlDeviceGetName(handle), int(pynvml.nvmlDeviceGetMemoryInfo(handle).total)
    labels = {
        KIND_LABEL: kind,
        "nvidia.com/gpu.product": model.replace(" ", "-"),
        "nvidia.com/gpu.memory": str(memory // _MIB),
    }
    return Device(pynvml.nvmlDeviceGetUUID(handle), index, kind, model, memory, labels)


def _broken(index: int, error: pynvml.NVMLError, handle: Any = None) -> Device:
    """A GPU that answers with an error; its UUID is remembered by the driver more often than not."""
    try:
        device_id = pynvml.nvmlDeviceGetUUID(handle or pynvml.nvmlDeviceGetHandleByIndex(index))
    except pynvml.NVMLError:
        device_id = f"GPU-unknown-{socket.gethostname()}-{index}"
    fault = f"GPU {index} on node {socket.gethostname()} does not answer: {_said(error)}."
    return Device(device_id, index, DeviceKind.GPU, "unknown", None, {KIND_LABEL: DeviceKind.GPU}, fault)


def _said(error: pynvml.NVMLError) -> str:
    return str(error).rstrip(".")
