"""Lower sources that say otherwise, and requests for a service that another clause routes members to.

An FAQ or article never decides. What it would change is found by trial: the line is judged again as if the clause it
contradicts said what it says. A rider in effect that expressly settles the point leaves the conflict noted.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

from cda.contracts.decision import Outcome
from cda.contracts.facts import Fact, FactState
from cda.criteria.criterion import Statement
from cda.criteria.evaluate import Context, truth_of
from cda.criteria.expression import Leaf, Waived, facts_of, walk
from cda.criteria.governing import Governing
from cda.criteria.rules import LineRules, Rule, Substitution
from cda.criteria.truth import Truth

RELIANCE = "requester_relied_on_faq"
"""The fact that says that the requester leaned on a lower source."""


@dataclass(frozen=True, slots=True)
class SourceConflict:
    """A point on which two sources differ for this line.

    kind: lower_source, or routed_here (the requested service is where another clause sends this member, while its own
    criteria are not met). would_change: following the lower source changes this line's outcome. settled_by_rider: a
    rider in effect settles the very point. relied: the requester leans on the lower source.
    """

    kind: str
    clause_id: str
    contradicts: tuple[str, ...]
    would_change: bool
    settled_by_rider: bool = False
    relied: bool = False

    @property
    def needs_review(self) -> bool:
        """True when a person has to look: the answer hangs on the point, or the requester relied on it."""
        return self.relied or (self.would_change and not self.settled_by_rider)


@dataclass(frozen=True, slots=True)
class Retrial:
    """Judges the line again with one comparison read differently, or without one rider clause's patch."""

    outcome: Outcome
    reading: Callable[[Substitution], Outcome]
    without: Callable[[str], Outcome]


def lower_sources(
    found: Governing, rules: LineRules, shown: frozenset[str], retrial: Retrial, facts: Mapping[str, Fact]
) -> tuple[SourceConflict, ...]:
    """The lower sources of the line that contradict a clause in force for it. `shown`: the clauses that decide."""
    in_force = [clause.clause_id for clause, _ in (*found.bulletins, *found.riders)]
    relied = facts.get(RELIANCE, Fact.unknown(RELIANCE))
    leaned = relied.state is FactState.KNOWN and relied.value is True
    conflicts = []
    for clause, statement in found.lower:
        contradicted = tuple(clause_id for clause_id in in_force if clause_id in statement.contradicts)
        if contradicted:
            trial = partial(_point, statement=statement, found=found, rules=rules, shown=shown, retrial=retrial)
            points = [trial(clause_id) for clause_id in contradicted]
            changing = [settled for changes, settled in points if changes]
            settled = all(changing) if changing else any(settled for _, settled in points)
            conflicts.append(
                SourceConflict("lower_source", clause.clause_id, contradicted, bool(changing), settled, leaned)
            )
    return tuple(conflicts)


def routed_here(found: Governing, outcome: Outcome, context: Context) -> tuple[SourceConflict, ...]:
    """The clauses, of other services, that send this member to the requested one although it is not covered."""
    if outcome is Outcome.COVERED:
        return ()
    return tuple(
        SourceConflict("routed_here", clause.clause_id, (), would_change=True)
        for clause, when in found.routing
        if truth_of(when, context) is Truth.MET
    )


def _point(
    clause_id: str,
    *,
    statement: Statement,
    found: Governing,
    rules: LineRules,
    shown: frozenset[str],
    retrial: Retrial,
) -> tuple[bool, bool]:
    """Whether following the statement against one clause changes the outcome, and whether a rider settles it."""
    if any(clause_id == rider.clause_id for rider, _ in found.riders):
        # Denying a rider its effect; the rider, being in effect, speaks to just that.
        return retrial.without(clause_id) is not retrial.outcome, True
    rule = next((rule for rule in rules.rules if rule.clause.clause_id == clause_id), None)
    if rule is None:
        return False, False
    leaf = statement.leaf
    if leaf is None or leaf.fact not in facts_of(rule.authored):
        # Contradicted in words that cannot be tried: what decides the line counts as changed.
        return clause_id in shown, False
    return retrial.reading(Substitution(clause_id, leaf)) is not retrial.outcome, _settled(rule, leaf)


def _settled(rule: Rule, leaf: Leaf) -> bool:
    """True when a rider waives the requirement that holds the comparison, or replaces the limit on its fact."""
    if rule.beyond is not None:
        return bool(rule.patched_by)
    return any(isinstance(node, Waived) and leaf.fact in facts_of(node) for node in walk(rule.expression))
