"""From the mentions of a fact to the fact: one value, an unknown that says which words caused it, or a conflict."""

import re
from bisect import bisect_left
from collections.abc import Sequence
from datetime import date
from math import inf

from cda.contracts.facts import Evidence, Fact, FactState, FactType, Interval, Value
from cda.extraction.lexicon import Lexicon
from cda.extraction.standing import Mention, Standing

_RULE = re.compile(
    r"^[ \t]*(?:-{3,}|={3,}|_{3,}|\*{3,}|~{3,})[ \t]*$"
    r"|^\[[^\]\n]{2,40}\d/\d[^\]\n]*\]",
    re.M,
)

# Who speaks, before a colon: two sources that name one treatment and give it two lengths contradict each other.
_SOURCE = re.compile(
    r"(?:^|(?<=[.;!?])\s)[ \t]*(?:[\w.'’/-]+ ){0,3}"
    r"(?:notes?|page|letter|summary|report|records?|form|fax|chart|statement|surgeon|physician|doctor|provider|pcp|"
    r"pharmac(?:y|ist)|therapist|pt|nurse|clinic|office|rheumatolog(?:y|ist)|neurolog(?:y|ist)|orthop(?:a?edics|od))"
    r"[ \t]*:",
    re.M | re.I,
)
_NAMED = re.compile(r"[^\W\d_]{5,}")
_UNNAMED = frozenset(
    ("weeks", "months", "years", "month", "about", "almost", "nearly", "total", "completed", "another")
)


def resolve(lexicon: Lexicon, mentions: Sequence[Mention], text: str, as_of: date) -> Fact:
    """The fact that `mentions` (in order of place) amount to on `as_of`. Evidence quotes are verbatim from `text`."""
    name = lexicon.definition.name
    # each once; what is alike in place and value stays in the order in which it was found
    mentions = sorted(dict.fromkeys(mentions), key=lambda m: (m.start, m.end, str(m.value)))
    usable = [
        m
        for m in mentions
        if not (m.dated and m.dated[0] > as_of and lexicon.is_quantity and lexicon.combine == "newest")
    ]
    if lexicon.combine == "newest":
        usable = _without_copies(usable)
    holds = [m for m in usable if m.standing is Standing.HOLDS]
    if doubt := _blocking_doubt(lexicon, usable, holds):
        return Fact.unknown(name, _because(doubt, text))
    if lexicon.combine in {"longest", "course"} and _differs_by_note(holds, text):
        return _conflict(name, holds, text)
    if lexicon.combine != "every" and (now := [m for m in holds if m.now]):
        holds = _of_now(lexicon, holds, now)
    if not holds:
        others = [m for m in usable if m.why]
        return Fact.unknown(name, _because(others[0], text) if others else None)
    if lexicon.combine == "newest" and all(m.dated for m in holds):
        newest = max(m.dated for m in holds if m.dated)
        holds = [m for m in holds if m.dated == newest]
    if lexicon.is_quantity:
        return _quantity(lexicon, holds, text)
    return _state(lexicon, holds, usable, text)


def _without_copies(mentions: list[Mention]) -> list[Mention]:
    """Without the undated mentions that repeat a dated value: a line copied forward says nothing new."""
    dated = {str(m.value) for m in mentions if m.dated and m.standing is Standing.HOLDS}
    return [m for m in mentions if m.dated or str(m.value) not in dated]


def _of_now(lexicon: Lexicon, holds: list[Mention], now: list[Mention]) -> list[Mention]:
    """Mentions said to be of now outrank the others, save those that are dated as late (where dates decide)."""
    if {str(m.value) for m in now} == {str(m.value) for m in holds}:
        return holds
    if lexicon.combine != "newest":
        return now
    latest = max((m.dated for m in now if m.dated), default=None)
    return now + [m for m in holds if m not in now and latest and m.dated and m.dated >= latest]


def _blocking_doubt(lexicon: Lexicon, mentions: Sequence[Mention], holds: Sequence[Mention]) -> Mention | None:
    """A doubtful mention blocks, unless the doubt is only a stray cue and a clean mention says the same."""
    for mention in mentions:
        if mention.standing is not Standing.DOUBT:
            continue
        agreed = any(m.value == mention.value for m in holds)
        if mention.firm_doubt or not agreed or lexicon.is_quantity:
            return mention
    return None


