"""What a job asks of a queue, checked against the pool file."""

from dataclasses import dataclass
from datetime import timedelta

from gpupool.exceptions import RequestRefused
from gpupool.pool.config import Pool, Queue
from gpupool.pool.quantities import format_duration


def pool_name(queue: str, flavor: str) -> str:
    """Name of the Airflow pool of a (queue, flavor); names hold no dot, so it can be split again."""
    return f"{queue}.{flavor}"


@dataclass(frozen=True)
class Request:
    """A job's wish after the queue's defaults are filled in."""

    queue: str
    flavor: str
    devices: int
    max_runtime: timedelta

    @property
    def pool(self) -> str:
        """The Airflow pool it waits in."""
        return pool_name(self.queue, self.flavor)


def check_request(
    pool: Pool,
    *,
    owner: str,
    queue: str,
    flavor: str | None = None,
    devices: int = 1,
    max_runtime: timedelta | None = None,
) -> Request:
    """Fill in the queue's defaults and apply its rules.

    ``owner``: the DAG's owner or the user who submits. Raises RequestRefused; its sentence says what to
    change.
    """
    if queue not in pool.queues:
        raise RequestRefused(f"Queue {queue!r} is not in the pool file. Use one of: {', '.join(pool.queues)}.")
    rules = pool.queues[queue]
    _check_team(pool, queue, rules, owner)
    chosen = flavor or rules.default_flavor
    if chosen not in rules.quota:
        raise RequestRefused(
            f"Queue {queue!r} has no quota of flavor {chosen!r}. Use one of: {', '.join(rules.quota)}."
        )
    _check_devices(queue, rules, chosen, devices)
    runtime = max_runtime or rules.max_runtime
    if runtime > rules.max_runtime:
        raise RequestRefused(
            f"max_runtime {format_duration(runtime)} is longer than queue {queue!r} allows "
            f"({format_duration(rules.max_runtime)}). Ask for less, or have the queue's max_runtime raised."
        )
    return Request(queue, chosen, devices, runtime)


def _check_team(pool: Pool, queue: str, rules: Queue, owner: str) -> None:
    team = pool.teams[rules.team]
    if not team.has(rules.team, owner):
        raise RequestRefused(
            f"Queue {queue!r} belongs to team {rules.team!r}, and {owner!r} is not of it. "
            f"Use a queue of your team, set the DAG's owner to {rules.team!r}, or have {owner!r} added to its members."
        )


def _check_devices(queue: str, rules: Queue, flavor: str, devices: int) -> None:
    if isinstance(devices, bool) or not isinstance(devices, int) or devices < 1:
        raise RequestRefused(f"devices must be a whole number of 1 or more, not {devices!r}.")
    largest = rules.largest_job(flavor)
    if devices > largest:
        quota = rules.quota[flavor]
        cap = f", at most {rules.max_devices_per_job} per job" if rules.max_devices_per_job else ""
        raise RequestRefused(
            f"{devices} devices of {flavor!r} are more than queue {queue!r} may ever give one job: {largest} "
            f"(nominal {quota.nominal} + borrow {quota.borrow}{cap}). Ask for {largest} or fewer, "
            "or have the quota raised."
        )
