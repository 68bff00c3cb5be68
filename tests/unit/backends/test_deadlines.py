"""Work under a wall-clock deadline."""

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from backends.deadlines import Call, DeadlineOver, start

pytestmark = pytest.mark.promise("pinecone.deadline")


def begun(work: Callable[[], int], deadline_s: float, pause: float | None = None) -> Call[int]:
    return start(
        ThreadPoolExecutor(2),
        work,
        deadline_s=deadline_s,
        passing=lambda error: isinstance(error, ConnectionError | TimeoutError),
        asked_pause=lambda _: pause,
    )


def failing(times: int, error: Exception) -> Callable[[], int]:
    left = [times]

    def work() -> int:
        if left[0]:
            left[0] -= 1
            raise error
        return 7

    return work


@pytest.mark.parametrize("error", [ConnectionError("gone"), TimeoutError("slow")])
def test_passing_failures_are_tried_again(error: Exception) -> None:
    assert begun(failing(3, error), 30).result() == 7


def test_another_failure_is_the_result_at_once() -> None:
    with pytest.raises(KeyError):
        begun(failing(1, KeyError("fault")), 30).result()


@pytest.mark.parametrize("error", [ConnectionError("gone"), TimeoutError("slow")])
def test_the_last_failure_is_told_when_no_attempt_fits_any_more(error: Exception) -> None:
    began = time.monotonic()
    with pytest.raises(type(error), match=str(error)):
        begun(failing(10**9, error), 0.3).result()
    assert time.monotonic() - began < 2.0


def test_a_pause_that_was_asked_for_is_kept() -> None:
    began = time.monotonic()
    assert begun(failing(1, ConnectionError()), 30, pause=0.3).result() == 7
    assert time.monotonic() - began >= 0.3


def test_work_that_hangs_is_left_when_the_deadline_is_over() -> None:
    began = time.monotonic()
    with pytest.raises(DeadlineOver):
        begun(lambda: time.sleep(3.0) or 7, 0.1).result()
    assert time.monotonic() - began < 2.0
