"""Names of people in chart language: labelled, titled, signed, related, or made of a common given name.

Nothing is a name by its capital alone, so drug, disease and test names stay; `phi_words` decides the doubtful cases.
Known gap: a bare surname or rare given name without label, title, initial, age, relation or verb of telling stays.
"""

import re
from collections.abc import Iterator

from cda.harness.patterns import bounded
from cda.harness.phi_patterns import triggers
from cda.harness.phi_words import GIVEN_NAMES, NOT_NAMES, SURNAMES_TOO

Span = tuple[int, int]

_WEAK_STOPS = NOT_NAMES - SURNAMES_TOO
_TITLE_WORD = r"[A-ZÀ-Þ](?:['’][A-Z])?[a-zà-ÿ]+(?:[-'’][A-Z]?[a-zà-ÿ]+)*(?:[A-Z][a-z]+)?"
_CAPS_WORD = r"[A-ZÀ-Þ]{2,}(?:[-'’][A-ZÀ-Þ]+)*"
_PARTICLE = r"(?:de|la|del|las|los|van|von|der|den|di|da|al|bin|ibn|st\.)"
_WORD = rf"(?:{_TITLE_WORD}|{_CAPS_WORD}|(?:[A-Z]\.)+|[A-Z]\b)"
_NAME = rf"(?P<v>{_WORD}(?:,?[ \t]+(?:{_PARTICLE}[ \t]+)*{_WORD}){{0,3}})"
_LOWER_NAME = r"(?P<w>[a-zà-ÿ'’-]{2,}(?:,?[ \t]+[a-zà-ÿ'’-]{1,}\.?){0,2})(?=\s*(?:[,;.(\n|/]|$|\d))"
_ROLE = (
    r"patient|pt|member|subscriber|beneficiary|insured|policy\s?holder|guarantor|provider|physician|prescriber|doctor"
    r"|attending|pcp|surgeon|clinician|author|nurse|contact|kin|nok|guardian|caregiver|spouse|employer"
)
_BY = "signed|dictated|transcribed|reviewed|authored|written|seen|referred|prescribed|ordered|evaluated|accompanied"
_KIN = (
    "husband|wife|spouse|partner|son|daughter|mother|father|mom|dad|sister|brother|aunt|uncle|cousin|niece|nephew"
    "|grandmother|grandfather|grandson|granddaughter|caregiver|guardian|neighbor|friend|roommate"
)

