"""One limit for all: lowered once an episode, raised by good answers, paused as asked, and never past its ends."""

import threading
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cda.llm.pacing import LONGEST_PAUSE_S, Closed, NoTurn, Pacing

pytestmark = pytest.mark.promise("clients.pacing")


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_an_episode_of_push_back_lowers_the_limit_once_and_the_next_again() -> None:
    clock = Clock()
    pacing = Pacing(10, clock=clock)
    for began in (0.0, 0.0, 0.0):
        clock.now = 1.0
        pacing.pushed_back(began, 0.0)
    assert pacing.limit == 8
    pacing.pushed_back(1.5, 0.0)
    assert pacing.limit == 6


def test_good_answers_raise_the_limit_by_one_a_round_up_to_where_it_began() -> None:
    pacing = Pacing(4, clock=Clock())
    pacing.pushed_back(0.0, 0.0)
    assert pacing.limit == 3
    pacing.went_well()
    pacing.went_well()
    assert pacing.limit == 3
    pacing.went_well()
    assert pacing.limit == 4
    for _ in range(20):
        pacing.went_well()
    assert pacing.limit == 4


@given(st.integers(1, 12), st.lists(st.booleans(), max_size=60))
def test_the_limit_stays_between_one_and_its_beginning(most: int, steps: list[bool]) -> None:
    clock = Clock()
    pacing = Pacing(most, clock=clock)
    for good in steps:
        clock.now += 1
        pacing.went_well() if good else pacing.pushed_back(clock.now, 0.0)
        assert 1 <= pacing.limit <= most


def test_a_pause_holds_all_turns_and_no_longer_than_its_cap() -> None:
    clock = Clock()
    pacing = Pacing(2, clock=clock)
    pacing.pushed_back(0.0, 1e9)
    clock.now = LONGEST_PAUSE_S - 1
    with pytest.raises(NoTurn), pacing.turn(clock.now):
        pass
    clock.now = LONGEST_PAUSE_S
    with pacing.turn(clock.now + 1) as began:
        assert began == LONGEST_PAUSE_S


def test_a_turn_that_does_not_come_by_the_deadline_is_none() -> None:
    pacing = Pacing(1)
    with pacing.turn(time.monotonic() + 5):
        began = time.monotonic()
        with pytest.raises(NoTurn), pacing.turn(time.monotonic() + 0.05):
            pass
        assert time.monotonic() - began < 2.0
    with pacing.turn(time.monotonic() + 5):
        pass


def test_a_free_turn_goes_to_who_waits_for_one_past_who_sleeps_or_gave_up() -> None:
    pacing, got = Pacing(1), threading.Event()

    def sleep() -> None:
        with pytest.raises(Closed):
            pacing.sleep(60)

    with pacing.turn(time.monotonic() + 60):
        sleeper = threading.Thread(target=sleep)
        sleeper.start()
        time.sleep(0.05)

        def late() -> None:
            with pytest.raises(NoTurn), pacing.turn(time.monotonic() + 0.1):
                pass

        def wait() -> None:
            with pacing.turn(time.monotonic() + 60):
                got.set()

        threads = [threading.Thread(target=late), threading.Thread(target=wait)]
        for thread in threads:
            thread.start()
            time.sleep(0.05)
        time.sleep(0.1)
    assert got.wait(10)
    pacing.close()
    for thread in (sleeper, *threads):
        thread.join(5)


def test_a_turn_is_given_back_when_its_request_fails() -> None:
    pacing = Pacing(1)
    with pytest.raises(ValueError, match="broken"), pacing.turn(time.monotonic() + 5):
        raise ValueError("broken")
    with pacing.turn(time.monotonic() + 0.01):
        pass


def test_closing_wakes_who_waits_and_who_sleeps() -> None:
    pacing, ended = Pacing(1), []

    def wait() -> None:
        with pytest.raises(Closed), pacing.turn(time.monotonic() + 60):
            pass
        ended.append("turn")

    def sleep() -> None:
        with pytest.raises(Closed):
            pacing.sleep(60)
        ended.append("sleep")

    with pacing.turn(time.monotonic() + 5):
        threads = [threading.Thread(target=wait), threading.Thread(target=sleep)]
        for thread in threads:
            thread.start()
        pacing.close()
        for thread in threads:
            thread.join(5)
    assert sorted(ended) == ["sleep", "turn"]


def test_a_limit_of_none_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one"):
        Pacing(0)
