"""How many requests are in flight: one limit for all cases of a process, which a service that pushes back lowers.

Additive increase, multiplicative decrease: an episode of push-back (429, 529) takes the limit to four fifths once,
however many requests it hits; as many good answers as the limit is wide raise it by one, up to where it began.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Condition, Event
from time import monotonic

CUT = 0.8
LONGEST_PAUSE_S = 60.0  # what one answer may ask all others to wait


class NoTurn(Exception):
    """The deadline came before a turn did."""


class Closed(Exception):
    """Pacing was closed: nothing more is sent."""


class Pacing:
    """The shared limit. Safe for any number of threads."""

    def __init__(self, most: int, *, clock: Callable[[], float] = monotonic) -> None:
        if most < 1:
            raise ValueError("at least one request is in flight")
        self._most, self._limit = most, most
        self._clock, self._turn = clock, Condition()
        self._in_flight = self._good = 0
        self._not_before = self._cut_at = float("-inf")
        self._closed = Event()

    @property
    def limit(self) -> int:
        """How many requests may be in flight now."""
        return self._limit

    @contextmanager
    def turn(self, deadline: float) -> Iterator[float]:
        """Hold one place; gives the instant it began. Raises NoTurn at the deadline, Closed after `close`."""
        with self._turn:
            while True:
                now = self._clock()
                if self._closed.is_set():
                    raise Closed
                if now >= deadline:
                    raise NoTurn
                if self._in_flight < self._limit and now >= self._not_before:
                    break
                until = min(deadline, self._not_before) if now < self._not_before else deadline
                self._turn.wait(max(0.0, until - now))
            self._in_flight += 1
        try:
            yield now
        finally:
            with self._turn:
                self._in_flight -= 1
                self._turn.notify_all()  # all: the one that woke first may be at its deadline

    def pushed_back(self, began: float, wait_s: float) -> None:
        """A request that began then was pushed back, and the service asks for a wait."""
        with self._turn:
            now = self._clock()
            self._not_before = max(self._not_before, now + min(wait_s, LONGEST_PAUSE_S))
            if began >= self._cut_at:  # it began after the last cut: a new episode
                self._limit = max(1, min(self._limit - 1, int(self._limit * CUT)))
                self._cut_at, self._good = now, 0

    def went_well(self) -> None:
        """A request got its answer."""
        with self._turn:
            self._good += 1
            if self._good >= self._limit and self._limit < self._most:
                self._limit, self._good = self._limit + 1, 0
                self._turn.notify_all()

    def sleep(self, seconds: float) -> None:
        """Wait without a place. Raises Closed when closed meanwhile."""
        if self._closed.wait(seconds):
            raise Closed

    def close(self) -> None:
        """Give no more turns and wake all who wait."""
        self._closed.set()
        with self._turn:
            self._turn.notify_all()
