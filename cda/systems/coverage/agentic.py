"""The agentic reasoner: planner, retriever, grader, synthesizer and verifier, over the same harness.

The model proposes the determination and its claims. They are checked like any other by the verifier of the harness,
and the criteria engine computes its own answer from the facts that the rules read: a line on which the two differ goes
to REVIEW with both. The model's verifier sees claims and quotes alone and may only veto.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from cda.agents.answers import MAX_CLAIMS, MAX_CLAUSES, MAX_LINES, ClauseClaim, LineAnswer, ReadFact, Synthesis
from cda.contracts.decision import Claim, Determination, FactEvidence, Outcome
from cda.contracts.facts import Fact, FactDefinition, value_to_json
from cda.contracts.model_client import FailureKind, ModelClient, ModelFailure
from cda.contracts.policy_tools import ClauseView, PolicyTools
from cda.errors import PolicyToolError
from cda.harness.gate import whole_outcome
from cda.harness.quotes import cite
from cda.harness.reasoner import Case, LineReasoned, Reasoned
from cda.harness.retrieval import Grade, grade
from cda.systems.coverage import roles
from cda.systems.coverage.case_tools import CaseTools
from cda.systems.coverage.facts import CaseFacts
from cda.systems.coverage.judge import CriteriaJudge
from cda.systems.coverage.model_facts import parse_given, shown_facts, shown_narrative
from cda.systems.coverage.reasoner import CriteriaReasoner

_OPENING = 90
_FIT = (Grade.RELEVANT, Grade.UNAUTHORED)
_ROOT_WORDS = {
    "covers_if": "coverage criteria",
    "excludes_if": "exclusion",
    "limit": "limit",
    "requires": "requirement",
    "population": "population of the policy",
    "patch": "change by the rider",
    "states": "statement",
    "keeps": "requirement that the rider keeps",
}


@dataclass(frozen=True, slots=True)
class _Proposed:
    """The synthesizer's answer as claims of ours; `doubts` says what of it could not be taken over."""

    lines: Mapping[str, LineAnswer]
    claims: tuple[Claim, ...]
    doubts: tuple[str, ...]


