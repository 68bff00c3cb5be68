"""Expressions: frozen trees over facts, diagnosis codes and dates. What they mean is in evaluate; how they are read
from data, in parse.

`path` is where a node stands in its clause's criterion ("covers_if.all.1"), stable as long as the criterion is.
`label` says it in plain words. `Waivable`, `Waived` and `Added` are never authored: the rules of a line build them
from UNLESS and from riders, so that one evaluation and one explanation tree serve patched and unpatched criteria.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date
from functools import partial
from operator import attrgetter
from typing import Any

from cda.contracts.facts import FactType
from cda.criteria.truth import Truth, at_least, conjunction, disjunction, negation

Operand = bool | str | float | date | tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Const:
    """`true` or `false`."""

    value: bool
    path: str
    label: str


@dataclass(frozen=True, slots=True)
class Leaf:
    """A comparison of one fact with a constant in the fact's own unit.

    `if_silent`: what to take when nothing is stated of the fact, shown as presumed. NOT_MET marks a condition that the
    request's diagnosis codes do not put at issue, MET a limit that nothing says is exceeded.
    """

    fact: str
    type: FactType
    op: str
    value: Operand
    path: str
    label: str
    if_silent: Truth | None = None


@dataclass(frozen=True, slots=True)
class Elapsed:
    """The time from a date fact to the as-of date, compared with `value` of `unit` (compare.elapsed)."""

    fact: str
    op: str
    value: int
    unit: str
    path: str
    label: str


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """Membership of the request's diagnosis codes in ICD-10-CM patterns."""

    patterns: tuple[str, ...]
    path: str
    label: str


@dataclass(frozen=True, slots=True)
class AllOf:
    """Every child is required."""

    children: tuple["Expression", ...]
    path: str
    label: str
    named: str | None = None


@dataclass(frozen=True, slots=True)
class AnyOf:
    """One child is enough."""

    children: tuple["Expression", ...]
    path: str
    label: str
    named: str | None = None


@dataclass(frozen=True, slots=True)
class AtLeast:
    """`count` of the children are required."""

    count: int
    children: tuple["Expression", ...]
    path: str
    label: str
    named: str | None = None


@dataclass(frozen=True, slots=True)
class Not:
    """The child must be NOT_MET."""

    child: "Expression"
    path: str
    label: str
    named: str | None = None


@dataclass(frozen=True, slots=True)
class _Patched:
    requirement: "Expression"
    by: str

    @property
    def path(self) -> str:
        """Where the requirement stands."""
        return self.requirement.path

    @property
    def label(self) -> str:
        """The requirement in plain words."""
        return self.requirement.label


@dataclass(frozen=True, slots=True)
class Waivable(_Patched):
    """A requirement that counts as met when `when` is, by the UNLESS of clause `by`."""

    when: "Expression"


@dataclass(frozen=True, slots=True)
class Waived(_Patched):
    """A requirement that rider clause `by` takes away: met, whatever the chart says."""


@dataclass(frozen=True, slots=True)
class Added(_Patched):
    """A requirement that rider clause `by` adds; its paths are those of the rider's criterion."""


Expression = Const | Leaf | Elapsed | Diagnosis | AllOf | AnyOf | AtLeast | Not | Waivable | Waived | Added


# By kind and not by pattern: these two are asked of every node of every evaluation and trial.
_PARTS: dict[type, Callable[[Any], tuple[Expression, ...]]] = {
    AllOf: attrgetter("children"),
    AnyOf: attrgetter("children"),
    AtLeast: attrgetter("children"),
    Not: lambda node: (node.child,),
    Waivable: attrgetter("requirement", "when"),
    Waived: lambda node: (node.requirement,),
    Added: lambda node: (node.requirement,),
}


def children_of(expression: Expression) -> tuple[Expression, ...]:
    """The direct parts of a node, in reading order."""
    parts = _PARTS.get(type(expression))
    return parts(expression) if parts is not None else ()


def connective(expression: Expression) -> Callable[[Sequence[Truth]], Truth]:
    """How the truths of `children_of` combine into that of the node. Raises TypeError for a node without parts."""
    if isinstance(expression, AtLeast):
        return partial(at_least, expression.count)
    combine = _CONNECTIVES.get(type(expression))
    if combine is None:
        raise TypeError("a leaf has no connective")
    return combine


def _opposite(truths: Sequence[Truth]) -> Truth:
    return negation(truths[0])


def _granted(_: Sequence[Truth]) -> Truth:
    return Truth.MET


_CONNECTIVES: dict[type, Callable[[Sequence[Truth]], Truth]] = {
    AllOf: conjunction,
    AnyOf: disjunction,
    Waivable: disjunction,
    Not: _opposite,
    Added: conjunction,
    Waived: _granted,
}


def name_of(expression: Expression) -> str | None:
    """The name by which a waiver or a rider can address this node: `named` of a composite, the fact of a leaf."""
    match expression:
        case Leaf(fact=fact) | Elapsed(fact=fact):
            return fact
        case AllOf(named=named) | AnyOf(named=named) | AtLeast(named=named) | Not(named=named):
            return named
        case _:
            return None


def walk(expression: Expression) -> Iterator[Expression]:
    """The node and everything below it, in reading order."""
    yield expression
    for child in children_of(expression):
        yield from walk(child)


def names(expression: Expression) -> frozenset[str]:
    """Every name that a waiver could address in the expression."""
    return frozenset(name for node in walk(expression) if (name := name_of(node)))


def facts_of(expression: Expression) -> frozenset[str]:
    """Every fact the expression compares."""
    return frozenset(node.fact for node in walk(expression) if isinstance(node, Leaf | Elapsed))


def selectors(expression: Expression, has_dx: Callable[[str], bool]) -> Iterator[Leaf]:
    """The leaves that tie the expression to a condition which diagnosis codes can name.

    Leaves below a `not` tie it to nothing: presuming them would satisfy the expression instead of setting it aside.
    """
    if isinstance(expression, Leaf) and has_dx(expression.fact):
        yield expression
    elif not isinstance(expression, Not):
        for child in children_of(expression):
            yield from selectors(child, has_dx)


def rewrite(expression: Expression, change: Callable[[Expression], Expression]) -> Expression:
    """The expression with `change` applied to every node, children first; the WHEN of a waiver is left alone."""
    match expression:
        case AllOf(children=children) | AnyOf(children=children) | AtLeast(children=children):
            changed = tuple(rewrite(child, change) for child in children)
            if changed != children:
                expression = replace(expression, children=changed)
        case Not(child=child):
            expression = replace(expression, child=rewrite(child, change))
        case Waivable(requirement=requirement) | Waived(requirement=requirement) | Added(requirement=requirement):
            expression = replace(expression, requirement=rewrite(requirement, change))
        case _:
            pass
    return change(expression)
