"""Structured facts: checked by type, and joined with what the narrative said."""

from collections.abc import Mapping
from math import inf, isfinite
from typing import Any

from cda.contracts.dates import parse_day
from cda.contracts.facts import QUANTITIES, Evidence, Fact, FactDefinition, FactState, FactType, Interval, Value


def merge(
    structured: Mapping[str, Any], extracted: Mapping[str, Fact], definitions: Mapping[str, FactDefinition]
) -> dict[str, Fact]:
    """Join structured values with extracted facts, sorted by name.

    A structured value wins over an unknown; against a narrative value it cannot agree with it is a CONFLICT; null is
    unknown and blocks nothing. Raises ValueError naming the fact and the rule, never the value.
    """
    merged = dict(extracted)
    for name in sorted(structured):
        if name not in definitions:
            raise ValueError(f"fact {name}: no fact of this name is defined; `cda corpus facts` lists them")
        if structured[name] is None:
            merged.setdefault(name, Fact.unknown(name))
            continue
        value = parse_value(definitions[name], structured[name])
        merged[name] = _joined(name, value, extracted.get(name), definitions[name])
    return dict(sorted(merged.items()))


def parse_value(definition: FactDefinition, raw: Any) -> Value:
    """Return `raw` as a value of the definition's type. Raises ValueError naming the fact and the rule.

    Quantities are numbers in the fact's unit, or {"lo": x, "hi": y} with either end left out for an open interval.
    """
    name = definition.name
    match definition.type:
        case FactType.BOOL:
            if not isinstance(raw, bool):
                raise ValueError(f"fact {name}: a bool is true or false")
            return raw
        case FactType.CLASS | FactType.STATUS:
            if not isinstance(raw, str) or raw not in definition.values:
                raise ValueError(f"fact {name}: the value is one of {', '.join(definition.values)}")
            return raw
        case FactType.DATE:
            if not isinstance(raw, str):
                raise ValueError(f"fact {name}: a date is written YYYY-MM-DD")
            try:
                return parse_day(raw)
            except ValueError as fault:
                raise ValueError(f"fact {name}: {fault}") from None
    return _interval(definition, raw)


def _interval(definition: FactDefinition, raw: Any) -> Interval:
    unit = f" of {definition.unit}" if definition.unit else ""
    rule = f"fact {definition.name}: a quantity is a number{unit}, zero or more, or an object with lo and hi"
    if isinstance(raw, Mapping):
        if not raw or set(raw) - {"lo", "hi"}:
            raise ValueError(rule)
        low, high = _number(raw.get("lo", 0), rule), raw.get("hi")
        top = inf if high is None else _number(high, rule)
        if low > top:
            raise ValueError(f"fact {definition.name}: lo is not above hi")
        return Interval(low, top)
    return Interval.exactly(_number(raw, rule))


def _number(raw: Any, rule: str) -> float:
    if isinstance(raw, bool) or not isinstance(raw, int | float) or not isfinite(raw) or raw < 0:
        raise ValueError(rule)
    return float(raw)


def _joined(name: str, value: Value, said: Fact | None, definition: FactDefinition) -> Fact:
    given = Evidence("", source="structured")
    if said is None or said.state is FactState.UNKNOWN:
        return Fact(name, FactState.KNOWN, value, (given,))
    if said.state is FactState.CONFLICT:
        return said
    if _agree(value, said.value, definition):
        return Fact(name, FactState.KNOWN, value, (given, *said.evidence))
    return Fact(
        name, FactState.CONFLICT, None, (given, *said.evidence), "the structured value and the narrative differ"
    )


def _agree(given: Value, said: Value | None, definition: FactDefinition) -> bool:
    if definition.type in QUANTITIES and isinstance(given, Interval) and isinstance(said, Interval):
        return given.lo <= said.hi and said.lo <= given.hi
    return given == said
