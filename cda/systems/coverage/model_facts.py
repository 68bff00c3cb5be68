"""Facts as a model gave them, and the mechanical checks that each must pass before anything is computed from it.

A quote must be the narrative's own whole words outside every fence; a number must stand in the quote; a value that
affirms must not stand in a sentence that denies, doubts, or speaks of somebody else. A fact that fails is unknown, with
the rule that it broke. What the rules read alike needs no more than its quote: two readings agree on it.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from math import inf
from typing import Protocol

from cda.contracts.facts import QUANTITIES, Evidence, Fact, FactDefinition, FactState, FactType, Interval, Value
from cda.criteria.units import convert, convertible
from cda.extraction.structured import parse_value
from cda.harness.sentences import chart_sentences

_RANGE = re.compile(r"(>=|<=|>|<)?(\d+(?:\.\d+)?)(?:\.\.(\d+(?:\.\d+)?))?\Z")
_NUMBER = re.compile(r"\d+(?:\.\d+)?")
_WORDS = ["no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"]
_WORD_NUMBERS = {word: float(place) for place, word in enumerate(_WORDS)} | {
    "zero": 0.0,
    "none": 0.0,
    "never": 0.0,
    "once": 1.0,
    "twice": 2.0,
    "dozen": 12.0,
}
# Words that deny, doubt, put off, or belong to somebody else; where one stands, an affirming value needs the rules too.
_DOUBT = re.compile(
    r"\b(no|not|non|nor|never|neither|without|denie[sd]|deny|denying|negative|absent|absence|lacks?|ruled? out|r/o|"
    r"possibl[ey]|probabl[ey]|suspect\w*|suspicion|likely|maybe|may|might|could|question\w*|concern\w*|consider\w*|"
    r"unclear|unknown|unlikely|if|unless|would|should|will|plan\w*|request\w*|recommend\w*|require[sd]?|pending|"
    r"mother|father|brother|sister|son|daughter|family|aunt|uncle|cousin|grand\w*|policy|criteri\w+)\b|\?",
    re.IGNORECASE,
)


class Given(Protocol):
    """One fact as a role answers it."""

    @property
    def fact(self) -> str:
        """Its name."""
        ...

    @property
    def value(self) -> str:
        """Its value as text."""
        ...

    @property
    def unit(self) -> str:
        """The time unit of a quantity, or ""."""
        ...

    @property
    def quote(self) -> str:
        """The narrative's words."""
        ...


@dataclass(frozen=True, slots=True)
class Checked:
    """What a model read: one Fact for each name asked (unknown included), and the rule that a given one broke."""

    facts: Mapping[str, Fact]
    broken: Mapping[str, str]


def shown_narrative(narrative: str, fences: Sequence[tuple[int, int]]) -> str:
    """The narrative as a model is shown it: of the same length, blank where words address the reader."""
    letters = list(narrative)
    for start, end in fences:
        letters[start:end] = " " * (end - start)
    return "".join(letters)


def shown_facts(names: Sequence[str], definitions: Mapping[str, FactDefinition]) -> list[dict[str, object]]:
    """The facts to look for, as a role is shown them."""
    shown: list[dict[str, object]] = []
    for name in names:
        known = definitions[name]
        row: dict[str, object] = {"fact": name, "label": known.label, "type": known.type.value, "unit": known.unit}
        shown.append(
            {key: value for key, value in row.items() if value}
            | ({"values": list(known.values)} if known.values else {})
            | ({"remark": known.remark} if known.remark else {})
        )
    return shown


def checked_facts(
    given: Sequence[Given],
    names: Sequence[str],
    definitions: Mapping[str, FactDefinition],
    *,
    narrative: str,
    read: Mapping[str, Fact],
) -> Checked:
    """Judge what a model gave for `names`. narrative: as it was shown. read: the same facts as the rules read them."""
    facts, broken = {name: Fact.unknown(name) for name in names}, {}
    for one in given:
        if one.fact not in facts:
            continue  # nothing was asked, so nothing can rest on it
        try:
            if facts[one.fact].state is FactState.KNOWN or one.fact in broken:
                raise ValueError("it was given twice")
            facts[one.fact] = _fact(one, definitions[one.fact], narrative, read.get(one.fact))
        except ValueError as error:
            broken[one.fact] = str(error)
            facts[one.fact] = Fact.unknown(one.fact)
    return Checked(facts, broken)


