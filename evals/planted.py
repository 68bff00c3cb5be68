"""Puts a planted answer in a reasoner's place, so that pre-flight, verifier and gate are the real ones.

What is planted is written out by the case; here only places are looked up, by plain string search.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import date
from hashlib import sha256

from cda.contracts.decision import (
    Citation,
    Claim,
    Determination,
    FactEvidence,
    NotedConflict,
    Outcome,
    RunResult,
)
from cda.contracts.facts import Fact
from cda.contracts.policy_tools import ClauseView, PolicyTools
from cda.errors import PolicyToolError
from cda.harness.loop import Parts, RunSettings, run
from cda.harness.reasoner import Case, LineReasoned, Reasoned
from cda.settings import Settings
from cda.systems.coverage.system import CoverageSystem
from evals.case_model import PlantedAnswer, PlantedClaim, PlantedEvidence, VerifierCase
from evals.shipped_corpus import worlds
from evals.suite import Say

TODAY = date(2026, 1, 1)  # bounds the dates that are too far ahead


def planted_parts(cases: Iterable[VerifierCase], settings: Settings, say: Say) -> dict[str, Parts]:
    """The parts of a system over each corpus that the cases name; the empty name is the shipped one."""
    found = worlds(settings, {case.corpus for case in cases}, say)
    return {name: CoverageSystem.open(held, say=say).parts for name, held in found.items()}


def answer_planted(case: VerifierCase, parts: Parts) -> RunResult:
    """What the harness makes of the case's answer, whatever reasoner `parts` has."""
    planted = replace(parts, reasoner=_Planted(case.answer, parts.tools)) if case.answer else parts
    return run(case.request.request(), parts=planted, settings=RunSettings(today=TODAY))


class _Planted:
    name = "planted"

    def __init__(self, answer: PlantedAnswer, tools: PolicyTools) -> None:
        self._answer, self._tools = answer, tools

    def determine(self, case: Case, clauses: Sequence[ClauseView], facts: Mapping[str, Fact]) -> Reasoned:
        """The planted answer."""
        del clauses, facts
        planted = self._answer
        determination = Determination(
            outcome=Outcome(planted.outcome),
            summary=planted.summary,
            claims=tuple(self._claim(claim, case.request.narrative) for claim in planted.claims),
            confidence=planted.confidence,
            gap=planted.gap,
            noted_conflicts=tuple(
                NotedConflict.model_validate(conflict.model_dump()) for conflict in planted.noted_conflicts
            ),
        )
        given = planted.lines or dict.fromkeys(case.codes, planted.outcome)
        lines = tuple(
            LineReasoned(code, Outcome(outcome), review_reasons=planted.review_reasons, refusal=planted.refusal)
            for code, outcome in given.items()
        )
        return Reasoned(determination, lines)

    def _claim(self, claim: PlantedClaim, narrative: str) -> Claim:
        try:
            words = self._tools.get_clause_by_id(claim.clause_id).text
        except PolicyToolError:
            words = ""
        quote = words if claim.quote is None else claim.quote
        start = max(words.find(quote), 0) if claim.start is None else claim.start
        end = start + len(quote) if claim.end is None else claim.end
        hashed = claim.clause_sha256 or sha256(words.encode("utf-8")).hexdigest()
        return Claim(
            text=claim.text,
            citation=Citation(clause_id=claim.clause_id, quote=quote, start=start, end=end, clause_sha256=hashed),
            criterion=claim.criterion,
            status=claim.status,
            evidence=tuple(_shown(piece, narrative) for piece in claim.evidence),
        )


def _shown(piece: PlantedEvidence, narrative: str) -> FactEvidence:
    start, end = piece.start, piece.end
    if start is None and piece.quote:
        start = max(narrative.find(piece.quote), 0)
        end = start + len(piece.quote)
    return FactEvidence(fact=piece.fact, value=piece.value, quote=piece.quote, start=start, end=end)
