"""The rules of one coverage case: request, label, gold clauses and facts against the corpus."""

from collections.abc import Iterator
from datetime import date

from corpus.model import Clause, DateState
from evals.case_model import CoverageCase
from evals.corpus_view import CorpusView, is_diagnosis
from evals.validation.finding import STRESS, Broken
from evals.validation.requests import day_of, halting_fields, why_not_typed

_POSSIBLE = {
    "COVERED": ("DETERMINE", "REVIEW"),
    "NOT_COVERED": ("DETERMINE", "REVIEW"),
    "INSUFFICIENT_EVIDENCE": ("REFUSE", "REVIEW", "HALT"),
}


def label_faults(case: CoverageCase, view: CorpusView) -> Iterator[Broken]:
    """Every rule that the case breaks by itself."""
    halting = halting_fields(case, view)
    yield from _label(case, view)
    yield from _halt(case, halting)
    yield from _tags(case, view)
    day = day_of(case.as_of_date)
    if case.expected_gate == "HALT" or halting or day is None:
        return  # a request that halts has no clauses to be right about
    yield from _request(case, view)
    for clause_id in case.gold_clause_ids:
        yield from _gold(clause_id, case, view, day)


def _label(case: CoverageCase, view: CorpusView) -> Iterator[Broken]:
    outcome, gate = case.expected_outcome, case.expected_gate
    if gate not in _POSSIBLE[outcome]:
        yield "outcome_and_gate", f"{outcome} never comes with {gate}; it comes with {' or '.join(_POSSIBLE[outcome])}"
    plan = view.plans.get(case.plan_id or "")
    if outcome == "NOT_COVERED" and gate == "DETERMINE" and plan and plan.adverse_to_clinician_review:
        yield "adverse_plan", f"on {plan.plan_id} a clinician issues what is not covered; expect REVIEW"
    if gate == "DETERMINE" and case.plan_id is None:
        yield "no_plan", "without a plan its riders are unknown; name the plan or expect REVIEW"
    if gate == "HALT" and case.gold_clause_ids:
        yield "gold_on_halt", "a halted request cites nothing; leave gold_clause_ids empty"
    if not case.gold_clause_ids and gate in ("DETERMINE", "REVIEW"):
        yield "gold_missing", f"{gate} rests on a clause; name it in gold_clause_ids"
    if len(set(case.gold_clause_ids)) < len(case.gold_clause_ids):
        yield "gold_twice", "a gold clause is named twice; name it once"
    if gate == "REVIEW" and not _reviewable(case, view):
        yield "review_unexplained", "nothing in the case asks for a person; say why in expected_reasons"


def _reviewable(case: CoverageCase, view: CorpusView) -> bool:
    """Whether the case shows why a person must see it: a stated reason, a clinician's plan, a lower source in effect
    (the FAQ may say otherwise), or a fact that the author left open in a refusal."""
    plan = view.plans.get(case.plan_id or "")
    if case.expected_reasons or plan is None or plan.adverse_to_clinician_review:
        return True
    if case.expected_outcome == "INSUFFICIENT_EVIDENCE":
        return "contradictory" in case.stress or None in (case.labelled_facts or {"": None}).values()
    day = day_of(case.as_of_date)
    governing = (
        {i for code in case.procedure_codes for i in view.governing(case.payer_id, case.plan_id, code, day)}
        if day
        else ()
    )
    return any(view.clauses[clause_id].doc_type.authority == 1 for clause_id in governing)


def _halt(case: CoverageCase, halting: frozenset[str]) -> Iterator[Broken]:
    if case.expected_gate == "HALT" and not halting:
        yield (
            "halt_passes",
            "the request is complete, so nothing halts it (words in a chart never do); expect an answer",
        )
    if case.expected_gate != "HALT" and halting:
        yield "halts", f"{', '.join(sorted(halting))} cannot pass pre-flight; correct it or expect HALT"
    if case.expected_halt and case.expected_halt not in halting | {""}:
        yield (
            "halt_field",
            f"{case.expected_halt} is in order; name the field that is not: {', '.join(sorted(halting))}",
        )
    if case.expected_halt and case.expected_gate != "HALT":
        yield "halt_field", "expected_halt is for cases that expect HALT; leave it out"


