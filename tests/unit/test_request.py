"""A job's request against the rules of its queue: each refusal says what to change."""

from datetime import timedelta

import pytest

from gpupool.exceptions import RequestRefused
from gpupool.pool.request import check_request


def test_defaults_come_from_the_queue(pool):
    request = check_request(pool, owner="red", queue="red-train")
    assert (request.pool, request.devices, request.max_runtime) == ("red-train.cpu", 1, timedelta(hours=6))


def test_members_count_as_their_team(pool):
    assert check_request(pool, owner="rosa", queue="red-train", devices=2).devices == 2


@pytest.mark.parametrize(
    ("asked", "sentence"),
    [
        ({"queue": "gold"}, "Queue 'gold' is not in the pool file. Use one of: red-train, blue-batch."),
        ({"queue": "blue-batch"}, "Queue 'blue-batch' belongs to team 'blue', and 'red' is not of it."),
        ({"queue": "red-train", "flavor": "a10"}, "Queue 'red-train' has no quota of flavor 'a10'. Use one of: cpu, h100."),
        ({"queue": "red-train", "devices": 3}, "3 devices of 'cpu' are more than queue 'red-train' may ever give one job: 2 (nominal 1 + borrow 1)."),
        ({"queue": "red-train", "devices": 0}, "devices must be a whole number of 1 or more, not 0."),
        ({"queue": "red-train", "devices": "two"}, "devices must be a whole number of 1 or more, not 'two'."),
        ({"queue": "red-train", "devices": True}, "devices must be a whole number of 1 or more, not True."),
        ({"queue": "red-train", "max_runtime": timedelta(hours=7)}, "max_runtime 7h is longer than queue 'red-train' allows (6h)."),
    ],
)  # fmt: skip
def test_refusals(pool, asked, sentence):
    with pytest.raises(RequestRefused) as caught:
        check_request(pool, owner="red", **asked)
    assert str(caught.value).startswith(sentence)


def test_the_cap_per_job_counts(pool_with):
    pool = pool_with("h100: {nominal: 8}", "h100: {nominal: 8}\n    max_devices_per_job: 4")
    with pytest.raises(RequestRefused, match="at most 4 per job"):
        check_request(pool, owner="red", queue="red-train", flavor="h100", devices=5)