class AgenticReasoner:
    """Decides by the roles of a model, under the engine's veto."""

    name = "agentic"

    def __init__(
        self,
        criteria: CriteriaReasoner,
        facts: CaseFacts,
        definitions: Mapping[str, FactDefinition],
        client: ModelClient,
        tools: PolicyTools,
    ) -> None:
        self._criteria, self._facts, self._definitions = criteria, facts, definitions
        self._client, self._tools = client, tools
        self._judge = CriteriaJudge(definitions)

    def determine(self, case: Case, clauses: Sequence[ClauseView], facts: Mapping[str, Fact]) -> Reasoned:
        """The model's answer; where the engine's differs, or a claim is vetoed, its line says so."""
        if len(case.codes) > MAX_LINES:
            detail = f"{len(case.codes)} codes were asked, and one answer has {MAX_LINES} lines"
            raise ModelFailure(FailureKind.REJECTED, roles.synthesizer().name, detail)
        computed = self._criteria.determine(case, clauses, facts)
        in_hand = self._collected(case, clauses)
        complete, kept = self._graded(case, in_hand)
        proposed = self._synthesized(case, kept)
        doubts = [*proposed.doubts, *self._vetoes(case, proposed.claims, in_hand)]
        doubts += [] if complete else ["model_gap: the grader finds the clauses incomplete"]
        lines = tuple(_line(line, proposed.lines.get(line.code), doubts) for line in computed.lines)
        outcome = whole_outcome(line.outcome for line in lines)
        agreed = outcome is computed.determination.outcome
        told = computed.determination
        determination = Determination(
            outcome=outcome,
            summary=" ".join(f"{line.code}: {line.outcome.value.replace('_', ' ').lower()}." for line in lines),
            claims=proposed.claims,
            confidence=told.confidence,
            gap=(told.gap or self._gap(proposed)) if outcome is Outcome.INSUFFICIENT_EVIDENCE else None,
            missing_facts=told.missing_facts if agreed else (),
            noted_conflicts=told.noted_conflicts,
            would_change=told.would_change if agreed else (),
        )
        return Reasoned(determination, lines)

    def _collected(self, case: Case, clauses: Sequence[ClauseView]) -> dict[str, ClauseView]:
        """What the harness has, and what the retriever finds beside it that is fit to be used."""
        plan = roles.planner().ask(self._client, case.meter, self._question(case))
        box = CaseTools(case, self._tools)
        in_hand = {clause.clause_id: clause for clause in clauses}
        shown = {"queries": plan.queries, "in_hand": list(in_hand)}
        found = roles.retriever().retrieve(self._client, case.meter, shown, box)
        for name in dict.fromkeys((*found.clause_ids, *box.seen)):
            clause = in_hand.get(name) or box.seen.get(name) or self._fetched(name)
            if clause is not None and grade(clause, case) in _FIT:
                in_hand.setdefault(clause.clause_id, clause)
        return in_hand

    def _fetched(self, clause_id: str) -> ClauseView | None:
        try:
            return self._tools.get_clause_by_id(clause_id)
        except PolicyToolError as error:
            if error.code not in ("clause_not_found", "invalid_argument"):
                raise
            return None

    def _graded(self, case: Case, in_hand: Mapping[str, ClauseView]) -> tuple[bool, list[ClauseView]]:
        """The clauses to decide on. What names a requested code and has a criterion stays, whatever its grade."""
        needed = [clause for clause in in_hand.values() if _governs(clause, case)]
        rest = [clause for clause in in_hand.values() if not _governs(clause, case)]
        candidates = [*needed, *rest][:MAX_CLAUSES]
        if not candidates:
            return True, []
        shown = {
            "codes": list(case.codes),
            "plan": case.request.plan_id,
            "as_of": case.as_of.isoformat(),
            "clauses": [{**_heading(clause), "opening": clause.text[:_OPENING]} for clause in candidates],
        }
        grades = roles.grader().ask(self._client, case.meter, shown)
        relevant = set(grades.relevant)
        kept = [clause for clause in candidates if clause.clause_id in relevant or _governs(clause, case)]
        return grades.complete, kept

    def _synthesized(self, case: Case, clauses: Sequence[ClauseView]) -> _Proposed:
        request = case.request
        given = {name: value for name, value in (request.facts or {}).items() if value is not None}
        shown = {
            **self._question(case),
            "clauses": [
                {
                    **_heading(clause),
                    **({"overrides": list(clause.overrides_policy_ids)} if clause.overrides_policy_ids else {}),
                    "text": clause.text,
                    "criterion": clause.criterion,
                }
                for clause in clauses
            ],
            "facts": shown_facts(self._facts.needed(case, clauses), self._definitions),
            "given": given,
            "narrative": shown_narrative(request.narrative, case.fences),
        }
        answer = roles.synthesizer().ask(self._client, case.meter, shown)
        return self._proposed(case, answer)

    def _question(self, case: Case) -> dict[str, Any]:
        request = case.request
        return {
            "payer": request.payer_id,
            "plan": request.plan_id,
            "codes": list(case.codes),
            "diagnoses": list(request.diagnosis_codes),
            "as_of": case.as_of.isoformat(),
        }

    def _proposed(self, case: Case, answer: Synthesis) -> _Proposed:
        """The claims as the harness checks them: quotes are the clauses' own, evidence is the answer's."""
        evidence: list[FactEvidence | None] = []
        doubts = []
        for read in answer.facts:
            try:
                evidence.append(self._evidence(case, read))
            except ValueError as error:
                evidence.append(None)
                doubts.append(f"model_unfounded: a fact that the answer rests on does not stand: {error}")
        named = [line.code for line in answer.lines]
        if len(set(named)) < len(named) or set(named) - set(case.codes):
            doubts.append("model_unfounded: the answer has two lines for one code, or one for a code nobody asked")
        claims = []
        for claim in answer.claims:
            clause = self._fetched(claim.clause)
            used = [evidence[place] if 0 <= place < len(evidence) else None for place in claim.facts]
            if clause is None or None in used:
                why = "a clause that does not exist" if clause is None else "a fact that does not stand"
                doubts.append(f"model_unfounded: a claim rests on {why}")
                continue
            claims.append(_claim(claim, clause, tuple(piece for piece in used if piece is not None)))
        return _Proposed({line.code: line for line in answer.lines}, tuple(claims), tuple(dict.fromkeys(doubts)))

    def _evidence(self, case: Case, read: ReadFact) -> FactEvidence:
        if read.fact not in self._definitions:
            raise ValueError("no fact of its name is defined")
        value = value_to_json(parse_given(read.value, read.unit, self._definitions[read.fact]))
        if not read.quote:
            if (case.request.facts or {}).get(read.fact) is None:
                raise ValueError("it has no quote, and the request does not state it")
            return FactEvidence(fact=read.fact, value=value)
        start = shown_narrative(case.request.narrative, case.fences).find(read.quote)
        if start < 0:
            raise ValueError("its quote is not in the narrative")
        return FactEvidence(fact=read.fact, value=value, quote=read.quote, start=start, end=start + len(read.quote))

    def _vetoes(self, case: Case, claims: Sequence[Claim], clauses: Mapping[str, ClauseView]) -> list[str]:
        """Whether each quote says what its claim ascribes to it, judged by a model that sees nothing else."""
        statements = []
        for number, claim in enumerate(claims[:MAX_CLAIMS], 1):
            clause = clauses.get(claim.citation.clause_id)
            words = self._judge.words(case, clause, claim.criterion or "") if clause is not None else None
            if words is not None:
                statements.append({"n": number, "statement": words, "quote": claim.citation.quote})
        if not statements:
            return []
        entailed = roles.verifier().ask(self._client, case.meter, {"claims": statements}).entailed
        refused = [row["n"] for row in statements if row["n"] not in entailed]
        return [f"model_veto: the quote of claim {number} does not say what is claimed" for number in refused]

    def _gap(self, proposed: _Proposed) -> str:
        names = dict.fromkeys(name for line in proposed.lines.values() for name in line.missing)
        labels = [self._definitions[name].label for name in names if name in self._definitions]
        return f"the model finds it open: {', '.join(labels)}" if labels else "the model finds the evidence open"


