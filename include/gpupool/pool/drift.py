"""Drift: what in the ledger is not as it was, or not alike where it should be."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from gpupool.pool.inventory import Device
from gpupool.pool.ledger import Ledger, NodeState

DriftKind = Literal["driver_differs", "device_vanished", "device_new", "device_unclassified", "node_lost"]


@dataclass(frozen=True)
class Drift:
    """One finding: what kind, about whom, in one sentence."""

    kind: DriftKind
    subject: str
    sentence: str


def find_drift(ledger: Ledger, known: Mapping[str, tuple[Device, ...]]) -> list[Drift]:
    """Compare the ledger with itself (drivers within a flavor) and with what was known before.

    ``known``: devices per node when last seen; nothing is called new on a node that was never seen.
    """
    return [*_driver_differences(ledger), *_losses(ledger), *_arrivals(ledger, known), *_unclassified(ledger)]


def _driver_differences(ledger: Ledger) -> list[Drift]:
    nodes_by_driver: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    for d in ledger.devices:
        if d.flavor and d.driver and d.state is not NodeState.LOST:
            nodes_by_driver[d.flavor][d.driver].add(d.node)
    return [
        Drift(
            "driver_differs",
            flavor,
            f"Flavor {flavor} runs {len(drivers)} driver versions: "
            + "; ".join(f"{driver} on {', '.join(sorted(nodes))}" for driver, nodes in sorted(drivers.items()))
            + ".",
        )
        for flavor, drivers in sorted(nodes_by_driver.items())
        if len(drivers) > 1
    ]


def _losses(ledger: Ledger) -> list[Drift]:
    lost_nodes = [n for n in ledger.nodes if n.state is NodeState.LOST]
    names = {n.node for n in lost_nodes}
    return [Drift("node_lost", n.node, n.why or "") for n in lost_nodes] + [
        Drift("device_vanished", d.device.device_id, d.why or "")
        for d in ledger.devices
        if d.state is NodeState.LOST and d.node not in names
    ]


def _arrivals(ledger: Ledger, known: Mapping[str, tuple[Device, ...]]) -> list[Drift]:
    ids = {node: {d.device_id for d in devices} for node, devices in known.items()}
    return [
        Drift("device_new", d.device.device_id, f"Device {d.device.device_id} is new on node {d.node}.")
        for d in ledger.devices
        if d.node in ids and d.device.device_id not in ids[d.node] and d.state is not NodeState.LOST
    ]


def _unclassified(ledger: Ledger) -> list[Drift]:
    return [
        Drift(
            "device_unclassified",
            d.device.device_id,
            f"Device {d.device.device_id} ({d.device.model}) on node {d.node} matches no flavor; "
            "add a flavor with a rule for it to the pool file.",
        )
        for d in ledger.devices
        if d.flavor is None
    ]
