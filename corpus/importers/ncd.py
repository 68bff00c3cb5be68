"""Medicare national coverage statements (JSON lines): each becomes a policy of one version, searchable and citable.

The source condenses the manual, so nothing here determines: no criterion, no codes. Most statements carry no date and
land UNDATED. A date counts only where the text says "effective [...] MONTH D, YYYY"; it dates the whole statement only
when it is the single such date and stands in the first clause. Several dates, an unreadable one, or one that stands
further down give AMBIGUOUS, listed. A statement without text cannot be cited and is a fault.
"""

import json
import re
from datetime import date, datetime
from pathlib import Path
from typing import Any

from corpus.importers.result import Collector, ImportRefused, ImportResult
from corpus.importers.text import continues, decode, read_bytes, squeeze, squeeze_lines, strip_invisible, unusable

MIN_WORDS = 4  # "Acupuncture is not covered." is a statement; "No Issues" is a note of the source

# Headings as the source writes them, to the section names of the corpus. The heading line stays in the clause's text:
# without it an item below "Not Covered" would read as its opposite.
SECTIONS = {
    "covered": "Coverage Criteria",
    "coverage": "Coverage Criteria",
    "conditions for coverage": "Coverage Criteria",
    "indications": "Coverage Criteria",
    "patient selection": "Coverage Criteria",
    "facility criteria": "Coverage Criteria",
    "indications and limitations of coverage": "Coverage Criteria",
    "not covered": "Exclusions",
    "non covered": "Exclusions",
    "non coverage": "Exclusions",
    "limitations": "Limitations",
    "limiations": "Limitations",  # the source's spelling
    "others": "Limitations",
    "other conditions": "Limitations",
}
UNHEADED = "Statement"

_BULLET = re.compile(r"^(=+>|-+>|=(?=\s))\s*")
_SOURCE_NOTE = re.compile(r"^(no issues\b|issues\s*:)", re.IGNORECASE)
_MONTH = "January|February|March|April|May|June|July|August|September|October|November|December"
_EFFECTIVE = re.compile(
    rf"\beffective\b(?P<lead>[^.;()\n]{{0,60}}?)\b(?P<date>(?:{_MONTH})\s+\d{{1,2}}[,.]?\s+\d{{4}})", re.IGNORECASE
)
# What may stand between "effective" and its date; any other word makes it the date of something else.
_LEAD = re.compile(
    r"(a|after|and|as|beginning|claims|dates?|for|from|furnished|in|is|of|on|or|performed|procedures|services?|"
    r"starting|the|this|with)"
)
_NEGATED = re.compile(r"\b(no longer|not|until|through)\s+$", re.IGNORECASE)
_ENDED = re.compile(r"\s*,?\s*(and (ending|until)|ending|through|thru|until|to|[-–—])(?![a-z])", re.IGNORECASE)


def import_ncd_jsonl(path: Path, payer_id: str = "CMS") -> ImportResult:
    """Import one statement a line (keys `title` and `text`; `ncd_id`, `ncd_version`, `url` may be null).

    Policies come in the order of the file. Raises `ImportRefused` when no line is such a record.
    """
    found = Collector(path.name)
    documents: list[dict[str, Any]] = []
    places: dict[str, int] = {}
    shaped = False
    for line, raw in enumerate(decode(read_bytes(path), path.name).split("\n"), start=1):
        if not raw.strip():
            continue
        found.records += 1
        record = _record(raw, line, found)
        if record is None:
            continue
        shaped = True
        policy_id = _policy_id(record)
        if policy_id in places:
            found.fault(line, policy_id, f"the id of the statement of line {places[policy_id]}; only that one lands")
            continue
        policy = _policy(record, policy_id, payer_id, line, found)
        if policy is not None:
            places[policy_id] = line
            documents.append({"policy": policy})
    if not shaped:
        raise ImportRefused(f"{path.name}: no line is a coverage statement (JSON with title and text); check --format")
    return found.result(documents, landed=len(documents))


def _record(raw: str, line: int, found: Collector) -> dict[str, Any] | None:
    reason = unusable(raw)
    if reason is None:
        try:
            record = json.loads(raw)
        except (ValueError, RecursionError) as error:
            reason = f"not JSON: {error}"
        else:
            reason = _shape(record)
    if reason is not None:
        found.fault(line, "-", reason)
        return None
    return dict(record)


def _shape(record: Any) -> str | None:
    if not isinstance(record, dict):
        return "not a JSON object"
    for name in ("title", "text"):
        value = record.get(name)
        if not isinstance(value, str):
            return f"{name}: missing or not text"
        if (reason := unusable(value)) is not None:
            return f"{name}: {reason}"
    for name in ("ncd_id", "ncd_version"):
        value = record.get(name)
        if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 1):
            return f"{name}: not a positive whole number or null"
    url = record.get("url")
    if url is not None and not (isinstance(url, str) and url.startswith("https://")):
        return "url: not an https address or null"
    return None if record["title"].strip() else "title: empty"


