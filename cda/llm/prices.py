"""What models cost: dated list prices as data, in one place for budgets, traces and projections."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import Path
from typing import Any

from cda.contracts.model_client import Usage
from cda.errors import UsageError

FILE = Path(__file__).parent / "data" / "prices.json"
MILLION = Decimal(1_000_000)
_DATED = re.compile(r"-20\d{6}$")  # a model's id may end in the day of its snapshot


@dataclass(frozen=True, slots=True)
class Price:
    """Money for one token, by kind; `cacheable_from` is the shortest prefix that is cached, None: not known."""

    input: Decimal
    output: Decimal
    cacheable_from: int | None


@dataclass(frozen=True, slots=True)
class Prices:
    """Prices of one day. `cache_read`, `cache_write` and `batch` are shares of the price of an input token."""

    as_of: str
    currency: str
    models: Mapping[str, Price]
    cache_read: Decimal
    cache_write: Decimal
    batch: Decimal

    def of(self, model: str) -> Price:
        """The price of a model, with or without its provider in front. Raises UsageError for one that has none."""
        name = model.partition(":")[2] if model.startswith(("anthropic:", "openai:")) else model
        found = self.models.get(name) or self.models.get(_DATED.sub("", name))
        if found is None:
            raise UsageError(
                f"{model}: no price of it is known on {self.as_of}, so no cap in money would hold; there are "
                f"{', '.join(sorted(self.models))}. CDA_MODEL_PRICES={name}=IN/OUT names one ({FILE.name} lists them)"
            )
        return found

    def cost(self, model: str, usage: Usage, *, batch: bool = False) -> Decimal:
        """What one call cost. The shares are one provider's; elsewhere cached tokens count in full."""
        price = self.of(model)
        share = (self.cache_read, self.cache_write) if model.startswith("anthropic:") else (Decimal(1), Decimal(1))
        tokens_in = usage.input + usage.cache_read * share[0] + usage.cache_write * share[1]
        plain = tokens_in * price.input + usage.output * price.output
        return plain * self.batch if batch else plain

    def priced(self, text: str) -> "Prices":
        """These prices and those of a setting, `ID=IN/OUT,...` in dollars a million tokens; the setting's win."""
        own = dict(_own(part) for part in text.split(",") if part)
        return replace(self, models={**self.models, **own})


def _own(part: str) -> tuple[str, Price]:
    name, _, both = part.rpartition("=")
    tokens_in, _, out = both.partition("/")
    return name, Price(Decimal(tokens_in) / MILLION, Decimal(out) / MILLION, None)


def read_prices(file: Path = FILE) -> Prices:
    """The shipped prices."""
    raw: Mapping[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    per = Decimal(raw["per_tokens"])
    models = {
        name: Price(Decimal(row["input"]) / per, Decimal(row["output"]) / per, row["cacheable_from"])
        for name, row in raw["models"].items()
    }
    cache = raw["cache"]
    return Prices(
        raw["as_of"], raw["currency"], models, Decimal(cache["read"]), Decimal(cache["write"]), Decimal(raw["batch"])
    )
