"""Protected health information out of free text, codes and laboratory values left in.

`redact` replaces identifiers by placeholders such as [NAME] or [MRN]; the result is what every later step sees. It is
idempotent and deterministic. Kinds are the safe-harbour kinds as far as text shows them (`KINDS`); "AGE 90+" is the
category the rule itself allows for ages over 89. Dates of service stay, since they decide coverage; dates of birth,
death, admission and discharge go.
"""

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date

from cda.contracts.decision import Redaction
from cda.harness.birth_dates import OLDEST, age_on
from cda.harness.phi_names import find_names, parts
from cda.harness.phi_patterns import FIVE_DIGITS, RULES, SEVEN_DIGITS, Rule
from cda.harness.sentences import lowered

# Placeholder -> safe-harbour kind (45 CFR 164.514(b)(2)(i), letters A to R).
KINDS: Mapping[str, str] = {
    "NAME": "A names",
    "LOCATION": "B places below state",
    "DOB": "C dates of the person",
    "DATE": "C dates of the person",
    "AGE": "C ages over 89",
    "PHONE": "D telephone",
    "FAX": "E fax",
    "EMAIL": "F e-mail",
    "SSN": "G social security",
    "MRN": "H record number",
    "PLAN_ID": "I health plan beneficiary",
    "ACCOUNT": "J account",
    "LICENSE": "K certificate or licence",
    "VEHICLE": "L vehicle and plate",
    "DEVICE": "M device",
    "URL": "N web address",
    "IP": "O internet address",
    "BIOMETRIC": "P biometric",
    "PHOTO": "Q photograph",
    "FILE": "R other unique identifier",
    "OTHER_ID": "R other unique identifier",
}
_TEXT = {kind: f"[{kind}]" for kind in KINDS} | {"AGE": "[AGE 90+]"}
_PLACEHOLDER = re.compile("|".join([*(re.escape(text) for text in _TEXT.values()), r"\[DOB, age (?:\d\d?|90\+)\]"]))
_WORD = re.compile(r"[a-z]+")
_LETTERS = re.compile(r"[^\W\d_]{3,}")
_RUNS = {"7digits": SEVEN_DIGITS, "5digits": FIVE_DIGITS}
_BY_WORD: dict[str, list[int]] = {}
_BY_MARK: dict[str, list[int]] = {}
for _number, _rule in enumerate(RULES):
    for _trigger in _rule.words:
        _BY_WORD.setdefault(_trigger, []).append(_number)
    for _trigger in _rule.marks:
        _BY_MARK.setdefault(_trigger, []).append(_number)
_ALWAYS = tuple(number for number, rule in enumerate(RULES) if not (rule.words or rule.marks))
_RANK = {kind: rank for rank, kind in enumerate(("NAME", *dict.fromkeys(rule.kind for rule in RULES)))}


@dataclass(frozen=True, slots=True)
class Redacted:
    """The texts after redaction, by field, and what was taken out; offsets are of the placeholders in the result."""

    texts: Mapping[str, str]
    redactions: tuple[Redaction, ...]


def redact(fields: Mapping[str, str], *, keep: Iterable[str] = (), as_of: date | None = None) -> Redacted:
    """Redact `fields` (narrative, question) together: a name found in one is taken out of all.

    keep: words that are identifiers of the request and never of the person (codes, payer, plan); compared exactly.
    as_of: with it, a whole date of birth leaves the age it gives on that day, "[DOB, age 40]".
    """
    kept = frozenset(keep)
    lower = {field: lowered(text) for field, text in fields.items()}
    words = {field: frozenset(_WORD.findall(low)) for field, low in lower.items()}
    named = {field: list(find_names(text, lower[field], words[field])) for field, text in fields.items()}
    name_words = {
        word for field, spans in named.items() for start, end in spans for word in parts(fields[field][start:end])
    }
    name_words |= {form for word in name_words for form in (word.upper(), word.capitalize())}
    texts: dict[str, str] = {}
    redactions: list[Redaction] = []
    for field, text in fields.items():
        spans = [(start, end, "NAME") for start, end in named[field]]
        spans += _again(text, name_words)
        spans += _identifiers(text, lower[field], words[field])
        spans = [span for span in spans if text[span[0] : span[1]] not in kept]
        texts[field] = _replace(field, text, _merged(spans, text), redactions, as_of)
    return Redacted(texts, tuple(redactions))


def _again(text: str, words: set[str]) -> Iterator[tuple[int, int, str]]:
    """The words of found names wherever else they stand, capitalised or in capitals."""
    for found in _LETTERS.finditer(text) if words else ():
        if found.group() in words:
            yield found.start(), found.end(), "NAME"


def _identifiers(text: str, low: str, words: frozenset[str]) -> Iterator[tuple[int, int, str]]:
    for rule in _to_try(text, low, words):
        for found in rule.pattern.finditer(text if rule.cased else low):
            if rule.keep is None or not rule.keep(found):
                start, end = found.span("v" if "v" in rule.pattern.groupindex else 0)
                yield start, end, rule.kind


def _to_try(text: str, low: str, words: frozenset[str]) -> Iterator[Rule]:
    """The rules of which a trigger stands in the text, and those that have none, in their order."""
    numbers = set(_ALWAYS)
    for word in _BY_WORD.keys() & words:
        numbers.update(_BY_WORD[word])
    for mark, rules in _BY_MARK.items():
        run = _RUNS.get(mark)
        if mark in low if run is None else run.search(text):
            numbers.update(rules)
    return (RULES[number] for number in sorted(numbers))


def _merged(spans: list[tuple[int, int, str]], text: str) -> list[tuple[int, int, str]]:
    """Overlapping finds become one, with the kind of the rule that stands first: nothing of either is left over."""
    done = [found.span() for found in _PLACEHOLDER.finditer(text)] if "[" in text else []
    ends = [end for _, end in done]
    merged: list[tuple[int, int, str]] = []
    for start, end, kind in sorted(spans):
        nearest = bisect_right(ends, start)
        if nearest < len(done) and done[nearest][0] < end:
            continue  # part of a placeholder of an earlier redaction
        if merged and start < merged[-1][1]:
            left, right, first = merged[-1]
            merged[-1] = (left, max(right, end), min(first, kind, key=_RANK.__getitem__))
        else:
            merged.append((start, end, kind))
    return merged


def _replace(
    field: str, text: str, spans: list[tuple[int, int, str]], redactions: list[Redaction], as_of: date | None
) -> str:
    pieces: list[str] = []
    length = position = 0
    for start, end, kind in spans:
        placeholder = _placeholder(kind, text[start:end], as_of)
        pieces += [text[position:start], placeholder]
        length += start - position
        redactions.append(Redaction(kind=kind, field=field, start=length, end=length + len(placeholder)))  # type: ignore[arg-type]
        length += len(placeholder)
        position = end
    return "".join([*pieces, text[position:]])


def _placeholder(kind: str, text: str, as_of: date | None) -> str:
    age = age_on(text, as_of) if kind == "DOB" and as_of is not None else None
    if age is None:
        return _TEXT[kind]
    return f"[DOB, age {age}]" if age <= OLDEST else "[DOB, age 90+]"
