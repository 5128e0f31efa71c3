"""The process backend: a job as a child process of the worker, on devices of the worker's node."""

import json
import os
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from gpupool.jobs.leases import Lease
from gpupool.pool.inventory import Device, DeviceKind

_GUARDIAN = Path(__file__).with_name("guardian.py")
_TAIL_LINES = 200
_MAX_LINE = 16_384
_VISIBLE_DEVICES = {  # what each vendor's runtime reads
    DeviceKind.GPU: "CUDA_VISIBLE_DEVICES",
    DeviceKind.MIG: "CUDA_VISIBLE_DEVICES",
    DeviceKind.NPU: "ASCEND_RT_VISIBLE_DEVICES",
}
_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
_SECRET_PREFIXES = ("AIRFLOW", "_AIRFLOW", "GPUPOOL_API", "GPUPOOL_SECRETS", "POSTGRES")


@dataclass(frozen=True)
class JobSpec:
    """What to run. ``env`` is added to the worker's own environment, less its secrets."""

    command: Sequence[str]
    cwd: Path
    max_runtime: timedelta
    grace: timedelta
    env: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Ending:
    """How the process ended, as seen by its guardian; ``stopped``: who asked it to (``timeout``, ``user``, ...)."""

    exit_code: int | None
    signal: int | None
    stopped: str | None
    started_at: datetime
    ended_at: datetime
    max_rss_bytes: int | None = None
    cpu_seconds: float | None = None
    oom_kills: int = 0
    tail: tuple[str, ...] = ()


class ProcessJob:
    """One attempt: start it, wait for it, stop it."""

    def __init__(self, spec: JobSpec, devices: Sequence[Device], lease: Lease) -> None:
        self._spec = spec
        self._devices = devices
        self._lease = lease
        self._guardian: subprocess.Popen[bytes] | None = None
        self._report = -1

    def start(self) -> int:
        """Start the job and hand it the lease; returns the guardian's process id."""
        report_r, report_w = os.pipe()
        try:
            self._guardian = subprocess.Popen(
                [sys.executable, "-I", "-S", str(_GUARDIAN)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                pass_fds=(report_w, *self._lease.fds),
            )
        except OSError:
            os.close(report_r)
            raise
        finally:
            os.close(report_w)
        self._report = report_r
        self._say(json.dumps(self._order(report_w)))
        self._lease.release()  # from here on the guardian and the job hold it
        return self._guardian.pid

    def wait(self, on_line: Callable[[str], None]) -> Ending:
        """Pass each line of output on as it comes, and return the ending.

        Raises RuntimeError if the guardian itself was killed; the kernel then kills the job with it.
        """
        if self._guardian is None or self._guardian.stdout is None:
            raise RuntimeError("the job was not started")
        tail: deque[str] = deque(maxlen=_TAIL_LINES)
        with open(self._guardian.stdout.fileno(), errors="replace", closefd=False) as output:
            for raw in output:
                line = raw.rstrip("\n")[:_MAX_LINE]
                tail.append(line)
                on_line(line)
        with os.fdopen(self._report) as stream:
            text = stream.read()
        self._guardian.wait()
        if not text:
            raise RuntimeError("The job's guardian process was killed, so nothing is known of the job's end.")
        return _ending(json.loads(text), tuple(tail))

    def stop(self, reason: str) -> None:
        """Ask for a graceful stop: SIGTERM, grace, SIGKILL. Returns at once; ``wait`` tells the end."""
        with suppress(BrokenPipeError):  # it may just have ended by itself
            self._say(reason)

    def _say(self, line: str) -> None:
        if self._guardian is not None and self._guardian.stdin is not None:
            self._guardian.stdin.write(line.encode() + b"\n")
            self._guardian.stdin.flush()

    def _order(self, report_fd: int) -> dict[str, object]:
        is_cpu = all(device.kind is DeviceKind.CPU for device in self._devices)
        return {
            "command": list(self._spec.command),
            "cwd": str(self._spec.cwd),
            "env": job_env(os.environ, self._devices, self._spec.env),
            "cores": [device.index for device in self._devices] if is_cpu else [],
            "max_runtime_s": self._spec.max_runtime.total_seconds(),
            "grace_s": self._spec.grace.total_seconds(),
            "lease_fds": list(self._lease.fds),
            "report_fd": report_fd,
        }


def job_env(worker: Mapping[str, str], devices: Sequence[Device], own: Mapping[str, str]) -> dict[str, str]:
    """A job's environment: the worker's less its secrets, threads for its cores, its own, and its devices.

    What it sees of devices comes last: a job cannot widen it by a variable of its own.
    """
    inherited = {name: value for name, value in worker.items() if not name.startswith(_SECRET_PREFIXES)}
    on_cores = all(device.kind is DeviceKind.CPU for device in devices)
    threads = dict.fromkeys(_THREADS, str(len(devices))) if on_cores else {}
    return {**inherited, **threads, **own, **_visible(devices)}


def _visible(devices: Sequence[Device]) -> dict[str, str]:
    """The variables by which a job sees its devices and only those."""
    ids = ",".join(device.device_id for device in devices)
    env = dict.fromkeys([*_VISIBLE_DEVICES.values(), "NVIDIA_VISIBLE_DEVICES"], "")
    env["GPUPOOL_DEVICES"] = ids
    kinds = {device.kind for device in devices}
    for kind in kinds & _VISIBLE_DEVICES.keys():
        env[_VISIBLE_DEVICES[kind]] = ids
    if kinds & {DeviceKind.GPU, DeviceKind.MIG}:
        env["NVIDIA_VISIBLE_DEVICES"] = ids
        env["CUDA_DEVICE_ORDER"] = "PCI_BUS_ID"
    return env


def _ending(report: dict[str, Any], tail: tuple[str, ...]) -> Ending:
    started, ended = (datetime.fromtimestamp(report.pop(name), UTC) for name in ("started", "ended"))
    return Ending(**report, started_at=started, ended_at=ended, tail=tail)
