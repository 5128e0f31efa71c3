"""What all tests share."""

from collections.abc import Callable
from pathlib import Path

import pytest

from gpupool.pool.config import Pool
from gpupool.pool.file import parse_pool

ROOT = Path(__file__).resolve().parent.parent

POOL_TEXT = """\
version: 1
teams:
  red: {members: [rosa]}
  blue: {}
flavors:
  h100: {match: {nvidia.com/gpu.product: "*H100*"}, price_per_device_hour: 2.50}
  cpu: {match: {gpupool.dev/kind: cpu}, price_per_device_hour: 0.04}
queues:
  red-train:
    team: red
    workload: training
    priority: 200
    max_runtime: 6h
    grace: 2s
    quota:
      cpu: {nominal: 1, borrow: 1}
      h100: {nominal: 8}
  blue-batch:
    team: blue
    workload: batch
    priority: 100
    quota:
      cpu: {nominal: 1}
nodes:
  - {name: "*", site: s1, cluster: c1, owner: blue}
"""


@pytest.fixture
def pool() -> Pool:
    return parse_pool(POOL_TEXT)


@pytest.fixture
def pool_with() -> Callable[[str, str], Pool]:
    """The test pool with one text replaced by another."""

    def make(old: str, new: str) -> Pool:
        assert old in POOL_TEXT
        return parse_pool(POOL_TEXT.replace(old, new))

    return make
