"""The rules of one line: its clauses' criteria with UNLESS and the plan's riders applied as patches.

A patch is a rewrite of an expression; nothing downstream knows whether a rule was patched, except through the nodes
that say by which clause. Patches apply only to the policy they name, and a waiver never touches an exclusion.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum

from cda.contracts.facts import FactDefinition
from cda.contracts.policy_tools import ClauseView
from cda.criteria import labels
from cda.criteria.compare import compare, typed_value
from cda.criteria.criterion import (
    AddDuty,
    AddNode,
    Beyond,
    Covers,
    Criterion,
    Excludes,
    Limit,
    ReplaceLimit,
    Requirement,
    Routes,
    Scope,
    Statement,
    Waive,
    Waives,
)
from cda.criteria.expression import (
    Added,
    AllOf,
    AnyOf,
    Const,
    Expression,
    Leaf,
    Not,
    Waivable,
    Waived,
    facts_of,
    name_of,
    rewrite,
    selectors,
)
from cda.criteria.governing import Governing
from cda.criteria.icd import any_matches
from cda.criteria.parse import values_of
from cda.criteria.truth import Truth


class Role(StrEnum):
    """What a clause does for a line."""

    SCOPE = "scope"
    COVERS = "covers"
    EXCLUDES = "excludes"
    LIMIT = "limit"
    REQUIRES = "requires"
    INDIVIDUAL = "individual_consideration"
    WAIVES = "waives"
    REPLACES_LIMIT = "replaces_limit"
    ADDS = "adds"
    KEEPS = "keeps"
    NOT_AUTHORED = "not_authored"


@dataclass(frozen=True, slots=True)
class Rule:
    """One clause as it bears on the line.

    expression: patched. authored: as the bulletin has it (a limit before its replacement). selectors: the paths of the
    leaves that tie an alternative to a condition. coded: the request's diagnosis codes name that condition.
    patched_by: rider clauses whose patch is in the expression. beyond: limits only.
    """

    clause: ClauseView
    role: Role
    expression: Expression
    authored: Expression
    facts: frozenset[str]
    selectors: frozenset[str] = frozenset()
    coded: bool = False
    patched_by: tuple[str, ...] = ()
    beyond: Beyond | None = None


@dataclass(frozen=True, slots=True)
class LineRules:
    """Everything that decides a line. `keeps`: rider clauses and the facts whose requirements they leave untouched.
    `duty`: the rider clause that asks for prior authorization."""

    rules: tuple[Rule, ...]
    riders: tuple[tuple[ClauseView, Role], ...]
    keeps: tuple[tuple[ClauseView, frozenset[str]], ...]
    duty: str | None


@dataclass(frozen=True, slots=True)
class Substitution:
    """A trial: read clause `clause_id` as if its comparison of the same fact were `leaf`."""

    clause_id: str
    leaf: Leaf


def line_rules(
    found: Governing,
    definitions: Mapping[str, FactDefinition],
    diagnosis_codes: tuple[str, ...],
    *,
    without: str | None = None,
    substitution: Substitution | None = None,
) -> LineRules:
    """Return the rules of a line. `without` leaves out the patch of one rider clause; `substitution` reads one
    comparison differently; both serve trials of what a rider or a lower source changes."""
    patched = patched_rules(found, definitions, without=without, substitution=substitution)
    return with_codes(patched, definitions, diagnosis_codes)


def with_codes(
    patched: LineRules, definitions: Mapping[str, FactDefinition], diagnosis_codes: tuple[str, ...]
) -> LineRules:
    """The rules of a line under the diagnosis codes of a request, which choose among alternatives."""
    return replace(patched, rules=tuple(_set_aside(_mark_coded(patched.rules, definitions, diagnosis_codes))))


def patched_rules(
    found: Governing,
    definitions: Mapping[str, FactDefinition],
    *,
    without: str | None = None,
    substitution: Substitution | None = None,
) -> LineRules:
    """The rules of a line before any diagnosis code is looked at; the facts they compare are already all."""
    patches = [(clause, patch) for clause, patch in found.riders if clause.clause_id != without]
    patcher = _Patcher(tuple(patches), definitions, substitution)
    rules = [rule for clause, criterion in found.bulletins if (rule := patcher.rule(clause, criterion)) is not None]
    return LineRules(
        tuple(rules),
        tuple((clause, _RIDER_ROLES[type(patch)]) for clause, patch in patches if type(patch) in _RIDER_ROLES),
        tuple((c, frozenset(s.keeps)) for c, s in patches if isinstance(s, Statement) and s.keeps),
        next(
            (
                clause.clause_id
                for clause, patch in patches
                if isinstance(patch, AddDuty) and _reaches(clause, patch.of, found)
            ),
            None,
        ),
    )


def _reaches(rider: ClauseView, policy_id: str, found: Governing) -> bool:
    return policy_id in rider.overrides_policy_ids and any(c.policy_id == policy_id for c, _ in found.bulletins)


_RIDER_ROLES = {Waive: Role.WAIVES, ReplaceLimit: Role.REPLACES_LIMIT, AddNode: Role.ADDS}


class _Patcher:
    """Turns clauses into rules under one set of riders."""

    def __init__(
        self,
        riders: tuple[tuple[ClauseView, object], ...],
        definitions: Mapping[str, FactDefinition],
        substitution: Substitution | None,
    ) -> None:
        self.riders = riders
        self.definitions = definitions
        self.substitution = substitution

    def rule(self, clause: ClauseView, criterion: Criterion) -> Rule | None:  # noqa: PLR0911  # one a kind
        """The rule of a bulletin clause; None when it informs without deciding."""
        match criterion:
            case Covers():
                return self._covers(clause, criterion)
            case Excludes(when=when):
                return self._plain(clause, Role.EXCLUDES, self._read_as(clause, when), self._tied(when))
            case Limit():
                return self._limit(clause, criterion)
            case Requirement():
                return self._requirement(clause, criterion)
            case Scope(population=population):
                return self._plain(clause, Role.SCOPE, population or Const(True, "scope", "every member"))
            case Statement(refuses=True):
                return self._plain(clause, Role.INDIVIDUAL, Const(True, "states", "individual consideration"))
            case _:
                return None

    def _plain(
        self, clause: ClauseView, role: Role, expression: Expression, tied: frozenset[str] = frozenset()
    ) -> Rule:
        return Rule(clause, role, expression, expression, facts_of(expression), tied)

    def _covers(self, clause: ClauseView, criterion: Covers) -> Rule:
        authored = self._read_as(clause, criterion.when)
        expression = authored
        if isinstance(unless := criterion.unless, Waives):
            expression = rewrite(expression, _waivable(unless, clause.clause_id))
        expression, waived = self._waive(clause, expression)
        added = tuple(
            Added(patch.requirement, rider.clause_id) for rider, patch in self._of(clause) if isinstance(patch, AddNode)
        )
        parts: list[Expression] = [expression, *added]
        if isinstance(unless := criterion.unless, Routes):
            away = f"not routed to {unless.to}, as when {unless.when.label}"
            parts.append(Not(unless.when, "unless", away))
        if len(parts) > 1:
            expression = AllOf(tuple(parts), "criterion", labels.composite("all of", [p.label for p in parts], None))
        patched_by = waived + tuple(part.by for part in added)
        tied = self._tied(authored)
        return Rule(clause, Role.COVERS, expression, authored, facts_of(expression), tied, patched_by=patched_by)

    def _requirement(self, clause: ClauseView, criterion: Requirement) -> Rule:
        requires, waived = self._waive(clause, self._read_as(clause, criterion.requires))
        label = f"if {criterion.condition.label}, then {requires.label}"
        condition = Not(criterion.condition, "if", f"not: {criterion.condition.label}")
        expression = AnyOf((condition, requires), "criterion", label)
        return Rule(clause, Role.REQUIRES, expression, expression, facts_of(expression), patched_by=waived)

    def _limit(self, clause: ClauseView, criterion: Limit) -> Rule:
        authored = self._read_as(clause, criterion.leaf)
        leaf = replace(authored, if_silent=Truth.MET) if isinstance(authored, Leaf) else authored
        set_by: tuple[str, ...] = ()
        # The newest of several replacements stands; riders come in order of clause id, which breaks a tie.
        newest = sorted(self._of(clause), key=lambda rider: str(rider[0].effective_start))
        for rider, patch in newest:
            if isinstance(patch, ReplaceLimit) and patch.fact == criterion.leaf.fact and isinstance(leaf, Leaf):
                label = labels.comparison(self.definitions[leaf.fact], leaf.op, patch.value)
                leaf, set_by = replace(leaf, value=patch.value, label=label), (rider.clause_id,)
        expression, waived = self._waive(clause, leaf)
        return Rule(
            clause,
            Role.LIMIT,
            expression,
            replace(authored, if_silent=Truth.MET) if isinstance(authored, Leaf) else authored,
            facts_of(expression),
            patched_by=waived or set_by,
            beyond=criterion.beyond,
        )

    def _of(self, clause: ClauseView) -> list[tuple[ClauseView, object]]:
        """The rider patches of this clause's policy: named by the patch and overridden by its rider."""
        return [
            (rider, patch)
            for rider, patch in self.riders
            if getattr(patch, "of", None) == clause.policy_id and clause.policy_id in rider.overrides_policy_ids
        ]

    def _waive(self, clause: ClauseView, expression: Expression) -> tuple[Expression, tuple[str, ...]]:
        by: tuple[str, ...] = ()
        for rider, patch in self._of(clause):
            if isinstance(patch, Waive):
                before = expression
                expression = rewrite(expression, _waived(patch.name, rider.clause_id))
                by += (rider.clause_id,) if expression != before else ()
        return expression, by

    def _read_as(self, clause: ClauseView, expression: Expression) -> Expression:
        trial = self.substitution
        if trial is None or trial.clause_id != clause.clause_id:
            return expression

        def read(node: Expression) -> Expression:
            same = isinstance(node, Leaf) and node.fact == trial.leaf.fact
            return replace(trial.leaf, path=node.path) if same else node

        return rewrite(expression, read)

    def _tied(self, expression: Expression) -> frozenset[str]:
        return frozenset(leaf.path for leaf in selectors(expression, lambda fact: bool(self.definitions[fact].dx)))


