"""One attempt of a job inside its Airflow task: identity, lease, and the facts that Airflow keeps of it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gpupool.exceptions import NoFreeDevice
from gpupool.jobs.leases import DeviceLocks, Holder, Lease
from gpupool.jobs.process import Ending
from gpupool.jobs.verdict import Verdict
from gpupool.pool.config import Pool
from gpupool.pool.inventory import Device
from gpupool.pool.ledger import merge
from gpupool.pool.request import Request
from gpupool.settings import Settings

if TYPE_CHECKING:
    from airflow.sdk import Context

STORE_PREFIX = "gpupool.attempt."
_LEASE_MARGIN_S = 60.0


@dataclass
class Attempt:
    """``attempt_id`` is the task instance's UUID, new for each try. ``facts`` is what ``task_state_store`` holds."""

    attempt_id: str
    dag_id: str
    run_id: str
    task_id: str
    map_index: int
    request: Request
    grace_s: float
    store: Any
    facts: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, context: "Context", request: Request, pool: Pool) -> "Attempt":
        """The attempt that this task instance is."""
        ti = context["ti"]
        queue = pool.queues[request.queue]
        return cls(
            attempt_id=str(ti.id),
            dag_id=ti.dag_id,
            run_id=ti.run_id,
            task_id=ti.task_id,
            map_index=-1 if ti.map_index is None else ti.map_index,
            request=request,
            grace_s=queue.grace.total_seconds(),
            store=context["task_state_store"],
            facts={
                "try_number": ti.try_number,
                "team": queue.team,
                "queue": request.queue,
                "workload": queue.workload.value,
                "flavor": request.flavor,
                "devices": request.devices,
            },
        )

    @property
    def job(self) -> str:
        """The job over all its attempts, as people say it."""
        mapped = f"[{self.map_index}]" if self.map_index >= 0 else ""
        return f"{self.dag_id}/{self.run_id}/{self.task_id}{mapped}"

    def lease(self, pool: Pool, settings: Settings, *, on_wait: Callable[[str], None]) -> tuple[list[Device], Lease]:
        """Take the devices on this node. Raises NoFreeDevice if it has too few, or they stay busy too long."""
        from gpupool.telemetry.local import local_source

        report = local_source().discover()
        self.facts["node"] = report.node
        ledger = merge(pool, [report], {})
        usable = {
            d.device.device_id: d.device for d in ledger.devices if d.is_schedulable and d.flavor == self.request.flavor
        }
        if len(usable) < self.request.devices:
            why = next((node.why for node in ledger.nodes if node.why), "It has no more of this flavor.")
            raise NoFreeDevice(
                f"{self.job} needs {self.request.devices} {self.request.flavor} and node {report.node} has "
                f"{len(usable)} that may be used. {why}"
            )
        lease = DeviceLocks(settings.state / "leases").acquire(
            list(usable),
            self.request.devices,
            Holder(self.attempt_id, self.job, self.request.queue),
            timeout_s=self.grace_s + _LEASE_MARGIN_S,
            on_wait=on_wait,
        )
        return [usable[device_id] for device_id in lease.device_ids], lease

    def artifacts(self, settings: Settings) -> Path:
        """The job's own folder, the same for all its attempts."""
        parts = [part.replace("/", "_") for part in (self.dag_id, self.run_id, self.task_id)]
        folder = settings.artifacts.joinpath(*parts, *([str(self.map_index)] if self.map_index >= 0 else []))
        folder.mkdir(parents=True, exist_ok=True)
        return folder

    def opened(self, devices: Sequence[Device]) -> None:
        """The job runs from now on these devices."""
        self.facts |= {
            "device_ids": [d.device_id for d in devices],
            "started_at": datetime.now(UTC).isoformat(),
        }
        self._keep()

    def closed(self, verdict: Verdict, ending: Ending | None) -> None:
        """The job ended, or never started."""
        self.facts |= {"outcome": verdict.outcome.value, "evidence": verdict.evidence[:500]}
        if ending is not None:
            self.facts |= {
                "ended_at": ending.ended_at.isoformat(),
                "exit_code": ending.exit_code,
                "max_rss_bytes": ending.max_rss_bytes,
                "cpu_seconds": ending.cpu_seconds,
            }
        self._keep()

    def _keep(self) -> None:
        self.store.set(STORE_PREFIX + self.attempt_id, self.facts)
