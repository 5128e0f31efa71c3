"""The pool file: every mistake is named by file, line, field, value and remedy."""

import json

import jsonschema
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from gpupool.exceptions import PoolFileError
from gpupool.pool.difference import differences
from gpupool.pool.file import load_pool, parse_pool, pool_schema
from gpupool.pool.quantities import format_duration, parse_duration
from tests.conftest import POOL_TEXT, ROOT


def test_the_shipped_pool_file_is_good_and_its_schema_is_current():
    load_pool(ROOT / "include/pool.yaml")
    assert (ROOT / "include/pool.schema.json").read_text() == pool_schema()
    jsonschema.validate(yaml.safe_load((ROOT / "include/pool.yaml").read_text()), json.loads(pool_schema()))


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (
            "nominal: 8",
            "nominal: -8",
            "pool.yaml:17: queues.red-train.quota.h100.nominal: input should be greater than or equal to 0 (got -8). Write 0 or more.",
        ),
        (
            "max_runtime: 6h",
            "max_runtime: 6",
            "pool.yaml:13: queues.red-train.max_runtime: not a duration (got 6). Write a duration with its unit, such as 45s, 30m, 6h or 1d12h.",
        ),
        ("team: red", "team: rad", "pool.yaml:10: queues.red-train.team: no team is called 'rad'. Use one of: red, blue."),
        ("h100: {nominal: 8}", "h200: {nominal: 8}", "pool.yaml:17: queues.red-train.quota.h200: no flavor is called 'h200'. Use one of: h100, cpu."),
        ("owner: blue", "owner: green", "pool.yaml:25: nodes[0].owner: no team is called 'green'. Use one of: red, blue."),
        ("workload: batch", "workload: bath", "pool.yaml:20: queues.blue-batch.workload: "),
        ("priority: 100", "prio: 100", "pool.yaml:21: queues.blue-batch.prio: extra inputs are not permitted (got 100). Remove it, or correct its spelling."),
        ("price_per_device_hour: 2.50", "price_per_device_hour: two", "pool.yaml:6: flavors.h100.price_per_device_hour: "),
        ("    team: red\n", "", "pool.yaml:9: queues.red-train.team: field required. Add this field."),
        ("nominal: 1, borrow: 1", "nominal: 1, lend: 2", "pool.yaml:16: queues.red-train.quota.cpu: lends 2 devices but owns 1. Set lend to nominal or less."),
        ("  blue-batch:", "  red-train:", "pool.yaml:18: queues.red-train: stands twice. Keep one of the two."),
        ("version: 1", "version: 1\ntimezone: Mars/Base", "pool.yaml:2: timezone: is not an IANA time zone (got 'Mars/Base'). Write a name such as Europe/Berlin."),
        ("version: 1", "version: [1", "not YAML"),
    ],
)  # fmt: skip
def test_mistakes_are_named(old: str, new: str, expected: str):
    with pytest.raises(PoolFileError) as caught:
        parse_pool(POOL_TEXT.replace(old, new, 1))
    assert any(expected in finding for finding in caught.value.findings), caught.value.findings


def test_all_mistakes_are_told_at_once():
    text = POOL_TEXT.replace("nominal: 8", "nominal: x").replace("priority: 100", "priority: -1")
    with pytest.raises(PoolFileError) as caught:
        parse_pool(text)
    assert len(caught.value.findings) == 2


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(PoolFileError, match=r"gone\.yaml: the pool file cannot be read .* Set GPUPOOL_POOL_FILE"):
        load_pool(tmp_path / "gone.yaml")


def test_differences_name_each_field(pool, pool_with):
    assert differences(pool, pool) == []
    assert differences(pool, pool_with("priority: 100", "priority: 150")) == ["queues.blue-batch.priority: 100 -> 150"]


@given(st.integers(0, 400), st.integers(0, 23), st.integers(0, 59), st.integers(0, 59))
def test_durations_survive_a_round_trip(days: int, hours: int, minutes: int, seconds: int):
    duration = parse_duration(f"{days}d{hours}h{minutes}m{seconds}s")
    assert parse_duration(format_duration(duration)) == duration


@pytest.mark.parametrize("text", ["", "6", "h", "6 h", "-1h", "1h1d", "1.5h", "6hours"])
def test_what_is_no_duration_is_refused(text: str):
    with pytest.raises(ValueError, match="not a duration"):
        parse_duration(text)
