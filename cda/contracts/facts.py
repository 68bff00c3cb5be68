"""Clinical facts: what a definition says, and what a chart (or a structured field) gave for it.

A fact is three-valued from here to the gate: `known`, `unknown` (with the words that made it so), or `conflict`.
Quantities are intervals, so that "4-5 times a day" meets ">= 4" and "2 to 6" leaves it open.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from enum import StrEnum
from math import inf, isfinite
from typing import Any, Literal


class FactType(StrEnum):
    """The kinds of value a fact can have; `rate`, `duration`, `measure` and `count` are quantities (intervals)."""

    BOOL = "bool"
    CLASS = "class"
    STATUS = "status"
    RATE = "rate"
    DURATION = "duration"
    MEASURE = "measure"
    COUNT = "count"
    DATE = "date"


QUANTITIES = frozenset({FactType.RATE, FactType.DURATION, FactType.MEASURE, FactType.COUNT})


@dataclass(frozen=True, slots=True)
class Interval:
    """A closed interval of a quantity in its fact's unit; `hi` is +inf for "at least", `lo` is -inf for "at most".

    `lo_open` / `hi_open` exclude the end itself ("more than 4" is an open lower end at 4).
    """

    lo: float
    hi: float
    lo_open: bool = False
    hi_open: bool = False

    def __post_init__(self) -> None:
        if not self.lo <= self.hi:
            raise ValueError("an interval's lower end is not above its upper end")

    @classmethod
    def exactly(cls, value: float) -> "Interval":
        """The interval that holds one value."""
        return cls(value, value)

    def __str__(self) -> str:
        if self.lo == self.hi:
            return f"{self.lo:g}"
        if self.hi == inf:
            return f"{'more than' if self.lo_open else 'at least'} {self.lo:g}"
        if self.lo == -inf:
            return f"{'less than' if self.hi_open else 'at most'} {self.hi:g}"
        return f"{self.lo:g} to {self.hi:g}"


Value = bool | str | Interval | date


@dataclass(frozen=True, slots=True)
class Evidence:
    """Where a value was read: a verbatim span [start, end) in code points of the redacted narrative.

    Structured facts have source "structured", an empty quote and no offsets.
    """

    quote: str
    start: int | None = None
    end: int | None = None
    source: Literal["narrative", "structured", "derived"] = "narrative"


class FactState(StrEnum):
    """What is known of a fact."""

    KNOWN = "known"
    UNKNOWN = "unknown"
    CONFLICT = "conflict"


@dataclass(frozen=True, slots=True)
class Fact:
    """One fact as found. `value` is set only when `state` is KNOWN; `why` says in plain words why it is not.

    A status fact's value is "confirmed", "suspected" or "absent".
    """

    name: str
    state: FactState
    value: Value | None = None
    evidence: tuple[Evidence, ...] = ()
    why: str | None = None

    @classmethod
    def unknown(cls, name: str, why: str | None = None) -> "Fact":
        """A fact of which nothing usable was stated."""
        return cls(name, FactState.UNKNOWN, why=why)


@dataclass(frozen=True, slots=True)
class FactDefinition:
    """What a fact name means. Compiled from the corpus's fact files; the extractor's vocabulary rides along as data.

    presume: the value assumed when nothing is stated, shown as `presumed`; None = nothing is presumed. Presumptions are
      declared for limits on prior use and for exceptions that only positive documentation opens, nowhere else.
    dx: value -> ICD-10-CM patterns ("E10.*") that choose the alternatives built on that value; never evidence.
    derive: rules [{"when": expression, "value": v}, ...] that give the value from other facts.
    lexicon: how the extractor finds it in chart language (see docs/reference/fact-definitions.md).
    """

    name: str
    type: FactType
    label: str
    unit: str | None = None
    values: tuple[str, ...] = ()
    remark: str = ""
    presume: bool | str | float | None = None
    dx: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    derive: tuple[Mapping[str, Any], ...] = ()
    lexicon: Mapping[str, Any] = field(default_factory=dict)


def value_to_json(value: Value) -> Any:
    """A value as JSON: a number for an exact quantity, else {"lo", "hi", "lo_open", "hi_open"} with what is bounded."""
    if isinstance(value, date):
        return value.isoformat()
    if not isinstance(value, Interval):
        return value
    if value.lo == value.hi:
        return value.lo
    ends: dict[str, Any] = {}
    for name, end, is_open in (("lo", value.lo, value.lo_open), ("hi", value.hi, value.hi_open)):
        if isfinite(end):
            ends[name] = end
            if is_open:
                ends[f"{name}_open"] = True
    return ends


def value_from_json(definition: FactDefinition, raw: Any) -> Value:
    """The inverse of `value_to_json` for a fact's type. Raises ValueError for anything else."""
    if definition.type is FactType.DATE:
        return date.fromisoformat(raw)
    if definition.type not in QUANTITIES:
        expected = bool if definition.type is FactType.BOOL else str
        if not isinstance(raw, expected):
            raise ValueError(f"{definition.name} is a {definition.type}")
        return raw
    if isinstance(raw, Mapping):
        return Interval(
            float(raw.get("lo", -inf)), float(raw.get("hi", inf)), bool(raw.get("lo_open")), bool(raw.get("hi_open"))
        )
    return Interval.exactly(float(raw))
