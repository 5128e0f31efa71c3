"""The process backend with real processes."""

import os
import time
from datetime import timedelta
from pathlib import Path

import pytest

from gpupool.jobs.function import read_result, write_call
from gpupool.jobs.leases import DeviceLocks, Holder
from gpupool.jobs.process import Ending, JobSpec, ProcessJob, job_env
from gpupool.jobs.verdict import judge
from gpupool.pool.inventory import Device, DeviceKind
from gpupool.pool.outcomes import Outcome

GPU = Device("GPU-aaaa", 0, DeviceKind.GPU, "test")
CORE = Device("CPU-0000", min(os.sched_getaffinity(0)), DeviceKind.CPU, "core")


@pytest.fixture
def run(tmp_path: Path):
    """Run a bash command as a job; ``stop_after`` seconds ask it to stop."""

    def go(command: str, *, device: Device = GPU, runtime: float = 60, stop_after: float | None = None, env=None):
        lease = DeviceLocks(tmp_path / "locks").acquire([device.device_id], 1, Holder("a", "d/r/t", "q"), timeout_s=5)
        spec = JobSpec(["bash", "-c", command], tmp_path, timedelta(seconds=runtime), timedelta(seconds=1), env or {})
        job, lines = ProcessJob(spec, [device], lease), []
        job.start()
        if stop_after is not None:
            time.sleep(stop_after)
            job.stop("user")
        return (
            job.wait(lambda line: lines.append((time.monotonic(), line))),
            [line for _, line in lines],
            lines,
        )

    return go


def test_output_comes_line_by_line_as_it_is_written(run):
    _, lines, timed = run("echo one; sleep 0.6; echo two >&2")
    assert lines == ["one", "two"]
    assert timed[1][0] - timed[0][0] > 0.4


def test_the_job_sees_its_devices_and_no_secret(run, monkeypatch):
    monkeypatch.setenv("AIRFLOW__API_AUTH__JWT_SECRET", "hunter2")
    monkeypatch.setenv("GPUPOOL_API_PASSWORD_FILE", "/hunter2")
    _, lines, _ = run("env | sort")
    assert "CUDA_VISIBLE_DEVICES=GPU-aaaa" in lines
    assert "GPUPOOL_DEVICES=GPU-aaaa" in lines
    assert not [line for line in lines if "hunter2" in line]


def test_a_cpu_job_sees_no_gpu_and_runs_on_its_core_only(run):
    _, lines, _ = run(
        "grep Cpus_allowed_list /proc/self/status; echo [$CUDA_VISIBLE_DEVICES]; echo $OMP_NUM_THREADS",
        device=CORE,
    )
    assert lines == [f"Cpus_allowed_list:\t{CORE.index}", "[]", "1"]


def test_npus_are_named_to_their_own_runtime():
    env = job_env({}, [Device("NPU-1", 0, DeviceKind.NPU, "910B"), Device("NPU-2", 1, DeviceKind.NPU, "910B")], {})
    assert (env["ASCEND_RT_VISIBLE_DEVICES"], env["CUDA_VISIBLE_DEVICES"]) == ("NPU-1,NPU-2", "")


def test_a_job_sets_its_threads_but_cannot_widen_what_it_sees():
    own = {"CUDA_VISIBLE_DEVICES": "0,1,2,3", "NVIDIA_VISIBLE_DEVICES": "all", "OMP_NUM_THREADS": "3"}
    assert job_env({}, [GPU], own)["CUDA_VISIBLE_DEVICES"] == "GPU-aaaa"
    assert job_env({}, [GPU], own)["NVIDIA_VISIBLE_DEVICES"] == "GPU-aaaa"
    on_core = job_env({}, [CORE], own)
    assert (on_core["CUDA_VISIBLE_DEVICES"], on_core["OMP_NUM_THREADS"], on_core["MKL_NUM_THREADS"]) == ("", "3", "1")


def outcome(ending: Ending) -> Outcome:
    return judge(ending).outcome


def test_facts_of_a_good_end(run):
    ending, _, _ = run("python3 -c 'sum(range(3_000_000))'")
    assert outcome(ending) is Outcome.SUCCEEDED
    assert ending.cpu_seconds > 0.01
    assert ending.max_rss_bytes > 2**20


def test_exit_codes_signals_and_missing_programs(run):
    assert run("exit 3")[0].exit_code == 3
    assert run("kill -SEGV $$")[0].signal == 11
    assert outcome(run("exec no-such-program")[0]) is Outcome.FAILED_IMAGE


def test_max_runtime_stops_and_a_deaf_job_is_killed_after_its_grace(run):
    started = time.monotonic()
    ending, _, _ = run("trap 'echo no' TERM; for i in $(seq 300); do sleep 0.1; done", runtime=0.3)
    assert outcome(ending) is Outcome.STOPPED_TIMEOUT
    assert ending.signal == 9
    assert 1.2 < time.monotonic() - started < 4


def test_a_stop_leaves_time_for_a_checkpoint(run):
    ending, lines, _ = run("trap 'echo checkpoint written; exit 0' TERM; echo ready; sleep 60 & wait", stop_after=0.4)
    assert lines == ["ready", "checkpoint written"]
    assert outcome(ending) is Outcome.STOPPED_USER


def test_stopping_what_has_ended_is_harmless(run):
    assert run("true", stop_after=0.5)[0].exit_code == 0


def test_bytes_that_are_no_text_and_endless_lines_do_no_harm(run):
    _, lines, _ = run(r"printf '\xff\xfe\n'; head -c 100000 /dev/zero | tr '\0' x; echo")
    assert lines[0] == "\ufffd\ufffd"
    assert len(lines[1]) == 16_384


def test_a_function_travels_as_source_and_its_result_comes_back(run, tmp_path):
    source = "def add(a, b=2):\n    import math\n    return {'sum': a + b, 'pi': math.pi}\n"
    script = write_call(tmp_path, source, "add", [40], {"b": 2})
    assert outcome(run(f"python3 {script}")[0]) is Outcome.SUCCEEDED
    assert read_result(tmp_path)["sum"] == 42


def test_an_argument_that_cannot_travel_is_named(tmp_path):
    with pytest.raises(TypeError, match=r"An argument of add\(\) cannot be sent to the job"):
        write_call(tmp_path, "def add(a): pass", "add", [lambda: 0], {})
