"""Several values of one measure, each with its date: a flowsheet, a trend, "8.9 in March, 8.2 in June, now 7.6".

A run is a stretch of a note that consists of the measure's name, values, time labels and a closed set of filler words;
the first other word ends it. Each label belongs to the value that stands nearest. When the newest value is not plain
the run is doubtful: one value picked out of several would be a guess.
"""

import re
from calendar import monthrange
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from itertools import pairwise

from cda.contracts.facts import Interval
from cda.extraction.dates import MONTH_NAMES, MONTHS, DateSpan, find_dates
from cda.extraction.lexicon import Lexicon
from cda.extraction.mentions import Reader
from cda.extraction.standing import Mention, Standing

Days = tuple[date, date]
_NUMBERS = ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"]
_NOW = (
    r"today|now|currently|current|presently|at present|this (?:week|month|visit|time)|(?:the )?(?:most recent|latest|"
    r"newest)(?:ly)?|recently|actual"
)
_OLD = r"before(?: that)?|prior to that|earlier|last (?:visit|time|year|check)|at (?:diagnosis|onset|baseline)"
# these stand before their value
_BEFORE = r"prev(?:ious(?:ly)?)?|prior|formerly|baseline|initial(?:ly)?|original(?:ly)?|(?:up|down) from"
_LABEL = re.compile(
    rf"(?P<now>(?<![\w.])(?:{_NOW})(?!\w))|(?P<old>(?<![\w.])(?:{_OLD})(?!\w))"
    rf"|(?P<before>(?<![\w.])(?:{_BEFORE})(?!\w)|(?<!\w)from(?= \d{{1,2}}[.,%]))"
    rf"|(?P<ago>(?<![\w.])(?P<n>\d{{1,2}}|{'|'.join(_NUMBERS)})[ -]?"
    r"(?P<unit>weeks?|wks?|months?|mos?|years?|yrs?) (?:ago|earlier|prior|back))"
    rf"|(?P<iso>(?<![\w/.-])(?P<iy>(?:19|20)\d\d)-(?P<im>\d\d)(?![\w-]))"
    rf"|(?P<pair>(?<![\w/.-])(?P<a>\d{{1,2}})/(?P<b>\d{{1,2}})(?![\w/]|\.\d))"
    rf"|(?P<month>(?<![\w.])(?:this |last |of |in )?(?P<name>{MONTH_NAMES})\.?"
    r"(?: (?P<day>\d{1,2})(?:st|nd|rd|th)?(?![\w.]))?(?!\w))"
)
_VALUE = re.compile(
    r"(?<![\w./<>≥≤-])(?:\d{1,2}[.,]\d{1,2}(?:[ ]?(?:%|percent))?|\d{1,2}[ ]?(?:%|percent))(?![\w/]|[.,]\d|[ ]?-[ ]?\d)"
)
_FILLER = re.compile(
    r"(?:<--?|--?>|=>|[ \x00\n,;:()\[\]*=~\"'|/→↑↓+-]|\.(?!\d)"
    r"|(?<!\w)(?:h|l|a|the|an|it|is|was|were|are|has|have|had|been|of|in|on|at|and|then|to|from|with|for|by|as|her|his|"
    r"hers|its|come|came|gone|went|down|up|improved|improving|rose|risen|rising|fell|fallen|dropped|dropping|increased|"
    r"decreased|worsened|climbed|trend(?:ed|ing|s)?|result(?:s|ed)?|history|hx|flow_?sheet|log|table|values?|readings?|"
    r"numbers?|labs?|poc|outside|drawn|done|checked|taken|measured|collected|dated|last|recent|three|two|four|visits?|"
    r"over|high|abnl|abnormal|component|date|ref|resulted|ones?|that|which|repeat|repeated|again|since|"
    r"another|time|each|lab|ngsp)(?!\w))"
)
_PAIR = re.compile(r"\d{1,2}/\d{1,2}")
_WORD = re.compile(r"[\w'.%/<>]+|.", re.S)
# how far before its first name a run may begin, and how long it may be, in characters
_LEAD, _LENGTH = 40, 600
_ARROW, _BACK = re.compile(r"-{1,2}>|→|=>"), re.compile(r"<-{1,2}")


@dataclass(frozen=True, slots=True)
class _Part:
    """An anchor, a value or a label of a run; a label has the days it may mean under each reading of 4/24."""

    kind: str
    start: int
    end: int
    value: float = 0
    days: tuple[Days | None, Days | None] = (None, None)

    @property
    def rank(self) -> int:
        """Of two labels of one value the one with a date counts."""
        return {"label": 0, "now": 1}.get(self.kind, 2)


