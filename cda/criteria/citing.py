"""Which clauses a reader must see for an outcome, and in which order: the clause that decides comes first.

A rider clause comes first where its patch, or what it keeps, decides. Alternatives for another condition than this
member's are not shown: a clause about type 2 diabetes explains nothing to a member with type 1.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import date

from cda.contracts.policy_tools import ClauseView
from cda.criteria.criterion import Beyond
from cda.criteria.evaluate import DIAGNOSIS_CODES, Context, Node, Presumption, evaluate
from cda.criteria.rules import LineRules, Role
from cda.criteria.truth import Truth
from cda.criteria.verdict import Finding, Reason, of_role, within_reach


@dataclass(frozen=True, slots=True)
class Deciding:
    """One clause of the answer: what it does for the line, what it came to, and the explanation.

    truth: of a covering clause, that it is met; of an exclusion, that it applies; of a limit or duty, that it is kept.
    The tree of a rider clause is that of what it patches or keeps. at_issue: False for an alternative for another
    condition than this member's.
    """

    clause_id: str
    role: Role
    truth: Truth
    tree: Node
    policy_id: str
    version: str
    effective_start: date | None
    effective_end: date | None
    at_issue: bool = True

    @classmethod
    def clause(cls, clause: ClauseView, role: Role, node: Node, *, at_issue: bool = True) -> "Deciding":
        """The clause in a role, with its explanation."""
        start, end = clause.effective_start, clause.effective_end
        return cls(clause.clause_id, role, node.truth, node, clause.policy_id, clause.version, start, end, at_issue)

    @classmethod
    def of(cls, finding: Finding) -> "Deciding":
        """The clause of a finding."""
        return cls.clause(finding.rule.clause, finding.rule.role, finding.node, at_issue=finding.at_issue)


@dataclass(frozen=True, slots=True)
class Needed:
    """A fact whose absence leaves the line open, and where it is needed."""

    fact: str
    finding: Finding
    node: Node


def main_findings(findings: Sequence[Finding], reason: Reason) -> list[Finding]:
    """The findings that decide, in order, before riders are considered."""
    reached = within_reach(findings)
    limits, covers = of_role(reached, Role.LIMIT), of_role(reached, Role.COVERS)
    exceeded = _with(Truth.NOT_MET, limits)
    choose: dict[Reason, Callable[[], list[Finding]]] = {
        Reason.OUT_OF_POPULATION: lambda: _with(Truth.NOT_MET, of_role(findings, Role.SCOPE)),
        Reason.EXCLUDED: lambda: _with(Truth.MET, of_role(reached, Role.EXCLUDES)),
        Reason.INDIVIDUAL_CONSIDERATION: lambda: of_role(reached, Role.INDIVIDUAL),
        Reason.BEYOND_LIMIT: lambda: [f for f in exceeded if f.rule.beyond is Beyond.NOT_COVERED],
        Reason.REQUIREMENT_NOT_MET: lambda: _with(Truth.NOT_MET, of_role(reached, Role.REQUIRES)),
        Reason.CRITERIA_NOT_MET: lambda: _closest(covers),
        Reason.MISSING_FACTS: lambda: _open(reached),
        Reason.NEEDS_DOCUMENTATION: lambda: exceeded + _with(Truth.MET, covers),
        Reason.CRITERIA_MET: lambda: _covering(reached),
        Reason.NO_COVERAGE_CRITERIA: lambda: of_role(reached, Role.EXCLUDES),
    }
    return choose[reason]()


def with_riders(
    main: Sequence[Finding],
    rules: LineRules,
    deciding_riders: frozenset[str],
    blocking: frozenset[str],
    context: Context,
) -> tuple[Deciding, ...]:
    """The clauses to show: riders that decide first, then `main`, then riders that changed a shown rule.

    deciding_riders: rider clauses without whose patch the outcome would differ. blocking: facts that are missing, or
    that make the line fail; a rider clause that keeps one of their requirements is shown first.
    """
    first: list[Deciding] = []
    last: list[Deciding] = []
    for clause, kept in rules.keeps:
        held = next((f for f in main if f.rule.clause.policy_id in clause.overrides_policy_ids), None)
        nodes = [n for n in (held.node.walk() if held else ()) if n.fact in kept & blocking]
        if nodes:
            first.append(Deciding.clause(clause, Role.KEEPS, nodes[0]))
    for clause, role in rules.riders:
        patched = next((f for f in main if clause.clause_id in f.rule.patched_by), None)
        if patched is None:
            continue
        node = _patched_node(patched.node, clause.clause_id)
        entry = Deciding.clause(clause, role, node)
        decides = clause.clause_id in deciding_riders or (role is not Role.WAIVES and node.truth is not Truth.MET)
        (first if decides else last).append(entry)
    shown = [_as_authored(f, context) for f in main if not _superseded(f)]
    return (*first, *shown, *last)


def needed(findings: Iterable[Finding]) -> list[Needed]:
    """The facts that leave the findings open, in reading order, each where it is first needed."""
    first: dict[str, Needed] = {}
    for finding in findings:
        for node in open_leaves(finding.node):
            if node.fact is not None:
                first.setdefault(node.fact, Needed(node.fact, finding, node))
    return list(first.values())


def open_leaves(node: Node) -> Iterable[Node]:
    """The unknown leaves that leave an unknown node open; none of a node that is settled."""
    if node.truth is not Truth.UNKNOWN:
        return
    if not node.children:
        yield node
    for child in node.children:
        yield from open_leaves(child)


def blocking_leaf(node: Node) -> Node:
    """The leaf that makes `node` what it is: the first below it, by stated facts before presumptions."""
    while node.children:
        if node.kind in ("not", "added", "waived"):
            node = node.children[0]
            continue
        same = [child for child in node.children if child.truth is node.truth]
        node = next((child for child in same if not child.presumed), (same or list(node.children))[0])
    return node


def failing_facts(node: Node) -> frozenset[str]:
    """The facts of the leaves that make an unmet node unmet."""
    if node.truth is not Truth.NOT_MET:
        return frozenset()
    if not node.children:
        return frozenset({node.fact} if node.fact and node.fact != DIAGNOSIS_CODES else ())
    if node.kind == "not":
        return frozenset(n.fact for n in node.walk() if n.fact and n.truth is Truth.MET)
    return frozenset[str]().union(*(failing_facts(child) for child in node.children))


def _closest(alternatives: Sequence[Finding]) -> list[Finding]:
    """The alternatives for this member's condition, those that codes name first; all of them when none is."""
    at_issue = [f for f in alternatives if f.at_issue]
    stated = [f for f in alternatives if f.node.presumption is not Presumption.CODES]
    return sorted(at_issue or stated, key=lambda f: not f.rule.coded)


