"""What must change on Airflow's pools, in an order that is safe at every step."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from gpupool.scheduling.slots import MARK, QueuePool

Action = Literal["shrink", "close", "delete", "describe", "create", "grow"]


@dataclass(frozen=True)
class LivePool:
    """A pool as Airflow has it. ``jobs``: unfinished task instances in it, in any state."""

    name: str
    slots: int
    description: str
    jobs: int

    @property
    def is_ours(self) -> bool:
        """Was it made by gpupool?"""
        return self.description.startswith(MARK)


@dataclass(frozen=True)
class PoolChange:
    """One step: what happens to which pool, and why."""

    action: Action
    pool: str
    slots_before: int | None
    slots_after: int | None
    description: str
    reason: str


_ORDER: tuple[Action, ...] = ("shrink", "close", "delete", "describe", "create", "grow")


def pool_changes(live: Iterable[LivePool], wanted: Iterable[QueuePool]) -> list[PoolChange]:
    """The steps from the live pools to the wanted ones; none if they agree.

    What shrinks comes before what grows, so that the sum of slots never exceeds the capacity in between. A pool of
    a removed queue is closed (0 slots) and deleted only when no unfinished job is left in it. Pools that gpupool did
    not make are left alone unless a queue claims their name.
    """
    present = {pool.name: pool for pool in live}
    targets = {pool.name: pool for pool in wanted}
    changes = [c for target in targets.values() if (c := _toward(present.get(target.name), target))]
    changes += [c for pool in present.values() if pool.is_ours and pool.name not in targets and (c := _retire(pool))]
    return sorted(changes, key=lambda change: _ORDER.index(change.action))


def _toward(pool: LivePool | None, target: QueuePool) -> PoolChange | None:
    if pool is None:
        return PoolChange("create", target.name, None, target.slots, target.description, "The pool file has it.")
    if target.slots == pool.slots and target.description == pool.description:
        return None
    action: Action = "describe"
    reason = "Its description is out of date."
    if target.slots < pool.slots or pool.slots < 0:  # -1 is Airflow's word for no limit
        action, reason = (
            "shrink",
            f"Its quota or the ready capacity fell from {pool.slots} to {target.slots}.",
        )
    elif target.slots > pool.slots:
        action, reason = "grow", f"Its quota or the ready capacity rose from {pool.slots} to {target.slots}."
    return PoolChange(action, target.name, pool.slots, target.slots, target.description, reason)


def _retire(pool: LivePool) -> PoolChange | None:
    if pool.jobs == 0:
        return PoolChange("delete", pool.name, pool.slots, None, "", "Its queue left the pool file and it is empty.")
    closed = f"{MARK}closed, its queue left the pool file; {pool.jobs} unfinished jobs."
    if pool.slots == 0 and pool.description == closed:
        return None
    reason = f"Its queue left the pool file; {pool.jobs} unfinished jobs are still in it."
    return PoolChange("close", pool.name, pool.slots, 0, closed, reason)
