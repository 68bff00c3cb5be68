from decimal import Decimal

import pytest

from cda.harness.budget import Budget, BudgetExceeded

pytestmark = pytest.mark.promise("harness.budget")


@pytest.mark.parametrize(
    ("spent", "words"),
    [
        ({"input_tokens": 60, "output_tokens": 41}, "100 tokens"),
        ({"usd": Decimal("0.51")}, "USD 0.50"),
    ],
)
def test_a_blown_cap_is_named_with_its_size(spent: dict[str, int], words: str) -> None:
    budget = Budget(max_tokens=100, max_usd=Decimal("0.50"))
    with pytest.raises(BudgetExceeded, match=words):
        budget.spend(**spent)  # type: ignore[arg-type]


def test_a_cap_that_is_just_reached_is_not_blown() -> None:
    budget = Budget(max_tokens=100, max_usd=Decimal("0.50"))
    budget.spend(input_tokens=60, output_tokens=40, usd=Decimal("0.50"))
    assert (budget.input_tokens, budget.output_tokens, budget.usd) == (60, 40, Decimal("0.50"))


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
