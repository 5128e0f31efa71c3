"""Discovery and collection through the real pynvml, against a fake libnvidia-ml.so.1 that plays each scenario."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

H100, GIB80, GIB10 = "NVIDIA_H100_80GB_HBM3", 85_899_345_920, 10_737_418_240

_PROBE = """
import json
from dataclasses import asdict
from gpupool.telemetry.local import collect, local_source
source = local_source()
report = source.discover()
rows = collect(source, readings=3, interval_s=0, attempts=lambda: {"GPU-1": "attempt-1"})
from datetime import UTC, datetime
from gpupool.telemetry.gate import judge
judgement = judge(rows, now=datetime.now(UTC), memory_bytes={d.device_id: d.memory_bytes for d in report.devices})
print(json.dumps({"source": source.name, "report": asdict(report), "rows": rows, "bad": judgement.bad.rows()}, default=str))
"""


@pytest.fixture(scope="session")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("nvml")
    source = Path(__file__).parent.parent / "fake_nvml/nvml.c"
    subprocess.run(
        [
            "gcc",
            "-shared",
            "-fPIC",
            "-Wall",
            "-Wextra",
            "-Werror",
            "-O1",
            "-o",
            folder / "libnvidia-ml.so.1",
            source,
        ],
        check=True,
    )
    return folder


@pytest.fixture
def machine(library: Path, tmp_path: Path):
    """What discovery and three readings say of a machine described by a scenario."""

    def play(*lines: str) -> dict:
        scenario = tmp_path / "scenario"
        scenario.write_text("\n".join(lines) + "\n")
        env = os.environ | {"LD_LIBRARY_PATH": str(library), "FAKE_NVML_SCENARIO": str(scenario)}
        done = subprocess.run([sys.executable, "-c", _PROBE], env=env, capture_output=True, text=True, check=True)
        return json.loads(done.stdout.splitlines()[-1])

    return play


def ids(result: dict) -> list[str]:
    return [device["device_id"] for device in result["report"]["devices"]]


def test_devices_are_discovered_with_uuid_model_memory_driver_and_cuda(machine):
    result = machine("driver 575.57", "cuda 12090", f"gpu GPU-1 {H100} {GIB80}", f"gpu GPU-2 NVIDIA_A10 {GIB10}")
    report = result["report"]
    assert (result["source"], report["driver"], report["cuda"], ids(result)) == (
        "nvml",
        "575.57",
        "12.9",
        ["GPU-1", "GPU-2"],
    )
    first = report["devices"][0]
    assert (first["model"], first["memory_bytes"], first["kind"]) == ("NVIDIA H100 80GB HBM3", GIB80, "gpu")
    assert first["labels"]["nvidia.com/gpu.product"] == "NVIDIA-H100-80GB-HBM3"
    assert first["labels"]["nvidia.com/gpu.memory"] == "81920"


def test_values_change_over_time_and_the_holder_is_noted(machine):
    result = machine(f"gpu GPU-1 {H100} {GIB80}", "util 10 90 40", f"gpu GPU-2 {H100} {GIB80}")
    rows = [row for row in result["rows"] if row["device_id"] == "GPU-1"]
    assert [row["utilization_percent"] for row in rows] == [10, 90, 40]
    assert {row["attempt_id"] for row in rows} == {"attempt-1"}
    assert (rows[0]["power_watts"], rows[0]["temperature_celsius"]) == (300.0, 55.0)
    assert {row["attempt_id"] for row in result["rows"] if row["device_id"] == "GPU-2"} == {None}
    assert result["bad"] == []


def test_mig_instances_are_the_devices_and_lack_utilization(machine):
    name = f"{H100}_MIG_1g.10gb"
    result = machine(
        f"gpu GPU-1 {H100} {GIB80} mig",
        f"mig MIG-a {name} {GIB10}",
        f"mig MIG-b {name} {GIB10}",
        f"gpu GPU-2 {H100} {GIB80}",
    )
    assert ids(result) == ["MIG-a", "MIG-b", "GPU-2"]
    assert [d["kind"] for d in result["report"]["devices"]] == ["mig", "mig", "gpu"]
    row = next(row for row in result["rows"] if row["device_id"] == "MIG-a")
    assert row["utilization_percent"] is None
    assert {"utilization_percent", "power_watts"} <= set(row["unsupported"])
    assert result["bad"] == []


def test_unsupported_metrics_are_said_to_be_so(machine):
    result = machine(f"gpu GPU-1 {H100} {GIB80}", "unsupported power", "unsupported temperature")
    assert result["rows"][0]["unsupported"] == ["power_watts", "temperature_celsius"]
    assert result["bad"] == []


def test_a_lost_gpu_is_a_fault_and_its_neighbour_goes_on(machine):
    result = machine(f"gpu GPU-1 {H100} {GIB80}", "fault 15", f"gpu GPU-2 {H100} {GIB80}")
    faults = [device["fault"] for device in result["report"]["devices"]]
    assert faults[0].endswith("does not answer: GPU is lost.")
    assert faults[1] is None
    assert {row["device_id"] for row in result["rows"]} == {"GPU-2"}


@pytest.mark.parametrize(
    ("code", "words"), [(18, "NVML/RM version mismatch"), (9, "Driver Not Loaded"), (999, "Unknown Error")]
)
def test_a_driver_that_does_not_start_is_the_nodes_fault(machine, code, words):
    result = machine(f"init {code}", f"gpu GPU-1 {H100} {GIB80}")
    assert result["source"] == "nvml"
    assert words in result["report"]["fault"]
    assert (ids(result), result["rows"]) == ([], [])


def test_without_the_library_the_cpu_cores_are_the_devices(tmp_path):
    done = subprocess.run([sys.executable, "-c", _PROBE], capture_output=True, text=True, check=True)
    result = json.loads(done.stdout.splitlines()[-1])
    assert result["source"] == "cpu"
    assert len(ids(result)) == len(os.sched_getaffinity(0))
    assert all(0 <= row["utilization_percent"] <= 100 for row in result["rows"])
    assert result["bad"] == []
