"""Leases: which job holds which device of this node, under locks that die with their holder.

A lease is a set of ``flock``-ed files, one per device. The open files are inherited by the job's processes, so the
kernel frees a device exactly when the last of them is gone: after any crash, and never before.
"""

import fcntl
import json
import os
import random
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

from gpupool.exceptions import NoFreeDevice


@dataclass(frozen=True)
class Holder:
    """Who holds a device: one attempt of one job."""

    attempt_id: str
    job: str
    queue: str
    since: str = ""


@dataclass
class Lease:
    """Devices held by one attempt. ``fds`` are to be inherited by the job; ``release`` closes this process's copies."""

    device_ids: tuple[str, ...]
    fds: tuple[int, ...]

    def release(self) -> None:
        """Give up this process's hold; the devices are free once no other process shares the files."""
        for fd in self.fds:
            os.close(fd)
        self.fds = ()


class DeviceLocks:
    """The lock files of one node, in a folder on a local disk."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    def acquire(
        self,
        devices: Sequence[str],
        count: int,
        holder: Holder,
        *,
        timeout_s: float,
        on_wait: Callable[[str], None] = lambda _: None,
    ) -> Lease:
        """Take ``count`` of ``devices``, all or none, in the order given.

        Also takes the job's own lock first, so that no second copy of a job starts while an older attempt of it is
        still ending. Raises NoFreeDevice after ``timeout_s`` seconds, naming who holds what.
        """
        deadline = time.monotonic() + timeout_s
        told = False
        while (lease := self._try(devices, count, holder)) is None:
            if time.monotonic() >= deadline:
                raise NoFreeDevice(
                    f"{holder.job} needs {count} of {len(devices)} devices on this node, and they were not free "
                    f"within {timeout_s:.0f} s: {self._who(devices)}. Look for jobs started outside gpupool."
                )
            if not told:
                on_wait(f"Waiting for {count} free devices: {self._who(devices)}.")
                told = True
            time.sleep(random.uniform(0.1, 0.4))  # noqa: S311 - spreads contenders, nothing secret
        return lease

    def holders(self) -> dict[str, Holder]:
        """Who holds which device now, by device id."""
        held = {}
        for path in self._folder.glob("device-*.lock"):
            fd = os.open(path, os.O_RDONLY)
            try:
                if not _lock(fd, fcntl.LOCK_SH):
                    held[path.stem.removeprefix("device-")] = _read_holder(fd)
            finally:
                os.close(fd)
        return held

    def _try(self, devices: Sequence[str], count: int, holder: Holder) -> Lease | None:
        with self._turn():
            job = self._open(f"job-{holder.job.replace('/', '_')}.lock")
            if not _lock(job, fcntl.LOCK_EX):
                os.close(job)
                return None
            taken: dict[str, int] = {}
            for device in devices:
                if len(taken) == count:
                    break
                fd = self._open(f"device-{device}.lock")
                if _lock(fd, fcntl.LOCK_EX):
                    taken[device] = fd
                else:
                    os.close(fd)
            if len(taken) < count:
                for fd in (job, *taken.values()):
                    os.close(fd)
                return None
            stamped = Holder(holder.attempt_id, holder.job, holder.queue, datetime.now(UTC).isoformat())
            for fd in taken.values():
                _write_holder(fd, stamped)
            return Lease(tuple(taken), (job, *taken.values()))

    @contextmanager
    def _turn(self) -> Iterator[None]:
        """One contender at a time looks for free devices, so that two big jobs never hold half each."""
        fd = self._open("turn.lock")
        try:
            fcntl.flock(fd, fcntl.LOCK_EX)
            yield
        finally:
            os.close(fd)

    def _open(self, name: str) -> int:
        return os.open(self._folder / name, os.O_RDWR | os.O_CREAT, 0o600)

    def _who(self, devices: Sequence[str]) -> str:
        held = self.holders()
        busy = [f"{device} by {held[device].job}" for device in devices if device in held]
        return ", ".join(busy) or "an earlier attempt of the same job is still ending"


def _lock(fd: int, kind: int) -> bool:
    try:
        fcntl.flock(fd, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _write_holder(fd: int, holder: Holder) -> None:
    os.ftruncate(fd, 0)
    os.pwrite(fd, json.dumps(asdict(holder)).encode(), 0)


def _read_holder(fd: int) -> Holder:
    try:
        return Holder(**json.loads(os.pread(fd, 65_536, 0)))
    except (ValueError, TypeError):  # taken a moment ago, not yet written
        return Holder("", "unknown", "unknown")
