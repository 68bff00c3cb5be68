"""Medicare Coverage Database listings (CSV): every LCD and Article record becomes a dated version of its document.

A listing holds metadata only, so the one clause of a version says what the record says and states no criterion.
Windows: a version starts on its effective date. It ends the day before the next listed version starts
(`next_version`), or on its retirement date (`retirement`, the last day included), whichever comes first. Dates that
contradict one another make the document AMBIGUOUS: it is listed and in effect on no date.
"""

import csv
import io
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

from corpus.importers.result import Collector, ImportRefused, ImportResult
from corpus.importers.text import decode, read_bytes, squeeze, strip_invisible, unusable, us_date

COLUMNS = (
    "contractor_name_type",
    "document_display_id",
    "document_type",
    "document_version",
    "effective_date",
    "note",
    "retirement_date",
    "title",
    "updated_on",
    "url",
)
DATES = ("effective_date", "retirement_date", "updated_on")
DOC_TYPES = {"LCD": "local_coverage_determination", "Article": "billing_article"}
_PREFIX = {"LCD": "L", "Article": "A"}
_DISPLAY_ID = re.compile(r"[A-Z]{1,3}\d{1,8}", re.ASCII)
_ABSENT = {"", "N/A"}


@dataclass(frozen=True, slots=True)
class _Row:
    line: int
    document_id: str
    doc_type: str
    version: int
    title: str
    contractors: tuple[str, ...]
    effective: date | None
    retirement: date | None
    updated: date | None
    note: str
    url: str

    @property
    def said(self) -> tuple[Any, ...]:
        """Everything but the place in the file: two rows that say the same are one record listed twice."""
        return (self.doc_type, self.title, self.contractors, self.effective, self.retirement, self.note, self.url)


@dataclass(frozen=True, slots=True)
class _Window:
    state: str
    start: date | None = None
    end: date | None = None
    provenance: str = "posted"
    gap_after: str | None = None


def import_mcd_csv(path: Path, payer_id: str = "CMS") -> ImportResult:
    """Import a listing. Policies come sorted by document id, versions by number, each with one clause a record.

    Raises `ImportRefused` when the file is not such a listing; a bad row is a fault and the others land.
    """
    found = Collector(path.name)
    by_document: dict[str, list[_Row]] = {}
    for row in _rows(decode(read_bytes(path), path.name), found):
        earlier = by_document.setdefault(row.document_id, [])
        same = next((other for other in earlier if other.version == row.version and other.said == row.said), None)
        if same is not None:
            found.fault(row.line, row.document_id, f"repeats the record of line {same.line}")
        else:
            earlier.append(row)
    documents = [_policy(payer_id, by_document[key], found) for key in sorted(by_document)]
    return found.result(documents, landed=sum(map(len, by_document.values())))


def _rows(text: str, found: Collector) -> Iterator[_Row]:
    # strict: an open quote is an error, where the lenient reader would swallow the rest of the file as one cell
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    try:
        header = [cell.strip() for cell in next(reader)]
    except (csv.Error, StopIteration) as error:
        raise ImportRefused(f"{found.file}: no readable CSV header ({error}); check --format") from error
    missing = [name for name in COLUMNS if name not in header]
    if missing:
        raise ImportRefused(f"{found.file}: not a coverage database listing, columns missing: {', '.join(missing)}")
    while True:
        line = reader.line_num + 1
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            found.records += 1
            found.fault(line, "-", f"not CSV up to line {reader.line_num}: {error}; check the quotes")
            continue
        if not cells:
            continue
        found.records += 1
        row = _row(dict(zip(header, cells, strict=False)), line, found, complete=len(cells) == len(header))
        if row is not None:
            yield row


def _row(raw: dict[str, str], line: int, found: Collector, *, complete: bool) -> _Row | None:
    """The checked row, or None after listing everything that is wrong with it."""
    if not complete:
        found.fault(line, _shown_id(raw), "the number of cells differs from the header's")
        return None
    stripped = {name: strip_invisible(raw[name]) for name in COLUMNS}
    cell = {name: text.strip() for name, (text, _) in stripped.items()}
    dates = {name: us_date(cell[name]) for name in DATES}
    wrong = [
        *_wrong_shapes(cell),
        *(f"{name}: not a date of the form MM/DD/YYYY" for name in _wrong_dates(cell, dates)),
    ]
    if wrong:
        found.fault(line, _shown_id(cell), "; ".join(wrong))
        return None
    hidden = sum(removed for _, removed in stripped.values())
    if hidden:
        found.warn(line, cell["document_display_id"], f"{hidden} invisible character(s) removed")
    if cell["title"].startswith(("=", "+", "-", "@")):
        message = "the title starts like a spreadsheet formula; it is kept as plain text"
        found.warn(line, cell["document_display_id"], message)
    return _Row(
        line=line,
        document_id=cell["document_display_id"],
        doc_type=cell["document_type"],
        version=int(cell["document_version"]),
        title=squeeze(cell["title"]),
        contractors=_contractors(cell["contractor_name_type"]),
        effective=dates["effective_date"],
        retirement=dates["retirement_date"],
        updated=dates["updated_on"],
        note=squeeze(cell["note"]),
        url=cell["url"],
    )


def _shown_id(cell: dict[str, str]) -> str:
    """The id as a fault may show it: a dash when it has not the shape of one, for it could hold anything."""
    text = cell.get("document_display_id", "").strip()
    return text if _DISPLAY_ID.fullmatch(text) else "-"