# (trigger words and marks, pattern, strong). A strong label accepts eponyms and single words in capitals.
_PATTERNS: tuple[tuple[frozenset[str], tuple[str, ...], str, bool], ...] = tuple(
    (*triggers(listed), pattern, strong)
    for listed, pattern, strong in (
        (
            "name|names",
            rf"(?i:names?)\s*(?:\([^)\n]{{0,20}}\))?\s*(?:[:=#]|(?i:is\b)|-\s)\s*(?:{_NAME}|{_LOWER_NAME})",
            True,
        ),
        ("by", rf"(?i:{_BY})\s+(?i:by)\s+{_NAME}", False),
        (
            "mr|mrs|ms|miss|mx|dr|doctor|prof|sr|sra|nurse",
            rf"(?:M(?<![\w-].)(?:(?:rs?|s|x|iss)\.?|RS\.?|ISS|[RS]\.)|D(?<![\w-].)(?:r\.?|R|octor)"
            rf"|Prof\.?|Sra?\.|Nurse)\s+{_NAME}",
            True,
        ),
        ("mr. |mrs. |ms. |dr. ", r"(?<![\w-])(?:mrs?|ms|dr)\.\s+(?P<v>[a-zà-ÿ'’-]{2,})", True),
        ("named|called|known|aka|goes", rf"(?i:named|called|known\s+as|aka|goes\s+by)\s+{_NAME}", False),
        (_KIN, rf"\b(?i:{_KIN}),?\s+(?:(?i:is)\s+)?(?P<v>{_TITLE_WORD}(?:\s+{_TITLE_WORD})?)", False),
        ("dear|sincerely|regards", rf"(?i:dear|sincerely|regards)\b[,\s]+{_NAME}", False),
        ("initial|initials", r"(?i:initials?)\s*[:=]?\s*(?:are\s+|is\s+)?(?P<v>(?:[A-Z]\.?\s?){2,3})(?!\w)", True),
    )
)
_LABEL = bounded(rf"\b(?:(?:{_ROLE})(?:['’]s)?(?:\s+name)?|(?:{_BY})(?:\s+by)?|re|attn|attention|cc|signature)[ \t]*$")
_LABELLED = bounded(rf"[:=][ \t]*{_NAME}")
_CREDENTIAL = bounded(
    r"[MDFANPRBLC](?<![\w-].)(?:D|\.D\.|O|\.O\.|P|NP|NP-C|PRN|A-C|N|SN|BBS|h\.?D\.?|PM|PT|harmD|DE|DCES|CSW|ACP)(?![\w-])"
)
_CREDENTIALS_TEXT = (
    "MD M.D. DO D.O. NP FNP FNP-C ANP APRN PA-C RN BSN MSN LPN MBBS PhD Ph.D. Ph.D DPM DPT PharmD CDE CDCES LCSW FACP"
)
_CREDENTIALS = frozenset(_CREDENTIALS_TEXT.split())
_SIGNED = bounded(
    rf"(?P<v>(?:{_TITLE_WORD}|{_CAPS_WORD}|[A-Z]\.?)(?:[ \t]+(?:{_TITLE_WORD}|{_CAPS_WORD}|[A-Z]\b\.?)){{0,2}}),?\s+$"
)
_PERSON_AHEAD = bounded(
    r"\s*[,(;-]?\s*(?:(?:is|was)\s+)?(?:an?\s+)?(?:\d{1,3}\s*-?\s*(?:y\b|y/|yo\b|yr|year|month|[MFmf]\b)"
    r"|(?i:dob|d\.o\.b|date of birth|mrn|born|\[(?:dob|mrn|age)))"
)
# A lone surname: after an initial; after "patient" before a verb or age; opening a sentence before a verb of telling.
_TELLS = r"reports?|states?|denies|complains|endorses|says|checks|injects|tests|tells"
_LONE = tuple(
    (triggers(listed)[0], bounded(pattern))
    for listed, pattern in (
        ("", rf"(?P<v>[A-Z](?<![\w.-].)(?<!\d\s.)\.[ \t]?(?:[A-Z]\.[ \t]?)?{_TITLE_WORD})(?!\.)"),
        (
            "patient|pt|member|matient|mt|pember",
            rf"[PpMm](?<!\w.)(?:atient|t\.?|ember)\s+(?P<v>{_TITLE_WORD})"
            rf"(?=,?\s+(?:\d|(?:is|has|was|uses|takes|{_TELLS})\b))",
        ),
        (
            "report|reports|state|states|denies|complains|endorses|says|checks|injects|tests|tells",
            rf"(?:^|(?<=[.\n]\s)|(?<=\n))(?P<v>{_TITLE_WORD})(?=\s+(?:{_TELLS})\b)",
        ),
    )
)
_PERSON_BEHIND = bounded(r"\b(?:pt|patient|member|subscriber)\.?,?\s+$", re.I)
_CAPITALISED = bounded(r"[A-ZÀ-Þ](?<![\w-].)(?:[a-zà-ÿ]|['’][A-Z]|[A-ZÀ-Þ])(?:[^\W\d_]|[-'’](?=[^\W\d_]))*")
_BETWEEN = bounded(rf"(?:,?[ \t]+|,|[ \t]+[A-Z]\.?[ \t]+|[ \t]+(?:{_PARTICLE}[ \t]+)+)\Z")
_INITIAL = bounded(r"[ \t]+[A-Z](?:\.|(?!\w))")
_EPONYM = bounded(r"(?:['’]s)?\s+(?:disease|syndrome|sign|test|criteria|scale|score|procedure|stag\w+)\b", re.I)