def _tags(case: CoverageCase, view: CorpusView) -> Iterator[Broken]:
    for name, value in (case.labelled_facts or {}).items():
        if why := why_not_typed(name, value, view):
            yield "labelled_facts", why
    for tag in sorted(set(case.stress) - STRESS):
        yield "stress", f"{tag!r} is no known kind; use one of {', '.join(sorted(STRESS))}"
    if not case.rationale.strip() and not case.case_id.startswith("M-"):
        yield "rationale", "say in a sentence why this is the answer, so that a reader can judge the label"


def _request(case: CoverageCase, view: CorpusView) -> Iterator[Broken]:
    for code in case.procedure_codes:
        if code not in view.codes:
            yield "procedure_code", f"{code} is no code of the corpus; use one of it or expect HALT"
    for code in case.diagnosis_codes:
        if not is_diagnosis(code):
            yield "diagnosis_code", f"{code} is no ICD-10-CM code; correct it"


def _gold(clause_id: str, case: CoverageCase, view: CorpusView, day: date) -> Iterator[Broken]:
    clause = view.clauses.get(clause_id)
    if clause is None:
        yield "gold_exists", f"{clause_id} is no clause of the corpus; correct the id"
        return
    if not clause.in_effect(day):
        yield "gold_in_effect", f"{clause_id} {_window(clause)}, not on {day}; name the version of that day"
    if clause.payer_id != case.payer_id:
        yield "gold_payer", f"{clause_id} is {clause.payer_id}'s, the case is {case.payer_id}'s"
    if clause.plan_id not in (None, case.plan_id):
        yield "gold_plan", f"{clause_id} is a rider on {clause.plan_id}; the case's plan never reaches it"
    governed = [code for code in case.procedure_codes if code in clause.codes]
    if not governed:
        yield "gold_governs", f"{clause_id} governs none of {', '.join(case.procedure_codes)}; name a clause that does"
    elif clause.overrides_policy_ids and not any(_overridden(clause, code, view, day) for code in governed):
        yield "gold_governs", f"{clause_id} overrides no policy that is in effect on {day} for {', '.join(governed)}"
    yield from _decides(clause, case)


def _decides(clause: Clause, case: CoverageCase) -> Iterator[Broken]:
    criterion = clause.criterion or {}
    if case.expected_outcome == "INSUFFICIENT_EVIDENCE":
        if "scope" in criterion and "population" not in criterion:
            yield "gold_decides", f"{clause.clause_id} is a scope clause without a population; it refuses nobody"
        return
    if "scope" in criterion:
        yield (
            "gold_decides",
            f"{clause.clause_id} is a scope clause, and those settle nothing; name the deciding clause",
        )
    elif not criterion or "precedence" in criterion or "states" in criterion:
        yield "gold_decides", f"{clause.clause_id} has no criterion that can settle {case.expected_outcome}"
    elif clause.doc_type.authority == 1:
        yield "gold_decides", f"{clause.clause_id} is of a lower source, which never decides"
    elif "excludes_if" in criterion and case.expected_outcome == "COVERED":
        yield "gold_decides", f"{clause.clause_id} is an exclusion and covers nothing"


def _overridden(rider: Clause, code: str, view: CorpusView, day: date) -> bool:
    return any(
        clause.policy_id in rider.overrides_policy_ids and code in clause.codes and clause.in_effect(day)
        for clause in view.clauses.values()
    )


def _window(clause: Clause) -> str:
    if clause.date_state is not DateState.DATED:
        return f"is {clause.date_state.value} and in effect on no day"
    return f"is in effect {clause.effective_start} to {clause.effective_end or 'open'}"
