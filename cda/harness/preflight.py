"""Pre-flight: the request is put in order, judged and cleaned before anything reads it; a bad one halts by its field.

Order: hidden characters out, identifiers redacted, injected spans flagged; ids and codes in one form; each field scored
(0.0 empty, 0.85 present but not checkable, 1.00 valid, 0.60 invalid; a given OCR confidence lowers it); then the
halts, first match wins. No halt repeats what the request holds, except a well-formed code or fact name, which
identifies nobody.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date

from cda.contracts.dates import parse_day
from cda.contracts.decision import CoverageRequest, InjectionFlag, Preflight, Redaction
from cda.contracts.policy_tools import Directory, Plan
from cda.harness.codes import Codes, read_codes, read_diagnoses
from cda.harness.halts import FLOOR, HaltInput, first_halt
from cda.harness.injection import FieldName, find_injections, visible
from cda.harness.reasoner import FactCheck
from cda.harness.redaction import redact

EMPTY, PRESENT, INVALID, VALID = 0.0, 0.85, 0.60, 1.0
_TEXTS: tuple[FieldName, FieldName] = ("narrative", "question")
__all__ = ["FLOOR", "Checked", "check"]


@dataclass(frozen=True, slots=True)
class Checked:
    """The request as every later step sees it, and what pre-flight found.

    codes: the known procedure codes, in order, once each. order: the label of every line, known or not. unknown_codes:
    label and reason of those that are not. `as_of` is set unless the date is what halted. notes: shown, without effect.
    """

    request: CoverageRequest
    preflight: Preflight
    as_of: date | None
    plan: Plan | None
    codes: tuple[str, ...]
    order: tuple[str, ...]
    unknown_codes: tuple[tuple[str, str], ...]
    notes: tuple[str, ...]


def check(
    request: CoverageRequest, *, directory: Directory, fact_check: FactCheck | None = None, today: date | None = None
) -> Checked:
    """Judge and clean one request. `today` bounds far-future dates (None: no bound). Raises what `directory` raises."""
    payer_id, plan = request.payer_id.strip().upper(), _plan(request, directory)
    codes = read_codes(request.procedure_codes, directory)
    diagnoses = read_diagnoses(request.diagnosis_codes, directory)
    as_of = _day(request.as_of_date)
    texts, flags, redactions = _clean(
        request, keep=(*codes.known, *diagnoses.known, payer_id, request.plan_id or ""), as_of=as_of
    )
    cleaned = request.model_copy(
        update={
            "payer_id": payer_id,
            "plan_id": plan.plan_id if plan else None,
            "procedure_codes": codes.order,
            "diagnosis_codes": diagnoses.known,
            **texts,
        }
    )
    payers = directory.payers()
    own = _scores(request, payer_id, plan, codes, dated=as_of is not None, payers=payers)
    halt = first_halt(HaltInput(request, payer_id, plan, codes, own, payers, today), fact_check)
    scores = _lowered(own, request.field_confidence or {})
    return Checked(
        request=cleaned,
        preflight=Preflight(field_confidence=scores, redactions=redactions, injection_flags=flags, halt_reason=halt),
        as_of=as_of,
        plan=plan,
        codes=codes.known,
        order=codes.order,
        unknown_codes=codes.unknown,
        notes=(*codes.notes, *diagnoses.notes),
    )


def _clean(
    request: CoverageRequest, keep: tuple[str, ...], as_of: date | None
) -> tuple[dict[str, str], tuple[InjectionFlag, ...], tuple[Redaction, ...]]:
    seen = {field: visible(getattr(request, field)) for field in _TEXTS}
    redacted = redact({field: text for field, (text, _) in seen.items()}, keep=keep, as_of=as_of)
    flags: list[InjectionFlag] = []
    for field in _TEXTS:
        hidden_at = seen[field][1]
        if hidden_at is not None:
            # The characters are gone; the flag marks the place with an empty span.
            place = min(hidden_at, len(redacted.texts[field]))
            flags.append(InjectionFlag(kind="hidden_characters", field=field, start=place, end=place))
        flags += find_injections(redacted.texts[field], field)
    return dict(redacted.texts), tuple(flags), redacted.redactions


def _plan(request: CoverageRequest, directory: Directory) -> Plan | None:
    named = (request.plan_id or "").strip()
    return (directory.plan(named) or directory.plan(named.upper())) if named else None


def _day(text: str) -> date | None:
    try:
        return parse_day(text)
    except ValueError:
        return None


def _scores(
    request: CoverageRequest, payer_id: str, plan: Plan | None, codes: Codes, *, dated: bool, payers: frozenset[str]
) -> dict[str, float]:
    def score(present: bool, valid: bool | None) -> float:
        return EMPTY if not present else PRESENT if valid is None else VALID if valid else INVALID

    return {
        "payer_id": score(bool(payer_id), payer_id in payers),
        "plan_id": score(bool((request.plan_id or "").strip()), plan is not None and plan.payer_id == payer_id),
        "procedure_codes": score(bool(codes.order), bool(codes.known) and not codes.unknown),
        "as_of_date": score(bool(request.as_of_date), dated),
        "question": score(bool(request.question.strip()), None),
    }


def _lowered(own: Mapping[str, float], given: Mapping[str, float]) -> dict[str, float]:
    """A given confidence can only lower a field's score; fields without a score of their own take it as it is."""
    valid = {
        field: value for field, value in given.items() if field in CoverageRequest.model_fields and 0 <= value <= 1
    }
    return {
        field: min(own.get(field, 1.0), valid.get(field, 1.0)) for field in (*own, *(f for f in valid if f not in own))
    }
