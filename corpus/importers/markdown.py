"""A user's bulletin or rider in Markdown: front matter, headed sections, one clause a paragraph or list.

The format is described for users in docs/guides/import-policies.md. A fenced `criterion` block below a clause is its
criterion as data, so a policy written in Markdown can determine; without one the clause is searchable and citable
only. One file is one version; the files of a folder that share a policy_id become versions of one policy. Every fault
of a file is listed with its line, and a file with a fault does not land.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

from corpus.codes import system_of
from corpus.importers.front_matter import FrontMatter, read_front_matter
from corpus.importers.markdown_blocks import Block, blocks
from corpus.importers.result import Collector, ImportRefused, ImportResult
from corpus.importers.text import decode, read_bytes, strip_invisible, unusable

Report = Callable[[int | None, str], None]


@dataclass(frozen=True, slots=True)
class _Bulletin:
    """One checked file. `shared` holds what every version of a policy must agree on."""

    file: str
    front: FrontMatter
    clauses: list[dict[str, Any]]


def import_markdown(path: Path, payer_id: str | None = None) -> ImportResult:
    """Import one Markdown file, or every `*.md` directly in a folder. `payer_id` fills in for front matter without one.

    Policies come sorted by id, versions by their start. Raises `ImportRefused` when there is nothing to read.
    """
    files = sorted(path.glob("*.md")) if path.is_dir() else [path]
    if not files:
        raise ImportRefused(f"{path.name}: the folder holds no *.md file")
    found = Collector(path.name)
    bulletins = []
    for file in files:
        found.records += 1
        found.file = file.name
        bulletin = _read(file, payer_id, found)
        if bulletin is not None:
            bulletins.append(bulletin)
    documents, landed = _assemble(bulletins, found)
    found.file = path.name
    return found.result(documents, landed)


def _read(file: Path, payer_id: str | None, found: Collector) -> _Bulletin | None:
    before = len(found.faults)
    label = file.stem

    def fault(line: int | None, message: str) -> None:
        found.fault(line, label, message)

    try:
        text = decode(read_bytes(file), file.name)
    except ImportRefused as error:
        fault(None, str(error))
        return None
    reason = unusable(text)
    if reason is not None:
        fault(None, reason)
        return None
    text, hidden = strip_invisible(text)
    front, body, first_line = read_front_matter(text, payer_id, fault)
    label = front.policy_id or label
    if hidden:
        found.warn(None, label, f"{hidden} invisible character(s) removed")
    read = blocks(body, first_line, fault, warn=lambda line, message: found.warn(line, label, message))
    clauses = _clauses(read, front, fault)
    if not clauses and len(found.faults) == before:
        fault(first_line, "no clause: write at least one paragraph below the front matter")
    found.faults[before:] = sorted(found.faults[before:], key=lambda one: one.line or 0)
    return _Bulletin(file.name, front, clauses) if len(found.faults) == before else None


def _clauses(read: list[Block], front: FrontMatter, fault: Report) -> list[dict[str, Any]]:
    """Clauses in order. Those without an id of their own are numbered C1, C2, ... around the ids that are taken."""
    taken: dict[str, int] = {}
    for block in read:
        if block.clause_id is not None and block.clause_id in taken:
            fault(block.line, f"clause id {block.clause_id} is taken by the clause of line {taken[block.clause_id]}")
        elif block.clause_id is not None:
            taken[block.clause_id] = block.line
    free = (f"C{number}" for number in range(1, len(read) + len(taken) + 1) if f"C{number}" not in taken)
    clauses = []
    for block in read:
        clause: dict[str, Any] = {"id": block.clause_id or next(free), "section": block.section or "Statement"}
        if block.codes:
            check_codes(block.codes, block.line, fault)
            beyond = [code for code in block.codes if code not in front.codes]
            if beyond:
                fault(block.line, f"codes {', '.join(beyond)} are not among the codes of the front matter")
            clause["codes"] = list(block.codes)
        elif front.codes:
            clause["codes"] = list(front.codes)
        clauses.append({**clause, "text": block.text, "criterion": block.criterion})
    return clauses


def check_codes(codes: tuple[str, ...], line: int | None, fault: Report) -> None:
    """List every code that has not the shape of a procedure code."""
    for code in codes:
        if system_of(code) not in {"CPT", "HCPCS"}:
            fault(line, f"{code!r} is not a CPT or HCPCS code (5 characters, upper case, no modifier)")


def _assemble(bulletins: list[_Bulletin], found: Collector) -> tuple[list[dict[str, Any]], int]:
    """Documents from checked files, and how many files landed in them."""
    by_id: dict[str, list[_Bulletin]] = {}
    for bulletin in bulletins:
        by_id.setdefault(str(bulletin.front.policy_id), []).append(bulletin)
    documents: list[dict[str, Any]] = []
    landed = 0
    for policy_id in sorted(by_id):
        family = sorted(by_id[policy_id], key=lambda one: (one.front.effective_start or date.max, one.file))
        reason = _disagreement(family)
        if reason is not None:
            for bulletin in family:
                found.file = bulletin.file
                found.fault(None, policy_id, reason)
            continue
        landed += len(family)
        documents.append(_rider(family[0]) if family[0].front.plan_id else _policy(family))
    return documents, landed


def _disagreement(family: list[_Bulletin]) -> str | None:
    first = family[0].front
    names = ", ".join(bulletin.file for bulletin in family)
    if len(family) > 1 and any(bulletin.front.plan_id for bulletin in family):
        return f"a rider has one version, and {names} share its id"
    versions = [bulletin.front.version for bulletin in family]
    if len(set(versions)) < len(versions):
        return f"{names} give the same version twice"
    for key in ("title", "payer_id", "doc_type", "codes_linkage"):
        if any(getattr(bulletin.front, key) != getattr(first, key) for bulletin in family):
            return f"{names} differ in {key}; every version of a policy has the same"
    return None


def _policy(family: list[_Bulletin]) -> dict[str, Any]:
    front = family[-1].front
    return {
        "policy": {
            "policy_id": front.policy_id,
            "title": front.title,
            "doc_type": front.doc_type,
            "payer_id": front.payer_id,
            "codes": sorted({code for bulletin in family for code in bulletin.front.codes}),
            "codes_linkage": front.codes_linkage,
            "jurisdiction": sorted({place for bulletin in family for place in bulletin.front.jurisdiction}),
            "versions": [_version(bulletin) for bulletin in family],
        }
    }


def _version(bulletin: _Bulletin) -> dict[str, Any]:
    front = bulletin.front
    return {"version": front.version, **_window(front, bulletin.file), "clauses": bulletin.clauses}


def _window(front: FrontMatter, file: str) -> Mapping[str, Any]:
    return {
        "effective_start": front.effective_start,
        "effective_end": front.effective_end,
        "date_state": "DATED" if front.effective_start else "UNDATED",
        "implementation_date": front.implementation_date,
        "retirement_date": front.retirement_date,
        "window_provenance": "posted",
        "source_ref": front.source_ref or file,
        **({"gap_after": front.gap_after} if front.gap_after else {}),
    }


def _rider(bulletin: _Bulletin) -> dict[str, Any]:
    front = bulletin.front
    return {
        "rider": {
            "rider_id": front.policy_id,
            "title": front.title,
            "payer_id": front.payer_id,
            "plan_id": front.plan_id,
            "overrides_policy_ids": list(front.overrides_policy_ids),
            **_window(front, bulletin.file),
            "clauses": bulletin.clauses,
        }
    }
