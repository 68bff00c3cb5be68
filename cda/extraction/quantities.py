"""Quantities of a sentence: numbers in digits and words, ranges, rates, durations, ages, dates and what qualifies them.

A quantity is read from its number outward and keeps its offsets; which fact it belongs to is decided in mentions.py.
"""

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from datetime import date
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise
from math import inf

from cda.contracts.facts import Interval
from cda.extraction.ages import AgeReader
from cda.extraction.dates import DateSpan, find_dates
from cda.extraction.language import Language
from cda.extraction.note import Note, Sentence, Token
from cda.extraction.units import DAYS, Quantity
from cda.patterns import compiled

# A letter that a scan may have put for a digit makes the number another one: "7O" is no 7.
_SCAN_SLIP = re.compile(r"[oil|]+(?!\w)")
_FIGURE = re.compile(r"\d")
_SIGNS = frozenset("½x")
# 9/12 is a date without a year and 4/5 a strength: neither is a number of anything
_FRACTION = re.compile(r"/\d")


def _whole_months(first: date, last: date) -> int:
    """The calendar months from one day to another: January 15 to April 15 are three."""
    return (last.year - first.year) * 12 + last.month - first.month - (last.day < first.day)


# the days over whole weeks of gestation, by their place
_DAYS = ("zero", "one", "two", "three", "four", "five", "six")


