"""A source of telemetry: what every way of reading devices offers."""

from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any, Protocol

from gpupool.pool.inventory import NodeReport

METRICS = (
    "utilization_percent",
    "memory_used_bytes",
    "memory_total_bytes",
    "power_watts",
    "temperature_celsius",
)


@dataclass(frozen=True)
class Reading:
    """One telemetry reading of one device at one time. ``unsupported``: metrics the device cannot give."""

    sampled_at: datetime
    node: str
    device_id: str
    source: str
    utilization_percent: float | None = None
    memory_used_bytes: int | None = None
    memory_total_bytes: int | None = None
    power_watts: float | None = None
    temperature_celsius: float | None = None
    unsupported: tuple[str, ...] = ()
    attempt_id: str | None = None

    def as_row(self) -> dict[str, Any]:
        """The raw row that the gate judges; times as ISO 8601 text."""
        return {
            **asdict(self),
            "sampled_at": self.sampled_at.isoformat(),
            "unsupported": list(self.unsupported),
        }


class Source(Protocol):
    """Discovers the devices of this node and reads them."""

    name: str

    def discover(self) -> NodeReport:
        """The node and its devices now; a broken driver or device is a ``fault``, never an exception."""
        ...

    def read(self) -> list[Reading]:
        """One reading per device that answers; a device that does not is left out."""
        ...
