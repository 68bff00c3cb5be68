"""Evaluates an expression over facts and explains itself: one node of explanation for every node of the expression.

The guarantee: apart from nodes marked `presumed`, learning a fact that was unknown, or more of one that was known in
part, never turns MET into NOT_MET or back. It rests on strong Kleene connectives over three-valued leaves.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from enum import StrEnum
from typing import NamedTuple

from cda.contracts.facts import Fact, FactDefinition, FactState
from cda.criteria import compare
from cda.criteria.expression import (
    Added,
    AllOf,
    AnyOf,
    AtLeast,
    Const,
    Diagnosis,
    Elapsed,
    Expression,
    Leaf,
    Not,
    Waivable,
    Waived,
    children_of,
    connective,
)
from cda.criteria.icd import any_matches
from cda.criteria.truth import Truth

DIAGNOSIS_CODES = "diagnosis_codes"
"""What `Node.fact` says for a membership test of the request's diagnosis codes, which are no fact."""


class Presumption(StrEnum):
    """Why a node has a truth that nothing stated gives it."""

    CODES = "codes"
    """The request's diagnosis codes put another condition at issue and the chart names none."""
    DECLARED = "declared"
    """Its fact is presumed by its definition, a limit counts as kept, or a population as matched, unless stated."""


Composite = AllOf | AnyOf | AtLeast | Not | Waivable | Waived | Added
_KINDS = {
    AllOf: "all",
    AnyOf: "any",
    AtLeast: "at_least",
    Not: "not",
    Waivable: "waivable",
    Waived: "waived",
    Added: "added",
}


@dataclass(frozen=True, slots=True)
class Context:
    """What an expression is evaluated against. Facts that are absent from `facts` are unknown."""

    facts: Mapping[str, Fact]
    definitions: Mapping[str, FactDefinition]
    diagnosis_codes: tuple[str, ...]
    as_of: date


class Node(NamedTuple):
    """The explanation of one expression node.

    kind: const, leaf, elapsed, diagnosis, all, any, not, at_least; waivable (children: the requirement, and the
      UNLESS that lifts it), waived, added.
    path: in the criterion of the clause, or of `added_by`. `presumption` is set when the truth would be UNKNOWN without
    presumptions. `waived_by`: the clause by which an unmet requirement counts as met. `why`: words on the chart's
    silence or doubt.
    """

    kind: str
    path: str
    truth: Truth
    label: str
    presumption: Presumption | None = None
    fact: str | None = None
    waived_by: str | None = None
    added_by: str | None = None
    why: str | None = None
    children: tuple["Node", ...] = ()

    @property
    def presumed(self) -> bool:
        """True when the truth rests on a presumption."""
        return self.presumption is not None

    def walk(self) -> Iterator["Node"]:
        """The node and everything below it, in reading order."""
        found: list[Node] = []
        _below(self, found)
        return iter(found)


def _below(node: Node, found: list[Node]) -> None:
    found.append(node)
    for child in node.children:
        _below(child, found)


def evaluate(expression: Expression, context: Context) -> Node:
    """Evaluate `expression`; the node tree has its shape. Raises CriterionError for a value of the wrong type."""
    match expression:
        case Leaf():
            return _leaf(expression, context)
        case Elapsed():
            return _elapsed(expression, context)
        case Diagnosis():
            return _diagnosis(expression, context)
        case Const():
            truth = Truth.MET if expression.value else Truth.NOT_MET
            return Node("const", expression.path, truth, expression.label)
        case _:
            return _composite(expression, context)


def _composite(expression: Composite, context: Context) -> Node:
    children = tuple([evaluate(child, context) for child in children_of(expression)])
    if isinstance(expression, Added):
        children = tuple(_from(child, expression.by) for child in children)
    combine = connective(expression)
    truth = combine([child.truth for child in children])
    return Node(
        _KINDS[type(expression)],
        expression.path,
        truth,
        expression.label,
        _resting_on(children, combine, truth),
        waived_by=_waiver(expression, children),
        added_by=expression.by if isinstance(expression, Added) else None,
        children=children,
    )


def _from(node: Node, clause_id: str) -> Node:
    """The explanation, marked throughout as that of a requirement which another clause adds."""
    return node._replace(added_by=clause_id, children=tuple(_from(child, clause_id) for child in node.children))


