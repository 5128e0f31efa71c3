"""Why a job waits: one sentence, named by its numbers."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from gpupool.scheduling.waiting import QueuedJob, QueueState, in_order, why_it_waits

T0 = datetime(2026, 3, 1, tzinfo=UTC)


def job(name: str, devices: int = 1, priority: int = 100, minute: int = 0) -> QueuedJob:
    return QueuedJob(name, f"run-{name}", "train", -1, devices, priority, T0 + timedelta(minutes=minute))


def state(slots: int, holding: list[QueuedJob], waiting: list[QueuedJob]) -> QueueState:
    return QueueState("nlp", "h100", 8, slots, in_order(holding), in_order(waiting))


A, B, BIG = job("a"), job("b", 4), job("big", 8)


@pytest.mark.parametrize(
    ("queue", "sentence"),
    [
        (state(0, [], [A]), "It needs 1 h100, and queue nlp has none now (nominal 8), as no h100 of the pool is ready for it. It starts when devices are added or return, or with another flavor."),
        (state(0, [B], [A]), "It needs 1 h100, and queue nlp has none now (nominal 8), as no h100 of the pool is ready for it. It starts when devices are added or return, or with another flavor."),
        (state(1, [], [replace(A, devices=2)]), "It needs 2 h100, more than the 1 that queue nlp has now (nominal 8). It starts when the quota or the number of ready devices grows, or if it asks for fewer."),
        (state(8, [B], [BIG]), "It needs 8 h100; 4 of the 8 of queue nlp are free, 4 more must end. Held by b.train (4)."),
        (state(8, [B], [A]), "It needs 1 h100, and 4 of queue nlp are free: Airflow starts it within seconds."),
        (state(4, [job(n) for n in "cdef"], [A]), "It needs 1 h100; 0 of the 4 of queue nlp are free, 1 more must end. Held by c.train (1), d.train (1), e.train (1) and 1 more."),
        (state(4, [B, job("x", 4)], [A]), "It needs 1 h100; 0 of the 4 of queue nlp are free, 1 more must end. Held by b.train (4), x.train (4)."),
    ],
)  # fmt: skip
def test_sentences(queue, sentence):
    assert why_it_waits(queue.waiting[0], queue) == sentence


def test_it_says_how_many_are_before_it():
    strong, early, late = job("s", priority=900, minute=9), job("e", minute=1), job("l", minute=2)
    queue = state(4, [B], [late, strong, early])
    assert [j.dag_id for j in queue.waiting] == ["s", "e", "l"]
    assert why_it_waits(early, queue).endswith("Held by b.train (4). 1 waiting job is before it.")
    assert why_it_waits(late, queue).endswith("2 waiting jobs are before it.")


def test_mapped_copies_are_told_apart():
    assert replace(A, map_index=3).name == "a.train[3]"
