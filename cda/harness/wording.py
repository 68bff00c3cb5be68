"""Numbers, units and negations of a claim against the words it rests on: a cheap veto on changed thresholds.

A number in a claim must stand in the quote or in the claim's evidence, as digits or as a word; so must a unit, an
"unless" and, when the claim says that something is met, a "not". Codes, ids and dates of the clause itself are no
numbers.
"""

import re
from collections.abc import Iterable, Sequence
from itertools import pairwise

from cda.contracts.decision import Claim, FactEvidence
from cda.contracts.policy_tools import ClauseView

_ONES_TEXT = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen"
)
_TENS_TEXT = "twenty thirty forty fifty sixty seventy eighty ninety"
_MONTHS_TEXT = "january february march april may june july august september october november december"
_ONES, _MONTHS = _ONES_TEXT.split(), _MONTHS_TEXT.split()
_TENS = dict(zip(_TENS_TEXT.split(), range(20, 100, 10), strict=True))
_NUMBER_WORDS: dict[str, float] = (
    {word: float(value) for value, word in enumerate(_ONES)}
    | {word: float(value) for word, value in _TENS.items()}
    | {"once": 1.0, "twice": 2.0, "half": 0.5, "dozen": 12.0, "first": 1.0, "second": 2.0, "third": 3.0}
)
# "One of these" is no threshold; a threshold of one is checked by the criterion itself.
_LOOSE = frozenset({1.0})
_MONTH_DAYS = re.compile(rf"\b({'|'.join(_MONTHS)})\s+\d{{1,4}}")
_DIGITS = re.compile(r"(?<![\d.])\d+(?:,\d{3})*(?:\.\d+)?")
_WORDS = re.compile(r"[a-z]+")
_UNITS = {
    alias: unit
    for unit, aliases in {
        "%": "% percent pct",
        "day": "day days daily",
        "week": "week weeks weekly wk wks",
        "month": "month months monthly mo mos",
        "year": "year years yearly annual annually yr yrs age aged ages",
        "hour": "hour hours hourly hr hrs",
        "unit": "unit units",
        "mg": "mg",
        "mcg": "mcg",
        "kg": "kg",
        "ml": "ml",
        "mmol": "mmol",
    }.items()
    for alias in aliases.split()
}
_UNIT_TOKEN = re.compile(r"%|[a-z]+")
_NEGATION = re.compile(r"\b(?:not|no|never|without|neither|nor|none|cannot)\b|n['’]t\b", re.I)
_EXCEPTION = re.compile(r"\b(?:unless|except|excepting|exception)\b", re.I)


def why_not_said(claim: Claim, quote: str, clause: ClauseView, furniture: Iterable[str]) -> str | None:
    """Why the claim says more than the quote and its evidence, or None. `furniture`: codes and dates of the request."""
    text = _without(claim.text, (*furniture, *_names(clause)))
    if not text.strip():
        return "the claim says nothing"
    support = " ".join((quote, *_evidence_words(claim.evidence), claim.criterion or ""))
    numbers = _numbers(text) - _LOOSE
    if numbers and (strange := sorted(numbers - _numbers(support))):
        return f"the claim's number {strange[0]:g} is neither in the quote nor in its evidence"
    named = _unit_words(text)
    if named and (units := sorted(named - _unit_words(support))):
        return f"the claim's unit {units[0]!r} is neither in the quote nor in its evidence"
    if _EXCEPTION.search(text) and not _EXCEPTION.search(quote):
        return "the claim names an exception that the quote does not"
    if claim.status == "met" and _NEGATION.search(text):
        negated = _NEGATION.search(quote) or _EXCEPTION.search(quote) or any(map(_denies, claim.evidence))
        if not negated:
            return "the claim denies something that neither the quote nor its evidence denies"
    return None


def _without(text: str, furniture: Iterable[str]) -> str:
    present = {word for word in furniture if word and word in text}
    for word in sorted(present, key=lambda word: (-len(word), word)):
        if word in text:
            text = re.sub(rf"(?<![\w.-]){re.escape(word)}(?![\w-])", " ", text)
    return text


def _names(clause: ClauseView) -> Sequence[str]:
    dates = (clause.effective_start, clause.effective_end)
    return (
        clause.clause_id,
        clause.policy_id,
        f"{clause.policy_id}.{clause.version}",
        clause.version,
        clause.clause_id.rpartition(".")[2],
        *clause.codes,
        *clause.overrides_policy_ids,
        *(day.isoformat() for day in dates if day is not None),
    )


def _evidence_words(evidence: Iterable[FactEvidence]) -> Iterable[str]:
    for piece in evidence:
        yield piece.fact.replace("_", " ")
        yield str(piece.value).replace("_", " ")
        yield piece.quote


def _denies(evidence: FactEvidence) -> bool:
    return evidence.value in (False, 0, "absent", "negative", "none") or bool(_NEGATION.search(evidence.quote))


def _numbers(text: str) -> set[float]:
    low = text.lower()
    words = _WORDS.findall(low)
    tens = [(ten, one) for ten, one in pairwise(words) if ten in _TENS and one in _ONES[1:10]]
    found = {float(digits.replace(",", "")) for digits in _DIGITS.findall(low)}
    found |= {_TENS[ten] + _NUMBER_WORDS[one] for ten, one in tens}
    joined = {word for pair in tens for word in pair}
    found |= {_NUMBER_WORDS[word] for word in words if word in _NUMBER_WORDS and word not in joined}
    found |= {float(_MONTHS.index(month) + 1) for month in _MONTH_DAYS.findall(low)}
    return found


def _unit_words(text: str) -> set[str]:
    return {_UNITS[word] for word in _UNIT_TOKEN.findall(text.lower()) if word in _UNITS}