def find_names(text: str, low: str, words: frozenset[str]) -> Iterator[Span]:
    """Spans of names in `text`; `low` is its lower case and `words` are the words of that."""
    for listed, marks, pattern, strong in _PATTERNS:
        if not listed.isdisjoint(words) or any(mark in low for mark in marks):
            for found in bounded(pattern).finditer(text):
                yield from _accepted(text, found, strong=strong)
    for found in _LABELLED.finditer(text):
        if _LABEL.search(low[max(0, found.start() - 40) : found.start()]):
            yield from _accepted(text, found, strong=False)
    for credential in _CREDENTIAL.finditer(text):
        if credential.group() in _CREDENTIALS or credential.group().rstrip(".") in _CREDENTIALS:
            yield from _signed(text, credential.start())
    for listed, lone in _LONE:
        for found in lone.finditer(text) if not listed or not listed.isdisjoint(words) else ():
            if not any(word.lower() in NOT_NAMES for word in re.findall(r"[^\W\d_]{2,}", found["v"])):
                yield found.span("v")
    yield from _unlabelled(text)


def parts(name: str) -> set[str]:
    """The words of a found name that are looked for elsewhere: three letters or more, and no word of charts."""
    return {word for word in re.findall(r"[^\W\d_]{3,}", name) if word.lower() not in NOT_NAMES}


def _accepted(text: str, found: re.Match[str], *, strong: bool) -> Iterator[Span]:
    group = "v" if found["v"] else "w"
    start, end = found.span(group)
    stops = _WEAK_STOPS if strong else NOT_NAMES
    for word in re.finditer(r"[^\W\d_]+", found[group]):  # the name ends where the chart begins
        if word.group().lower() in stops:
            end = start + word.start()
            break
    name = text[start:end].rstrip(" ,\t-'’")
    long_enough = re.search(r"[^\W\d_]{2}", name) or (group == "v" and strong and len(name) > 1)
    # One word in capitals after a weak label is an abbreviation ("PATIENT: CGM").
    if long_enough and (strong or not name.isupper() or " " in name):
        yield start, start + len(name)


def _signed(text: str, credential: int) -> Iterator[Span]:
    offset = max(0, credential - 60)
    found = _SIGNED.search(text[offset:credential])
    if found:
        words = re.findall(r"[^\W\d_]+", found["v"])
        first = next((i for i in range(len(words), 0, -1) if words[i - 1].lower() in NOT_NAMES), 0)
        kept = words[first:]
        if any(len(word) > 2 and (not word.isupper() or len(kept) > 1) for word in kept):
            yield offset + found["v"].index(kept[0]) + found.start("v"), offset + found.end("v")


def _unlabelled(text: str) -> Iterator[Span]:
    """Given names, and pairs of capitalised words that stand before an age or record number or after "patient"."""
    words = [(found.start(), found.end(), found.group()) for found in _CAPITALISED.finditer(text)]
    for index, (start, _, word) in enumerate(words):
        bare = word[:-2] if word.endswith(("'s", "’s")) else word
        lowered = bare.lower()
        if lowered in NOT_NAMES:
            continue
        given = lowered in GIVEN_NAMES
        stop = _end_of_pair(text, words, index)
        if stop is not None:
            if given or _PERSON_AHEAD.match(text, stop) or _PERSON_BEHIND.search(text[max(0, start - 14) : start]):
                yield start, stop
        elif given and not bare.isupper() and not _EPONYM.match(text, start + len(bare)):
            yield start, start + len(bare)


def _end_of_pair(text: str, words: list[tuple[int, int, str]], index: int) -> int | None:
    if index + 1 == len(words):
        return None
    (_, end, word), (start, stop, following) = words[index], words[index + 1]
    same_case = word.isupper() == following.isupper()
    if following.lower() in NOT_NAMES or not same_case or _EPONYM.match(text, stop):
        return None
    initial = _INITIAL.match(text, stop)
    return (initial.end() if initial else stop) if _BETWEEN.match(text, end, start) else None
