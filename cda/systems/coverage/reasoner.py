"""The criteria reasoner: clauses and facts in, a determination out, with a claim for every criterion it rests on.

It writes no prose of its own about a patient: a claim's text is the criterion in plain words and what the chart gives
for it; the quote is the clause, whole.
"""

from collections.abc import Iterator, Mapping, Sequence

from cda.contracts.decision import (
    CONSERVATIVE_OUTCOMES,
    Claim,
    Determination,
    FactEvidence,
    NotedConflict,
    Outcome,
)
from cda.contracts.facts import Fact, FactDefinition, FactState
from cda.contracts.policy_tools import ClauseView
from cda.criteria.citing import Deciding
from cda.criteria.conflicts import SourceConflict
from cda.criteria.derive import Derivations, is_derived
from cda.criteria.evaluate import Node
from cda.criteria.line import LineEvaluation, decide_line, facts_needed
from cda.criteria.rules import Role
from cda.harness.quotes import cite
from cda.harness.reasoner import Case, LineReasoned, Reasoned
from cda.systems.coverage.evidence import evidence_of
from cda.systems.coverage.roots import ROOTS
from cda.systems.coverage.wording import REFUSALS, conflict_text, headline

ROOT_WORDS = {
    Role.COVERS: "coverage criteria",
    Role.EXCLUDES: "exclusion",
    Role.LIMIT: "limit",
    Role.REQUIRES: "requirement",
    Role.SCOPE: "population of the policy",
    Role.INDIVIDUAL: "individual consideration",
    Role.KEEPS: "requirement that the rider keeps",
    Role.WAIVES: "waiver by the rider",
    Role.REPLACES_LIMIT: "limit set by the rider",
    Role.ADDS: "requirement added by the rider",
    Role.NOT_AUTHORED: "clause without authored criteria",
}
CONFIDENCE_STATED = 0.95
CONFIDENCE_PRESUMED = 0.9


class CriteriaReasoner:
    """Decides by criteria as data. Deterministic; reads no text."""

    name = "criteria"

    def __init__(self, definitions: Mapping[str, FactDefinition]) -> None:
        self._definitions = definitions

    def evaluate(
        self, case: Case, clauses: Sequence[ClauseView], facts: Mapping[str, Fact]
    ) -> tuple[LineEvaluation, ...]:
        """One evaluation a code, in the order asked."""
        return tuple(
            decide_line(
                procedure_code=code,
                clauses=clauses,
                definitions=self._definitions,
                facts=facts,
                diagnosis_codes=case.request.diagnosis_codes,
                as_of=case.as_of,
                plan_id=case.request.plan_id,
                payer_id=case.request.payer_id,
            )
            for code in case.codes
        )

    def determine(self, case: Case, clauses: Sequence[ClauseView], facts: Mapping[str, Fact]) -> Reasoned:
        """Answer every code; the whole takes the most conservative line's outcome, claims come in the lines' order."""
        lines = self.evaluate(case, clauses, facts)
        texts = {clause.clause_id: clause for clause in clauses}
        worst = min(lines, key=lambda line: CONSERVATIVE_OUTCOMES.index(line.outcome))
        claims = [claim for line in lines for claim in self._claims(line, texts)]
        conflicts = [conflict for line in lines for conflict in self._conflicts(line, case, clauses)]
        open_lines = [line for line in lines if line.outcome is Outcome.INSUFFICIENT_EVIDENCE]
        determination = Determination(
            outcome=worst.outcome,
            summary=" ".join(headline(line, case.as_of) for line in lines),
            claims=_distinct(claims),
            confidence=min(_confidence(line) for line in lines),
            gap="; ".join(REFUSALS[line.reason](line) for line in open_lines) or None,
            missing_facts=tuple(missing for line in lines for missing in line.missing),
            noted_conflicts=tuple(dict.fromkeys(conflicts)),
            would_change=worst.flips,
        )
        return Reasoned(determination, tuple(self._line(line, case, clauses) for line in lines))

    def _line(self, line: LineEvaluation, case: Case, clauses: Sequence[ClauseView]) -> LineReasoned:
        reviews = [
            f"{kind}: {conflict_text(conflict)}"
            for conflict in line.source_conflicts
            for kind in _review_kinds(conflict)
        ]
        reviews += [f"fact_conflict: {self._contradiction(name)}" for name in self._contradicted(line, case, clauses)]
        refusal = None
        if line.outcome is Outcome.INSUFFICIENT_EVIDENCE:
            refusal = f"{line.reason}: {REFUSALS[line.reason](line)}"
        return LineReasoned(
            code=line.procedure_code,
            outcome=line.outcome,
            prior_authorization=line.prior_authorization,
            review_reasons=tuple(reviews),
            refusal=refusal,
        )

    def _contradicted(self, line: LineEvaluation, case: Case, clauses: Sequence[ClauseView]) -> list[str]:
        """The contradicted facts that this code's own clauses can use: another code's do not concern it."""
        found = sorted(name for name, fact in line.facts.items() if fact.state is FactState.CONFLICT)
        if not found:
            return []
        used = facts_needed(
            procedure_code=line.procedure_code,
            clauses=clauses,
            definitions=self._definitions,
            as_of=case.as_of,
            plan_id=case.request.plan_id,
            payer_id=case.request.payer_id,
        )
        return [name for name in found if name in used]

    def _contradiction(self, name: str) -> str:
        return f"{self._definitions[name].label} ({name}): the chart contradicts itself"

    def _conflicts(self, line: LineEvaluation, case: Case, clauses: Sequence[ClauseView]) -> Iterator[NotedConflict]:
        for conflict in line.source_conflicts:
            yield NotedConflict(
                kind="source",
                text=conflict_text(conflict),
                clause_ids=(conflict.clause_id, *conflict.contradicts),
                changes_answer=conflict.needs_review,
            )
        for name in self._contradicted(line, case, clauses):
            why = line.facts[name].why
            text = self._contradiction(name) + (f"; {why}" if why else "")
            yield NotedConflict(kind="fact", text=text, changes_answer=True)

    def _claims(self, line: LineEvaluation, texts: Mapping[str, ClauseView]) -> Iterator[Claim]:
        # A clause that sends the member here names another code: it is told as a conflict and supports nothing.
        lower = [found for found in line.source_conflicts if found.needs_review and found.kind == "lower_source"]
        against = {clause_id for conflict in lower for clause_id in conflict.contradicts}
        shown = list(line.deciding)
        shown += [entry for entry in line.considered if entry.clause_id in against]
        for entry in dict.fromkeys(shown):
            yield from _clause_claims(entry, texts[entry.clause_id], line, self._definitions)
        for conflict in lower:
            yield _stated(texts[conflict.clause_id])