def parse_given(value: str, unit: str, definition: FactDefinition) -> Value:
    """A value as text, in the fact's unit. Raises ValueError with the rule, never the value."""
    if definition.type is FactType.BOOL:
        if value not in ("true", "false"):
            raise ValueError("its value is neither true nor false")
        return value == "true"
    if definition.type not in QUANTITIES:
        return parse_value(definition, value)
    found = _RANGE.match(value)
    if found is None or (found[1] and found[3]):
        raise ValueError("its value is no quantity")
    low, high = float(found[2]), float(found[3] or found[2])
    source = unit or definition.unit
    if not convertible(source, definition.unit):
        raise ValueError("its unit is not one of the fact's")
    low, high = (convert(end, source, definition.unit) for end in (low, high))
    if low > high:
        raise ValueError("its value is no quantity")
    ends = {">=": (low, inf), ">": (low, inf), "<=": (0.0, high), "<": (0.0, high)}.get(found[1] or "", (low, high))
    return Interval(*ends, lo_open=found[1] == ">", hi_open=found[1] == "<")


def given_value(value: Value) -> str:
    """The inverse of `parse_given`, in the fact's own unit."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, date):
        return value.isoformat()
    if not isinstance(value, Interval):
        return value
    if value.hi == inf:
        return f"{'>' if value.lo_open else '>='}{value.lo:.15g}"
    if value.lo == -inf or (value.lo == 0 and value.hi_open):
        return f"{'<' if value.hi_open else '<='}{value.hi:.15g}"
    return f"{value.lo:.15g}" if value.lo == value.hi else f"{value.lo:.15g}..{value.hi:.15g}"


def alike(one: Value | None, other: Value | None) -> bool:
    """True when two readings of a value do not contradict each other: quantities meet, anything else is equal."""
    if isinstance(one, Interval) and isinstance(other, Interval):
        return one.lo <= other.hi and other.lo <= one.hi
    return one == other


def _fact(one: Given, definition: FactDefinition, narrative: str, read: Fact | None) -> Fact:
    start = _place(one.quote, narrative)
    value = parse_given(one.value, one.unit, definition)
    if read is None or read.state is not FactState.KNOWN or not alike(value, read.value):
        if isinstance(value, Interval | date):
            _require_numbers(one.value, one.quote)
        if value is not False and value != "absent":
            _require_no_doubt(narrative, start, suspected=value == "suspected")
    evidence = Evidence(one.quote, start, start + len(one.quote))
    return Fact(one.fact, FactState.KNOWN, value, (evidence,))


def _place(quote: str, narrative: str) -> int:
    """Where the quote stands as whole words; the first place, if it stands at several."""
    if not any(letter.isalnum() for letter in quote):
        raise ValueError("its quote holds no word")
    whole = re.compile(rf"(?<![^\W_]){re.escape(quote)}(?![^\W_])")
    found = whole.search(narrative)
    if found is None:
        raise ValueError("its quote is not in the narrative")
    return found.start()


def _require_numbers(value: str, quote: str) -> None:
    words = re.findall(r"[a-z]+", quote.lower())
    held = {float(number) for number in _NUMBER.findall(quote)}
    held |= {_WORD_NUMBERS[word] for word in words if word in _WORD_NUMBERS}
    if not {float(number) for number in _NUMBER.findall(value)} <= held:
        raise ValueError("its number is not in its quote")


def _require_no_doubt(narrative: str, start: int, *, suspected: bool) -> None:
    sentence = next((narrative[a:b] for a, b in chart_sentences(narrative) if a <= start < b), narrative)
    if not suspected and _DOUBT.search(sentence):
        raise ValueError("its sentence denies, doubts or speaks of something else")
