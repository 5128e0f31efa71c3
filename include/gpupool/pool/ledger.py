"""The ledger: discovery merged with the pool file into nodes and devices with states."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from gpupool.pool.config import Pool
from gpupool.pool.inventory import Device, NodeReport


class NodeState(StrEnum):
    """May the node's devices be used?"""

    READY = "ready"
    CORDONED = "cordoned"  # seen, but takes no new jobs
    LOST = "lost"  # was there, and is gone or broken
    UNVERIFIED = "unverified"  # named in the pool file, never seen


@dataclass(frozen=True)
class LedgerDevice:
    """A device with its place, flavor and state. ``why``: the sentence behind a state other than ready."""

    node: str
    site: str
    cluster: str
    owner: str | None
    state: NodeState
    why: str | None
    driver: str | None
    cuda: str | None
    flavor: str | None
    device: Device

    @property
    def is_schedulable(self) -> bool:
        """Can a new job be placed on it now?"""
        return self.state is NodeState.READY and self.flavor is not None


@dataclass(frozen=True)
class LedgerNode:
    """A node's own line, also when it has no device to show."""

    node: str
    site: str
    cluster: str
    owner: str | None
    state: NodeState
    why: str | None


@dataclass(frozen=True)
class Ledger:
    """Everything the pool has, at one moment."""

    nodes: tuple[LedgerNode, ...]
    devices: tuple[LedgerDevice, ...]

    def capacity(self) -> dict[str, int]:
        """Schedulable devices per flavor."""
        return dict(Counter(d.flavor for d in self.devices if d.is_schedulable and d.flavor is not None))


def merge(pool: Pool, reports: Iterable[NodeReport], known: Mapping[str, tuple[Device, ...]]) -> Ledger:
    """Build the ledger.

    ``reports``: what discovery sees now, one per node. ``known``: devices that each node had when last seen; a known
    node that does not report, or a known device its node no longer shows, is ``lost``.
    """
    nodes: list[LedgerNode] = []
    devices: list[LedgerDevice] = []
    seen = {report.node: report for report in reports}
    named = [rule.name for rule in pool.nodes if not rule.is_pattern]
    for name in dict.fromkeys([*seen, *known, *named]):
        report = seen.get(name)
        node = _node(pool, name, report, was_known=name in known)
        nodes.append(node)
        present = {d.device_id: d for d in report.devices} if report else {}
        remembered = {d.device_id: d for d in known.get(name, ())}
        for device in (remembered | present).values():
            devices.append(_device(pool, node, report, device, is_present=device.device_id in present))
    return Ledger(tuple(nodes), tuple(devices))


def _node(pool: Pool, name: str, report: NodeReport | None, *, was_known: bool) -> LedgerNode:
    rule = pool.node_rule(name)
    if report is None and was_known:
        state, why = NodeState.LOST, f"Node {name} no longer reports."
    elif report is None:
        state, why = NodeState.UNVERIFIED, f"Node {name} stands in the pool file but has never reported."
    elif report.fault:
        state, why = NodeState.LOST, report.fault
    elif rule.cordoned:
        state, why = NodeState.CORDONED, "Cordoned in the pool file."
    else:
        state, why = NodeState.READY, None
    return LedgerNode(name, rule.site, rule.cluster, rule.owner, state, why)


def _device(
    pool: Pool, node: LedgerNode, report: NodeReport | None, device: Device, *, is_present: bool
) -> LedgerDevice:
    state, why = node.state, node.why
    if state in (NodeState.READY, NodeState.CORDONED) and not is_present:
        state, why = NodeState.LOST, f"Device {device.device_id} vanished from node {node.node}."
    elif state in (NodeState.READY, NodeState.CORDONED) and device.fault:
        state, why = NodeState.LOST, device.fault
    labels = {**(report.labels if report else {}), **device.labels, **pool.node_rule(node.node).labels}
    return LedgerDevice(
        node=node.node,
        site=node.site,
        cluster=node.cluster,
        owner=node.owner,
        state=state,
        why=why,
        driver=report.driver if report else None,
        cuda=report.cuda if report else None,
        flavor=pool.flavor_of(labels),
        device=device,
    )