def with_series(reader: Reader, lexicon: Lexicon, mentions: list[Mention], as_of: date) -> list[Mention]:
    """The mentions of a measure, with each run of several values read as a whole in place of its single mentions."""
    if mentions and len(_VALUE.findall(reader.note.norm)) < 2:
        return mentions
    for run in _runs(reader, lexicon, as_of):
        anchors = [p for p in run if p.kind == "anchor"]
        values = [p for p in run if p.kind == "value" and p.start >= anchors[0].start]
        start, end = min(p.start for p in run), max(p.end for p in run)
        inside = [m for m in mentions if m.start < end and start < m.end]
        if not values or (len(values) == 1 and inside):
            continue
        dated = _dated(reader.note.norm, run, values, as_of)
        if len(values) == 1 and not dated:
            continue
        mentions = [m for m in mentions if m not in inside]
        if dated is None:
            whole = Mention(Interval.exactly(values[0].value), anchors[0].start, values[-1].end)
            mentions.append(whole._replace(standing=Standing.DOUBT, why="several values, the newest not plain"))
            continue
        head = (anchors[0].start, anchors[0].end)
        for part, days in dated:
            # the words around the name and around the value both count, and they may stand on two lines
            name = reader.place(lexicon, Mention(Interval.exactly(part.value), *head), [head], [((start, end), None)])
            span = (part.start, part.end)
            placed = reader.place(lexicon, Mention(name.value, *span, dated=days), [span], [((start, end), None)])
            mentions.append(placed if name.standing is Standing.HOLDS else name._replace(dated=days))
    return mentions


def _runs(reader: Reader, lexicon: Lexicon, as_of: date) -> Iterator[list[_Part]]:
    norm = reader.note.norm
    masks = [span for span, _ in reader.spans(lexicon.masks)]
    anchors = {
        s: e
        for (s, e), _ in sorted(reader.spans(lexicon.anchors))
        if not any(a < e and s < b for a, b in masks) and not reader.of_relative((s, e))
    }
    if not anchors:
        return
    reached = 0
    for anchor in anchors:
        if anchor < reached:
            continue
        at = max(reached, norm.rfind(" ", 0, max(anchor - _LEAD, 0)) + 1)
        dates = {d.start: d for d in find_dates(norm, at, min(anchor + _LENGTH, len(norm)))}
        run: list[_Part] = []
        while at < anchor + _LENGTH:
            part, step = _next(norm, at, anchors, dates, lexicon.plausible, as_of)
            run += [part] if part else []
            if step is None:
                if at > anchor:
                    break
                run = []
                word = _WORD.match(norm, at)
                step = word.end() if word else at + 1
            at = step
        reached = at
        if any(p.kind == "anchor" for p in run):
            yield run


def _next(
    norm: str,
    at: int,
    anchors: Mapping[int, int],
    dates: Mapping[int, DateSpan],
    plausible: tuple[float, float],
    as_of: date,
) -> tuple[_Part | None, int | None]:
    """The part of a run that begins at `at`, and where to go on; no place to go on ends the run."""
    if at >= len(norm):
        return None, None
    if at in anchors:
        return _Part("anchor", at, anchors[at]), anchors[at]
    found = dates.get(at)
    if found and not _PAIR.fullmatch(norm, at, found.end):
        return _Part("label", at, found.end, days=((found.first, found.last),) * 2), found.end
    if label := _LABEL.match(norm, at):
        kind = next((k for k in ("now", "old", "before") if label[k]), "label")
        return _Part(kind, at, label.end(), days=_label_days(label, as_of)), label.end()
    if value := _VALUE.match(norm, at):
        number = float(re.sub(r"[ %a-z]", "", value[0]).replace(",", "."))
        within = plausible[0] <= number <= plausible[1]
        return (_Part("value", at, value.end(), number), value.end()) if within else (None, None)
    filler = _FILLER.match(norm, at)
    return None, filler.end() if filler else None


