"""The ledger of this installation: discovery on this node, the pool file, and what the lake remembers."""

import json
from datetime import datetime, timedelta

import polars as pl

from gpupool.lake.store import Lake
from gpupool.lake.tables import INVENTORY_SNAPSHOT
from gpupool.pool.inventory import Device, DeviceKind
from gpupool.pool.ledger import Ledger, NodeState

KnownDevices = dict[str, tuple[Device, ...]]

_REMEMBER_LOST = timedelta(days=7)


def remembered(lake: Lake, now: datetime) -> KnownDevices:
    """Devices per node as last snapshotted; a lost one is remembered for some days, then taken for removed."""
    recent = lake.scan(INVENTORY_SNAPSHOT).filter(pl.col("snapshot_at") > now - _REMEMBER_LOST)
    alive = recent.filter(pl.col("state") != NodeState.LOST).select("device_id").unique()
    latest = (
        recent.filter(pl.col("snapshot_at") == pl.col("snapshot_at").max())
        .join(alive, on="device_id", how="semi")
        .sort("node", "device_index")
        .collect()
    )
    known: KnownDevices = {}
    for row in latest.to_dicts():
        device = Device(
            row["device_id"],
            row["device_index"],
            DeviceKind(row["kind"]),
            row["model"],
            row["memory_bytes"],
            json.loads(row["labels"]),
        )
        known[row["node"]] = (*known.get(row["node"], ()), device)
    return known


def snapshot_rows(ledger: Ledger, at: datetime) -> pl.DataFrame:
    """The ledger as rows of table ``inventory_snapshot``."""
    rows = [
        {
            "date": at.date(),
            "snapshot_at": at,
            "node": d.node,
            "device_id": d.device.device_id,
            "device_index": d.device.index,
            "kind": d.device.kind.value,
            "model": d.device.model,
            "memory_bytes": d.device.memory_bytes,
            "flavor": d.flavor,
            "state": d.state.value,
            "why": d.why,
            "driver": d.driver,
            "cuda": d.cuda,
            "site": d.site,
            "cluster": d.cluster,
            "owner": d.owner,
            "labels": json.dumps(d.device.labels),
        }
        for d in ledger.devices
    ]
    return pl.DataFrame(rows, schema=dict(INVENTORY_SNAPSHOT.schema))