def _wrong_shapes(cell: dict[str, str]) -> Iterator[str]:
    for name in COLUMNS:
        reason = unusable(cell[name])
        if reason is not None:
            yield f"{name}: {reason}"
    kind = cell["document_type"]
    if _shown_id(cell) == "-":
        yield "document_display_id: not a letter prefix and a number, as L33822"
    elif kind not in DOC_TYPES:
        yield f"document_type: must be one of {', '.join(DOC_TYPES)}"
    elif not cell["document_display_id"].startswith(_PREFIX[kind]):
        yield f"document_display_id: the id of a document of type {kind} starts with {_PREFIX[kind]}"
    if re.fullmatch(r"[1-9]\d{0,5}", cell["document_version"], re.ASCII) is None:
        yield "document_version: not a positive whole number"
    if not cell["title"]:
        yield "title: empty"
    if not cell["url"].startswith("https://"):
        yield "url: not an https address"


def _wrong_dates(cell: dict[str, str], dates: dict[str, date | None]) -> Iterator[str]:
    return (name for name in DATES if dates[name] is None and cell[name] not in _ABSENT)


def _contractors(cell: str) -> tuple[str, ...]:
    """One entry a contractor; a joint document separates them by a blank line inside the cell."""
    return tuple(name for name in map(squeeze, re.split(r"\n\s*\n", cell)) if name)


def _policy(payer_id: str, rows: list[_Row], found: Collector) -> dict[str, Any]:
    rows.sort(key=lambda row: (row.version, row.line))
    latest = rows[-1]
    windows = _windows(rows, found)
    versions: dict[int, dict[str, Any]] = {}
    for row, window in zip(rows, windows, strict=True):
        version = versions.setdefault(row.version, _version(row, window))
        clauses = version["clauses"]
        clauses.append({"id": f"C{len(clauses) + 1}", "section": "Record", "text": _statement(row), "criterion": None})
    return {
        "policy": {
            "policy_id": latest.document_id,
            "title": latest.title,
            "doc_type": DOC_TYPES[latest.doc_type],
            "payer_id": payer_id,
            "codes": [],
            "jurisdiction": sorted({name for row in rows for name in row.contractors}),
            "versions": list(versions.values()),
        }
    }


def _version(row: _Row, window: _Window) -> dict[str, Any]:
    return {
        "version": f"v{row.version}",
        "effective_start": window.start,
        "effective_end": window.end,
        "date_state": window.state,
        "retirement_date": row.retirement,
        "window_provenance": window.provenance,
        "source_ref": row.url,
        **({"gap_after": window.gap_after} if window.gap_after else {}),
        "clauses": [],
    }


def _windows(rows: list[_Row], found: Collector) -> list[_Window]:
    """One window a row. One contradiction makes the whole document AMBIGUOUS, for the windows lean on one another."""
    clash = _clash(rows)
    for row in rows:
        if clash is not None:
            found.warn(row.line, row.document_id, f"AMBIGUOUS: {clash}")
        elif row.effective is None:
            found.warn(row.line, row.document_id, "UNDATED: no effective date")
    if clash is not None:
        return [_Window("AMBIGUOUS")] * len(rows)
    followers = [*(row.effective for row in rows[1:]), None]
    return [_window(row, next_start) for row, next_start in zip(rows, followers, strict=True)]


def _clash(rows: list[_Row]) -> str | None:
    for row in rows:
        if row.retirement and row.effective and row.retirement < row.effective:
            return f"version {row.version} retired on {row.retirement}, before it starts on {row.effective}"
        if row.retirement is None and row.note.casefold().startswith("retired"):
            return f"version {row.version} is marked retired without a retirement date"
    for earlier, later in pairwise(rows):
        if earlier.version == later.version:
            return f"version {earlier.version} is listed with different content (lines {earlier.line} and {later.line})"
        if earlier.effective is None or later.effective is None:
            return f"versions {earlier.version} and {later.version}: one has no effective date, the order is unknown"
        if later.effective <= earlier.effective:
            return f"version {later.version} does not start after version {earlier.version}"
    return None


def _window(row: _Row, next_start: date | None) -> _Window:
    if row.effective is None:
        return _Window("UNDATED")
    superseded = next_start - timedelta(days=1) if next_start else None
    if superseded and (row.retirement is None or superseded <= row.retirement):
        return _Window("DATED", row.effective, superseded, "next_version")
    provenance = "retirement" if row.retirement else "posted"
    gap = f"retired; the next listed version starts on {next_start}" if next_start else None
    return _Window("DATED", row.effective, row.retirement, provenance, gap)


def _statement(row: _Row) -> str:
    """What the record says, in whole sentences; no more, for the listing holds no policy text."""
    kind = {"LCD": "Local coverage determination", "Article": "Article"}[row.doc_type]
    retired = f"retires on {row.retirement}" if row.retirement else "has no posted retirement date"
    effective = f"is effective {row.effective}" if row.effective else "has no posted effective date"
    sentences = [
        f"{kind} {row.document_id}, version {row.version}, is titled “{row.title}”.",
        f"It is issued by {' and '.join(row.contractors)}." if row.contractors else "It names no contractor.",
        f"It {effective} and {retired}.",
    ]
    if row.note:
        sentences.append(f"The listing notes: {row.note}.")
    if row.updated:
        sentences.append(f"The record was updated on {row.updated}.")
    sentences.append("The record holds no coverage criteria; they are in the document itself.")
    return " ".join(sentences)