def _label_days(label: re.Match[str], as_of: date) -> tuple[Days | None, Days | None]:
    """The days of a label, under the reading of 4/24 as a day of the last year and as a month of 2024."""
    if label["now"]:
        return ((as_of, as_of),) * 2
    if label["old"] or label["before"]:
        return ((date.min, date.min),) * 2
    if label["ago"]:
        count = _NUMBERS.index(label["n"]) + 1 if label["n"] in _NUMBERS else int(label["n"])
        unit = {"w": 7, "m": 30.4, "y": 365}[label["unit"][0]]
        return (
            (as_of - timedelta(days=int((count + 0.6) * unit)), as_of - timedelta(days=int((count - 0.6) * unit))),
        ) * 2
    if label["iso"]:
        return (_month(int(label["iy"]), int(label["im"])),) * 2
    if label["month"]:
        return (_latest(MONTHS[label["name"]], int(label["day"] or 0), as_of),) * 2
    first, second = int(label["a"]), int(label["b"])
    month = _month(2000 + second, first)
    return _latest(first, second, as_of), month if month and month[0] <= as_of else None


def _month(year: int, month: int) -> Days | None:
    return (date(year, month, 1), date(year, month, monthrange(year, month)[1])) if 1 <= month <= 12 else None


def _latest(month: int, day: int, as_of: date) -> Days | None:
    """The last such month or day on or before `as_of`."""
    for year in (as_of.year, as_of.year - 1):
        if (days := _month(year, month)) and day:
            days = (date(year, month, day),) * 2 if day <= days[1].day else None
        if days and days[0] <= as_of:
            return days
    return None


def _dated(norm: str, run: Sequence[_Part], values: Sequence[_Part], as_of: date) -> list[tuple[_Part, Days]] | None:
    """The values with their days; None when a label or the newest value is not plain."""
    labels = [p for p in run if p.kind not in {"anchor", "value"}]
    owned: dict[_Part, _Part] = {}
    for label in sorted(labels, key=lambda p: p.rank, reverse=True):
        owner = _owner(norm, label, values)
        if owner is None or (owner in owned and owned[owner].rank == label.rank):
            return None
        owned[owner] = label
    bare = [v for v in values if v not in owned]
    if len(bare) == len(values):
        return _by_arrows(norm, values, as_of)
    if bare and not (len(bare) == 1 and _said_of_now(norm, bare[0], values, owned)):
        return None
    readings = []
    for reading in (0, 1):
        days = [owned[v].days[reading] if v in owned else (as_of, as_of) for v in values]
        pairs = [(v, d) for v, d in zip(values, days, strict=True) if d and d[0] <= as_of]
        if all(days) and (newest := _newest(pairs)) is not None:
            readings.append((newest, pairs))
        elif all(days) and len({d for _, d in pairs}) == 1:
            return pairs  # of one day: a contradiction, which is told as one
    if not readings or len({newest.value for newest, _ in readings}) > 1:
        return None
    return readings[0][1]


def _owner(norm: str, label: _Part, values: Sequence[_Part]) -> _Part | None:
    """The value that a label stands nearest to; signs and line ends between them count more than words."""
    before = max((v for v in values if v.end <= label.start), key=lambda v: v.end, default=None)
    after = min((v for v in values if v.start >= label.end), key=lambda v: v.start, default=None)
    if label.kind == "before" or before is None or after is None:
        return after if label.kind == "before" or before is None else before
    back, ahead = _distance(norm[before.end : label.start]), _distance(norm[label.end : after.start])
    return None if back == ahead else before if back < ahead else after


def _distance(between: str) -> int:
    return len(between) + 10 * len(re.findall(r"[,/)>→]|<-", between)) + 100 * len(re.findall(r"[;\n]", between))


def _said_of_now(norm: str, bare: _Part, values: Sequence[_Part], owned: Mapping[_Part, _Part]) -> bool:
    """A value without a label is the present one beside older ones: "7.6, prev 8.9", "7.6 (8.9 in January)"."""
    others = [v for v in values if v is not bare]
    if all(owned[v].kind in {"old", "before"} for v in others):
        return True
    return bare is values[0] and all("(" in norm[bare.end : v.start] and owned[v].kind != "now" for v in others)


def _by_arrows(norm: str, values: Sequence[_Part], as_of: date) -> list[tuple[_Part, Days]] | None:
    """Values without a label: the last one that the arrows lead to."""
    gaps = [norm[a.end : b.start] for a, b in pairwise(values)]
    if gaps and all(_ARROW.search(gap) and not _BACK.search(gap) for gap in gaps):
        return [(values[-1], (as_of, as_of))]
    return [(values[0], (as_of, as_of))] if gaps and all(_BACK.search(gap) for gap in gaps) else None


def _newest(pairs: Sequence[tuple[_Part, Days]]) -> _Part | None:
    """The value that is later than every other one of another number."""
    for part, days in pairs:
        if all(other.value == part.value or theirs[1] < days[0] for other, theirs in pairs):
            return part
    return None
