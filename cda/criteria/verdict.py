"""From evaluated rules to the answer of a line: the order in which exclusions, limits and alternatives decide.

Pure and small on purpose: trials (what a fact, a rider or a lower source would change) ask the same function.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol, TypeVar

from cda.contracts.decision import Outcome
from cda.criteria.criterion import Beyond
from cda.criteria.evaluate import Node, Presumption
from cda.criteria.rules import Role, Rule
from cda.criteria.truth import Truth


class Reason(StrEnum):
    """Why a line came out as it did."""

    CRITERIA_MET = "criteria_met"
    EXCLUDED = "excluded"
    CRITERIA_NOT_MET = "criteria_not_met"
    BEYOND_LIMIT = "beyond_limit"
    REQUIREMENT_NOT_MET = "requirement_not_met"
    MISSING_FACTS = "missing_facts"
    NEEDS_DOCUMENTATION = "needs_documentation"
    INDIVIDUAL_CONSIDERATION = "individual_consideration"
    OUT_OF_POPULATION = "out_of_population"
    NO_COVERAGE_CRITERIA = "no_coverage_criteria"
    CRITERIA_NOT_AUTHORED = "criteria_not_authored"
    NO_GOVERNING_POLICY = "no_governing_policy"


class Judged(Protocol):
    """A rule and its truth, as far as the answer of the line depends on them."""

    @property
    def rule(self) -> Rule:
        """The rule."""
        ...

    @property
    def truth(self) -> Truth:
        """Of an alternative, that it is met; of an exclusion, that it applies; of a limit or duty, that it is kept."""
        ...

    @property
    def by_codes(self) -> bool:
        """True when only the diagnosis codes set the alternative aside: the chart names no condition."""
        ...


AnyJudged = TypeVar("AnyJudged", bound=Judged)


@dataclass(frozen=True, slots=True)
class Finding:
    """A rule and the explanation of what it came to."""

    rule: Rule
    node: Node

    @property
    def truth(self) -> Truth:
        """The truth of the rule's expression."""
        return self.node.truth

    @property
    def by_codes(self) -> bool:
        """True when only the diagnosis codes set the alternative aside."""
        return self.node.presumption is Presumption.CODES

    @property
    def at_issue(self) -> bool:
        """False for an alternative for another condition than this member's: the chart states another, or the chart
        is silent and the diagnosis codes name another."""
        if not self.rule.selectors:
            return True
        ties = [node for node in self.node.walk() if node.path in self.rule.selectors and node.kind == "leaf"]
        return any(node.truth is not Truth.NOT_MET for node in ties)


def judge(findings: Sequence[Judged]) -> tuple[Outcome, Reason]:  # noqa: PLR0911  # one a rule, in their order
    """Return the outcome of a line and its reason. `findings` are all rules of the line, in any order."""
    reached = within_reach(findings)
    if findings and not reached:
        return Outcome.INSUFFICIENT_EVIDENCE, Reason.OUT_OF_POPULATION
    by_role: dict[Role, list[Judged]] = defaultdict(list)
    for finding in reached:
        by_role[finding.rule.role].append(finding)
    exclusions, alternatives = by_role[Role.EXCLUDES], by_role[Role.COVERS]
    limits, requirements = by_role[Role.LIMIT], by_role[Role.REQUIRES]
    exceeded = [f for f in limits if f.truth is Truth.NOT_MET]
    if any(f.truth is Truth.MET for f in exclusions):
        return Outcome.NOT_COVERED, Reason.EXCLUDED
    if by_role[Role.INDIVIDUAL]:
        return Outcome.INSUFFICIENT_EVIDENCE, Reason.INDIVIDUAL_CONSIDERATION
    if any(f.rule.beyond is Beyond.NOT_COVERED for f in exceeded):
        return Outcome.NOT_COVERED, Reason.BEYOND_LIMIT
    if any(f.truth is Truth.NOT_MET for f in requirements):
        return Outcome.NOT_COVERED, Reason.REQUIREMENT_NOT_MET
    if not alternatives:
        return Outcome.INSUFFICIENT_EVIDENCE, Reason.NO_COVERAGE_CRITERIA
    if all(f.truth is Truth.NOT_MET for f in alternatives) and not _set_aside(alternatives):
        return Outcome.NOT_COVERED, Reason.CRITERIA_NOT_MET
    open_guard = any(f.truth is Truth.UNKNOWN for f in (*exclusions, *limits, *requirements))
    if open_guard or not any(f.truth is Truth.MET for f in alternatives):
        return Outcome.INSUFFICIENT_EVIDENCE, Reason.MISSING_FACTS
    if exceeded:
        return Outcome.INSUFFICIENT_EVIDENCE, Reason.NEEDS_DOCUMENTATION
    return Outcome.COVERED, Reason.CRITERIA_MET


def within_reach(findings: Sequence[AnyJudged]) -> list[AnyJudged]:
    """The findings of policies whose population the member is not known to be outside of."""
    outside = {f.rule.clause.policy_id for f in findings if f.rule.role is Role.SCOPE and f.truth is Truth.NOT_MET}
    return [f for f in findings if f.rule.clause.policy_id not in outside] if outside else list(findings)


def of_role(findings: Sequence[Finding], role: Role) -> list[Finding]:
    """The findings of one role, in order."""
    return [f for f in findings if f.rule.role is role]


def _set_aside(alternatives: Sequence[Judged]) -> bool:
    # Codes set alternatives aside; they cannot deny. Where none that they put at issue has failed, the chart has yet
    # to name the condition.
    return any(f.by_codes for f in alternatives) and not any(f.rule.coded for f in alternatives)
