"""Whether a request can be answered at all, told from the corpus alone: the fields that must halt it."""

import math
import re
from collections.abc import Iterator, Mapping
from datetime import date
from typing import Any

from evals.case_model import REQUEST_FIELDS, Asked
from evals.corpus_view import CorpusView

FLOOR = 0.55
EARLIEST, LATEST = 1965, 2100
_DAY = re.compile(r"\d{4}-\d{2}-\d{2}\Z", re.ASCII)
# Those whose low confidence halts by itself; the scored ones halt by their mean.
_DECIDING = frozenset(REQUEST_FIELDS) - {"question", "field_confidence"}
_SCORED = ("payer_id", "plan_id", "procedure_codes", "as_of_date", "question")


def day_of(text: str) -> date | None:
    """The day of a YYYY-MM-DD date, or None: no other form is one."""
    if not _DAY.match(text):
        return None
    try:
        return date.fromisoformat(text)
    except ValueError:
        return None


def halting_fields(asked: Asked, view: CorpusView) -> frozenset[str]:
    """The fields for which pre-flight must halt this request; empty when it can be answered."""
    return frozenset(_halting(asked, view))


def _halting(asked: Asked, view: CorpusView) -> Iterator[str]:
    if asked.payer_id not in view.payers:
        yield "payer_id"
    plan = view.plans.get(asked.plan_id) if asked.plan_id else None
    if asked.plan_id and (plan is None or plan.payer_id != asked.payer_id):
        yield "plan_id"
    day = day_of(asked.as_of_date)
    if day is None or not EARLIEST <= day.year <= LATEST:
        yield "as_of_date"
    if not any(code in view.codes for code in asked.procedure_codes):
        yield "procedure_codes"
    for name, value in (asked.facts or {}).items():
        if why_not_typed(name, value, view):
            yield "facts"
    yield from _doubted(asked.field_confidence or {})


def _doubted(confidence: Mapping[str, float]) -> Iterator[str]:
    if any(name not in REQUEST_FIELDS or not math.isfinite(v) or not 0 <= v <= 1 for name, v in confidence.items()):
        yield "field_confidence"
    yield from (name for name, value in confidence.items() if name in _DECIDING and value < FLOOR)
    if sum(min(1.0, confidence.get(name, 1.0)) for name in _SCORED) / len(_SCORED) < FLOOR:
        yield "field_confidence"


def why_not_typed(name: str, value: Any, view: CorpusView) -> str | None:
    """Why a fact's value cannot be one, or None; null is "not stated" and always fits."""
    definition = view.facts.get(name)
    if definition is None:
        return f"no fact has the name {name!r}; see `cda corpus facts`"
    if value is None:
        return None
    kind, values = definition["type"], tuple(definition.get("values") or ())
    if kind == "bool":
        return None if isinstance(value, bool) else f"{name} is true, false or null"
    if kind in ("class", "status"):
        return None if isinstance(value, str) and value in values else f"{name} is one of {', '.join(values)} or null"
    if kind == "date":
        return None if isinstance(value, str) and day_of(value) else f"{name} is a day, YYYY-MM-DD, or null"
    numbers = [v for key, v in value.items() if key in ("lo", "hi")] if isinstance(value, dict) else [value]
    sound = numbers and all(
        isinstance(v, int | float) and not isinstance(v, bool) and math.isfinite(v) for v in numbers
    )
    return None if sound else f"{name} is a number or null"
