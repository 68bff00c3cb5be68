"""Dated events: was the last sleep test within twelve months, a mammogram this calendar year, a trial since March?"""

from collections.abc import Iterator
from datetime import date, timedelta
from math import inf

from cda.contracts.facts import Interval
from cda.extraction.lexicon import Lexicon
from cda.extraction.mentions import Reader
from cda.extraction.standing import Mention
from cda.extraction.units import DAYS, Quantity


def dated_mentions(reader: Reader, lexicon: Lexicon, as_of: date) -> list[Mention]:
    """Mentions of an event fact by the date, or the time ago, that stands nearest to one of its anchors.

    The lexicon's `dated` block names the window ("calendar_year", or a number of months before `as_of`) and the value
    inside and outside of it; a date that may lie on both sides says nothing. The window "age" makes an age of a date of
    birth.
    """
    if lexicon.dated["window"] == "age":
        return list(_ages(reader, lexicon, as_of))
    found = []
    denials = reader.by_sentence(span for span, _ in reader.spans(lexicon.dated_denials))
    for anchor, q in _events(reader, lexicon):
        here = denials.get(reader.note.sentence_at(anchor[0]).start, ())
        if any(s <= min(anchor[0], q.start) and max(anchor[1], q.end) <= e for s, e in here):
            continue  # "no mammogram yet in 2024" dates no event
        days = _day_range(q, as_of)
        if days is None or days[0] > as_of:
            continue
        inside = _inside(days, lexicon.dated["window"], as_of)
        if inside is None:
            continue
        value = lexicon.dated["inside" if inside else "outside"]
        if value is None:
            continue
        typed = Interval(float(value), inf if inside else float(value)) if lexicon.is_quantity else value
        mention = Mention(typed, min(anchor[0], q.start), max(anchor[1], q.end))
        parts = [anchor, (q.start, q.end)]
        covered = [(span, None) for span, _ in reader.spans(lexicon.masks)]
        placed = reader.place(lexicon, mention, parts, covered)
        found.append(placed if placed.value == typed else placed._replace(value=typed))
    return _inside_outranks(found, lexicon)


def _ages(reader: Reader, lexicon: Lexicon, as_of: date) -> Iterator[Mention]:
    """The whole years from a day of birth to `as_of`; a birth year of two digits lies in the past."""
    for anchor, q in _events(reader, lexicon):
        if q.date is None:
            continue
        first, last = (_century(day, as_of) for day in (q.date.first, q.date.last))
        years = Interval(float(_years(last, as_of)), float(_years(first, as_of)))
        mention = Mention(years, min(anchor[0], q.start), max(anchor[1], q.end))
        yield reader.place(lexicon, mention, [anchor, (q.start, q.end)], [((q.start, q.end), None)])


def _century(day: date, as_of: date) -> date:
    return day if day <= as_of else day.replace(year=day.year - 100, day=min(day.day, 28))


def _years(born: date, day: date) -> int:
    return day.year - born.year - ((day.month, day.day) < (born.month, born.day))


def _inside_outranks(found: list[Mention], lexicon: Lexicon) -> list[Mention]:
    """An event inside the window settles it, however many lie outside."""
    value = lexicon.dated["inside"]
    inside = [m for m in found if (m.value.lo if isinstance(m.value, Interval) else m.value) == value]
    return inside or found


def _events(reader: Reader, lexicon: Lexicon) -> Iterator[tuple[tuple[int, int], Quantity]]:
    spans = [span for span, _ in reader.spans(lexicon.dated_anchors)]
    masks = reader.by_sentence(span for span, _ in reader.spans(lexicon.masks))
    for anchor in spans:
        sentence = reader.note.sentence_at(anchor[0])
        if any(s <= anchor[0] and anchor[1] <= e for s, e in masks.get(sentence.start, ())):
            continue
        times = [
            q for q in reader.quantities(sentence) if q.kind == "date" or (q.kind == "duration" and q.mark == "ago")
        ]
        near = sorted((_gap(anchor, q), q.start, q) for q in times)
        if near and near[0][0] <= int(lexicon.dated.get("reach", 40)):
            yield anchor, near[0][2]


def _gap(span: tuple[int, int], q: Quantity) -> int:
    return max(q.start - span[1], span[0] - q.end, 0)


def _day_range(q: Quantity, as_of: date) -> tuple[date, date] | None:
    """The first and last day a quantity may mean; a time ago is counted from `as_of`, to the precision of its unit."""
    if q.date:
        return q.date.first, q.date.last
    if q.unit is None or abs(q.value.hi) == inf or abs(q.value.lo) == inf:
        return None
    low = float(DAYS[q.unit]) * q.value.lo
    high = float(DAYS[q.unit]) * q.value.hi
    return as_of - timedelta(days=int(high * 1.01) + 1), as_of - timedelta(days=int(low))


def _inside(days: tuple[date, date], window: str | int, as_of: date) -> bool | None:
    opens = date(as_of.year, 1, 1) if window == "calendar_year" else _months_before(as_of, int(window))
    if days[0] >= opens:
        return True
    return False if days[1] < opens else None


def _months_before(day: date, months: int) -> date:
    total = day.year * 12 + day.month - 1 - months
    year, month = divmod(total, 12)
    last = (date(year + (month == 11), (month + 1) % 12 + 1, 1) - timedelta(days=1)).day
    return date(year, month + 1, min(day.day, last))
