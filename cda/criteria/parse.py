"""Reads expressions from data (YAML or JSON values) and says everything that is wrong with them, not just the first.

A reader collects its faults in `faults`, one plain sentence each, and puts `false` where it could not read; what it
returns may be used only when it found none.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import date, datetime
from math import isfinite
from typing import Any

from cda.contracts.dates import parse_day
from cda.contracts.facts import QUANTITIES, FactDefinition, FactType
from cda.criteria import labels
from cda.criteria.expression import (
    AllOf,
    AnyOf,
    AtLeast,
    Const,
    Diagnosis,
    Elapsed,
    Expression,
    Leaf,
    Not,
    Operand,
)
from cda.criteria.icd import is_pattern
from cda.criteria.units import TIME_UNITS, convert, convertible

STATUS_VALUES = ("confirmed", "suspected", "absent")
COMPARISONS = ("=", "!=", ">=", ">", "<=", "<")
_SHAPES: Mapping[str, frozenset[str]] = {
    "fact": frozenset({"fact", "op", "value", "unit"}),
    "all": frozenset({"all", "named"}),
    "any": frozenset({"any", "named"}),
    "not": frozenset({"not", "named"}),
    "at_least": frozenset({"at_least", "of", "named"}),
    "diagnosis": frozenset({"diagnosis"}),
    "elapsed_since": frozenset({"elapsed_since", "op", "value", "unit"}),
}


def operators(kind: FactType) -> tuple[str, ...]:
    """The operators that a fact of this type can be compared with."""
    if kind is FactType.BOOL:
        return ("=", "!=")
    return ("=", "!=", "in", "not_in") if kind in (FactType.CLASS, FactType.STATUS) else COMPARISONS


def values_of(definition: FactDefinition) -> tuple[str, ...]:
    """The values a class or status fact can take."""
    return STATUS_VALUES if definition.type is FactType.STATUS else definition.values


class ExpressionReader:
    """Reads expressions over one set of fact definitions; `faults` grows with everything that is wrong."""

    def __init__(self, definitions: Mapping[str, FactDefinition]) -> None:
        self.definitions = definitions
        self.faults: list[str] = []

    def fault(self, path: str, rule: str) -> None:
        """Note one fault at `path`."""
        self.faults.append(f"{path}: {rule}")

    def only(self, data: Mapping[str, Any], allowed: Collection[str], path: str) -> None:
        """Note every key of `data` that the language does not know at this place."""
        for key in sorted(set(map(str, data)) - set(allowed)):
            # YAML 1.1 reads some bare words as booleans, so that an author's `on:` arrives as True.
            hint = "; quote a key that is on, off, yes or no" if key in ("True", "False") else ""
            self.fault(path, f"unknown key {key!r}; allowed here: {', '.join(sorted(allowed))}{hint}")

    def read(self, data: Any, path: str) -> Expression:
        """Read one expression that stands at `path`."""
        if isinstance(data, bool):
            return Const(data, path, "always" if data else "never")
        if not isinstance(data, Mapping):
            self.fault(path, "an expression is a mapping, true or false")
            return Const(False, path, "never")
        shapes = [shape for shape in _SHAPES if shape in data]
        if len(shapes) != 1:
            self.fault(path, f"an expression has exactly one of {', '.join(_SHAPES)}")
            return Const(False, path, "never")
        shape = shapes[0]
        self.only(data, _SHAPES[shape], path)
        read: Callable[[Mapping[str, Any], str], Expression] = {
            "fact": self.leaf,
            "all": self._all,
            "any": self._any,
            "not": self._not,
            "at_least": self._at_least,
            "diagnosis": self._diagnosis,
            "elapsed_since": self._elapsed,
        }[shape]
        before = len(self.faults)
        expression = read(data, path)
        return expression if len(self.faults) == before else Const(False, path, "never")

    def definition(self, name: Any, path: str) -> FactDefinition | None:
        """The definition of the fact named here, or None after noting that there is none."""
        found = self.definitions.get(name) if isinstance(name, str) else None
        if found is None:
            self.fault(path, f"fact {name!r} is not defined; add it to the fact definitions or correct the name")
        return found

    def leaf(self, data: Mapping[str, Any], path: str) -> Expression:
        """Read `{fact, op, value, unit?}`."""
        broken = Const(False, path, "never")
        definition = self.definition(data.get("fact"), path)
        if definition is None:
            return broken
        op = data.get("op")
        if op not in operators(definition.type):
            known = ", ".join(operators(definition.type))
            self.fault(
                path, f"operator {op!r} does not compare the {definition.type} fact {definition.name}; use {known}"
            )
            return broken
        value = self._operand(definition, str(op), data, path)
        if value is None:
            return broken
        label = labels.comparison(definition, str(op), value)
        return Leaf(definition.name, definition.type, str(op), value, path, label)

    def _operand(self, definition: FactDefinition, op: str, data: Mapping[str, Any], path: str) -> Operand | None:
        if "value" not in data:
            self.fault(path, "a comparison has a value")
            return None
        raw = data["value"]
        if "unit" in data and definition.type not in QUANTITIES:
            self.fault(path, f"the {definition.type} fact {definition.name} has no unit")
            return None
        if op in ("in", "not_in"):
            if not isinstance(raw, list | tuple) or not raw:
                self.fault(path, f"operator {op!r} compares with a list of values")
                return None
            read = [self.value(definition, item, path) for item in raw]
            return None if None in read else tuple(str(item) for item in read)
        value = self.value(definition, raw, path)
        if isinstance(value, float):
            return self._in_own_unit(definition, value, data.get("unit", definition.unit), path)
        return value

    def _in_own_unit(self, definition: FactDefinition, value: float, unit: Any, path: str) -> float | None:
        if not convertible(unit, definition.unit):
            own = definition.unit or "a bare number"
            self.fault(path, f"unit {unit!r} does not convert to the unit of fact {definition.name}, {own}")
            return None
        return convert(value, unit, definition.unit)

    def value(self, definition: FactDefinition, raw: Any, path: str) -> bool | str | float | date | None:
        """One constant of the fact's type, or None after noting why it is none."""
        name = definition.name
        match definition.type:
            case FactType.BOOL:
                if isinstance(raw, bool):
                    return raw
                self.fault(path, f"fact {name} is true or false, not {raw!r}")
            case FactType.CLASS | FactType.STATUS:
                if isinstance(raw, str) and raw in values_of(definition):
                    return raw
                self.fault(path, f"fact {name} has no value {raw!r}; it has {', '.join(values_of(definition))}")
            case FactType.DATE:
                return self._day(name, raw, path)
            case _:
                if isinstance(raw, int | float) and not isinstance(raw, bool) and isfinite(raw):
                    return float(raw)
                self.fault(path, f"fact {name} is a number, not {raw!r}")
        return None

    def _day(self, name: str, raw: Any, path: str) -> date | None:
        if isinstance(raw, date) and not isinstance(raw, datetime):
            return raw
        try:
            return parse_day(raw)
        except (TypeError, ValueError):
            self.fault(path, f"fact {name} is a date, written YYYY-MM-DD, not {raw!r}")
            return None

    def _children(self, data: Any, path: str) -> tuple[Expression, ...]:
        if not isinstance(data, Sequence) or isinstance(data, str) or not data:
            self.fault(path, "needs a list of at least one expression")
            return ()
        return tuple(self.read(child, f"{path}.{place}") for place, child in enumerate(data))

    def _named(self, data: Mapping[str, Any], path: str) -> str | None:
        named = data.get("named")
        if "named" not in data:
            return None
        if not isinstance(named, str) or not named:
            self.fault(path, "`named` is a name")
        elif named in self.definitions:
            self.fault(path, f"the name {named!r} is also a fact; a waiver could not tell them apart")
        return str(named)

    def _all(self, data: Mapping[str, Any], path: str) -> Expression:
        children, named = self._children(data["all"], f"{path}.all"), self._named(data, path)
        return AllOf(children, path, labels.composite("all of", [c.label for c in children], named), named)

    def _any(self, data: Mapping[str, Any], path: str) -> Expression:
        children, named = self._children(data["any"], f"{path}.any"), self._named(data, path)
        return AnyOf(children, path, labels.composite("one of", [c.label for c in children], named), named)

    def _not(self, data: Mapping[str, Any], path: str) -> Expression:
        child, named = self.read(data["not"], f"{path}.not"), self._named(data, path)
        return Not(child, path, labels.composite("not", [child.label], named), named)

    def _at_least(self, data: Mapping[str, Any], path: str) -> Expression:
        count, named = data["at_least"], self._named(data, path)
        children = self._children(data.get("of"), f"{path}.of")
        if not isinstance(count, int) or isinstance(count, bool) or not 1 <= count <= max(len(children), 1):
            self.fault(path, f"at_least is a whole number from 1 to the number of its parts, not {count!r}")
            return Const(False, path, "never")
        label = labels.composite(f"at least {count} of", [c.label for c in children], named)
        return AtLeast(count, children, path, label, named)

    def _diagnosis(self, data: Mapping[str, Any], path: str) -> Expression:
        patterns = data["diagnosis"]
        if not isinstance(patterns, Sequence) or isinstance(patterns, str) or not patterns:
            self.fault(path, "diagnosis needs a list of at least one ICD-10-CM pattern")
            return Const(False, path, "never")
        for pattern in patterns:
            if not is_pattern(pattern):
                self.fault(path, f"{pattern!r} is no ICD-10-CM pattern; write E10.9, E10.* or E10*")
        return Diagnosis(tuple(map(str, patterns)), path, labels.diagnosis([str(pattern) for pattern in patterns]))

    def _elapsed(self, data: Mapping[str, Any], path: str) -> Expression:
        definition = self.definition(data["elapsed_since"], path)
        op, value, unit = data.get("op"), data.get("value"), data.get("unit")
        if definition is not None and definition.type is not FactType.DATE:
            self.fault(path, f"elapsed_since needs a date; fact {definition.name} is a {definition.type}")
        if op not in COMPARISONS:
            self.fault(path, f"operator {op!r} does not compare lengths of time; use {', '.join(COMPARISONS)}")
        if not isinstance(value, int) or isinstance(value, bool) or value < 0:
            self.fault(path, f"elapsed_since compares with a whole number of units, not {value!r}")
        if unit not in TIME_UNITS:
            self.fault(path, f"elapsed_since counts in {', '.join(TIME_UNITS)}, not {unit!r}")
        if definition is None or op not in COMPARISONS or not isinstance(value, int) or unit not in TIME_UNITS:
            return Const(False, path, "never")
        label = labels.elapsed(definition, str(op), value, str(unit))
        return Elapsed(definition.name, str(op), value, str(unit), path, label)
