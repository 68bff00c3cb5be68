"""The criteria reasoner: clauses and facts in, a determination out, with a claim for every criterion it rests on.

It writes no prose of its own about a patient: a claim's text is the criterion in plain words and what the chart gives
for it; the quote is the clause, whole.
"""

from collections.abc import Iterator, Mapping, Sequence

from cda.contracts.decision import (
    CONSERVATIVE_OUTCOMES,
    Citation,
    Claim,
    Determination,
    FactEvidence,
    NotedConflict,
    Outcome,
)
from cda.contracts.facts import Fact, FactDefinition, FactState
from cda.contracts.policy_tools import ClauseView
from cda.criteria.citing import Deciding
from cda.criteria.derive import Derivations, is_derived
from cda.criteria.evaluate import Node
from cda.criteria.line import LineEvaluation, decide_line
from cda.criteria.rules import Role
from cda.harness.reasoner import Case, LineReasoned, Reasoned
from cda.systems.coverage.evidence import evidence_of
from cda.systems.coverage.roots import ROOTS, STATUS_OF
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
        conflicts = [conflict for line in lines for conflict in self._conflicts(line)]
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
        return Reasoned(determination, tuple(map(self._line, lines)))

    def _line(self, line: LineEvaluation) -> LineReasoned:
        reviews = [
            f"source_conflict: {conflict_text(conflict)}" for conflict in line.source_conflicts if conflict.needs_review
        ]
        reviews += [f"fact_conflict: {name}: the chart contradicts itself" for name in self._contradicted(line)]
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

    def _contradicted(self, line: LineEvaluation) -> list[str]:
        return sorted(name for name, fact in (line.facts or {}).items() if fact.state is FactState.CONFLICT)

    def _conflicts(self, line: LineEvaluation) -> Iterator[NotedConflict]:
        for conflict in line.source_conflicts:
            yield NotedConflict(
                kind="source",
                text=conflict_text(conflict),
                clause_ids=(conflict.clause_id, *conflict.contradicts),
                changes_answer=conflict.needs_review,
            )
        for name in self._contradicted(line):
            fact = (line.facts or {})[name]
            why = f": {fact.why}" if fact.why else ""
            yield NotedConflict(kind="fact", text=f"{self._definitions[name].label}{why}", changes_answer=True)

    def _claims(self, line: LineEvaluation, texts: Mapping[str, ClauseView]) -> Iterator[Claim]:
        shown = list(line.deciding)
        for conflict in line.source_conflicts:
            if conflict.needs_review:
                shown += [found for found in line.considered if found.clause_id in conflict.contradicts]
        for entry in dict.fromkeys(shown):
            yield from _clause_claims(entry, texts[entry.clause_id], line, self._definitions)
        for conflict in line.source_conflicts:
            if conflict.needs_review:
                yield _stated(texts[conflict.clause_id])


def _clause_claims(
    entry: Deciding, clause: ClauseView, line: LineEvaluation, definitions: Mapping[str, FactDefinition]
) -> Iterator[Claim]:
    """The clause as a whole, then each of its own leaves."""
    facts = line.facts or {}
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
    status = STATUS_OF[node.truth] if node.presumption is None else "presumed"
    return Claim.model_validate(
        {
            "text": f"{words}: {status.replace('_', ' ')}",
            "citation": whole(clause),
            "criterion": path,
            "status": status,
            "evidence": evidence,
        }
    )


def _stated(clause: ClauseView) -> Claim:
    return Claim(text="lower source that says otherwise", citation=whole(clause), criterion="states", status="met")


def whole(clause: ClauseView) -> Citation:
    """The citation of a clause in full, so that no qualifier can be cut off."""
    return Citation(
        clause_id=clause.clause_id, quote=clause.text, start=0, end=len(clause.text), clause_sha256=clause.text_sha256
    )


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
    return tuple({claim.model_dump_json(): claim for claim in claims}.values())
