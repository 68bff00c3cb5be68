"""Work on threads under a wall-clock deadline, tried again while its failures are passing ones.

A client library's own retries and timeouts bound neither a call's wall clock nor each other. Here a caller gets an
answer or an error when its deadline is over; the abandoned attempt ends by itself, within its own timeouts, so
whatever it asks for must be safe to ask for twice.
"""

import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Generic, TypeVar

from tenacity import RetryCallState, Retrying, retry_if_exception, wait_random_exponential
from tenacity.stop import stop_base

T = TypeVar("T")
_CAP_S = 8.0


class DeadlineOver(Exception):
    """No answer in time; `last` is the failure of the latest attempt that ended, if one did."""

    def __init__(self, last: BaseException | None) -> None:
        super().__init__("the deadline is over")
        self.last = last


class Call(Generic[T]):
    """One piece of work under way. `result` may be asked for by one thread."""

    def __init__(self, future: "Future[T]", ends: float, failures: list[BaseException]) -> None:
        self.future = future
        self._ends = ends
        self._failures = failures

    def result(self) -> T:
        """What the work returned, or the error that it ended with; DeadlineOver when its time is over."""
        try:
            return self.future.result(timeout=max(0.0, self._ends - time.monotonic()))
        except TimeoutError:
            if self.future.done():  # the work's own error, or an answer that came this moment
                return self.future.result()
            self.future.cancel()
            raise DeadlineOver(self._failures[-1] if self._failures else None) from None


class _Pause(wait_random_exponential):
    """Full jitter, but never less than the service asked for."""

    def __init__(self, asked: Callable[[BaseException], float | None]) -> None:
        super().__init__(multiplier=0.1, max=_CAP_S)
        self._asked = asked

    def __call__(self, retry_state: RetryCallState) -> float:
        error = retry_state.outcome.exception() if retry_state.outcome else None
        return max(super().__call__(retry_state), (self._asked(error) if error else None) or 0.0)


class _Ends(stop_base):
    """Stop when the next attempt would begin after the end."""

    def __init__(self, ends: float) -> None:
        self._ends = ends

    def __call__(self, retry_state: RetryCallState) -> bool:
        return time.monotonic() + retry_state.upcoming_sleep >= self._ends


def start(
    pool: ThreadPoolExecutor,
    work: Callable[[], T],
    *,
    deadline_s: float,
    passing: Callable[[BaseException], bool],
    asked_pause: Callable[[BaseException], float | None],
) -> Call[T]:
    """Begin `work` on the pool; it is tried again after each failure that is `passing`, until the deadline."""
    ends = time.monotonic() + deadline_s
    failures: list[BaseException] = []

    def noticed(error: BaseException) -> bool:
        failures.append(error)
        return passing(error)

    attempts = Retrying(stop=_Ends(ends), wait=_Pause(asked_pause), retry=retry_if_exception(noticed), reraise=True)
    return Call(pool.submit(attempts, work), ends, failures)