def _waiver(expression: Composite, children: Sequence[Node]) -> str | None:
    match expression:
        case Waived(by=by):
            return by
        case Waivable(by=by) if children[1].truth is Truth.MET and children[0].truth is not Truth.MET:
            return by
        case _:
            return None


def _resting_on(
    children: Sequence[Node], combine: Callable[[Sequence[Truth]], Truth], truth: Truth
) -> Presumption | None:
    """The presumption without which `combine` over the children would be UNKNOWN, if there is one."""
    if truth is Truth.UNKNOWN or not any(child.presumption for child in children):
        return None
    by_codes = [Truth.UNKNOWN if child.presumption is Presumption.CODES else child.truth for child in children]
    if combine(by_codes) is Truth.UNKNOWN:
        return Presumption.CODES
    stated = [Truth.UNKNOWN if child.presumption else child.truth for child in children]
    return Presumption.DECLARED if combine(stated) is Truth.UNKNOWN else None


def truth_of(expression: Expression, context: Context) -> Truth:
    """The truth that `evaluate` gives the expression, without the explanation: what trials and derivations ask."""
    parts = children_of(expression)
    if parts:
        return connective(expression)([truth_of(part, context) for part in parts])
    return leaf_truth(expression, context)[0]


def leaf_truth(expression: Expression, context: Context) -> tuple[Truth, Presumption | None]:
    """The truth of an expression without parts, and the presumption it rests on."""
    if isinstance(expression, Leaf):
        return _leaf_truth(expression, context.facts.get(expression.fact), context)
    return evaluate(expression, context).truth, None


def _leaf(leaf: Leaf, context: Context) -> Node:
    fact = context.facts.get(leaf.fact)
    truth, presumption = _leaf_truth(leaf, fact, context)
    why: str | None = None
    if presumption is Presumption.CODES:
        why = "neither chart nor codes name this condition"
    elif fact is None or fact.state is not FactState.KNOWN:
        why = fact.why if fact is not None and fact.why else "nothing stated"
    elif truth is Truth.UNKNOWN:
        why = f"the chart gives {fact.value}"
    return Node("leaf", leaf.path, truth, leaf.label, presumption, leaf.fact, why=why)


def _leaf_truth(leaf: Leaf, fact: Fact | None, context: Context) -> tuple[Truth, Presumption | None]:
    if fact is not None and fact.state is FactState.CONFLICT:
        return Truth.UNKNOWN, None
    if fact is not None and fact.state is FactState.KNOWN and fact.value is not None:
        return compare.compare(leaf, fact.value), None
    if fact is not None and fact.why:
        return Truth.UNKNOWN, None  # doubt is no silence, and only silence is presumed upon
    if leaf.if_silent is not None:
        return leaf.if_silent, Presumption.CODES if leaf.if_silent is Truth.NOT_MET else Presumption.DECLARED
    definition = context.definitions[leaf.fact]
    if definition.presume is None:
        return Truth.UNKNOWN, None
    return compare.compare(leaf, compare.typed_value(definition, definition.presume)), Presumption.DECLARED


def _elapsed(node: Elapsed, context: Context) -> Node:
    fact = context.facts.get(node.fact)
    truth, why = Truth.UNKNOWN, "nothing stated"
    if fact is not None and fact.state is FactState.KNOWN and isinstance(fact.value, date):
        truth, why = compare.elapsed(node, fact.value, context.as_of), "the date lies after the as-of date"
    elif fact is not None and fact.why:
        why = fact.why
    return Node("elapsed", node.path, truth, node.label, None, node.fact, why=why if truth is Truth.UNKNOWN else None)


def _diagnosis(node: Diagnosis, context: Context) -> Node:
    if not context.diagnosis_codes:
        why = "the request has no diagnosis code"
        return Node("diagnosis", node.path, Truth.UNKNOWN, node.label, None, DIAGNOSIS_CODES, why=why)
    truth = Truth.MET if any_matches(node.patterns, context.diagnosis_codes) else Truth.NOT_MET
    return Node("diagnosis", node.path, truth, node.label, None, DIAGNOSIS_CODES)
