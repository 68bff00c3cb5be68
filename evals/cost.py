"""What a run would cost: measured usage times dated prices, with and without prompt caching and batches."""

from decimal import Decimal
from typing import Any

from cda.llm.prices import Price, Prices
from evals.usage import RoleUse, Usage

WAYS = ("plain", "cached", "batch", "cached_batch")


def project(usage: Usage, cases: int, prices: Prices, model: str | None = None) -> dict[str, Any]:
    """The price of `cases` cases that use what the measured runs used on average; `model` puts every role on one model.

    Caching is counted as one write of the role's prefix and a read at every later call, and only where the prefix is
    long enough to be cached by that model. Money is a decimal string, to the hundredth of a cent.
    """
    totals = dict.fromkeys(WAYS, Decimal(0))
    rows = []
    for role in usage.roles:
        used = model or role.model
        costs = _costs(role, usage.runs, cases, prices, prices.of(used))
        totals = {way: totals[way] + costs[way] for way in WAYS}
        rows.append(
            {
                "role": role.role,
                "model": used,
                "calls_per_case": round(role.calls / usage.runs, 3),
                "input_tokens_per_case": round(role.input / usage.runs, 1),
                "output_tokens_per_case": round(role.output / usage.runs, 1),
                **{way: _money(costs[way]) for way in WAYS},
            }
        )
    return {
        "cases": cases,
        "measured_runs": usage.runs,
        "idle_runs": usage.idle,
        "measured_tokens": usage.tokens,
        "prices_as_of": prices.as_of,
        "currency": prices.currency,
        "roles": rows,
        "total": {way: _money(totals[way]) for way in WAYS},
    }


def _costs(role: RoleUse, runs: int, cases: int, prices: Prices, price: Price) -> dict[str, Decimal]:
    share = Decimal(cases) / Decimal(runs)
    calls = role.calls * share
    plain_in, out = role.input * share * price.input, role.output * share * price.output
    prefix = Decimal(role.static) / role.calls
    if price.cacheable_from is None or prefix < price.cacheable_from or calls <= 1:
        cached_in = plain_in
    else:
        rest = (role.input - role.static) * share * price.input
        cached_in = rest + prefix * price.input * (prices.cache_write + prices.cache_read * (calls - 1))
    return {
        "plain": plain_in + out,
        "cached": cached_in + out,
        "batch": (plain_in + out) * prices.batch,
        "cached_batch": (cached_in + out) * prices.batch,
    }


def _money(value: Decimal) -> str:
    return str(value.quantize(Decimal("0.0001")))
