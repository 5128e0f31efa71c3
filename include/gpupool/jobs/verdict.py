"""From an ending to an outcome: decided by who stopped it, exit code, signal, kernel and the last lines of its log."""

import re
import signal as signals
from dataclasses import dataclass

from gpupool.jobs.process import Ending
from gpupool.pool.outcomes import Outcome

_STOPPED = {
    "timeout": Outcome.STOPPED_TIMEOUT,
    "user": Outcome.STOPPED_USER,
    "idle": Outcome.STOPPED_IDLE,
    "preempted": Outcome.PREEMPTED,
    "worker_lost": Outcome.LOST,
}

# Tried in this order over the log's tail: the more specific cause first, as it often drags the later ones behind it.
_PHRASES: dict[Outcome, tuple[str, ...]] = {
    Outcome.FAILED_HARDWARE: (
        r"NVRM: Xid",
        r"\bXid \(",
        r"uncorrectable ECC",
        r"GPU (is lost|has fallen off the bus)",
        r"CUDA error: (an illegal instruction|hardware stack error|uncorrectable)",
    ),
    Outcome.FAILED_DRIVER: (
        r"driver/library version mismatch",
        r"CUDA driver version is insufficient",
        r"no kernel image is available for execution",
        r"forward compatibility was attempted",
        r"provided PTX was compiled with an unsupported toolchain",
        r"libcuda\.so[.\d]*: cannot open",
    ),
    Outcome.FAILED_OOM: (
        r"(CUDA|NPU) out of memory",
        r"OutOfMemoryError",
        r"CUDA_ERROR_OUT_OF_MEMORY",
        r"^MemoryError",
        r"RESOURCE_EXHAUSTED",
        r"std::bad_alloc",
        r"Cannot allocate memory",
        r"Unable to allocate .* for an array",
    ),
    Outcome.FAILED_IMAGE: (
        r"ModuleNotFoundError",
        r"ImportError",
        r"error while loading shared libraries",
        r"command not found",
        r"GLIBC_[\d.]+' not found",
    ),
    Outcome.FAILED_DATA: (
        r"FileNotFoundError",
        r"No space left on device",
        r"IsADirectoryError",
        r"PermissionError: .*(data|dataset)",
        r"NoSuchKey|NoSuchBucket|DatasetNotFound",
        r"Stale file handle",
        r"Input/output error",
    ),
    Outcome.FAILED_NETWORK: (
        r"[NH]CCL.*(error|timeout|timed out|unhandled)",
        r"Connection (refused|reset|timed out)",
        r"ConnectionError",
        r"Name or service not known",
        r"Temporary failure in name resolution",
        r"No route to host",
    ),
}
_SIGNATURES = {outcome: re.compile("|".join(phrases), re.IGNORECASE) for outcome, phrases in _PHRASES.items()}
_COMMAND_MISSING, _COMMAND_NOT_EXECUTABLE = 127, 126


@dataclass(frozen=True)
class Verdict:
    """An outcome and the line or fact that decided it."""

    outcome: Outcome
    evidence: str

    def __str__(self) -> str:
        return f"{self.outcome}: {self.outcome.sentence} ({self.evidence})"


def judge(ending: Ending) -> Verdict:
    """Decide the outcome of an ended attempt."""
    if ending.stopped is not None:
        return Verdict(_STOPPED.get(ending.stopped, Outcome.STOPPED_USER), f"stopped: {ending.stopped}")
    if ending.exit_code == 0:
        return Verdict(Outcome.SUCCEEDED, "exit code 0")
    if ending.signal == signals.SIGKILL and ending.oom_kills > 0:
        return Verdict(Outcome.FAILED_OOM, f"SIGKILL, and the kernel's oom_kill count rose by {ending.oom_kills}")
    for outcome, pattern in _SIGNATURES.items():
        for line in reversed(ending.tail):
            if pattern.search(line):
                return Verdict(outcome, line.strip())
    return _by_status(ending)


def _by_status(ending: Ending) -> Verdict:
    if ending.signal in (signals.SIGKILL, signals.SIGTERM):
        return Verdict(Outcome.FAILED_KILLED, f"{signals.Signals(ending.signal).name} from outside gpupool")
    last = next((line.strip() for line in reversed(ending.tail) if line.strip()), "no output")
    if ending.signal is not None:
        return Verdict(Outcome.FAILED_USER_CODE, f"{_signal_name(ending.signal)}; last line: {last}")
    if ending.exit_code in (_COMMAND_MISSING, _COMMAND_NOT_EXECUTABLE):
        return Verdict(Outcome.FAILED_IMAGE, f"exit code {ending.exit_code}; last line: {last}")
    return Verdict(Outcome.FAILED_USER_CODE, f"exit code {ending.exit_code}; last line: {last}")


def _signal_name(number: int) -> str:
    try:
        return signals.Signals(number).name
    except ValueError:
        return f"signal {number}"
