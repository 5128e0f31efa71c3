"""The gate between raw rows and the lake: good rows pass, bad rows are quarantined with their reasons, none is lost."""

import hashlib
import os
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import NAMESPACE_OID, uuid5

import polars as pl

from gpupool.exceptions import BadBatch
from gpupool.telemetry.candidates import Row, candidates, row_text
from gpupool.telemetry.suite import Rule, sample_rules


@dataclass(frozen=True)
class Judgement:
    """A batch after the gate. ``good`` and ``bad`` together hold every row of it; both are ready for their tables."""

    batch_id: str
    rows: int
    good: pl.DataFrame
    bad: pl.DataFrame

    @property
    def bad_share(self) -> float:
        """Bad rows over all rows; 0 for an empty batch."""
        return self.bad.height / self.rows if self.rows else 0.0

    def require(self, max_bad_share: float) -> None:
        """Raise BadBatch if a larger share than this is bad; call it after both parts are safe in the lake."""
        if self.bad_share > max_bad_share:
            first = self.bad["reasons"][0][0]
            raise BadBatch(
                f"{self.bad.height} of {self.rows} rows of batch {self.batch_id} are bad ({self.bad_share:.0%}, "
                f"allowed {max_bad_share:.0%}); the first because: {first} "
                "They are in table quarantine; repair their source."
            )


def judge(rows: Sequence[Row], *, now: datetime, memory_bytes: Mapping[str, int | None]) -> Judgement:
    """Judge raw rows of table ``device_sample``.

    ``memory_bytes``: every device of the inventory, with its memory where it has its own.
    """
    texts = [row_text(row) for row in rows]
    batch_id = str(uuid5(NAMESPACE_OID, hashlib.sha256("\n".join(texts).encode()).hexdigest()))
    frame = candidates(rows, now=now, memory_bytes=memory_bytes)
    reasons = _violations(frame, sample_rules(list(memory_bytes))) if rows else {}
    good = frame.filter(~pl.col("row_number").is_in(list(reasons))).with_columns(
        date=pl.col("sampled_at").dt.date(), batch_id=pl.lit(batch_id)
    )
    bad = pl.DataFrame(
        [{"row_number": number, "reasons": why, "row": texts[number]} for number, why in sorted(reasons.items())],
        schema={"row_number": pl.Int32, "reasons": pl.List(pl.String), "row": pl.String},
    ).with_columns(
        date=pl.lit(now.date()),
        judged_at=pl.lit(now),
        target=pl.lit("device_sample"),
        batch_id=pl.lit(batch_id),
    )
    return Judgement(batch_id, len(rows), good, bad)


def _violations(frame: pl.DataFrame, rules: Sequence[Rule]) -> dict[int, list[str]]:
    """Reasons per row number, for the rows that break at least one rule."""
    rows = frame.to_dicts()
    found: dict[int, list[str]] = defaultdict(list)
    for rule, numbers in zip(rules, _failing_rows(frame, rules), strict=True):
        for number in numbers:
            found[number].append(rule.reason_for(rows[number]))
    return dict(found)


def _failing_rows(frame: pl.DataFrame, rules: Sequence[Rule]) -> list[list[int]]:
    """For each rule the row numbers that fail it, as Great Expectations finds them."""
    os.environ["GX_ANALYTICS_ENABLED"] = "false"
    import great_expectations as gx

    context = gx.get_context(mode="ephemeral")
    context.variables.progress_bars = {"globally": False, "metric_calculations": False}
    batch = (
        context.data_sources.add_pandas("candidates")
        .add_dataframe_asset("device_sample")
        .add_batch_definition_whole_dataframe("batch")
        .get_batch({"dataframe": frame.to_pandas()})
    )
    expectations = [
        getattr(gx.expectations, rule.kind)(**rule.arguments, meta={"rule": i}) for i, rule in enumerate(rules)
    ]
    outcome = batch.validate(
        gx.ExpectationSuite(name="device_sample", expectations=expectations),
        result_format={"result_format": "COMPLETE", "unexpected_index_column_names": ["row_number"]},
    )
    by_rule = {result.expectation_config.meta["rule"]: result for result in outcome.results}
    return [_rows_of(by_rule[i]) for i in range(len(rules))]


def _rows_of(result: Any) -> list[int]:
    if not result.success and "unexpected_index_list" not in result.result:
        raise RuntimeError(
            f"Great Expectations could not evaluate {result.expectation_config.type} "
            f"{result.expectation_config.kwargs}: {result.exception_info}"
        )
    return [int(entry["row_number"]) for entry in result.result.get("unexpected_index_list") or []]