def _waivable(unless: Waives, by: str) -> Callable[[Expression], Expression]:
    return lambda node: Waivable(node, by, unless.when) if name_of(node) in unless.waived else node


def _waived(name: str, by: str) -> Callable[[Expression], Expression]:
    return lambda node: Waived(node, by) if name_of(node) == name else node


def _mark_coded(rules: Iterable[Rule], definitions: Mapping[str, FactDefinition], codes: tuple[str, ...]) -> list[Rule]:
    """Mark the alternatives whose condition a diagnosis code names."""

    def coded(rule: Rule) -> bool:
        return any(
            any_matches(patterns, codes)
            for leaf in selectors(rule.authored, lambda fact: bool(definitions[fact].dx))
            for value, patterns in definitions[leaf.fact].dx.items()
            if value in values_of(definitions[leaf.fact])
            and compare(leaf, typed_value(definitions[leaf.fact], value)) is Truth.MET
        )

    return [replace(rule, coded=True) if rule.selectors and coded(rule) else rule for rule in rules]


def _set_aside(rules: list[Rule]) -> list[Rule]:
    """Where codes name some alternative's condition, presume that a silent chart does not mean the others'."""
    if not any(rule.coded for rule in rules):
        return rules
    return [
        replace(rule, expression=rewrite(rule.expression, _unnamed(rule)))
        if rule.selectors and not rule.coded
        else rule
        for rule in rules
    ]


def _unnamed(rule: Rule) -> Callable[[Expression], Expression]:
    def change(node: Expression) -> Expression:
        if isinstance(node, Leaf) and node.path in rule.selectors:
            return replace(node, if_silent=Truth.NOT_MET)
        return node

    return change
