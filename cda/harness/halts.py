"""The named halts: why a request must not go on, in order, first match wins. Each begins with the field at fault."""

import math
import re
from collections.abc import Callable, Iterator, Mapping
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

    @property
    def day(self) -> date | None:
        """The as-of date, None when it is no date."""
        try:
            return parse_day(self.request.as_of_date)
        except ValueError:
            return None


def first_halt(given: HaltInput, fact_check: FactCheck | None) -> str | None:
    """The first reason to halt, "field: words", or None."""
    reasons = (reason for halt in HALTS.values() for reason in halt(given, fact_check))
    return next(reasons, None)


def _payer(given: HaltInput, _check: FactCheck | None) -> Iterator[str]:
    if not given.payer_id:
        yield "payer_id: empty; name the payer"
    elif given.payer_id not in given.payers:
        yield "payer_id: not a payer of this corpus"


def _plan_unknown(given: HaltInput, _check: FactCheck | None) -> Iterator[str]:
    if (given.request.plan_id or "").strip() and given.plan is None:
        yield "plan_id: not a plan of this corpus"


def _plan_of_another(given: HaltInput, _check: FactCheck | None) -> Iterator[str]:
    if given.plan is not None and given.plan.payer_id != given.payer_id:
        yield "plan_id: the plan is another payer's"


def _date(given: HaltInput, _check: FactCheck | None) -> Iterator[str]:
    text = given.request.as_of_date
    if not text:
        yield "as_of_date: empty; name the day, as YYYY-MM-DD"
        return
    try:
        parse_day(text)
    except ValueError as error:
        yield f"as_of_date: {error}"


def _date_early(given: HaltInput, _check: FactCheck | None) -> Iterator[str]:
    if given.day is not None and given.day.year < _EARLIEST:
        yield f"as_of_date: before {_EARLIEST}"


def _date_ahead(given: HaltInput, _check: FactCheck | None) -> Iterator[str]:
    if given.day is not None and given.today is not None and given.day.year > given.today.year + YEARS_AHEAD:
        yield f"as_of_date: more than {YEARS_AHEAD} years ahead"


def _codes_empty(given: HaltInput, _check: FactCheck | None) -> Iterator[str]:
    if not given.codes.order:
        yield "procedure_codes: empty; name at least one procedure code"


def _codes_unknown(given: HaltInput, _check: FactCheck | None) -> Iterator[str]:
    if given.codes.order and not given.codes.known:
        yield "procedure_codes: none is a known code: " + "; ".join(label for label, _ in given.codes.unknown)


def _confidence_form(given: HaltInput, _check: FactCheck | None) -> Iterator[str]:
    for field, value in (given.request.field_confidence or {}).items():
        if field not in CoverageRequest.model_fields:
            yield "field_confidence: names a field that a request does not have"
        elif not (math.isfinite(value) and 0.0 <= value <= 1.0):
            yield f"field_confidence: the value for {field} is not between 0 and 1"


def _confidence_low(given: HaltInput, _check: FactCheck | None) -> Iterator[str]:
    confidence = given.request.field_confidence or {}
    for field in _DECIDING:
        value = confidence.get(field, 1.0)
        if value < FLOOR:
            yield f"{field}: was read with confidence {value:.2f}, below {FLOOR:.2f}; give it again"


def _facts(given: HaltInput, check: FactCheck | None) -> Iterator[str]:
    for place, (name, value) in enumerate((given.request.facts or {}).items()):
        label = name if _FACT_NAME.match(name) else f"entry {place + 1}"
        reason = check(name, value) if check else None
        if label != name or reason:
            yield f"facts: {label}: {reason or 'unknown fact name'}"


def _mean(given: HaltInput, _check: FactCheck | None) -> Iterator[str]:
    confidence = given.request.field_confidence or {}
    lowered = [min(score, confidence.get(field, 1.0)) for field, score in given.scores.items()]
    mean = sum(lowered) / len(lowered)
    if mean < FLOOR:
        yield f"field_confidence: the mean of the fields is {mean:.2f}, below {FLOOR:.2f}"


# Every halt by name, in order.
HALTS: dict[str, Callable[[HaltInput, FactCheck | None], Iterator[str]]] = {
    "payer": _payer,
    "plan_unknown": _plan_unknown,
    "plan_of_another": _plan_of_another,
    "date": _date,
    "date_early": _date_early,
    "date_ahead": _date_ahead,
    "codes_empty": _codes_empty,
    "codes_unknown": _codes_unknown,
    "confidence_form": _confidence_form,
    "confidence_low": _confidence_low,
    "facts": _facts,
    "mean": _mean,
}
