"""The rules of a planted fault: its request, its clause, and whether the fault can be what it says it is.

What a step does is not computed: only that the case is about a thing the corpus has and the step could see.
"""

from collections.abc import Iterator

from evals.case_model import VerifierCase
from evals.corpus_view import CorpusView
from evals.validation.finding import Broken
from evals.validation.requests import day_of, halting_fields


def planted_faults(case: VerifierCase, view: CorpusView) -> Iterator[Broken]:
    """Every rule that the case breaks."""
    kind, _, name = case.caught_by.partition(".")
    halting = halting_fields(case.request, view)
    if not case.rationale.strip():
        yield "rationale", "say in a sentence what is wrong with the answer"
    if kind == "halt":
        if name not in halting:
            yield "halt_passes", f"{name} is in order, so nothing halts for it"
        if case.expected_gate != "HALT":
            yield "outcome_and_gate", "a halt gives HALT"
        return
    if halting:
        yield "halts", f"{', '.join(sorted(halting))} cannot pass pre-flight, so the answer is never seen"
    if case.answer is None:
        return
    if kind == "verifier":
        yield from _claim(case, name, view)
        if case.expected_gate != "REVIEW":
            yield "outcome_and_gate", "a failed check gives REVIEW"
    if not case.caught_by and case.expected_gate not in ("DETERMINE", "REFUSE"):
        yield "outcome_and_gate", "a sound control is issued or refused"
    for claim in case.answer.claims:
        for piece in claim.evidence:
            if piece.fact not in view.facts:
                yield "evidence_fact", f"no fact has the name {piece.fact}"


def _claim(case: VerifierCase, step: str, view: CorpusView) -> Iterator[Broken]:
    """The named claim shows the fault: the corpus says of its clause what fits this step and no earlier one."""
    answer, day = case.answer, day_of(case.request.as_of_date)
    if answer is None or day is None or not 0 <= case.claim < len(answer.claims):
        yield "claim", f"there is no claim {case.claim}; claims are counted from 0"
        return
    claim = answer.claims[case.claim]
    clause = view.clauses.get(claim.clause_id)
    if (step == "exists") != (clause is None):
        yield "fault", f"{claim.clause_id} {'is no' if clause is None else 'is a'} clause, which does not fit {step}"
        return
    if clause is None:
        return
    whole = claim.quote is None or claim.quote in clause.text
    shifted = claim.clause_sha256 is not None or claim.start is not None
    if (step == "quote_verbatim") != (not whole or shifted):
        yield "fault", f"the quote of {claim.clause_id} does not fit {step}"
    if step == "quote_whole" and (claim.quote is None or claim.quote == clause.text):
        yield "fault", "the quote is the whole clause"
    if step in ("in_effect_on_as_of", "governs_request", "supports_claim"):
        yield from _dated(case, step, view)


def _dated(case: VerifierCase, step: str, view: CorpusView) -> Iterator[Broken]:
    assert case.answer is not None
    day, clause_id = day_of(case.request.as_of_date), case.answer.claims[case.claim].clause_id
    clause = view.clauses[clause_id]
    in_effect = day is not None and clause.in_effect(day)
    if in_effect == (step == "in_effect_on_as_of"):
        yield "fault", f"{clause_id} is {'' if in_effect else 'not '}in effect on {day}, which does not fit {step}"
    elif step != "in_effect_on_as_of" and day is not None:
        asked = case.request
        governs = any(clause_id in view.governing(asked.payer_id, asked.plan_id, c, day) for c in asked.procedure_codes)
        if governs == (step == "governs_request"):
            yield "fault", f"{clause_id} {'governs' if governs else 'does not govern'} the request, unlike {step}"
