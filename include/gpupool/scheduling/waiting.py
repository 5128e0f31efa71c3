"""Who holds a queue's devices, who waits for them, and why."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

_NAMED = 3  # holders named in a sentence; the page lists them all


@dataclass(frozen=True)
class QueuedJob:
    """A job in a queue. ``since``: when it started (holding) or became ready to start (waiting)."""

    dag_id: str
    run_id: str
    task_id: str
    map_index: int
    devices: int
    priority: int
    since: datetime

    @property
    def name(self) -> str:
        """As people say it."""
        mapped = f"[{self.map_index}]" if self.map_index >= 0 else ""
        return f"{self.dag_id}.{self.task_id}{mapped}"


@dataclass(frozen=True)
class QueueState:
    """One (queue, flavor) now. ``slots``: its Airflow pool's. ``waiting`` is in order."""

    queue: str
    flavor: str
    nominal: int
    slots: int
    holding: tuple[QueuedJob, ...]
    waiting: tuple[QueuedJob, ...]

    @property
    def used(self) -> int:
        """Devices held."""
        return sum(job.devices for job in self.holding)

    @property
    def wanted(self) -> int:
        """Devices that waiting jobs ask for."""
        return sum(job.devices for job in self.waiting)


def in_order(jobs: Sequence[QueuedJob]) -> tuple[QueuedJob, ...]:
    """Stronger priority first, as Airflow takes them; then who waits longer, which Airflow alone does not promise."""
    return tuple(sorted(jobs, key=lambda job: (-job.priority, job.since, job.run_id, job.map_index)))


def why_it_waits(job: QueuedJob, state: QueueState) -> str:
    """One sentence for a waiting job: whose limit, how many are missing, who holds them, what would change it."""
    need = f"It needs {job.devices} {state.flavor}"
    if state.slots == 0:
        return (
            f"{need}, and queue {state.queue} has none now (nominal {state.nominal}), as no {state.flavor} of the pool "
            "is ready for it. It starts when devices are added or return, or with another flavor."
        )
    if job.devices > state.slots:
        return (
            f"{need}, more than the {state.slots} that queue {state.queue} has now (nominal {state.nominal}). "
            "It starts when the quota or the number of ready devices grows, or if it asks for fewer."
        )
    ahead = state.waiting.index(job) if job in state.waiting else 0
    line = f" {ahead} waiting {'job is' if ahead == 1 else 'jobs are'} before it." if ahead else ""
    free = max(state.slots - state.used, 0)
    if free >= job.devices:
        return f"{need}, and {free} of queue {state.queue} are free: Airflow starts it within seconds.{line}"
    names = [f"{holder.name} ({holder.devices})" for holder in state.holding[:_NAMED]]
    more = len(state.holding) - _NAMED
    held = ", ".join(names) + (f" and {more} more" if more > 0 else "")
    return (
        f"{need}; {free} of the {state.slots} of queue {state.queue} are free, {job.devices - free} more must end. "
        f"Held by {held}.{line}"
    )
