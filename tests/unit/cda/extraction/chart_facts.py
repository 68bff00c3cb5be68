"""The shipped definitions, and facts as the test data write them."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from cda.contracts.facts import Fact, FactState, Interval

FACTS = Path(__file__).parents[4] / "corpus" / "data" / "facts"


def shipped() -> dict[str, Mapping[str, Any]]:
    found: dict[str, Mapping[str, Any]] = {}
    for file in sorted(FACTS.glob("*.yaml")):
        found.update(yaml.load(file.read_text(encoding="utf-8"), Loader=yaml.CSafeLoader)["facts"])
    return found


def shown(fact: Fact) -> str:
    """A fact as the data files write it: a value, `lo..hi`, unknown or conflict."""
    if fact.state is not FactState.KNOWN:
        return str(fact.state)
    if isinstance(fact.value, Interval):
        low, high = (format(round(end, 6), "g") for end in (fact.value.lo, fact.value.hi))
        return low if low == high else f"{low}..{high}".replace("-inf", "").replace("inf", "")
    return str(fact.value).lower() if isinstance(fact.value, bool) else str(fact.value)


def allowed(raw: Any) -> list[str]:
    """The values that a data file accepts: alternatives are parted by |."""
    text = str(raw).lower() if isinstance(raw, bool) else str(raw)
    return [_rounded(part) for part in text.split("|")]


def _rounded(text: str) -> str:
    try:
        return "..".join(format(round(float(end), 6), "g") if end else "" for end in text.split(".."))
    except ValueError:
        return text
