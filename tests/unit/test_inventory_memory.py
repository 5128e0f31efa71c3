"""What the installation remembers of devices between snapshots."""

from datetime import UTC, datetime, timedelta

from gpupool.airflow.inventory import remembered, snapshot_rows
from gpupool.lake.store import Lake
from gpupool.lake.tables import INVENTORY_SNAPSHOT
from gpupool.pool.drift import find_drift
from gpupool.pool.inventory import Device, DeviceKind, NodeReport
from gpupool.pool.ledger import Ledger, merge

T0 = datetime(2026, 3, 1, tzinfo=UTC)


def gpu(number: int) -> Device:
    return Device(f"GPU-{number}", number, DeviceKind.GPU, "NVIDIA H100", 80, {"nvidia.com/gpu.product": "NVIDIA-H100"})


def snapshot(lake: Lake, pool, at: datetime, *devices: Device) -> tuple[Ledger, list[str]]:
    known = remembered(lake, at)
    ledger = merge(pool, [NodeReport("a", devices)], known)
    lake.insert_new(INVENTORY_SNAPSHOT, snapshot_rows(ledger, at))
    return ledger, [finding.kind for finding in find_drift(ledger, known)]


def test_a_device_survives_the_lake_unchanged(tmp_path, pool):
    lake = Lake(str(tmp_path))
    snapshot(lake, pool, T0, gpu(1), gpu(2))
    assert remembered(lake, T0 + timedelta(minutes=5)) == {"a": (gpu(1), gpu(2))}


def test_a_vanished_device_stays_lost_until_it_is_back_or_a_week_has_passed(tmp_path, pool):
    lake = Lake(str(tmp_path))
    snapshot(lake, pool, T0, gpu(1), gpu(2))
    for day in (1, 3, 6):
        ledger, drift = snapshot(lake, pool, T0 + timedelta(days=day), gpu(1))
        assert [(d.device.device_id, d.state) for d in ledger.devices] == [("GPU-1", "ready"), ("GPU-2", "lost")]
        assert drift == ["device_vanished"]
    ledger, drift = snapshot(lake, pool, T0 + timedelta(days=7, hours=1), gpu(1))
    assert ([d.device.device_id for d in ledger.devices], drift) == (["GPU-1"], [])


def test_a_device_that_comes_back_is_no_news(tmp_path, pool):
    lake = Lake(str(tmp_path))
    snapshot(lake, pool, T0, gpu(1), gpu(2))
    snapshot(lake, pool, T0 + timedelta(hours=1), gpu(1))
    ledger, drift = snapshot(lake, pool, T0 + timedelta(hours=2), gpu(1), gpu(2))
    assert ({d.state for d in ledger.devices}, drift) == ({"ready"}, [])
