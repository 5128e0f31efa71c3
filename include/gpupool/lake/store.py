"""Reading and writing the lake. Every write is atomic (one Delta commit) and the same input twice changes nothing."""

from dataclasses import dataclass
from datetime import datetime

import polars as pl
from deltalake import CommitProperties, DeltaTable, write_deltalake
from deltalake.exceptions import CommitFailedError, TableNotFoundError

from gpupool.lake.tables import Table

_PARTITION = "date"
_CONFLICT_TRIES = 5


@dataclass(frozen=True)
class Lake:
    """Delta tables under ``root``: a folder, or a URL of an object store."""

    root: str

    def uri(self, table: Table) -> str:
        """Where a table lies."""
        return f"{self.root.rstrip('/')}/{table.name}"

    def scan(self, table: Table) -> pl.LazyFrame:
        """The table, lazily; an empty frame with its columns if nothing was written yet."""
        if not self.exists(table):
            return table.empty().lazy()
        return pl.scan_delta(self.uri(table))

    def exists(self, table: Table) -> bool:
        """Has the table been made?"""
        return bool(DeltaTable.is_deltatable(self.uri(table)))

    def version(self, table: Table) -> int | None:
        """The table's current version, or None if it was never made."""
        try:
            return int(DeltaTable(self.uri(table)).version())
        except TableNotFoundError:
            return None

    def insert_new(self, table: Table, frame: pl.DataFrame) -> int:
        """Append the rows whose key is not there yet, and return how many those were.

        Two writers that land the same rows at the same time leave one copy: one commits, the other sees its rows.
        """
        rows = table.conform(frame).unique(table.keys, keep="first", maintain_order=True)
        for _ in range(_CONFLICT_TRIES):
            delta = self._open(table)
            present = self.scan(table).filter(self._within(table, rows)).select(table.keys).collect()
            new = rows.join(present, on=table.keys, how="anti")
            if new.is_empty():
                return 0
            if self._merge(delta, table, new, update=False):
                return new.height
        raise CommitFailedError(f"Table {table.name} kept changing under {_CONFLICT_TRIES} tries to append to it.")

    def upsert(self, table: Table, frame: pl.DataFrame) -> None:
        """Insert rows with new keys and overwrite those whose key is there."""
        rows = table.conform(frame).unique(table.keys, keep="last", maintain_order=True)
        for _ in range(_CONFLICT_TRIES):
            present = self.scan(table).filter(self._within(table, rows)).collect()
            changed = rows.join(present, on=list(table.schema), how="anti", nulls_equal=True)
            if changed.is_empty() or self._merge(self._open(table), table, changed, update=True):
                return
        raise CommitFailedError(f"Table {table.name} kept changing under {_CONFLICT_TRIES} tries to update it.")

    def replace(self, table: Table, frame: pl.DataFrame, start: datetime, end: datetime) -> None:
        """Make the rows with ``start <= range_key < end`` equal to ``frame``, in one commit."""
        rows = table.conform(frame)
        self._open(table)
        write_deltalake(
            self.uri(table),
            rows.to_arrow(),
            mode="overwrite",
            predicate=f"{table.range_key} >= '{start.isoformat()}' AND {table.range_key} < '{end.isoformat()}'",
        )

    def _open(self, table: Table) -> DeltaTable:
        return DeltaTable.create(
            self.uri(table), schema=table.empty().to_arrow().schema, mode="ignore", partition_by=[_PARTITION]
        )

    def _within(self, table: Table, rows: pl.DataFrame) -> pl.Expr:
        low, high = rows[table.range_key].min(), rows[table.range_key].max()
        return pl.col(table.range_key).is_between(pl.lit(low), pl.lit(high))

    def _merge(self, delta: DeltaTable, table: Table, rows: pl.DataFrame, *, update: bool) -> bool:
        """Commit, or return False if another writer was faster."""
        same = " AND ".join([*(f"old.{key} = new.{key}" for key in table.keys), _bounds(table, rows)])
        merge = delta.merge(
            rows.to_arrow(),
            predicate=same,
            source_alias="new",
            target_alias="old",
            commit_properties=CommitProperties(max_commit_retries=0),
        )
        if update:
            merge = merge.when_matched_update_all()
        try:
            merge.when_not_matched_insert_all().execute()
        except CommitFailedError:
            return False
        return True


def _bounds(table: Table, rows: pl.DataFrame) -> str:
    """The range of the rows as literals, so that a merge reads only the files that may hold one of their keys."""
    low, high = rows[table.range_key].min(), rows[table.range_key].max()
    return f"old.{table.range_key} >= {_literal(low)} AND old.{table.range_key} <= {_literal(high)}"


def _literal(value: object) -> str:
    if isinstance(value, datetime):
        return f"arrow_cast('{value.isoformat()}', 'Timestamp(Microsecond, Some(\"UTC\"))')"
    return "'" + str(value).replace("'", "''") + "'"
