"""The front matter of a Markdown bulletin: a YAML block between two `---` lines, every key checked."""

import difflib
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from typing import Any

from corpus.codes import system_of
from corpus.importers.text import POLICY_ID, iso_date
from corpus.model import DocType
from corpus.yaml_lines import Lined, documents

Report = Callable[[int | None, str], None]

REQUIRED = ("policy_id", "title", "payer_id", "version", "effective_start")
DATES = ("effective_start", "effective_end", "implementation_date", "retirement_date")
TEXTS = ("policy_id", "title", "payer_id", "version", "doc_type", "plan_id", "codes_linkage", "source_ref", "gap_after")
LISTS = ("codes", "jurisdiction", "overrides_policy_ids")
KEYS = (*TEXTS, *DATES, *LISTS)
UNKNOWN_DATE = "unknown"


@dataclass(frozen=True, slots=True)
class FrontMatter:
    """What the front matter says. A missing or faulty key is None or empty here, after it was listed."""

    policy_id: str | None = None
    title: str | None = None
    payer_id: str | None = None
    version: str | None = None
    doc_type: str = DocType.BULLETIN.value
    plan_id: str | None = None
    codes_linkage: str = "policy"
    source_ref: str | None = None
    gap_after: str | None = None
    effective_start: date | None = None
    effective_end: date | None = None
    implementation_date: date | None = None
    retirement_date: date | None = None
    codes: tuple[str, ...] = ()
    jurisdiction: tuple[str, ...] = ()
    overrides_policy_ids: tuple[str, ...] = ()


def read_front_matter(text: str, payer_id: str | None, fault: Report) -> tuple[FrontMatter, str, int]:
    """The front matter, the body below it, and the body's first line number. Everything wrong goes to `fault`."""
    lines = text.split("\n")
    if lines[0].strip() != "---":
        fault(1, "no front matter: the first line must be --- and the keys follow, down to the next ---")
        return FrontMatter(), text, 1
    end = next((number for number, line in enumerate(lines[1:], start=1) if line.strip() == "---"), None)
    if end is None:
        fault(1, "the front matter is not closed by a line ---")
        return FrontMatter(), "", len(lines)
    # an empty first line keeps the line numbers of the block equal to those of the file
    block = _block("\n" + "\n".join(lines[1:end]), fault)
    values = _values(block, fault)
    _check_payer(values, payer_id, block, fault)
    for key in REQUIRED:
        # a rider's version is fixed
        if key not in block and key not in values and not (key == "version" and "plan_id" in block):
            fault(1, f"{key} is missing{_DATE_ADVICE if key == 'effective_start' else ''}")
    _check_together(values, block, fault)
    return FrontMatter(**values), "\n".join(lines[end + 1 :]), end + 2


_DATE_ADVICE = "; write `effective_start: unknown` when it is not known (such a policy is in effect on no date)"


def _block(block: str, fault: Report) -> Lined:
    try:
        found, faults = next(documents(block), (None, []))
    except RecursionError:
        found, faults = None, [(1, "is nested without end")]
    for line, message in faults:
        fault(line, f"front matter: {message}")
    if isinstance(found, Lined):
        return found
    if not faults:
        fault(1, "the front matter holds no keys")
    return Lined(1)


def _values(block: Lined, fault: Report) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for key, value in block.items():
        line = block.lines.get(key)
        if key not in KEYS:
            near = difflib.get_close_matches(key, KEYS, n=1)
            fault(line, f"unknown key {key!r}; {f'did you mean {near[0]}?' if near else 'see the guide for the keys'}")
        elif value is None:
            continue
        elif key in LISTS:
            values[key] = _list(key, value, line, fault)
        elif isinstance(value, (dict, list, bool)):
            fault(line, f"{key} must be one value, without nesting")
        elif key in DATES:
            values[key] = _date(key, str(value), line, fault)
        else:
            values[key] = " ".join(str(value).split())
    return values


def _list(key: str, value: Any, line: int | None, fault: Report) -> tuple[str, ...]:
    if isinstance(value, list):
        items = value
    else:  # `codes: A9276, 95249` on one line; a place may hold commas and spaces
        items = [value] if key == "jurisdiction" else str(value).replace(",", " ").split()
    if any(isinstance(item, (dict, list, bool)) or item is None for item in items):
        fault(line, f"{key} must be a plain list")
        return ()
    texts = tuple(" ".join(str(item).split()) for item in items)
    if key == "codes":
        for code in texts:
            if system_of(code) not in {"CPT", "HCPCS"}:
                fault(line, f"codes: {code!r} is not a CPT or HCPCS code (5 characters, upper case, no modifier)")
    if len(set(texts)) < len(texts):
        fault(line, f"{key} names something twice")
    return texts


def _date(key: str, value: str, line: int | None, fault: Report) -> date | None:
    if key == "effective_start" and value == UNKNOWN_DATE:
        return None
    found = iso_date(value)
    if found is None:
        fault(line, f"{key}: {value!r} is not a date of the form YYYY-MM-DD")
    return found


def _check_payer(values: dict[str, Any], payer_id: str | None, block: Lined, fault: Report) -> None:
    stated = values.setdefault("payer_id", payer_id) if payer_id else values.get("payer_id")
    if payer_id and stated != payer_id:
        fault(block.lines.get("payer_id"), f"payer_id is {stated}, the command says {payer_id}")


def _check_together(values: dict[str, Any], block: Lined, fault: Report) -> None:
    for key in ("policy_id", "version", "payer_id", "plan_id"):
        value = values.get(key)
        if value is not None and POLICY_ID.fullmatch(value) is None:
            fault(block.lines.get(key), f"{key} must be letters, digits, dot, dash or underscore, at most 64")
    start, end = values.get("effective_start"), values.get("effective_end")
    if start and end and end < start:
        fault(block.lines.get("effective_end"), f"effective_end {end} lies before effective_start {start}")
    if end and "effective_start" in values and start is None and block.get("effective_start") == UNKNOWN_DATE:
        fault(block.lines.get("effective_end"), "effective_end without a known effective_start gives no window")
    kinds = [kind.value for kind in DocType]
    rider = "plan_id" in values
    if rider:
        values["version"] = _fixed(values, "version", "v1", block, fault)
        values["doc_type"] = _fixed(values, "doc_type", DocType.RIDER.value, block, fault)
        if "gap_after" in values:
            fault(block.lines.get("gap_after"), "a rider has one version, no gap can follow it; leave it out")
        if not values.get("overrides_policy_ids"):
            fault(block.lines.get("plan_id"), "a rider (plan_id) must name overrides_policy_ids")
    elif values.get("doc_type") == DocType.RIDER.value:
        fault(block.lines.get("doc_type"), "a plan_rider needs a plan_id")
    elif values.get("doc_type", kinds[0]) not in kinds:
        fault(block.lines.get("doc_type"), f"doc_type must be one of {', '.join(kinds)}")
    if not rider and "overrides_policy_ids" in values:
        fault(block.lines.get("overrides_policy_ids"), "only a rider (plan_id) overrides policies")
    if values.get("codes_linkage", "policy") not in {"policy", "ours"}:
        fault(block.lines.get("codes_linkage"), "codes_linkage must be policy or ours")


def _fixed(values: dict[str, Any], key: str, fixed: str, block: Lined, fault: Report) -> str:
    if values.get(key, fixed) != fixed:
        fault(block.lines.get(key), f"{key} of a rider is always {fixed}; leave it out")
    return fixed
