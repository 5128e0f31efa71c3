"""Slots per Airflow pool from nominal quotas, never more than the capacity."""

from collections.abc import Mapping
from dataclasses import dataclass

from gpupool.pool.config import Pool, Queue
from gpupool.pool.request import pool_name

MARK = "gpupool: "  # how a pool's description says that it is ours


@dataclass(frozen=True)
class QueuePool:
    """One (queue, flavor) as an Airflow pool should be."""

    name: str
    slots: int
    description: str


def queue_pools(pool: Pool, capacity: Mapping[str, int], waiting: Mapping[str, int] | None = None) -> list[QueuePool]:
    """The Airflow pools that the pool file asks for.

    ``capacity``: schedulable devices per flavor. ``waiting``: devices that waiting jobs ask for, per Airflow pool.
    """
    slots = nominal_slots(pool, capacity)
    return [
        QueuePool(name, slots[name], _describe(rules, flavor, slots[name], capacity) + _waiting(waiting, name))
        for queue, rules in pool.queues.items()
        for flavor in rules.quota
        for name in [pool_name(queue, flavor)]
    ]


def nominal_slots(pool: Pool, capacity: Mapping[str, int]) -> dict[str, int]:
    """Nominal quota per Airflow pool, cut by largest remainder where a flavor has less capacity than was promised.

    Cutting keeps the sum over a flavor's pools at or below its capacity; ties go to the stronger priority, then to
    the file's order.
    """
    slots: dict[str, int] = {}
    for flavor in pool.flavors:
        queues = [name for name, rules in pool.queues.items() if flavor in rules.quota]
        promised = {name: pool.queues[name].quota[flavor].nominal for name in queues}
        total, available = sum(promised.values()), capacity.get(flavor, 0)
        if total <= available:
            shares = promised
        else:
            shares = {name: count * available // total for name, count in promised.items()}
            by_claim = sorted(
                queues, key=lambda name: (-(promised[name] * available % total), -pool.queues[name].priority)
            )
            for name in by_claim[: available - sum(shares.values())]:
                shares[name] += 1
        slots |= {pool_name(name, flavor): count for name, count in shares.items()}
    return slots


def _describe(queue: Queue, flavor: str, slots: int, capacity: Mapping[str, int]) -> str:
    nominal = queue.quota[flavor].nominal
    text = f"{MARK}team {queue.team}, {queue.workload}; nominal {nominal} x {flavor}, priority {queue.priority}"
    if slots < nominal:
        text += f"; only {slots} now, as the pool has {capacity.get(flavor, 0)} ready {flavor}"
    return text


def _waiting(waiting: Mapping[str, int] | None, name: str) -> str:
    devices = (waiting or {}).get(name, 0)
    return f"; jobs wait for {devices} more." if devices else "."
