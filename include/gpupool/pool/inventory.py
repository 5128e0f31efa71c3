"""What discovery reports: devices of a node, as facts without rules."""

from dataclasses import dataclass, field
from enum import StrEnum
from uuid import NAMESPACE_DNS, uuid5

KIND_LABEL = "gpupool.dev/kind"


class DeviceKind(StrEnum):
    """What a device is."""

    GPU = "gpu"
    MIG = "mig"
    NPU = "npu"
    CPU = "cpu"


@dataclass(frozen=True)
class Device:
    """One allocatable accelerator.

    ``device_id``: its UUID as the vendor writes it (``GPU-...``, ``MIG-...``) or ``CPU-<uuid5>`` for a core.
    ``index``: position on the node, for people and for core affinity; never an identity.
    ``fault``: why it cannot be used now, or None.
    """

    device_id: str
    index: int
    kind: DeviceKind
    model: str
    memory_bytes: int | None = None
    labels: dict[str, str] = field(default_factory=dict)
    fault: str | None = None


@dataclass(frozen=True)
class NodeReport:
    """One node as discovery saw it. ``fault``: why none of its devices can be used, or None."""

    node: str
    devices: tuple[Device, ...]
    driver: str | None = None
    cuda: str | None = None
    cpu_cores: int | None = None
    memory_bytes: int | None = None
    labels: dict[str, str] = field(default_factory=dict)
    fault: str | None = None


def cpu_device_id(node: str, core: int) -> str:
    """A stable identity for a CPU core, which has no UUID of its own."""
    return f"CPU-{uuid5(NAMESPACE_DNS, f'{node}/cpu/{core}')}"
