"""Caps of one run: tokens, money, wall clock. A blown cap is a `BudgetExceeded`, which the loop turns into REVIEW."""

from collections.abc import Callable
from decimal import Decimal
from time import monotonic

from cda.errors import CdaError

# The original's caps (400,000 tokens, USD 2.00, 900 s), kept.
MAX_TOKENS = 400_000
MAX_USD = Decimal("2.00")
MAX_SECONDS = 900.0


class BudgetExceeded(CdaError):
    """A cap of the run was reached; the message names the cap and its size."""


class Budget:
    """Counts what a run has used. `clock` gives seconds and only ever grows; tests pass their own."""

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
        self.input_tokens = 0
        self.output_tokens = 0
        self.usd = Decimal(0)

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

    def spend(self, *, input_tokens: int = 0, output_tokens: int = 0, usd: Decimal = Decimal(0)) -> None:
        """Count a call and check the caps. Raises BudgetExceeded, the call being counted."""
        self.input_tokens += input_tokens
        self.output_tokens += output_tokens
        self.usd += usd
        self.check()

    def check(self) -> None:
        """Raise BudgetExceeded when a cap is passed; tokens, then money, then time."""
        if self.input_tokens + self.output_tokens > self._max_tokens:
            raise BudgetExceeded(f"budget: the run used more than its {self._max_tokens} tokens")
        if self.usd > self._max_usd:
            raise BudgetExceeded(f"budget: the run cost more than its USD {self._max_usd}")
        if self.elapsed_s > self._max_seconds:
            raise BudgetExceeded(self.time_reason)
