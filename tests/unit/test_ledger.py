"""The ledger: states of nodes and devices, capacity, and drift."""

from gpupool.pool.drift import find_drift
from gpupool.pool.inventory import Device, DeviceKind, NodeReport
from gpupool.pool.ledger import NodeState, merge


def gpu(number: int, model: str = "NVIDIA H100 80GB HBM3", fault: str | None = None) -> Device:
    labels = {"nvidia.com/gpu.product": model.replace(" ", "-")}
    return Device(f"GPU-{number}", number, DeviceKind.GPU, model, 80 * 2**30, labels, fault)


def report(node: str, *devices: Device, driver: str = "580.1", fault: str | None = None) -> NodeReport:
    return NodeReport(node, devices, driver=driver, fault=fault)


def states(ledger):
    return {d.device.device_id: d.state for d in ledger.devices}


def test_a_reporting_node_is_ready_and_its_devices_have_flavors(pool):
    ledger = merge(pool, [report("a", gpu(1), gpu(2))], {})
    assert ledger.capacity() == {"h100": 2}
    assert (ledger.nodes[0].site, ledger.nodes[0].owner) == ("s1", "blue")


def test_a_cordoned_node_is_seen_and_gives_no_capacity(pool_with):
    pool = pool_with("owner: blue}", "owner: blue, cordoned: true}")
    ledger = merge(pool, [report("a", gpu(1))], {})
    assert states(ledger) == {"GPU-1": NodeState.CORDONED}
    assert ledger.capacity() == {}


def test_a_known_node_that_no_longer_reports_is_lost(pool):
    ledger = merge(pool, [], {"a": (gpu(1),)})
    assert states(ledger) == {"GPU-1": NodeState.LOST}
    assert [d.kind for d in find_drift(ledger, {"a": (gpu(1),)})] == ["node_lost"]


def test_a_named_node_that_was_never_seen_is_unverified(pool_with):
    ledger = merge(pool_with('- {name: "*"', "- {name: gpu-07"), [], {})
    assert [(n.node, n.state) for n in ledger.nodes] == [("gpu-07", NodeState.UNVERIFIED)]


def test_a_vanished_device_is_lost_and_reported_once(pool):
    known = {"a": (gpu(1), gpu(2))}
    ledger = merge(pool, [report("a", gpu(1))], known)
    assert states(ledger) == {"GPU-1": NodeState.READY, "GPU-2": NodeState.LOST}
    assert [d.sentence for d in find_drift(ledger, known)] == ["Device GPU-2 vanished from node a."]


def test_a_new_device_is_reported_but_not_on_a_new_node(pool):
    ledger = merge(pool, [report("a", gpu(1), gpu(2)), report("b", gpu(3))], {"a": (gpu(1),)})
    assert [d.subject for d in find_drift(ledger, {"a": (gpu(1),)})] == ["GPU-2"]


def test_a_broken_device_is_lost_and_its_neighbours_are_not(pool):
    ledger = merge(pool, [report("a", gpu(1, fault="GPU is lost."), gpu(2))], {})
    assert states(ledger) == {"GPU-1": NodeState.LOST, "GPU-2": NodeState.READY}


def test_a_broken_driver_loses_the_node_with_its_reason(pool):
    ledger = merge(pool, [report("a", fault="Driver/library version mismatch.")], {"a": (gpu(1),)})
    assert ledger.devices[0].why == "Driver/library version mismatch."


def test_different_drivers_within_a_flavor_are_drift(pool):
    ledger = merge(pool, [report("a", gpu(1)), report("b", gpu(2), driver="570.9")], {})
    assert [d.sentence for d in find_drift(ledger, {})] == [
        "Flavor h100 runs 2 driver versions: 570.9 on b; 580.1 on a."
    ]


def test_a_device_without_flavor_is_drift_and_no_capacity(pool):
    ledger = merge(pool, [report("a", gpu(1, "NVIDIA T4"))], {})
    assert ledger.capacity() == {}
    assert [d.kind for d in find_drift(ledger, {})] == ["device_unclassified"]