class QuantityReader:
    """Reads the quantities of sentences with one set of language data."""

    def __init__(self, language: Language) -> None:
        self._language = language
        data = language.quantities
        self._words: dict[str, float] = dict(data["numbers"])
        number_words = "|".join(sorted(self._words, key=len, reverse=True))
        unit = "|".join(f"(?P<{name}>{'|'.join(words)})" for name, words in data["time_units"].items())
        spoken = rf"(?:{number_words})\b(?:[ -](?:{number_words})\b)*"
        number = rf"(?:\d+(?:[.,]\d+)?(?:\s?½)?|½|{spoken}(?: point {spoken})?)"
        self._number = compiled(number)
        self._starts = frozenset(self._words) | {"a", "an"}
        self._word = compiled(rf"(?:{number_words})\b")
        self._second = compiled(
            rf"(?P<join>\s?(?:-|to|through|or|/|and|-{{1,2}}>|→|=>)\s?|\s?-\s?to\s?-\s?)(?P<n>{number})(?![\w/]*/)"
        )
        self._unit = compiled(rf"[ \x00-]{{0,2}}(?:(?:{data['unit_adjectives']})[ -])?(?:{unit})'?(?!\w)\.?")
        self._before = [(compiled(rf"(?<!\w)(?:{p})[ (]*$"), effect) for p, effect in data["before"].items()]
        self._after = [(compiled(rf"[ ]*(?:{p})(?!\w)"), effect) for p, effect in data["after"].items()]
        self._pattern = {name: compiled(text, re.X) for name, text in data["patterns"].items()}
        self._units = tuple(data["time_units"])
        self._ages = AgeReader(data["ages"])

    def read(self, note: Note, sentence: Sentence) -> list[Quantity]:
        """All quantities of one sentence in order of place; dates among them."""
        figures = _FIGURE.search(note.norm, sentence.start, sentence.end) is not None
        dates = find_dates(note.norm, sentence.start, sentence.end) if figures else []
        taken = [(d.start, d.end) for d in dates]
        found = [Quantity(d.start, d.end, "date", Interval(0, 0), date=d, number_end=d.end) for d in dates]
        if len(dates) > 1:
            found += self._spans(note.norm, dates)
        found += self._lexical(note, sentence)
        found += self._ages.decades(note.norm, sentence.start, sentence.end)
        reached = sentence.start
        for token in sentence.tokens(note.norm):
            text = token.text
            may_begin = text[0].isdigit() or text[0] in _SIGNS or text.partition("/")[0] in self._starts
            if not may_begin or token.start < reached or any(s <= token.start < e for s, e in taken):
                continue
            if quantity := self._at(note.norm, sentence, _number_token(token)):
                found.append(quantity)
                reached = quantity.end
        return sorted(_without_overlaps(found), key=lambda q: q.start)

    def _spans(self, norm: str, dates: Sequence[DateSpan]) -> Iterator[Quantity]:
        """Durations between two dates: `1/2024 to 5/2024`, `started 1/15/24, stopped 5/15/24`."""
        for first, second in pairwise(dates):
            if not self._pattern["span"].fullmatch(norm, first.end, second.start) or second.last <= first.first:
                continue
            shortest, longest = max((second.first - first.last).days, 0), (second.last - first.first).days
            whole = _whole_months(first.last, second.first) if shortest == longest else 0
            low, high = max(shortest * 12 / 366, whole), max(longest * 12 / 365, whole)
            yield Quantity(
                first.start,
                second.end,
                "duration",
                Interval(round(low, 2), round(high, 2)),
                "month",
                number_end=second.end,
                days=Interval(float(shortest), float(longest)),
            )

    def _lexical(self, note: Note, sentence: Sentence) -> Iterator[Quantity]:
        bit = note.bit(sentence)
        for worth in note.worth_trying(self._language.lexical_rates):
            if not worth.mask & bit:
                continue
            value = self._language.times_a_day[worth.place]
            for match in note.matches(worth._replace(mask=bit)):
                if value is not None:
                    yield Quantity(
                        match.start(),
                        match.end(),
                        "rate",
                        Interval.exactly(value),
                        per=Fraction(1),
                        number_end=match.end(),
                    )
                else:
                    yield Quantity(match.start(), match.end(), "void", Interval(0, inf), number_end=match.end())

    def _at(self, norm: str, sentence: Sentence, token: Token) -> Quantity | None:
        first = token.text[0]
        if token.text in {"a", "an"}:
            return self._single(norm, sentence, token)
        if not (first.isdigit() or first == "½" or token.text.partition("/")[0] in self._words):
            return None
        match = self._number.match(norm, token.start, sentence.end)
        if not match or _SCAN_SLIP.match(norm, match.end()):
            return None
        low = None if _FRACTION.match(norm, match.end()) else self._value(match[0])
        if low is None:
            return None
        high, end = low, match.end()
        moved = 0
        special = self._gestation(norm, (token.start, end), sentence.end, low)
        if special:
            return special
        if second := self._second.match(norm, end, sentence.end):
            joined = self._range(norm, sentence, second, low, token.start)
            if joined:
                low, high, end, moved = joined
        half = self._pattern["and_a_half"].match(norm, end, sentence.end)
        if half:
            low, high, end = low + 0.5, high + 0.5, half.end()
        start, value, end, mark = self._qualified(norm, sentence, (token.start, end), (low, high))
        quantity = Quantity(start - moved, end, "number", value, number_end=end, mark=mark)
        return self._with_unit(norm, sentence, quantity)

    def _single(self, norm: str, sentence: Sentence, token: Token) -> Quantity | None:
        """`a month of`, `for a year`: one unit."""
        unit = self._unit.match(norm, token.end, sentence.end)
        whole = norm.startswith((" full ", " whole ", " entire ", " solid "), token.end)
        if not unit or not (whole or norm.startswith(" of ", unit.end()) or norm.endswith(" for ", 0, token.start)):
            return None
        name = next(u for u in self._units if unit[u])
        return Quantity(token.start, unit.end(), "duration", Interval.exactly(1), name, number_end=token.end)

    def _range(
        self, norm: str, sentence: Sentence, second: re.Match[str], low: float, start: int
    ) -> tuple[float, float, int, int] | None:
        """Read `N to M`; a falling pair, or one after "from", is a change to M. Gives the width of that "from"."""
        high = self._value(second["n"])
        join = second["join"].strip()
        before = norm[max(sentence.start, start - 24) : start]
        if high is None:
            return None
        if join == "and":
            return (low, high, second.end(), 0) if re.search(r"between\s*$", before) else None
        origin = self._pattern["from"].search(before)
        if join in {"->", "-->", "→", "=>"}:
            return high, high, second.end(), 0
        if join == "to" and (high < low or origin):
            return high, high, second.end(), len(before) - origin.start() if origin else 0
        if join == "/" or high <= low:
            return None
        return low, high, second.end(), 0

    def _gestation(self, norm: str, number: tuple[int, int], end: int, whole: float) -> Quantity | None:
        """Weeks and days, in digits ("24w3d") or in words behind the number of `whole` weeks."""
        start = number[0]
        if match := self._pattern["gestation"].match(norm, start, end):
            weeks = float(match["w"]) + float(match["d"]) / 7
        elif match := self._pattern["gestation_words"].match(norm, number[1], end):
            weeks = whole + _DAYS.index(match["d"]) / 7
        else:
            return None
        return Quantity(
            start, match.end(), "gestation", Interval.exactly(round(weeks, 6)), "week", number_end=match.end()
        )

    def _qualified(
        self, norm: str, sentence: Sentence, span: tuple[int, int], ends: tuple[float, float]
    ) -> tuple[int, Interval, int, str | None]:
        """Apply the words around the number: at least, more than, up to, or more, every, ..."""
        (start, end), (low, high) = span, ends
        window = norm[max(sentence.start, start - 30) : start]
        effect, mark = "exact", None
        for pattern, name in self._before:
            if match := pattern.search(window):
                effect, start = name, start - (len(window) - match.start())
                break
        for pattern, name in self._after:
            if match := pattern.match(norm, end, sentence.end):
                effect, end = name, match.end()
                break
        match effect:
            case "at_least":
                value = Interval(low, inf)
            case "more_than":
                value = Interval(high, inf, lo_open=True)
            case "at_most":
                value = Interval(-inf, high)
            case "less_than":
                value = Interval(-inf, low, hi_open=True)
            case "span" if self._pattern["of"].match(norm, end, sentence.end):
                value = Interval(high, inf, lo_open=True)
            case "exact" | "span":
                value = Interval(low, high)
            case _:
                value, mark = Interval(low, high), effect
        return start, value, end, mark

    def _with_unit(self, norm: str, sentence: Sentence, q: Quantity) -> Quantity:
        if q.mark is None and (end := self._ages.end(norm, sentence.start, sentence.end, q)):
            return q._replace(kind="age", end=end)
        for name in ("percent", "mmol", "age"):
            if match := self._pattern[name].match(norm, q.end, sentence.end):
                return q._replace(kind=name, end=match.end())
        if unit := self._unit.match(norm, q.end, sentence.end):
            name = next(u for u in self._units if unit[u])
            q = self._also(norm, sentence, q._replace(kind="duration", unit=name, end=unit.end()))
            return self._marked(norm, sentence, q)
        if match := self._pattern["per"].match(norm, q.end, sentence.end):
            kind = "amount" if self._pattern["dose"].search(match["of"] or "") else "rate"
            return self._bounded(norm, sentence, q._replace(kind=kind, per=self._period(match), end=match.end()))
        if match := self._pattern["times"].match(norm, q.end, sentence.end):
            return q._replace(kind="times", end=match.end())
        return q

    def _also(self, norm: str, sentence: Sentence, q: Quantity) -> Quantity:
        """1 year and 2 months; 8 weeks or more."""
        match = self._pattern["and_more"].match(norm, q.end, sentence.end)
        if match and (unit := self._unit.match(norm, match.end(), sentence.end)) and q.unit:
            name = next(u for u in self._units if unit[u])
            extra = Fraction(match["n"]) * DAYS[name] / DAYS[q.unit]
            if DAYS[name] < DAYS[q.unit]:
                low, high = (round(float(Fraction(str(v)) + extra), 6) for v in (q.value.lo, q.value.hi))
                value = Interval(low, high)
                return q._replace(value=value, end=unit.end())
        return self._bounded(norm, sentence, q)

    def _bounded(self, norm: str, sentence: Sentence, q: Quantity) -> Quantity:
        """Apply words behind the unit: 8 weeks or more, three times a day at most."""
        for pattern, name in self._after:
            if name in {"at_least", "at_most"} and (match := pattern.match(norm, q.end, sentence.end)):
                value = Interval(q.value.lo, inf) if name == "at_least" else Interval(-inf, q.value.hi)
                return q._replace(value=value, end=match.end())
        return q

    def _marked(self, norm: str, sentence: Sentence, q: Quantity) -> Quantity:
        """A duration that is a point in time or a spacing is marked; an age in years says so."""
        if self._pattern["ago"].match(norm, q.end, sentence.end):
            return q._replace(mark="ago")
        window = norm[max(sentence.start, q.start - 24) : q.start]
        if not norm.startswith(" of ", q.end) and self._pattern["spacing"].search(window):
            return q._replace(mark="interval")
        return q

    def _period(self, match: re.Match[str]) -> Fraction:
        for name, days in DAYS.items():
            groups = match.groupdict()
            if groups.get(name) or groups.get(f"{name}2"):
                return days * Fraction(match["every"] or 1)
        return Fraction(1)

    def _value(self, text: str) -> float | None:
        if text[0].isdigit() or text[0] == "½":
            half = 0.5 if text.endswith("½") else 0.0
            digits = text.rstrip("½ ")
            return (float(digits.replace(",", ".")) if digits else 0.0) + half
        whole, _, fraction = text.partition(" point ")
        if fraction:
            ones, parts = self._value(whole), [self._words[w] for w in self._word.findall(fraction)]
            digits = "".join(f"{part:g}" for part in parts)
            return None if ones is None else float(f"{ones:g}.{digits}")
        total = 0.0
        for word in self._word.findall(text):
            value = self._words[word]
            if value == 100 and total:
                total *= 100
            elif total and not (total % 10 == 0 and value < 10 and total >= 20) and not (total >= 100):
                return None
            else:
                total += value
        return total


def _number_token(token: Token) -> Token:
    """The token, without the sign of "x4"."""
    if token.text[0] == "x" and token.text[1:2].isdigit():
        return Token(token.text[1:], token.start + 1, token.end)
    return token


@lru_cache(maxsize=1)
def shared_reader(language: Language) -> QuantityReader:
    """The reader for the shipped language data."""
    return QuantityReader(language)


def _without_overlaps(found: list[Quantity]) -> list[Quantity]:
    """Keep the longer of two overlapping quantities; a void one takes what it covers with it."""
    kept: list[Quantity] = []
    starts: list[int] = []  # of the kept ones, which are disjoint, in the order of the text
    ends: list[int] = []
    for q in sorted(found, key=lambda q: q.end - q.start, reverse=True):
        place = bisect_left(starts, q.end)
        if place == 0 or ends[place - 1] <= q.start:
            starts.insert(place, q.start)
            ends.insert(place, q.end)
            kept.append(q)
    return [q for q in kept if q.kind != "void"]
