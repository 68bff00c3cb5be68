"""Caps of one run: tokens, money, wall clock. A blown cap is a `BudgetExceeded`, which the loop turns into REVIEW.

The budget is the run's meter (`contracts.model_client.RunMeter`): a model client asks it before a call and reports to
it afterwards. A call is admitted while no cap is reached, so the last one may pass a cap and none comes after it.
"""

from collections.abc import Callable
from decimal import Decimal
from threading import Condition
from time import monotonic

from cda.contracts.model_client import ModelCall
from cda.errors import CdaError

# The original's caps (400,000 tokens, USD 2.00, 900 s), kept.
MAX_TOKENS = 400_000
MAX_USD = Decimal("2.00")
MAX_SECONDS = 900.0


class BudgetExceeded(CdaError):
    """A cap of the run was reached; the message names the cap and its size."""


class Budget:
    """Counts what a run has used. `clock` gives seconds and only ever grows; tests pass their own. Thread-safe: the
    thread that calls models is not the one that ends the run."""

    def __init__(
        self,
        *,
        max_tokens: int = MAX_TOKENS,
        max_usd: Decimal = MAX_USD,
        max_seconds: float = MAX_SECONDS,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        if max_tokens < 0 or max_usd < 0 or not max_seconds > 0:
            raise ValueError("caps are not negative, and the time cap is above zero")
        self._max_tokens, self._max_usd, self._max_seconds = max_tokens, max_usd, max_seconds
        self._clock = clock
        self._started = clock()
        self._changed = Condition()
        self._open_calls = 0
        self._closed = False
        self._calls: list[ModelCall] = []

    @property
    def calls(self) -> tuple[ModelCall, ...]:
        """The calls made, failed ones too, in the order in which they ended."""
        with self._changed:
            return tuple(self._calls)

    @property
    def input_tokens(self) -> int:
        """Tokens that went in, cached ones too."""
        return sum(call.usage.input + call.usage.cache_read + call.usage.cache_write for call in self.calls)

    @property
    def output_tokens(self) -> int:
        """Tokens that came out."""
        return sum(call.usage.output for call in self.calls)

    @property
    def usd(self) -> Decimal:
        """What the calls cost."""
        return sum((call.usd for call in self.calls), Decimal(0))

    @property
    def elapsed_s(self) -> float:
        """Seconds since the run began."""
        return self._clock() - self._started

    @property
    def remaining_s(self) -> float:
        """Seconds left under the wall-clock cap, never negative."""
        return max(0.0, self._max_seconds - self.elapsed_s)

    @property
    def time_reason(self) -> str:
        """What a run that ran out of time says."""
        return f"budget: the run took longer than its {self._max_seconds:g} s"

    def admit(self) -> None:
        """Let one call start. Raises BudgetExceeded when a cap is reached, or the run has ended."""
        with self._changed:
            if self._closed:
                raise BudgetExceeded("budget: the run has ended")
            self._check(reached=True)
            self._open_calls += 1

    def record(self, call: ModelCall) -> None:
        """Count a call that was admitted. Raises BudgetExceeded when it passed a cap, the call being counted."""
        with self._changed:
            self._calls.append(call)
            self._open_calls = max(0, self._open_calls - 1)
            self._changed.notify_all()
            self._check(reached=False)

    def close(self, grace_s: float) -> None:
        """End the run: nothing more is admitted. Waits up to `grace_s` for the calls that a client is cancelling."""
        with self._changed:
            self._closed = True
            self._changed.wait_for(lambda: self._open_calls == 0, timeout=grace_s)

    def check(self) -> None:
        """Raise BudgetExceeded when a cap is passed; tokens, then money, then time."""
        self._check(reached=False)

    def _check(self, *, reached: bool) -> None:
        """`reached`: being at a cap is enough, where a further call would pass it."""
        tokens, usd = self.input_tokens + self.output_tokens, self.usd
        if tokens > self._max_tokens or (reached and tokens >= self._max_tokens):
            raise BudgetExceeded(f"budget: the run used up its {self._max_tokens} tokens")
        if usd > self._max_usd or (reached and usd >= self._max_usd):
            raise BudgetExceeded(f"budget: the run used up its USD {self._max_usd}")
        if self.elapsed_s > self._max_seconds or (reached and self.remaining_s <= 0):
            raise BudgetExceeded(self.time_reason)
