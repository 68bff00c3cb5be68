"""Prices are dated data in one place, and a model without one is refused."""

from datetime import date
from decimal import Decimal

import pytest
from conformance.model_client import asked
from doubles.messages_server import ModelDouble
from model_world import OPENAI, Open

from cda.contracts.model_client import UnlimitedMeter, Usage
from cda.errors import UsageError
from cda.llm.prices import read_prices

pytestmark = pytest.mark.promise("clients.prices")


def test_a_call_costs_its_tokens_by_kind() -> None:
    prices, usage = read_prices(), Usage(input=1000, cache_read=2000, cache_write=400, output=300)
    # Sonnet 5: 3 and 15 dollars a million; read a tenth, written five quarters.
    assert prices.cost("anthropic:claude-sonnet-5", usage) == Decimal("0.003") + Decimal("0.0006") + Decimal(
        "0.0015"
    ) + Decimal("0.0045")
    assert prices.cost("anthropic:claude-sonnet-5", usage, batch=True) == Decimal("0.0048")
    assert date.fromisoformat(prices.as_of).year >= 2026


def test_a_dated_snapshot_costs_what_its_model_costs() -> None:
    prices = read_prices()
    assert prices.of("anthropic:claude-haiku-4-5-20251001") == prices.of("claude-haiku-4-5")


def test_cached_tokens_of_another_provider_count_in_full() -> None:
    prices = read_prices().priced("meta/llama:free=0/0,gpt-x=2/8")
    assert prices.cost("openai:gpt-x", Usage(input=10, cache_read=90, output=5)) == Decimal("0.00024")
    assert prices.cost("openai:meta/llama:free", Usage(input=10**6, output=10**6)) == 0


def test_a_setting_s_price_beats_the_list() -> None:
    assert read_prices().priced("claude-opus-5=1/2").of("anthropic:claude-opus-5").output == Decimal("0.000002")


def test_a_model_without_a_price_is_refused_before_anything_is_sent(double: ModelDouble, open_client: Open) -> None:
    with pytest.raises(UsageError, match=r"openai:gpt-double: no price .* CDA_MODEL_PRICES=gpt-double=IN/OUT"):
        open_client(OPENAI, CDA_MODEL_PRICES="")
    assert double.seen == []


def test_what_was_recorded_is_what_the_prices_say(open_client: Open) -> None:
    meter = UnlimitedMeter()
    call = open_client().ask(asked(), meter).call
    assert call.usd == read_prices().cost(call.model, call.usage) > 0