def _governs(clause: ClauseView, case: Case) -> bool:
    return clause.criterion is not None and bool(set(clause.codes) & set(case.codes))


def _heading(clause: ClauseView) -> dict[str, Any]:
    return {
        "id": clause.clause_id,
        "kind": clause.doc_type,
        "section": clause.section,
        "codes": list(clause.codes),
    }


def _claim(claim: ClauseClaim, clause: ClauseView, evidence: tuple[FactEvidence, ...]) -> Claim:
    root, _, rest = claim.path.partition(".")
    words = _ROOT_WORDS.get(root, "criterion")
    said = f"{'part of the ' if rest else ''}{words}: {claim.status.replace('_', ' ')}"
    return Claim(text=said, citation=cite(clause), criterion=claim.path, status=claim.status, evidence=evidence)


def _line(computed: LineReasoned, proposed: LineAnswer | None, doubts: Sequence[str]) -> LineReasoned:
    if proposed is None:
        doubt = f"model_bad_answer: no line of the answer is for {computed.code}"
        return replace(computed, review_reasons=(*computed.review_reasons, doubt, *doubts))
    if proposed.outcome == computed.outcome.value:
        return replace(computed, review_reasons=(*computed.review_reasons, *doubts))
    differ = f"model_disagrees: the model says {proposed.outcome}, the criteria give {computed.outcome.value}"
    return LineReasoned(
        code=computed.code,
        outcome=Outcome(proposed.outcome),
        notes=computed.notes,
        prior_authorization=computed.prior_authorization,
        review_reasons=(*computed.review_reasons, differ, *doubts),
        refusal=f"model: it finds {computed.code} open" if proposed.outcome == "INSUFFICIENT_EVIDENCE" else None,
    )
