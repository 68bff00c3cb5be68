"""The verifier's judge: re-evaluates, cold, what a claim says of a clause's criterion, and whether the claims together
carry the outcome. It sees clauses as the store holds them now and the evidence that the claims show, nothing else."""

from collections.abc import Mapping, Sequence

from cda.contracts.decision import Claim, FactEvidence, Outcome
from cda.contracts.facts import Fact, FactDefinition, Interval
from cda.contracts.policy_tools import ClauseView
from cda.criteria.criterion import AddNode, Criterion, ReplaceLimit, Statement, parse_criterion
from cda.criteria.derive import Derivations
from cda.criteria.evaluate import Context, Node, evaluate
from cda.criteria.expression import walk
from cda.criteria.governing import Governing
from cda.criteria.line import line_outcome
from cda.criteria.rules import Rule, line_rules
from cda.errors import CriterionError
from cda.harness.reasoner import Case
from cda.systems.coverage.evidence import facts_from
from cda.systems.coverage.roots import ROOTS

_KEPT_RULES = 256


class CriteriaJudge:
    """Judges claims by the criteria language. Deterministic."""

    def __init__(self, definitions: Mapping[str, FactDefinition]) -> None:
        self._definitions = definitions
        self._derivations = Derivations(definitions, definitions)
        self._own: dict[str, tuple[Criterion, tuple[str, ...], Rule | None]] = {}

    def node(self, case: Case, clause: ClauseView, claim: Claim) -> str | None:
        """None when the node that the claim names has, on the claim's evidence alone, the status it claims."""
        try:
            stated = facts_from(claim.evidence, self._definitions)
            # A fact in contradiction shows no evidence: what others would give for it must not settle an open claim.
            facts = stated if claim.status == "unknown" else self._derivations.apply(stated, case.as_of)
            criterion = parse_criterion(clause.criterion or {}, self._definitions, clause.clause_id)
        except (ValueError, CriterionError):
            return "the claim's evidence or the clause's criterion cannot be read"
        path = claim.criterion or ""
        context = Context(facts, self._definitions, case.request.diagnosis_codes, case.as_of)
        if path in ("patch", "states", "keeps"):
            return _why_not_stated(criterion, path, claim, context)
        if isinstance(criterion, AddNode):
            # What a rider adds is no rule of its own, so its leaves are found in the requirement itself.
            node = next((n for n in evaluate(criterion.requirement, context).walk() if n.path == path), None)
        else:
            node = _find(self._rule(clause, criterion, case.request.diagnosis_codes), path, context)
        if node is None:
            return "the clause's criterion has no such node"
        found = node.truth.word
        if claim.status == "presumed" or (claim.status == "unknown" and node.presumed):
            # Evidence shows no doubt: what was left open because the chart speaks of it is presumed upon here.
            return None if node.presumed or found == "unknown" else f"nothing is presumed there: it is {found}"
        return None if found == claim.status else f"on the evidence shown it is {found}, not {claim.status}"

    def words(self, case: Case, clause: ClauseView, path: str) -> str | None:
        """What a node of the clause's criterion asks for, in plain words; None where the criterion has no such node."""
        try:
            criterion = parse_criterion(clause.criterion or {}, self._definitions, clause.clause_id)
        except CriterionError:
            return None
        context = Context({}, self._definitions, case.request.diagnosis_codes, case.as_of)
        node = _find(self._rule(clause, criterion, case.request.diagnosis_codes), path, context)
        return None if node is None else node.label

    def outcome(
        self, case: Case, clauses: Sequence[ClauseView], claims: Sequence[Claim], outcome: Outcome
    ) -> str | None:
        """None when the cited clauses and the evidence shown, alone, give the outcome for some requested code.

        A refusal is carried by what is missing, which no evidence shows.
        """
        if outcome is Outcome.INSUFFICIENT_EVIDENCE:
            return None
        try:
            facts = self._facts(case, [item for claim in claims for item in claim.evidence])
            reached = {
                line_outcome(
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
            }
        except (ValueError, CriterionError):
            return "the claims' evidence cannot be read"
        if outcome in reached:
            return None
        return f"the cited clauses and the evidence shown do not give {outcome.value}"

    def _rule(self, clause: ClauseView, criterion: Criterion, codes: tuple[str, ...]) -> Rule | None:
        """The rule of the clause alone, its own UNLESS applied. Made once for the claims that cite it in a row: a
        criterion is parsed once, and its rule follows from it and the codes."""
        held = self._own.get(clause.clause_id)
        if held is not None and held[0] is criterion and held[1] == codes:
            return held[2]
        found = Governing(bulletins=((clause, criterion),), riders=(), lower=(), unauthored=(), routing=())
        rule = next(iter(line_rules(found, self._definitions, codes).rules), None)
        if len(self._own) >= _KEPT_RULES:
            self._own.clear()
        self._own[clause.clause_id] = criterion, codes, rule
        return rule

    def _facts(self, case: Case, evidence: Sequence[FactEvidence]) -> Mapping[str, Fact]:
        return self._derivations.apply(facts_from(evidence, self._definitions), case.as_of)


def _why_not_stated(criterion: Criterion, path: str, claim: Claim, context: Context) -> str | None:
    """Rider patches and statements: what they say is in the clause; a replaced limit is compared."""
    if path in ("states", "keeps"):
        if not isinstance(criterion, Statement):
            return "the clause states nothing"
        return None if path == "states" or criterion.keeps else "the rider clause keeps no requirement"
    if isinstance(criterion, ReplaceLimit):
        return _why_not_within(criterion, claim, context)
    if isinstance(criterion, AddNode):
        node = evaluate(criterion.requirement, context)
        found = node.truth.word
        return None if claim.status in (found, "presumed") else f"the added requirement is {found}"
    return None if claim.status == "met" else "a waiver in effect is met"


def _why_not_within(criterion: ReplaceLimit, claim: Claim, context: Context) -> str | None:
    fact = context.facts.get(criterion.fact)
    if fact is None:
        return None if claim.status == "presumed" else "no quantity is shown"
    if not isinstance(fact.value, Interval):
        return "what is shown is no quantity"
    beyond = fact.value.lo > criterion.value or (fact.value.lo == criterion.value and fact.value.lo_open)
    within = "met" if fact.value.hi <= criterion.value else "not_met" if beyond else "unknown"
    return None if within == claim.status else f"the quantity shown is {within} under the rider's limit"


def _find(rule: Rule | None, path: str, context: Context) -> Node | None:
    """The node at `path`, evaluated on the clause alone; the root stands for the clause with its own UNLESS applied."""
    if rule is None:
        return None
    if path == ROOTS[rule.role]:
        return evaluate(rule.expression, context)
    # An UNLESS wraps a requirement under the requirement's own path: the innermost is what the words say by themselves.
    found = next(reversed([part for part in walk(rule.expression) if part.path == path]), None)
    return None if found is None else evaluate(found, context)
