"""Decides one line of a request: one procedure code on one date under one plan. Pure: clauses and facts in, answer out.

The guarantee: the outcome follows from clauses in effect on the date, of this payer, naming this code, and from facts
that were stated, derived, or shown as presumed; what is unknown is never read as false. Same input, same answer; the
order in which clauses are given does not matter.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date

from cda.contracts.decision import Flip, MissingFact, Outcome, PriorAuthorization
from cda.contracts.facts import Fact, FactDefinition
from cda.contracts.policy_tools import ClauseView
from cda.criteria.citing import (
    Deciding,
    Needed,
    blocking_leaf,
    failing_facts,
    main_findings,
    needed,
    with_riders,
)
from cda.criteria.conflicts import RELIANCE, Retrial, SourceConflict, lower_sources, routed_here
from cda.criteria.evaluate import DIAGNOSIS_CODES, Context, Node, Presumption, evaluate
from cda.criteria.rules import LineRules, Role, Substitution
from cda.criteria.trials import Trials
from cda.criteria.truth import Truth
from cda.criteria.verdict import Finding, Reason, judge, within_reach
from cda.criteria.written import Written, written_of

_NOT_AUTHORED = Node("const", "criterion", Truth.UNKNOWN, "no criterion authored")
_NOTHING_SAID = PriorAuthorization(required="unknown")


@dataclass(frozen=True, slots=True)
class PresumedFact:
    """Something the answer takes for granted because nothing was stated, and the clause that uses it."""

    fact: str
    label: str
    clause_id: str
    presumption: Presumption


@dataclass(frozen=True, slots=True)
class LineEvaluation:
    """The answer for one requested code and everything that explains it.

    deciding: the clauses a reader must see, the one that decides first. considered: every rule of the line, by clause
    id. blocking: the leaf that keeps the line from being covered. missing: the facts whose absence leaves it open,
    first the one that decides most. flips: smallest changes of facts that would change the outcome. presumed: what the
    deciding clauses take for granted. facts: as given and derived. riders: the rider clauses in force for the line.
    """

    procedure_code: str
    as_of: date
    outcome: Outcome
    reason: Reason
    facts: Mapping[str, Fact]
    deciding: tuple[Deciding, ...] = ()
    considered: tuple[Deciding, ...] = ()
    blocking: Node | None = None
    missing: tuple[MissingFact, ...] = ()
    flips: tuple[Flip, ...] = ()
    source_conflicts: tuple[SourceConflict, ...] = ()
    presumed: tuple[PresumedFact, ...] = ()
    riders: tuple[str, ...] = ()
    prior_authorization: PriorAuthorization = _NOTHING_SAID


def decide_line(
    *,
    procedure_code: str,
    clauses: Sequence[ClauseView],
    definitions: Mapping[str, FactDefinition],
    facts: Mapping[str, Fact],
    diagnosis_codes: Sequence[str],
    as_of: date,
    plan_id: str | None,
    payer_id: str,
) -> LineEvaluation:
    """Decide `procedure_code`. `clauses` are all clauses that might govern it; those that do not are left out here.

    A fact that `facts` does not hold is unknown. Raises CriterionError for a criterion, derivation or value that is
    not in the language, with the clause or fact; corpus check finds the first two at build time.
    """
    written = written_of(
        clauses, definitions, procedure_code=procedure_code, as_of=as_of, plan_id=plan_id, payer_id=payer_id
    )
    return _Line(procedure_code, written, facts=facts, codes=tuple(diagnosis_codes), as_of=as_of).evaluation()


def line_outcome(
    *,
    procedure_code: str,
    clauses: Sequence[ClauseView],
    definitions: Mapping[str, FactDefinition],
    facts: Mapping[str, Fact],
    diagnosis_codes: Sequence[str],
    as_of: date,
    plan_id: str | None,
    payer_id: str,
) -> Outcome:
    """The outcome that `decide_line` gives, without what explains it."""
    written = written_of(
        clauses, definitions, procedure_code=procedure_code, as_of=as_of, plan_id=plan_id, payer_id=payer_id
    )
    return _Line(procedure_code, written, facts=facts, codes=tuple(diagnosis_codes), as_of=as_of).outcome


def facts_needed(
    *,
    procedure_code: str,
    clauses: Sequence[ClauseView],
    definitions: Mapping[str, FactDefinition],
    as_of: date,
    plan_id: str | None,
    payer_id: str,
) -> tuple[str, ...]:
    """The facts that can bear on the line, sorted: those its clauses compare, what they are derived from, and whether
    the requester relied on a lower source that contradicts. What an extractor has to look for, and nothing else."""
    written = written_of(
        clauses, definitions, procedure_code=procedure_code, as_of=as_of, plan_id=plan_id, payer_id=payer_id
    )
    relied = {RELIANCE} if written.found.lower and RELIANCE in definitions else set()
    return tuple(sorted(written.compared | relied | written.derivations.facts))


class _Line:
    """The work on one line, in the order in which its parts rest on one another."""

    def __init__(
        self, code: str, written: Written, *, facts: Mapping[str, Fact], codes: tuple[str, ...], as_of: date
    ) -> None:
        self.code, self.codes, self.written = code, codes, written
        self.found, self.definitions, self.derivations = written.found, written.definitions, written.derivations
        self.rules = written.under(codes)
        self.context = Context(self.derivations.apply(facts, as_of), self.definitions, codes, as_of)
        self.findings = self._findings(self.rules)
        self.outcome, self.reason = judge(self.findings)

    def evaluation(self) -> LineEvaluation:
        """The whole answer."""
        if not self.rules.rules:
            return self._ungoverned()
        main = main_findings(self.findings, self.reason)
        form = self.written.trial_form(self.codes, self.context.as_of)
        trials = Trials(self.findings, self.context, self.derivations, self.outcome, form)
        wanted = self._wanted(main, trials)
        deciding = self._deciding(main, wanted)
        return LineEvaluation(
            procedure_code=self.code,
            as_of=self.context.as_of,
            outcome=self.outcome,
            reason=self.reason,
            facts=self.context.facts,
            deciding=deciding,
            considered=tuple(Deciding.of(finding) for finding in self.findings),
            blocking=self._blocking(main, wanted),
            missing=tuple(self._missing(need) for need in wanted),
            flips=trials.flips(self._preferred(main, wanted)),
            source_conflicts=self._conflicts(deciding),
            presumed=self._presumed(deciding),
            riders=tuple(clause.clause_id for clause, _ in self.found.riders),
            prior_authorization=self._prior_authorization(),
        )

    def _findings(self, rules: LineRules) -> list[Finding]:
        return [Finding(rule, evaluate(rule.expression, self.context)) for rule in rules.rules]

    def _retried(self, *, without: str | None = None, substitution: Substitution | None = None) -> Outcome:
        rules = self.written.under(self.codes, without=without, substitution=substitution)
        return judge(self._findings(rules))[0]

    def _ungoverned(self) -> LineEvaluation:
        unauthored = tuple(Deciding.clause(c, Role.NOT_AUTHORED, _NOT_AUTHORED) for c in self.found.unauthored)
        governed = bool(self.found.bulletins)
        reason = Reason.CRITERIA_NOT_AUTHORED if unauthored else Reason.NO_GOVERNING_POLICY
        return LineEvaluation(
            procedure_code=self.code,
            as_of=self.context.as_of,
            outcome=Outcome.INSUFFICIENT_EVIDENCE,
            reason=Reason.NO_COVERAGE_CRITERIA if governed else reason,
            facts=self.context.facts,
            deciding=unauthored,
            riders=tuple(clause.clause_id for clause, _ in self.found.riders),
            prior_authorization=self._prior_authorization(),
        )

    def _wanted(self, main: Sequence[Finding], trials: Trials) -> list[Needed]:
        """The missing facts, first the one whose values most often decide the line alone."""
        if self.reason not in (Reason.MISSING_FACTS, Reason.NO_COVERAGE_CRITERIA):
            return []
        wants = needed(main) or [
            Needed(node.fact, finding, node)
            for finding in main
            for node in finding.node.walk()
            if node.fact is not None and node.presumption is Presumption.CODES
        ]
        return sorted(wants, key=lambda want: (-trials.share(want.fact), want.fact))

    def _deciding(self, main: Sequence[Finding], wanted: Sequence[Needed]) -> tuple[Deciding, ...]:
        patching = {by for finding in main for by in finding.rule.patched_by}
        deciding = frozenset(by for by in sorted(patching) if self._retried(without=by) is not self.outcome)
        blocking = frozenset(want.fact for want in wanted)
        if self.outcome is Outcome.NOT_COVERED:
            blocking = frozenset[str]().union(*(failing_facts(finding.node) for finding in main))
        return with_riders(main, self.rules, deciding, blocking, self.context)

    def _blocking(self, main: Sequence[Finding], wanted: Sequence[Needed]) -> Node | None:
        if wanted:
            return wanted[0].node
        if self.outcome is Outcome.COVERED or not main:
            return None
        return blocking_leaf(main[0].node)

    def _missing(self, need: Needed) -> MissingFact:
        fact = self.context.facts.get(need.fact)
        definition = self.definitions.get(need.fact)
        return MissingFact(
            fact=need.fact,
            label=definition.label if definition else "diagnosis codes of the request",
            clause_id=need.node.added_by or need.finding.rule.clause.clause_id,
            why=fact.why if fact is not None and fact.why else need.node.why,
        )

    def _preferred(self, main: Sequence[Finding], wanted: Sequence[Needed]) -> list[str]:
        """Facts in the order in which a flip of them tells a reader most: missing, deciding and known, deciding; those
        that tie an alternative to a condition last, since a member does not change her condition."""
        deciding = [node.fact for finding in main for node in finding.node.walk() if node.fact is not None]
        known = [fact for fact in deciding if fact in self.context.facts]
        order = [want.fact for want in wanted] + known + deciding
        return [fact for fact in order if fact != DIAGNOSIS_CODES and not self.definitions[fact].dx]

    def _conflicts(self, deciding: Sequence[Deciding]) -> tuple[SourceConflict, ...]:
        retrial = Retrial(
            self.outcome,
            reading=lambda substitution: self._retried(substitution=substitution),
            without=lambda rider: self._retried(without=rider),
        )
        shown = frozenset(entry.clause_id for entry in deciding)
        lower = lower_sources(self.found, self.rules, shown, retrial, self.context.facts)
        return lower + routed_here(self.found, self.outcome, self.context)

    def _presumed(self, deciding: Sequence[Deciding]) -> tuple[PresumedFact, ...]:
        used = [
            PresumedFact(node.fact, node.label, entry.clause_id, node.presumption)
            for entry in deciding
            for node in entry.tree.walk()
            if node.presumption is not None and node.fact is not None
        ]
        populations = [
            PresumedFact(node.fact, node.label, finding.rule.clause.clause_id, Presumption.DECLARED)
            for finding in within_reach(self.findings)
            if finding.rule.role is Role.SCOPE and finding.truth is Truth.UNKNOWN
            for node in finding.node.walk()
            if node.fact is not None and node.truth is Truth.UNKNOWN
        ]
        return tuple(dict.fromkeys(used + populations))

    def _prior_authorization(self) -> PriorAuthorization:
        duty = self.rules.duty
        return PriorAuthorization(required="yes", clause_id=duty) if duty else _NOTHING_SAID
