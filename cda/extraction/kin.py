"""Which sentences go on about a relative: "Her sister is diabetic too. She had a glucose of 41."

A pronoun (or the relative's name) at the head of a sentence may mean the relative that the sentence before it names.
Where the patient is of the other sex, or the words say so ("herself", "also"), it does mean the relative; where both
are possible and the relative shares the illness, the sentence is doubtful. A sentence in which the relative only
reports, or that names the patient, stays the patient's own.
"""

import re
from collections.abc import Sequence

WOMEN = r"mother|mom|mum|sister|aunt|grandmother|grandma|daughter|wife|niece|girlfriend|mother-in-law"
MEN = r"father|dad|brother|uncle|grandfather|grandpa|son|husband|nephew|boyfriend|father-in-law"
OTHERS = r"cousin|spouse|partner|twin|sibling|roommate|coworker|neighbou?r|friend"
_LEAD = (
    r"(?:her|his|the|my|their|pt's|patient's|member's|a|an|one|also|older|younger|elder|twin|late|maternal|paternal)"
)
_KIN = rf"(?P<woman>{WOMEN})|(?P<man>{MEN})|(?P<either>{OTHERS})"
_SUBJECT = re.compile(rf"\W*(?:{_LEAD}\W+){{0,4}}(?:{_KIN})\b(?!'s)(?P<rest>.*)")
_BESIDE = re.compile(rf".*\b(?:with|w/|and|accompanied by|brought by)\s*(?:{_LEAD}\W+){{0,2}}(?:{_KIN})\b(?P<rest>)")
_REPORT = (
    r"(?:reports?|says?|states?|notes?|found|finds?|noticed?|noticing|witness\w*|observ\w+|sees?|saw|called|calls?|hears?"
    r"|heard|confirms?|describes?|tells?|told|helps?|gave|gives?|brought|brings?|recalls?|thinks?|worr\w+|interpret\w*"
    r"|translat\w*|verif\w+|adds?|added|denies|asks?|treats?|treated|wakes?|relates?|believes?|counts?|complains?)"
)
_REPORTS = re.compile(rf"\W*(?:\w+\W+){{0,2}}?{_REPORT}\b")
_PATIENT = re.compile(r"\b(?:pt|pþ|patient|member|our (?:patient|member))\b")
_PRONOUN = re.compile(r"\W*(?P<who>she|he)\b(?P<rest>.*)")
_SAME = re.compile(r"\b(?:herself|himself|also|too|as well|likewise|same)\b")
_DIABETIC = re.compile(r"\b(?:diabet\w+|t[12]dm?|dm ?[12]?|insulin|(?:type|t) ?[12])\b")
_NAME = re.compile(r"[\s,(]+([A-Z][a-z]{2,})\b")
_SEX = re.compile(
    r"\b\d{1,3}[ -]?(?:yo|y/o|yr|year|y|years?)?[ -]?(?:old)?[ -]*"
    r"(?:(?P<w>f|female|woman|lady)|(?P<m>m|male|man|gentleman))\b"
)
_OPPOSITE = {"she": re.compile(r"\b(?:he|him|his)\b"), "he": re.compile(r"\b(?:she|her|hers)\b")}


def carried(text: str, norm: str, lines: Sequence[tuple[int, int]]) -> dict[int, str]:
    """For sentences [start, end) of `norm`: index -> "family" (about a relative) or "guard" (perhaps about one)."""
    sex = _SEX.search(norm)
    patient = None if sex is None else ("she" if sex["w"] else "he")
    found: dict[int, str] = {}
    relative: tuple[str, bool, bool, str | None] | None = None
    for index, (start, end) in enumerate(lines):
        line = norm[start:end]
        if relative and (kind := _kind(line, relative, patient)):
            if kind != "own":
                found[index] = kind
            continue
        relative = _relative(text, line, start)
        if relative and (owner := re.match(r"\W*(her|his)\b", line)):
            patient = patient or ("she" if owner[1] == "her" else "he")
    return found


_STATES = re.compile(
    r"\W*(?:also )?(?:has|had|have|suffers|suffered|lives with|takes|took|uses|underwent|developed|died|is diabetic|"
    r"was diagnosed)\b"
)
_MORE = re.compile(
    r"[,;:(]|\b(?:and|but|while|whereas|as|like|she|he|her|his|him|they|both|too|also|same|likewise|records?"
    r"|papers?|cop(?:y|ies)|reports?|videos?|letters?|lists?|logs?|questions?|concerns?|proof|results?)\b"
)
_SO_DOES = re.compile(r"\W*(?:(?:and|but|as) )?(?:so|she|he|as|like|the same|this|both|likewise|our|pt|patient)\b")


def wholly_of_relative(line: str, following: str) -> bool:
    """True for a sentence that says what a relative has, and nothing else: "The patient's sister has fibromyalgia."

    A sentence that goes on ("and so does she"), or one after it that may take it up ("She does too"), is not one.
    """
    subject = _SUBJECT.match(line)
    if subject is None or not _STATES.match(subject["rest"]) or _REPORTS.match(subject["rest"]):
        return False
    mind = subject["rest"]
    return not (_MORE.search(mind) or _PATIENT.search(mind) or _SO_DOES.match(following))


def _relative(text: str, line: str, start: int) -> tuple[str, bool, bool, str | None] | None:
    """The relative a sentence names: pronoun, whether it is the subject, whether it shares the state, and the name."""
    subject = _SUBJECT.match(line)
    match = subject or _BESIDE.match(line)
    if match is None:
        return None
    pronoun = "she" if match["woman"] else "he" if match["man"] else "either"
    name = _NAME.match(text, start + match.start("rest")) if subject else None
    states = subject is not None and not _REPORTS.match(match["rest"])
    return pronoun, states, bool(_SAME.search(line) or _DIABETIC.search(line)), name[1].lower() if name else None


def _kind(line: str, relative: tuple[str, bool, bool, str | None], patient: str | None) -> str | None:
    """What a sentence after one with a relative is: "family", "guard", "own" (a report), None (another subject)."""
    pronoun, states, shares, name = relative
    if name and re.match(rf"\W*{name}\b", line):
        return "family" if states else "own"
    match = _PRONOUN.match(line)
    if match is None or pronoun not in {match["who"], "either"}:
        return None
    if _REPORTS.match(match["rest"]) or _PATIENT.search(line) or _OPPOSITE[match["who"]].search(line):
        return "own"
    if (patient and patient != match["who"]) or _SAME.search(match["rest"]):
        return "family"
    return "guard" if states and shares else None
