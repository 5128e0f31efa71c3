"""The guardian: a small process between worker and job that outlives the worker just long enough to clean up.

It holds the lease, starts the job in a session of its own, enforces ``max_runtime`` and stops the whole process tree:
SIGTERM, grace, SIGKILL. Its stdin is its lifeline to the worker: a first line with the order (JSON), later perhaps
``stop``; when it closes, the worker is gone and the job must not live on. Run as a script, standard library only, so
that it starts in a few milliseconds.
"""

import ctypes
import json
import os
import select
import signal
import subprocess
import sys
import time
from contextlib import suppress
from typing import Any

PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36


def main() -> None:
    """Read the order, run the job, write the ending (JSON) to the descriptor that the order names."""
    order = json.loads(_read_line(0))
    report = order["report_fd"]
    os.set_inheritable(report, False)
    _prctl(PR_SET_CHILD_SUBREAPER, 1)  # orphans of the job become our children, so none escapes the final kill
    if order["cores"] and hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, order["cores"])
    ending = _Run(order).ending()
    with os.fdopen(report, "w") as stream:
        json.dump(ending, stream)


class _Run:
    def __init__(self, order: dict[str, Any]) -> None:
        self._order = order
        self._stop_reason: str | None = None
        self._wake_r, self._wake_w = os.pipe()
        os.set_blocking(self._wake_w, False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # ends with its job, not before
        signal.set_wakeup_fd(self._wake_w, warn_on_full_buffer=False)

    def ending(self) -> dict[str, Any]:
        oom_before, started = _oom_kills(), time.time()
        try:
            job = subprocess.Popen(
                self._order["command"],
                cwd=self._order["cwd"],
                env=self._order["env"],
                stdin=subprocess.DEVNULL,
                start_new_session=True,
                pass_fds=self._order["lease_fds"],
                preexec_fn=_die_with_parent,  # noqa: PLW1509 - this process has one thread
            )
        except OSError as error:
            print(f"{error.strerror}: {error.filename}", file=sys.stderr, flush=True)
            return {
                "exit_code": 127,
                "signal": None,
                "stopped": None,
                "started": started,
                "ended": time.time(),
            }
        status, usage = self._wait(job)
        _kill_descendants()
        code = os.waitstatus_to_exitcode(status)
        return {
            "exit_code": code if code >= 0 else None,
            "signal": -code if code < 0 else None,
            "stopped": self._stop_reason,
            "started": started,
            "ended": time.time(),
            "max_rss_bytes": usage.ru_maxrss * 1024,
            "cpu_seconds": usage.ru_utime + usage.ru_stime,
            "oom_kills": _oom_kills() - oom_before,
        }

    def _wait(self, job: "subprocess.Popen[bytes]") -> tuple[int, Any]:
        end_by: float | None = time.monotonic() + self._order["max_runtime_s"]
        lifeline_open = True
        while True:
            pid, status, usage = os.wait4(job.pid, os.WNOHANG)
            if pid:
                job.returncode = 0  # reaped here; Popen must not wait for it again
                return status, usage
            timeout = None if end_by is None else max(0.0, end_by - time.monotonic())
            ready, _, _ = select.select([self._wake_r, *([0] if lifeline_open else [])], [], [], timeout)
            if self._wake_r in ready:
                os.read(self._wake_r, 4096)
            if 0 in ready:
                word = _read_line(0)
                lifeline_open = bool(word)
                if self._stop_reason is None:
                    end_by = self._ask_to_stop(job.pid, word.strip() or "worker_lost")
            elif end_by is not None and time.monotonic() >= end_by:
                if self._stop_reason is None:
                    end_by = self._ask_to_stop(job.pid, "timeout")
                else:
                    end_by = None
                    _signal_group(job.pid, signal.SIGKILL)

    def _ask_to_stop(self, group: int, reason: str) -> float:
        """SIGTERM; returns when the grace is over (monotonic seconds)."""
        self._stop_reason = reason
        _signal_group(group, signal.SIGTERM)
        return time.monotonic() + float(self._order["grace_s"])


def _read_line(fd: int) -> str:
    """Byte by byte, as a buffered reader would hide from select what it has already swallowed."""
    line = bytearray()
    while (byte := os.read(fd, 1)) not in (b"", b"\n"):
        line += byte
    return line.decode() or ("\n" if byte else "")


def _die_with_parent() -> None:
    signal.signal(signal.SIGTERM, signal.SIG_DFL)  # an ignored signal would stay ignored in the job
    _prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def _prctl(option: int, value: int) -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


def _signal_group(group: int, number: int) -> None:
    with suppress(ProcessLookupError):
        os.killpg(group, number)


def _kill_descendants() -> None:
    """SIGKILL everything the job left behind, daemons too, until this process has no child."""
    while True:
        for pid in _children(os.getpid()):
            for number in (*_tree(pid), pid):
                with suppress(ProcessLookupError):
                    os.kill(number, signal.SIGKILL)
        try:
            os.waitpid(-1, 0)
        except ChildProcessError:
            return


def _tree(pid: int) -> list[int]:
    children = _children(pid)
    return children + [below for child in children for below in _tree(child)]


def _children(pid: int) -> list[int]:
    try:
        with open(f"/proc/{pid}/task/{pid}/children") as file:  # noqa: PTH123 - pathlib doubles the start time
            return [int(child) for child in file.read().split()]
    except OSError:
        return []


def _oom_kills() -> int:
    """Processes killed by the kernel for want of memory since boot (``oom_kill`` of proc(5) vmstat)."""
    try:
        with open("/proc/vmstat") as file:  # noqa: PTH123
            return next((int(line.split()[1]) for line in file if line.startswith("oom_kill ")), 0)
    except OSError:
        return 0


if __name__ == "__main__":
    main()
