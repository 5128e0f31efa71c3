"""From an ending to an outcome, with its evidence."""

from datetime import UTC, datetime

import pytest

from gpupool.jobs.process import Ending
from gpupool.jobs.verdict import judge
from gpupool.pool.outcomes import Outcome

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def ending(
    code: int | None = 1, *tail: str, signal: int | None = None, stopped: str | None = None, oom: int = 0
) -> Ending:
    return Ending(code, signal, stopped, NOW, NOW, oom_kills=oom, tail=tail)


@pytest.mark.parametrize(
    ("end", "outcome"),
    [
        (ending(0), Outcome.SUCCEEDED),
        (ending(0, "CUDA out of memory, retrying with a smaller batch"), Outcome.SUCCEEDED),
        (ending(1), Outcome.FAILED_USER_CODE),
        (ending(1, "ValueError: shapes differ"), Outcome.FAILED_USER_CODE),
        (ending(1, "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB"), Outcome.FAILED_OOM),
        (ending(1, "MemoryError"), Outcome.FAILED_OOM),
        (ending(None, signal=9, oom=1), Outcome.FAILED_OOM),
        (ending(None, signal=9), Outcome.FAILED_KILLED),
        (ending(None, signal=11), Outcome.FAILED_USER_CODE),
        (ending(1, "ModuleNotFoundError: No module named 'torch'"), Outcome.FAILED_IMAGE),
        (ending(127, "bash: line 1: trian: command not found"), Outcome.FAILED_IMAGE),
        (ending(127), Outcome.FAILED_IMAGE),
        (ending(1, "CUDA driver version is insufficient for CUDA runtime version"), Outcome.FAILED_DRIVER),
        (ending(1, "Failed to initialize NVML: Driver/library version mismatch"), Outcome.FAILED_DRIVER),
        (ending(1, "NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus."), Outcome.FAILED_HARDWARE),
        (ending(1, "CUDA error: uncorrectable ECC error encountered"), Outcome.FAILED_HARDWARE),
        (ending(1, "FileNotFoundError: [Errno 2] No such file: '/data/train.bin'"), Outcome.FAILED_DATA),
        (ending(1, "OSError: [Errno 28] No space left on device"), Outcome.FAILED_DATA),
        (ending(1, "NCCL WARN: unhandled system error, NCCL version 2.21"), Outcome.FAILED_NETWORK),
        (ending(1, "requests.exceptions.ConnectionError: Connection refused"), Outcome.FAILED_NETWORK),
        (ending(None, signal=15, stopped="timeout"), Outcome.STOPPED_TIMEOUT),
        (ending(0, stopped="user"), Outcome.STOPPED_USER),
        (ending(None, signal=9, stopped="worker_lost"), Outcome.LOST),
        (ending(143, stopped="preempted"), Outcome.PREEMPTED),
    ],
)  # fmt: skip
def test_outcomes(end: Ending, outcome: Outcome):
    assert judge(end).outcome is outcome


def test_the_evidence_is_the_line_that_decided():
    verdict = judge(ending(1, "loading", "CUDA out of memory. Tried to allocate 2 GiB", "cleaning up"))
    assert verdict.evidence == "CUDA out of memory. Tried to allocate 2 GiB"


def test_the_cause_wins_over_what_follows_from_it():
    verdict = judge(
        ending(1, "Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus", "NCCL error: unhandled system error")
    )
    assert verdict.outcome is Outcome.FAILED_HARDWARE


def test_every_outcome_has_a_sentence():
    assert all(outcome.sentence.endswith(".") for outcome in Outcome)
