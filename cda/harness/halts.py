"""The named halts: why a request must not go on, in order, first match wins. Each begins with the field at fault."""

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date

from cda.contracts.dates import parse_day
from cda.contracts.decision import CoverageRequest
from cda.contracts.policy_tools import Plan
from cda.harness.codes import Codes
from cda.harness.reasoner import FactCheck

# The original's floor, for the mean of the scored fields; ours for each deciding field that came with a confidence.
FLOOR = 0.55
YEARS_AHEAD = 10
_EARLIEST = 1965  # the year of the Medicare act: no policy of the corpus kind is older
_DECIDING = ("payer_id", "plan_id", "procedure_codes", "diagnosis_codes", "as_of_date", "narrative", "facts")
_FACT_NAME = re.compile(r"[a-z][a-z0-9_]{0,63}\Z")


@dataclass(frozen=True, slots=True)
class HaltInput:
    """What the halts are judged on: the request as it came, and what was looked up for it."""

    request: CoverageRequest
    payer_id: str
    plan: Plan | None
    codes: Codes
    scores: Mapping[str, float]
    payers: frozenset[str]
    today: date | None


def first_halt(given: HaltInput, fact_check: FactCheck | None) -> str | None:
    """The first reason to halt, "field: words", or None."""
    return next(_reasons(given, fact_check), None)


def _reasons(given: HaltInput, fact_check: FactCheck | None) -> Iterator[str]:
    yield from _payer_and_plan(given)
    yield from _date(given)
    if not given.codes.order:
        yield "procedure_codes: empty; name at least one procedure code"
    elif not given.codes.known:
        yield "procedure_codes: none is a known code: " + "; ".join(label for label, _ in given.codes.unknown)
    yield from _confidence(given)
    yield from _facts(given.request.facts or {}, fact_check)
    mean = _mean(given)
    if mean < FLOOR:
        yield f"field_confidence: the mean of the fields is {mean:.2f}, below {FLOOR:.2f}"


def _payer_and_plan(given: HaltInput) -> Iterator[str]:
    if not given.payer_id:
        yield "payer_id: empty; name the payer"
    elif given.payer_id not in given.payers:
        yield "payer_id: not a payer of this corpus"
    if not (given.request.plan_id or "").strip():
        return
    if given.plan is None:
        yield "plan_id: not a plan of this corpus"
    elif given.plan.payer_id != given.payer_id:
        yield "plan_id: the plan is another payer's"


def _date(given: HaltInput) -> Iterator[str]:
    text = given.request.as_of_date
    if not text:
        yield "as_of_date: empty; name the day, as YYYY-MM-DD"
        return
    try:
        day = parse_day(text)
    except ValueError as error:
        yield f"as_of_date: {error}"
        return
    if day.year < _EARLIEST:
        yield f"as_of_date: before {_EARLIEST}"
    if given.today is not None and day.year > given.today.year + YEARS_AHEAD:
        yield f"as_of_date: more than {YEARS_AHEAD} years ahead"


def _confidence(given: HaltInput) -> Iterator[str]:
    confidence = given.request.field_confidence or {}
    for field, value in confidence.items():
        if field not in CoverageRequest.model_fields:
            yield "field_confidence: names a field that a request does not have"
        elif not (math.isfinite(value) and 0.0 <= value <= 1.0):
            yield f"field_confidence: the value for {field} is not between 0 and 1"
    for field in _DECIDING:
        value = confidence.get(field, 1.0)
        if value < FLOOR:
            yield f"{field}: was read with confidence {value:.2f}, below {FLOOR:.2f}; give it again"


def _facts(facts: Mapping[str, object], fact_check: FactCheck | None) -> Iterator[str]:
    for place, (name, value) in enumerate(facts.items()):
        label = name if _FACT_NAME.match(name) else f"entry {place + 1}"
        reason = fact_check(name, value) if fact_check else None
        if label != name or reason:
            yield f"facts: {label}: {reason or 'unknown fact name'}"


def _mean(given: HaltInput) -> float:
    confidence = given.request.field_confidence or {}
    lowered = [min(score, confidence.get(field, 1.0)) for field, score in given.scores.items()]
    return sum(lowered) / len(lowered)