def _open(reached: Sequence[Finding]) -> list[Finding]:
    """What leaves the line open: exclusions, limits and duties over a met alternative, else the open alternatives."""
    covers = of_role(reached, Role.COVERS)
    met = _with(Truth.MET, covers)
    guards = [f for role in (Role.EXCLUDES, Role.REQUIRES, Role.LIMIT) for f in of_role(reached, role)]
    open_guards = _with(Truth.UNKNOWN, guards)
    if met:
        return open_guards + met
    alternatives = sorted(_with(Truth.UNKNOWN, covers), key=lambda f: not f.rule.coded)
    exceeded = [f for f in of_role(reached, Role.LIMIT) if f.truth is Truth.NOT_MET]
    return alternatives + open_guards + exceeded or covers


def _covering(reached: Sequence[Finding]) -> list[Finding]:
    """The met alternatives, then the limits, duties and exclusions that they stand beside."""
    beside = [
        f
        for role in (Role.LIMIT, Role.REQUIRES, Role.EXCLUDES)
        for f in of_role(reached, role)
        if f.node.presumption is not Presumption.CODES
    ]
    met = sorted(_with(Truth.MET, of_role(reached, Role.COVERS)), key=lambda f: (f.node.presumed, not f.rule.coded))
    return met + [f for f in beside if f.at_issue]


def _with(truth: Truth, findings: Sequence[Finding]) -> list[Finding]:
    return [f for f in findings if f.truth is truth]


def _patched_node(node: Node, rider: str) -> Node:
    """The part of an explanation that a rider clause waived or added; the whole, for a replaced limit."""
    return next((part for part in node.walk() if rider in (part.waived_by, part.added_by)), node)


def _superseded(finding: Finding) -> bool:
    """True for a limit that a rider replaced and the request keeps: the bulletin's own figure decides nothing."""
    replaced = finding.rule.role is Role.LIMIT and bool(finding.rule.patched_by)
    return replaced and finding.truth is Truth.MET


def _as_authored(finding: Finding, context: Context) -> Deciding:
    """The clause with the explanation of its own words: a replaced limit shows the bulletin's figure."""
    if finding.rule.role is not Role.LIMIT or not finding.rule.patched_by:
        return Deciding.of(finding)
    return Deciding.clause(finding.rule.clause, Role.LIMIT, evaluate(finding.rule.authored, context))