def _because(mention: Mention, text: str) -> str:
    quote = " ".join(text[mention.start : mention.end].split())
    return f"{mention.why!r} leaves it open: {quote!r}"


def _known(name: str, value: Value, mentions: Sequence[Mention], text: str) -> Fact:
    spans = sorted({(m.start, m.end) for m in mentions})
    return Fact(name, FactState.KNOWN, value, tuple(Evidence(text[s:e], s, e) for s, e in spans))


def _conflict(name: str, mentions: Sequence[Mention], text: str) -> Fact:
    spans = sorted({(m.start, m.end) for m in mentions})
    quotes = tuple(Evidence(text[s:e], s, e) for s, e in spans)
    return Fact(name, FactState.CONFLICT, None, quotes, "the note says both: " + " / ".join(q.quote for q in quotes))


def _state(lexicon: Lexicon, holds: Sequence[Mention], usable: Sequence[Mention], text: str) -> Fact:
    """A bool, class or status: every mention that holds says the same, or it is a conflict."""
    name = lexicon.definition.name
    values = {m.value for m in holds}
    if lexicon.definition.type is FactType.STATUS and "suspected" in values and "confirmed" in values:
        firm = any(m.own and m.value == "confirmed" for m in holds)
        values -= {"suspected" if firm else "confirmed"}
        holds = [m for m in holds if m.value in values]
    denied = {m.value for m in usable if m.standing is Standing.EXCLUDED}
    if len(values) > 1 or values & denied:
        return _conflict(name, [*holds, *(m for m in usable if m.standing is Standing.EXCLUDED)], text)
    value = next(iter(values))
    return _known(name, value, holds, text)


def _quantity(lexicon: Lexicon, holds: Sequence[Mention], text: str) -> Fact:
    """A quantity: agreeing values are narrowed, dated ones give the newest, trials give the longest."""
    name = lexicon.definition.name
    values = list(dict.fromkeys(m.value for m in holds if isinstance(m.value, Interval)))
    if len(values) > 1:
        shared = _shared(values)
        if shared is not None:
            return _known(name, shared, holds, text)
        # "never" beside a trial is no trial
        none_at_all = any(v.hi <= 0 for v in values)
        if lexicon.combine not in {"longest", "course"} or none_at_all:
            return _conflict(name, holds, text)
        return _known(name, _longest(values), holds, text)
    return _known(name, values[0], holds, text)


def _differs_by_note(holds: Sequence[Mention], text: str) -> bool:
    """True when two notes, parted by a rule or a dated bracket, give different values of one trial; or two sources,
    each named before a colon, of a treatment that both name."""
    if _apart(holds, [match.start() for match in _RULE.finditer(text)]):
        return True
    sources = [match.start() for match in _SOURCE.finditer(text)]
    if len(sources) < 2:
        return False
    named = [set(map(str.lower, _NAMED.findall(text[m.start : m.end]))) - _UNNAMED for m in holds]
    for word in set().union(*named):
        if _apart([m for m, names in zip(holds, named, strict=True) if word in names], sources):
            return True
    return False


def _apart(holds: Sequence[Mention], starts: Sequence[int]) -> bool:
    """True when mentions of different parts of the text, beginning at `starts`, have no value in common."""
    by_part: dict[int, list[Interval]] = {}
    for mention in holds:
        if isinstance(mention.value, Interval):
            by_part.setdefault(bisect_left(starts, mention.start), []).append(mention.value)
    longest = [_longest(values) for values in by_part.values()]
    return len(longest) > 1 and _shared(longest) is None


def _shared(values: Sequence[Interval]) -> Interval | None:
    low = max(values, key=lambda v: (v.lo, v.lo_open))
    high = min(values, key=lambda v: (v.hi, not v.hi_open))
    if low.lo > high.hi or (low.lo == high.hi and (low.lo_open or high.hi_open)):
        return None
    return Interval(low.lo, high.hi, low.lo_open, high.hi_open)


def _longest(values: Sequence[Interval]) -> Interval:
    """Several trials: at least the longest of them, at most all of them on end."""
    low = max(values, key=lambda v: v.lo)
    total = sum(v.hi for v in values)
    return Interval(low.lo, total if total != inf else inf, low.lo_open)