def _policy_id(record: dict[str, Any]) -> str:
    """`MCD-NCD-<document number>`; a statement without a number is named by its title.

    The number is the coverage database's document number, not the manual's section (30.3), hence the prefix.
    """
    if record.get("ncd_id") is not None:
        return f"MCD-NCD-{record['ncd_id']}"
    slug = re.sub(r"[^A-Z0-9]+", "-", _readable(record["title"]).upper()).strip("-")
    return f"MCD-NCD-{slug[:48].rstrip('-') or 'UNTITLED'}"


def _policy(
    record: dict[str, Any], policy_id: str, payer_id: str, line: int, found: Collector
) -> dict[str, Any] | None:
    text, hidden = strip_invisible(record["text"])
    title, body, notes = _body(_readable(squeeze(record["title"])), text)
    if len(re.findall(r"\w+", body)) < MIN_WORDS:
        found.fault(line, policy_id, f"no text beyond its title ({title}); it cannot be cited")
        return None
    if hidden:
        found.warn(line, policy_id, f"{hidden} invisible character(s) removed")
    if notes:
        found.warn(line, policy_id, f"{notes} working note(s) of the source left out")
    clauses = [
        {"id": f"C{number}", "section": section, "text": text, "criterion": None}
        for number, (section, text) in enumerate(_clauses(body), start=1)
    ]
    start, reason = _effective([str(clause["text"]) for clause in clauses])
    if reason is not None:
        found.warn(line, policy_id, f"AMBIGUOUS: {reason}")
    return {
        "policy_id": policy_id,
        "title": title,
        "doc_type": "national_coverage_determination",
        "payer_id": payer_id,
        "codes": [],
        "versions": [
            {
                "version": f"v{record.get('ncd_version') or 1}",
                "effective_start": start,
                "effective_end": None,
                "date_state": "AMBIGUOUS" if reason else "DATED" if start else "UNDATED",
                "window_provenance": "posted",
                "source_ref": record.get("url"),
                "clauses": clauses,
            }
        ],
    }


def _readable(title: str) -> str:
    """A title in one word, as file names are, gets its spaces back where a capital follows a small letter."""
    return title if " " in title else re.sub(r"(?<=[a-z,)])(?=[A-Z(])", " ", title)


def _body(title: str, text: str) -> tuple[str, str, int]:
    """The better title, the text without its title line and the source's notes, and how many notes there were."""
    lines = text.strip().split("\n")
    first = squeeze(lines[0].lstrip("/#"))
    if _letters(first) == _letters(title) or lines[0].lstrip().startswith(("//", "#")):
        title = first if " " in first else title
        lines = lines[1:]
    kept = [line for line in lines if not _SOURCE_NOTE.match(line.strip())]
    return title, "\n".join(kept), len(lines) - len(kept)


def _letters(text: str) -> str:
    return "".join(char for char in text.casefold() if char.isalnum())


def _clauses(body: str) -> list[tuple[str, str]]:
    """(section, text) of each clause. A headed part is one clause with its heading and every item, for the heading
    decides what an item means; text without a heading is cut at blank lines, never where `continues` forbids it."""
    parts: list[tuple[str, list[str]]] = []
    blank = True
    for raw in body.split("\n"):
        line = _BULLET.sub("- ", squeeze(raw))
        section = SECTIONS.get(re.sub(r"[\s-]+", " ", line.rstrip(" :;")).casefold())
        if section is not None:
            parts.append((section, [line]))
        elif line and (not parts or (blank and parts[-1][0] == UNHEADED and not continues(parts[-1][1][-1], line))):
            parts.append((UNHEADED, [line]))
        elif line:
            parts[-1][1].append(line)
        blank = not line
    texts = [(section, squeeze_lines("\n".join(lines))) for section, lines in parts]
    return [(section, text) for section, text in texts if section == UNHEADED or "\n" in text]


def _effective(texts: list[str]) -> tuple[date | None, str | None]:
    """The start that the statement itself gives, or (None, why it is ambiguous), or (None, None) without a date."""
    starts: set[date] = set()
    place = 0
    for number, text in enumerate(map(squeeze, texts)):
        for match in _EFFECTIVE.finditer(text):
            if not all(map(_LEAD.fullmatch, re.findall(r"\w+", match["lead"].casefold()))):
                continue  # "effective treatment until May 1, 2020" dates something else
            day = squeeze(match["date"])
            if _NEGATED.search(text[: match.start()]) or _ENDED.match(text[match.end() :]):
                return None, f"an end or a negation stands by the effective date {day}"
            try:
                starts.add(datetime.strptime(day.title(), "%B %d, %Y").date())  # noqa: DTZ007
            except ValueError:
                return None, f"an effective date that cannot be read: {day}"
            place = max(place, number)
    if len(starts) > 1:
        return None, f"several effective dates: {', '.join(map(str, sorted(starts)))}"
    if place > 0:
        return None, f"an effective date below the first clause ({min(starts)}) need not date the whole statement"
    return (min(starts) if starts else None), None