def _review_kinds(conflict: SourceConflict) -> Iterator[str]:
    """Why a person has to look at a conflict of sources: what it does to the answer, and that somebody leaned on it."""
    if conflict.kind == "routed_here":
        yield "routed_here"
        return
    if conflict.would_change and not conflict.settled_by_rider:
        yield "source_conflict"
    if conflict.relied:
        yield "relied_on_lower_source"


def _clause_claims(
    entry: Deciding, clause: ClauseView, line: LineEvaluation, definitions: Mapping[str, FactDefinition]
) -> Iterator[Claim]:
    """The clause as a whole, then each of its own leaves."""
    facts = line.facts
    root = ROOTS[entry.role]
    if not _waived_elsewhere(entry):
        yield _claim(clause, ROOT_WORDS[entry.role], root, entry.tree, _evidence(entry.tree, facts, definitions))
    if entry.role in (Role.WAIVES, Role.REPLACES_LIMIT, Role.KEEPS, Role.INDIVIDUAL, Role.NOT_AUTHORED):
        return
    for node in entry.tree.walk():
        if node.kind in ("leaf", "elapsed", "diagnosis") and node.path != root and _own(node, entry):
            yield _claim(clause, node.label, node.path, node, _evidence(node, facts, definitions))


def _own(node: Node, entry: Deciding) -> bool:
    """True for a leaf of this clause's own words; what a rider added is shown under the rider."""
    added = {below.path for part in entry.tree.walk() if part.kind == "added" for below in part.walk()}
    return node.path not in added or entry.role is Role.ADDS


def _waived_elsewhere(entry: Deciding) -> bool:
    """True when the clause counts as it does only through a rider, whose own claim then stands for the whole."""
    by_rider = [part for part in entry.tree.walk() if part.kind in ("waived", "added")]
    return bool(by_rider) and entry.role in (Role.COVERS, Role.REQUIRES, Role.LIMIT)


def _claim(clause: ClauseView, words: str, path: str | None, node: Node, evidence: tuple[FactEvidence, ...]) -> Claim:
    status = node.truth.word if node.presumption is None else "presumed"
    return Claim.model_validate(
        {
            "text": f"{words}: {status.replace('_', ' ')}",
            "citation": cite(clause),
            "criterion": path,
            "status": status,
            "evidence": evidence,
        }
    )


def _stated(clause: ClauseView) -> Claim:
    return Claim(text="lower source that says otherwise", citation=cite(clause), criterion="states", status="met")


def _evidence(
    tree: Node, facts: Mapping[str, Fact], definitions: Mapping[str, FactDefinition]
) -> tuple[FactEvidence, ...]:
    """The known facts of the tree; a derived one brings those that it follows from."""
    names: dict[str, None] = {}
    for node in tree.walk():
        fact = facts.get(node.fact or "")
        if fact is None:
            continue
        names[fact.name] = None
        if is_derived(fact):
            sources = sorted(Derivations(definitions, [fact.name]).facts)
            names |= dict.fromkeys(name for name in sources if name in facts)
    return tuple(item for name in names for item in evidence_of(facts[name]))


def _confidence(line: LineEvaluation) -> float:
    return CONFIDENCE_PRESUMED if line.presumed else CONFIDENCE_STATED


def _distinct(claims: Sequence[Claim]) -> tuple[Claim, ...]:
    """Each claim once: two codes of one policy rest on the same clauses."""
    if len({(claim.citation.clause_id, claim.criterion, claim.text) for claim in claims}) == len(claims):
        return tuple(claims)
    return tuple({claim.model_dump_json(): claim for claim in claims}.values())
