import threading
from decimal import Decimal

import pytest

from cda.contracts.model_client import ModelCall, Usage
from cda.harness.budget import Budget, BudgetExceeded

pytestmark = pytest.mark.promise("harness.budget")


def call(input_tokens: int = 0, output_tokens: int = 0, usd: str = "0", *, cached: int = 0) -> ModelCall:
    usage = Usage(input=input_tokens, cache_read=cached, output=output_tokens)
    return ModelCall("reader", "test:model", usage, Decimal(usd), 0.0, "ok")


@pytest.mark.parametrize(
    ("spent", "words"),
    [
        (call(60, 41), "100 tokens"),
        (call(10, 41, cached=50), "100 tokens"),
        (call(usd="0.51"), "USD 0.50"),
    ],
)
def test_a_blown_cap_is_named_with_its_size(spent: ModelCall, words: str) -> None:
    budget = Budget(max_tokens=100, max_usd=Decimal("0.50"))
    budget.admit()
    with pytest.raises(BudgetExceeded, match=words):
        budget.record(spent)
    assert budget.calls == (spent,)


def test_a_cap_that_is_just_reached_is_not_blown_but_admits_nothing_more() -> None:
    budget = Budget(max_tokens=100, max_usd=Decimal("0.50"))
    budget.admit()
    budget.record(call(60, 40, "0.50"))
    assert (budget.input_tokens, budget.output_tokens, budget.usd) == (60, 40, Decimal("0.50"))
    with pytest.raises(BudgetExceeded, match="100 tokens"):
        budget.admit()


def test_a_run_that_has_ended_admits_no_call() -> None:
    budget = Budget()
    budget.close(0)
    with pytest.raises(BudgetExceeded, match="has ended"):
        budget.admit()


def test_a_run_ends_once_the_call_in_flight_has_been_reported() -> None:
    budget = Budget()
    budget.admit()
    reporter = threading.Timer(0.05, lambda: budget.record(call(7)))
    reporter.start()
    budget.close(30)
    reporter.join()
    assert budget.input_tokens == 7


def test_time_is_counted_by_the_given_clock() -> None:
    now = [100.0]
    budget = Budget(max_seconds=10, clock=lambda: now[0])
    now[0] = 104.0
    assert (budget.elapsed_s, budget.remaining_s) == (4.0, 6.0)
    now[0] = 111.0
    assert budget.remaining_s == 0.0
    with pytest.raises(BudgetExceeded, match="longer than its 10 s"):
        budget.check()


@pytest.mark.parametrize("caps", [{"max_seconds": 0}, {"max_tokens": -1}, {"max_usd": Decimal(-1)}])
def test_a_cap_that_is_none_is_refused(caps: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="caps"):
        Budget(**caps)  # type: ignore[arg-type]
