"""Leases: a device is held by one job at a time, all or none, and never longer than its processes live."""

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from itertools import pairwise
from pathlib import Path

import psutil
import pytest

from gpupool.exceptions import NoFreeDevice
from gpupool.jobs.leases import DeviceLocks, Holder

DEVICES = ["GPU-0", "GPU-1"]


def holder(name: str) -> Holder:
    return Holder(f"attempt-{name}", f"dag/run/{name}", "red-train")


@pytest.fixture
def locks(tmp_path: Path) -> DeviceLocks:
    return DeviceLocks(tmp_path)


def test_two_jobs_never_share_a_device(locks):
    one = locks.acquire(DEVICES, 1, holder("a"), timeout_s=1)
    two = locks.acquire(DEVICES, 1, holder("b"), timeout_s=1)
    assert {*one.device_ids, *two.device_ids} == set(DEVICES)
    assert {d: h.job for d, h in locks.holders().items()} == {"GPU-0": "dag/run/a", "GPU-1": "dag/run/b"}


def test_all_or_none_and_the_error_says_who_holds(locks):
    locks.acquire(DEVICES, 1, holder("a"), timeout_s=1)
    with pytest.raises(NoFreeDevice, match=r"dag/run/b needs 2 of 2 devices .* GPU-0 by dag/run/a"):
        locks.acquire(DEVICES, 2, holder("b"), timeout_s=0)
    assert locks.acquire(DEVICES, 1, holder("c"), timeout_s=1).device_ids == ("GPU-1",)


def test_release_frees(locks):
    locks.acquire(DEVICES, 2, holder("a"), timeout_s=1).release()
    assert locks.holders() == {}
    assert locks.acquire(DEVICES, 2, holder("b"), timeout_s=0).device_ids == ("GPU-0", "GPU-1")


def test_no_second_copy_of_a_job_while_the_first_still_ends(locks):
    first = locks.acquire(DEVICES, 1, holder("a"), timeout_s=1)
    with pytest.raises(NoFreeDevice, match=r"earlier attempt|GPU-0 by dag/run/a"):
        locks.acquire(DEVICES, 1, holder("a"), timeout_s=0)
    first.release()
    locks.acquire(DEVICES, 1, holder("a"), timeout_s=0)


_CONTENDER = """
import sys, time
from pathlib import Path
from gpupool.jobs.leases import DeviceLocks, Holder
folder, name, devices, count = sys.argv[1], sys.argv[2], sys.argv[3].split(","), int(sys.argv[4])
lease = DeviceLocks(Path(folder)).acquire(devices, count, Holder(name, "dag/run/" + name, "q"), timeout_s=60)
start = time.time()
time.sleep(0.05)
print(start, time.time(), *lease.device_ids)
"""


def test_many_contending_processes_never_overlap(tmp_path):
    """20 processes over 2 devices, some want both: their own clocks show that no device was held twice."""
    contenders = [
        subprocess.Popen(
            [sys.executable, "-c", _CONTENDER, tmp_path, f"j{i}", ",".join(DEVICES), str(1 + (i % 5 == 0))],
            stdout=subprocess.PIPE,
            text=True,
        )
        for i in range(20)
    ]
    spans = []
    for contender in contenders:
        start, end, *devices = contender.communicate(timeout=60)[0].split()
        spans += [(device, float(start), float(end)) for device in devices]
    assert Counter(device for device, _, _ in spans).total() == 24
    for device in DEVICES:
        held = sorted((start, end) for name, start, end in spans if name == device)
        assert all(end <= start for (_, end), (start, _) in pairwise(held))


_WORKER = """
import sys
from datetime import timedelta
from pathlib import Path
from gpupool.jobs.leases import DeviceLocks, Holder
from gpupool.jobs.process import JobSpec, ProcessJob
from gpupool.pool.inventory import Device, DeviceKind
folder, command = Path(sys.argv[1]), sys.argv[2]
device = Device("GPU-0", 0, DeviceKind.GPU, "test")
lease = DeviceLocks(folder).acquire(["GPU-0"], 1, Holder("a", "dag/run/a", "q"), timeout_s=1)
job = ProcessJob(JobSpec(["bash", "-c", command], folder, timedelta(hours=1), timedelta(seconds=1)), [device], lease)
job.start()
print("started", flush=True)
job.wait(lambda line: print(line, flush=True))
"""


def _tree_of(command: str, folder: Path) -> tuple["subprocess.Popen[str]", list[psutil.Process]]:
    worker = subprocess.Popen([sys.executable, "-c", _WORKER, folder, command], stdout=subprocess.PIPE, text=True)
    assert worker.stdout is not None
    while worker.stdout.readline().strip() != "ready":
        pass
    return worker, psutil.Process(worker.pid).children(recursive=True)


@pytest.mark.parametrize("victim", ["worker", "guardian"])
@pytest.mark.parametrize(
    "command",
    [
        "echo ready; sleep 300",
        "trap '' TERM; echo ready; sleep 300 & wait; sleep 300",
        "sleep 300 & echo ready; wait",
    ],
)
def test_kill_9_frees_the_lease_and_leaves_no_process(tmp_path, victim, command):
    worker, below = _tree_of(command, tmp_path)
    locks = DeviceLocks(tmp_path)
    assert list(locks.holders()) == ["GPU-0"]
    os.kill(worker.pid if victim == "worker" else below[0].pid, signal.SIGKILL)
    if victim == "worker":
        _, alive = psutil.wait_procs(below, timeout=10)
        assert alive == []
    else:  # the kernel kills the job with its guardian; what the job itself started keeps its device until it ends
        assert not psutil.pid_exists(below[1].pid) or psutil.Process(below[1].pid).wait(5) is None
        for process in below[2:]:
            process.kill()
    worker.wait(10)
    end = time.monotonic() + 5
    while locks.holders() and time.monotonic() < end:
        time.sleep(0.05)
    assert locks.holders() == {}


def test_a_daemon_that_left_its_session_is_killed_with_the_job(tmp_path):
    worker, below = _tree_of("setsid sleep 300 & sleep 0.2; echo ready; exit 0", tmp_path)
    worker.communicate(timeout=20)
    _, alive = psutil.wait_procs(below, timeout=5)
    assert alive == []
    assert DeviceLocks(tmp_path).holders() == {}
