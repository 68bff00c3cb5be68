"""A policy PDF with a text layer: visible text, repaired conservatively, cut into clauses that remember their page.

The user gives what a PDF does not say in a form to trust: payer, id, title, dates. Without a start the policy is
UNDATED. Text that no reader sees is left out and flagged; a PDF that is encrypted, damaged or without text is a fault.
"""

import io
import logging
import re
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

from corpus.codes import system_of
from corpus.importers.pdf_layout import Paragraph, paragraphs, without_running_lines
from corpus.importers.pdf_page import PageText, read_page
from corpus.importers.result import Collector, ImportRefused, ImportResult
from corpus.importers.text import POLICY_ID, read_bytes, squeeze, strip_invisible, unusable
from corpus.model import DocType

MAX_PAGES = 2_000
_SHOWN = 60


@dataclass(frozen=True, slots=True)
class PdfOptions:
    """What the user says about the PDF. policy_id and title default to the file's name; no start means UNDATED."""

    policy_id: str | None = None
    title: str | None = None
    version: str = "v1"
    effective_start: date | None = None
    effective_end: date | None = None
    codes: tuple[str, ...] = ()
    doc_type: str = DocType.BULLETIN.value


def import_pdf(path: Path, payer_id: str, options: PdfOptions | None = None) -> ImportResult:
    """Import one PDF as one policy version. Raises `ImportRefused` for a file that is not a PDF or bad options."""
    options = options or PdfOptions()
    policy_id = options.policy_id or re.sub(r"[^A-Za-z0-9._-]+", "-", path.stem).strip("-._").upper()[:64]
    if POLICY_ID.fullmatch(policy_id) is None:
        raise ImportRefused(f"{policy_id!r} is not a policy id (letters, digits, . _ -, at most 64); give --policy-id")
    if options.effective_end and (not options.effective_start or options.effective_end < options.effective_start):
        raise ImportRefused("--effective-end needs an --effective-start that is not later")
    wrong = [code for code in options.codes if system_of(code) not in {"CPT", "HCPCS"}]
    if wrong:
        raise ImportRefused(f"--code {wrong[0]!r}: not a CPT or HCPCS code (5 characters, upper case, no modifier)")
    data = read_bytes(path)
    if b"%PDF-" not in data[:1024]:
        raise ImportRefused(f"{path.name}: not a PDF; check --format")
    found = Collector(path.name, records=1)
    pages = _pages(data, policy_id, found)
    clauses = _clauses(pages, path.name, policy_id, found) if pages else []
    if options.codes:
        clauses = [{**clause, "codes": list(options.codes)} for clause in clauses]
    if not clauses:
        return found.result([], landed=0)
    policy = {
        "policy_id": policy_id,
        "title": options.title or squeeze(re.sub(r"[-_]+", " ", path.stem)),
        "doc_type": options.doc_type,
        "payer_id": payer_id,
        "codes": list(options.codes),
        "codes_linkage": "ours",
        "versions": [
            {
                "version": options.version,
                "effective_start": options.effective_start,
                "effective_end": options.effective_end,
                "date_state": "DATED" if options.effective_start else "UNDATED",
                "window_provenance": "posted",
                "source_ref": path.name,
                "clauses": clauses,
            }
        ],
    }
    return found.result([{"policy": policy}], landed=1)


def _pages(data: bytes, policy_id: str, found: Collector) -> list[PageText]:
    """The pages' text, or none after the fault that says why."""
    from pypdf import PdfReader

    # pypdf logs every oddity of a file; the faults and warnings here say what matters
    logging.getLogger("pypdf").setLevel(logging.CRITICAL)
    try:
        reader = PdfReader(io.BytesIO(data))
        if reader.is_encrypted:
            found.fault(None, policy_id, "the PDF is encrypted; save a copy without a password and import that")
            return []
        if len(reader.pages) > MAX_PAGES:
            found.fault(None, policy_id, f"{len(reader.pages)} pages, the limit is {MAX_PAGES}; split the PDF")
            return []
        pages = [read_page(page, number) for number, page in enumerate(reader.pages, start=1)]
    except Exception as error:  # a damaged file fails in pypdf in any way, from KeyError to RecursionError
        found.fault(None, policy_id, f"the PDF is damaged and cannot be read ({type(error).__name__}); get a new copy")
        return []
    if not any(page.lines for page in pages):
        found.fault(None, policy_id, "the PDF has no visible text layer (a scan?); run OCR first and import the result")
        return []
    _flag(pages, policy_id, found)
    return pages


def _flag(pages: list[PageText], policy_id: str, found: Collector) -> None:
    for number, page in enumerate(pages, start=1):
        for reason, text in page.hidden:
            shown = squeeze(text)[:_SHOWN]
            found.warn(number, policy_id, f"page {number}: hidden text ({reason}) left out: {shown!r}")
        if page.only_ocr_layer:
            found.warn(
                number, policy_id, f"page {number}: the text is an invisible OCR layer; compare it with the page"
            )
        elif not page.lines:
            found.warn(number, policy_id, f"page {number}: no text; a picture of text would need OCR")


def _clauses(pages: list[PageText], name: str, policy_id: str, found: Collector) -> list[dict[str, Any]]:
    clauses: list[dict[str, Any]] = []
    for paragraph in paragraphs(without_running_lines([page.lines for page in pages])):
        text, hidden = strip_invisible(paragraph.text)
        reason = unusable(text)
        if reason is not None:
            found.warn(paragraph.page, policy_id, f"page {paragraph.page}: a paragraph is left out: {reason}")
            continue
        if hidden:
            found.warn(paragraph.page, policy_id, f"page {paragraph.page}: {hidden} invisible character(s) removed")
        clauses.append(_clause(len(clauses) + 1, paragraph, text, name))
    if not clauses and not found.faults:
        found.fault(None, policy_id, "the PDF's text holds no paragraph that can be cited")
    return clauses


def _clause(number: int, paragraph: Paragraph, text: str, name: str) -> dict[str, Any]:
    return {
        "id": f"C{number}",
        "section": paragraph.section,
        "source_ref": f"{name}#page={paragraph.page}",
        "text": text,
        "criterion": None,
    }
