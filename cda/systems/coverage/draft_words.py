"""What the words of a clause ask of its criterion: every exception word, every number, every comparison of one.

Closed lists of English, read by rule: a word that is not listed asks for nothing, which is why a person reviews.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from corpus.codes import system_of


class Exceptional(StrEnum):
    """What an exception word does to the sentence."""

    UNLESS = "unless"
    EXCEPT = "except"
    ONLY_IF = "only if"
    NOT = "not"


_COMPARED = r"(?:more|less|fewer|greater|later|earlier|longer|older|younger|higher|lower|sooner)\s+(?:often\s+)?than"
_WORDS: tuple[tuple[Exceptional, str], ...] = (
    (Exceptional.UNLESS, r"unless"),
    (
        Exceptional.EXCEPT,
        r"except(?:ing)?(?!ion)|with\s+the\s+exception\s+of|excluding|other\s+than|but\s+not|apart\s+from|exclusive\s+of",
    ),
    (Exceptional.ONLY_IF, r"only\s+(?:if|when|where|after)|if\s+and\s+only\s+if"),
    (
        Exceptional.NOT,
        rf"(?:not|no)(?!\s+{_COMPARED})(?!\s+limited\s+to)(?!\s+exceed)|nor|never|neither|without|cannot|none|\w+n[’']t",
    ),
)
_EXCEPTION = re.compile(
    r"(?<!whether\sor\s)\b(?:" + "|".join(f"(?P<{kind.name}>{pattern})" for kind, pattern in _WORDS) + r")\b", re.I
)


def exceptions_in(text: str) -> Iterator[tuple[int, Exceptional]]:
    """(place, kind) of every exception word, in order. A comparison ("no more than") is none; `but not` is one."""
    for found in _EXCEPTION.finditer(text):
        yield found.start(), Exceptional[found.lastgroup or ""]


_SMALL_WORDS = """
zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen
nineteen
"""
_TENS_WORDS = "twenty thirty forty fifty sixty seventy eighty ninety"
_MONTH_NAMES = "january february march april may june july august september october november december"
_SMALL = {word: float(value) for value, word in enumerate(_SMALL_WORDS.split())}
_TENS = {word: 10.0 * place for place, word in enumerate(_TENS_WORDS.split(), 2)}
_WORD_VALUES = {**_SMALL, **_TENS, "once": 1.0, "twice": 2.0, "half": 0.5, "dozen": 12.0, "hundred": 100.0}
_MONTHS = {name: place for place, name in enumerate(_MONTH_NAMES.split(), 1)}
_DATE = re.compile(rf"\b({'|'.join(_MONTHS)})\s+(\d{{1,2}}),?\s+(\d{{4}})\b", re.I)
_ISO = re.compile(r"\b\d{4}-\d{2}-\d{2}\b")
_CODE = re.compile(r"\b(?:[A-Z]\d[0-9A-Z](?:\.[0-9A-Z*]{1,4})?|[A-Z]\d{4}|\d{4}[TFU]|\d{5})(?![\d.,]*\d)\b")
_NUMBER = re.compile(
    rf"(?<![\w.])(?P<digits>\d{{1,3}}(?:,\d{{3}})+(?:\.\d+)?|\d+(?:\.\d+)?)|\b(?P<word>{'|'.join(_WORD_VALUES)})\b",
    re.I,
)
# Words that stand for none and for one where a criterion counts.
_NONE = re.compile(r"\b(?:no|none|not|never|without|zero)\b", re.I)
_ONE = re.compile(r"\b(?:an?|any|one|once|first|each|every|per|either)\b", re.I)


@dataclass(frozen=True, slots=True)
class Number:
    """A number of the text: its value, where it begins and ends, and whether it is written in digits."""

    value: float
    start: int
    end: int
    in_digits: bool


def _blanked(text: str, pattern: re.Pattern[str]) -> str:
    return pattern.sub(lambda found: " " * len(found.group()), text)


def numbers_in(text: str) -> tuple[Number, ...]:
    """Every number, dates and codes left out."""
    plain = _blanked(_blanked(text, _DATE), _ISO)
    plain = _CODE.sub(lambda found: " " * len(found.group()) if system_of(found.group()) else found.group(), plain)
    return tuple(
        Number(
            float(found["digits"].replace(",", "")) if found["digits"] else _WORD_VALUES[found["word"].lower()],
            found.start(),
            found.end(),
            found["digits"] is not None,
        )
        for found in _NUMBER.finditer(plain)
    )


def days_in(text: str) -> frozenset[str]:
    """Every day that the text names, as YYYY-MM-DD."""
    named = {f"{found[3]}-{_MONTHS[found[1].lower()]:02d}-{int(found[2]):02d}" for found in _DATE.finditer(text)}
    return frozenset(named | set(_ISO.findall(text)))


def codes_in(text: str) -> frozenset[str]:
    """Every procedure code that stands in the text."""
    return frozenset(code for code in _CODE.findall(text) if system_of(code) in ("CPT", "HCPCS"))


def counts_as(value: float, text: str) -> bool:
    """Whether words of the text stand for this number: "a", "any" for one; "no", "never" for none."""
    return bool((value == 0 and _NONE.search(text)) or (value == 1 and _ONE.search(text)))


_AHEAD: tuple[tuple[str, str], ...] = (
    (">=", r"(?:at\s+least|(?:no|not)\s+(?:less|fewer|younger|lower)\s+than|(?:a\s+)?minimum\s+of)"),
    ("<=", r"(?:at\s+most|(?:no|not)\s+(?:more|greater|longer|older|later|higher)\s+than|up\s+to|(?:a\s+)?maximum\s+of|"
     r"(?:not|cannot)\s+exceed(?:ing)?|within|limited\s+to)"),
    (">", r"(?<!no\s)(?<!not\s)(?:(?:more|greater|longer|older|higher)\s+than|over|above|exceed(?:s|ing)?)"),
    ("<", r"(?<!no\s)(?<!not\s)(?:(?:less|fewer|younger|shorter|lower)\s+than|under|below)"),
)  # fmt: skip
_BEFORE = tuple(
    (op, re.compile(rf"\b{phrase}\s+(?:or\s+equal\s+to\s+)?(?:age\s+|a\s+|an\s+)?$", re.I)) for op, phrase in _AHEAD
)
_AFTER = (
    (
        ">=",
        re.compile(
            r"\s*%?\s*(?:[A-Za-z/-]+\s+){0,4}?(?:or|and)\s+(?:more|greater|older|above|longer|higher|over)\b", re.I
        ),
    ),
    (
        "<=",
        re.compile(
            r"\s*%?\s*(?:[A-Za-z/-]+\s+){0,4}?(?:or|and)\s+(?:less|fewer|younger|below|shorter|lower|under)\b", re.I
        ),
    ),
)


def comparisons_in(text: str) -> dict[float, frozenset[str]]:
    """The operators that the text asks for, by number; a number that also stands without a comparison is left out."""
    asked: dict[float, set[str]] = {}
    bare: set[float] = set()
    for number in numbers_in(text):
        ops = {op for op, before in _BEFORE if before.search(text[max(0, number.start - 60) : number.start])}
        ops |= {op for op, after in _AFTER if after.match(text, number.end)}
        if ops:
            asked.setdefault(number.value, set()).update(ops)
        else:
            bare.add(number.value)
    return {value: frozenset(ops) for value, ops in asked.items() if value not in bare}
