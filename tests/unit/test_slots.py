"""Slots per Airflow pool, and the steps that lead to them."""

from hypothesis import given
from hypothesis import strategies as st

from gpupool.pool.file import parse_pool
from gpupool.scheduling.changes import LivePool, PoolChange, pool_changes
from gpupool.scheduling.slots import QueuePool, nominal_slots, queue_pools
from tests.conftest import POOL_TEXT

NAMES = ("red-train.cpu", "red-train.h100", "blue-batch.cpu")


def live(name: str, slots: int, jobs: int = 0, description: str = "gpupool: x") -> LivePool:
    return LivePool(name, slots, description, jobs)


def steps(changes: list[PoolChange]) -> list[tuple[str, str, int | None]]:
    return [(c.action, c.pool, c.slots_after) for c in changes]


def test_nominal_where_there_is_enough(pool):
    assert nominal_slots(pool, {"cpu": 64, "h100": 8}) == dict(zip(NAMES, (1, 8, 1), strict=True))


def test_too_little_capacity_is_shared_and_the_stronger_priority_wins_ties(pool):
    assert nominal_slots(pool, {"cpu": 1, "h100": 3}) == dict(zip(NAMES, (1, 3, 0), strict=True))


@given(
    nominal=st.lists(st.integers(0, 50), min_size=2, max_size=2),
    capacity=st.integers(0, 120),
)
def test_never_more_than_capacity_and_nothing_wasted(nominal: list[int], capacity: int):
    text = POOL_TEXT.replace("{nominal: 1}", f"{{nominal: {nominal[1]}}}")
    text = text.replace("{nominal: 1, borrow: 1}", f"{{nominal: {nominal[0]}}}")
    slots = nominal_slots(parse_pool(text), {"cpu": capacity})
    shares = [slots["red-train.cpu"], slots["blue-batch.cpu"]]
    assert sum(shares) == min(sum(nominal), capacity)
    assert all(share <= most for share, most in zip(shares, nominal, strict=True))


def test_descriptions_are_for_people(pool):
    described = {p.name: p.description for p in queue_pools(pool, {"cpu": 1}, {"blue-batch.cpu": 3})}
    assert described["blue-batch.cpu"] == (
        "gpupool: team blue, batch; nominal 1 x cpu, priority 100; only 0 now, as the pool has 1 ready cpu; "
        "jobs wait for 3 more."
    )


def test_applying_twice_changes_nothing(pool):
    wanted = queue_pools(pool, {"cpu": 2, "h100": 8})
    assert pool_changes([live(p.name, p.slots, description=p.description) for p in wanted], wanted) == []


def test_what_shrinks_comes_before_what_grows():
    wanted = [
        QueuePool("a.cpu", 4, "gpupool: a"),
        QueuePool("b.cpu", 1, "gpupool: b"),
        QueuePool("c.cpu", 2, "gpupool: c"),
    ]
    changes = pool_changes([live("a.cpu", 1), live("b.cpu", 6)], wanted)
    assert steps(changes) == [("shrink", "b.cpu", 1), ("create", "c.cpu", 2), ("grow", "a.cpu", 4)]


def test_a_removed_queue_is_closed_and_deleted_only_when_empty():
    assert steps(pool_changes([live("old.cpu", 4, jobs=2)], [])) == [("close", "old.cpu", 0)]
    closed = pool_changes([live("old.cpu", 4, jobs=2)], [])[0]
    assert pool_changes([live("old.cpu", 0, jobs=2, description=closed.description)], []) == []
    assert steps(pool_changes([live("old.cpu", 0)], [])) == [("delete", "old.cpu", None)]


def test_pools_of_others_are_left_alone():
    assert pool_changes([live("default_pool", 128, description="Default pool")], []) == []


@given(
    before=st.dictionaries(st.sampled_from("abcd"), st.integers(0, 20)),
    after=st.dictionaries(st.sampled_from("abcd"), st.integers(0, 20)),
)
def test_the_sum_never_exceeds_the_larger_end_at_any_step(before: dict[str, int], after: dict[str, int]):
    slots = dict(before)
    most = max(sum(before.values()), sum(after.values()))
    wanted = [QueuePool(name, count, "gpupool: x") for name, count in after.items()]
    for change in pool_changes([live(name, count) for name, count in before.items()], wanted):
        slots[change.pool] = change.slots_after or 0
        assert sum(slots.values()) <= most
    assert {name: count for name, count in slots.items() if count} == {n: c for n, c in after.items() if c}
