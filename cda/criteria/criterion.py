"""Clause criteria: what one clause of a policy or rider decides, read from its data. The kinds are closed.

`parse_criterion` gives the value or one `CriterionError` that lists every fault; `validate_criterion` gives the faults
alone, for `cda corpus check`. The language is described for authors in docs/reference/criteria.md.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from cda.contracts.facts import QUANTITIES, FactDefinition
from cda.criteria.expression import Const, Expression, Leaf, names
from cda.criteria.parse import ExpressionReader
from cda.errors import CriterionError


class Beyond(StrEnum):
    """What a request beyond a limit gets: it must be documented further, or it is not covered."""

    DOCUMENTATION = "documentation"
    NOT_COVERED = "not_covered"


@dataclass(frozen=True, slots=True)
class Scope:
    """What the policy is about and, where it says so, whom it reaches."""

    population: Expression | None


@dataclass(frozen=True, slots=True)
class Waives:
    """UNLESS that lifts named requirements while `when` holds."""

    when: Expression
    waived: frozenset[str]


@dataclass(frozen=True, slots=True)
class Routes:
    """UNLESS that sends the member to another service while `when` holds, so that this one is not covered."""

    when: Expression
    to: str


@dataclass(frozen=True, slots=True)
class Covers:
    """One alternative under which the service is covered."""

    when: Expression
    unless: Waives | Routes | None


@dataclass(frozen=True, slots=True)
class Excludes:
    """A condition under which the service is not covered, whatever else is met."""

    when: Expression


@dataclass(frozen=True, slots=True)
class Limit:
    """A bound on a quantity; nothing stated counts as within."""

    leaf: Leaf
    beyond: Beyond


@dataclass(frozen=True, slots=True)
class Requirement:
    """A duty that arises under a condition."""

    condition: Expression
    requires: Expression


@dataclass(frozen=True, slots=True)
class Statement:
    """What a clause says without deciding, and how that touches other clauses.

    `leaf` is a comparison a lower source states; `keeps` are facts whose requirements a rider leaves untouched;
    `refuses` is individual consideration: no standing policy decides.
    """

    leaf: Leaf | None
    contradicts: tuple[str, ...]
    keeps: tuple[str, ...]
    refuses: bool


@dataclass(frozen=True, slots=True)
class Waive:
    """Rider patch: the named requirement of policy `of` falls away."""

    name: str
    of: str


@dataclass(frozen=True, slots=True)
class ReplaceLimit:
    """Rider patch: the limit on `fact` of policy `of` becomes `value`."""

    fact: str
    value: float
    of: str


@dataclass(frozen=True, slots=True)
class AddNode:
    """Rider patch: every alternative of policy `of` also requires this."""

    requirement: Expression
    of: str


@dataclass(frozen=True, slots=True)
class AddDuty:
    """Rider patch: prior authorization is required under policy `of`; no medical criterion changes."""

    of: str


@dataclass(frozen=True, slots=True)
class Precedence:
    """A clause that says which source prevails; it informs and decides nothing."""


Patch = Waive | ReplaceLimit | AddNode | AddDuty
Criterion = Scope | Covers | Excludes | Limit | Requirement | Statement | Patch | Precedence

_KINDS: Mapping[str, frozenset[str]] = {
    "scope": frozenset({"scope", "population", "not"}),
    "covers_if": frozenset({"covers_if", "unless", "frequency", "cost_share", "remark"}),
    "excludes_if": frozenset({"excludes_if", "remark"}),
    "limit": frozenset({"limit", "also", "beyond"}),
    "if": frozenset({"if", "requires", "remark"}),
    "states": frozenset({"states", "contradicts", "keeps", "decides", "remark"}),
    "patch": frozenset({"patch", "remark"}),
    "precedence": frozenset({"precedence", "waivable_by_rider", "remark"}),
}
_PATCHES: Mapping[str, frozenset[str]] = {
    "waive": frozenset({"waive", "of", "on"}),
    "replace_limit": frozenset({"replace_limit", "with", "of"}),
    "add_node": frozenset({"add_node", "of"}),
    "add_duty": frozenset({"add_duty", "of"}),
}
_TEXTS = ("not", "frequency", "cost_share", "remark", "also", "on", "waivable_by_rider")
_DUTY = "prior authorization"
_PARSED: dict[str, tuple[Mapping[str, Any], Mapping[str, FactDefinition], Criterion]] = {}
"""Criteria read so far, by `where`, with the very data and definitions they were read from: one determination reads a
clause's many times, and its view holds one mapping."""
_MAX_PARSED = 4096


def parse_criterion(data: Mapping[str, Any], definitions: Mapping[str, FactDefinition], where: str) -> Criterion:
    """Return the criterion that `data` states; `where` (a clause id) opens the message.

    Raises CriterionError that lists every fault.
    """
    known = _PARSED.get(where)
    if known is not None and known[0] is data and known[1] is definitions:
        return known[2]
    reader = _CriterionReader(definitions)
    criterion = reader.criterion(data)
    if reader.faults or criterion is None:
        raise CriterionError(f"{where}: {'; '.join(reader.faults)}; correct the criterion and build the corpus again")
    if len(_PARSED) >= _MAX_PARSED:
        _PARSED.clear()
    _PARSED[where] = (data, definitions, criterion)
    return criterion


def validate_criterion(data: Any, definitions: Mapping[str, FactDefinition]) -> list[str]:
    """Return every fault of a clause's criterion, one sentence each; none for null (a clause that never decides)."""
    if data is None:
        return []
    reader = _CriterionReader(definitions)
    reader.criterion(data)
    return reader.faults


class _CriterionReader(ExpressionReader):
    """Reads the top of a criterion; expressions are read by its base."""

    def criterion(self, data: Any) -> Criterion | None:
        kinds = [kind for kind in _KINDS if kind in data] if isinstance(data, Mapping) else []
        if len(kinds) != 1:
            self.fault("criterion", f"has exactly one of {', '.join(_KINDS)}")
            return None
        self.only(data, _KINDS[kinds[0]], "criterion")
        self._texts(data)
        readers: dict[str, Callable[[Mapping[str, Any]], Criterion | None]] = {
            "scope": self._scope,
            "covers_if": self._covers,
            "excludes_if": self._excludes,
            "limit": self._limit,
            "if": self._requirement,
            "states": self._statement,
            "patch": self._patch,
            "precedence": self._precedence,
        }
        return readers[kinds[0]](data)

    def _excludes(self, data: Mapping[str, Any]) -> Excludes:
        return Excludes(self.read(data["excludes_if"], "excludes_if"))

    def _precedence(self, data: Mapping[str, Any]) -> Precedence:
        self._text(data["precedence"], "precedence")
        return Precedence()

    def _scope(self, data: Mapping[str, Any]) -> Scope:
        self._text(data["scope"], "scope")
        return Scope(self.read(data["population"], "population") if "population" in data else None)

    def _covers(self, data: Mapping[str, Any]) -> Covers:
        before = len(self.faults)
        when = self.read(data["covers_if"], "covers_if")
        known = names(when) if len(self.faults) == before else None
        return Covers(when, self._unless(data["unless"], known) if "unless" in data else None)

    def _unless(self, data: Any, known: frozenset[str] | None) -> Waives | Routes | None:
        """Read an UNLESS over the names of its covers_if; None when those could not be read."""
        meaning = data.get("meaning") if isinstance(data, Mapping) else None
        if meaning not in ("waives", "routes"):
            self.fault("unless", f"meaning is waives or routes, not {meaning!r}")
            return None
        self.only(data, {"meaning", "when", "waived" if meaning == "waives" else "to"}, "unless")
        if "when" not in data:
            self.fault("unless", "says when it holds, in `when`")
        when = self.read(data.get("when", False), "unless.when")
        if meaning == "routes":
            return Routes(when, self._text(data.get("to"), "unless.to"))
        waived = self._texts_in(data.get("waived"), "unless.waived")
        if not waived:
            self.fault("unless.waived", "names at least one requirement")
        for name in waived:
            if known is not None and name not in known:
                self.fault("unless.waived", f"{name!r} names nothing in covers_if; it has {', '.join(sorted(known))}")
        return Waives(when, frozenset(waived))

    def _limit(self, data: Mapping[str, Any]) -> Limit | None:
        leaf = self._comparison(data["limit"], "limit")
        if leaf is not None and leaf.type not in QUANTITIES:
            self.fault("limit", f"bounds a quantity; fact {leaf.fact} is a {leaf.type}")
        beyond = data.get("beyond")
        if beyond not in tuple(Beyond):
            self.fault("beyond", f"is {' or '.join(Beyond)}, not {beyond!r}")
            return None
        return Limit(leaf, Beyond(beyond)) if leaf is not None else None

    def _requirement(self, data: Mapping[str, Any]) -> Requirement:
        if "requires" not in data:
            self.fault("criterion", "a condition `if` has its `requires`")
        return Requirement(self.read(data["if"], "if"), self.read(data.get("requires", False), "requires"))

    def _statement(self, data: Mapping[str, Any]) -> Statement:
        states = data["states"]
        leaf = self._comparison(states, "states") if isinstance(states, Mapping) else None
        if leaf is None and not isinstance(states, Mapping):
            self._text(states, "states")
        keeps = self._texts_in(data.get("keeps", []), "keeps")
        for name in keeps:
            self.definition(name, "keeps")
        decides = data.get("decides")
        if "decides" in data and decides != "refuse":
            self.fault("decides", f"is refuse, not {decides!r}")
        contradicts = self._texts_in(data.get("contradicts", []), "contradicts")
        return Statement(leaf, contradicts, keeps, decides == "refuse")

    def _patch(self, criterion: Mapping[str, Any]) -> Patch | None:
        data = criterion["patch"]
        kinds = [kind for kind in _PATCHES if kind in data] if isinstance(data, Mapping) else []
        if len(kinds) != 1:
            self.fault("patch", f"has exactly one of {', '.join(_PATCHES)}")
            return None
        kind = kinds[0]
        self.only(data, _PATCHES[kind], "patch")
        self._texts(data)
        of = self._text(data.get("of"), "patch.of")
        match kind:
            case "waive":
                return Waive(self._text(data["waive"], "patch.waive"), of)
            case "replace_limit":
                return self._replace_limit(data, of)
            case "add_node":
                return AddNode(self.read(data["add_node"], "patch.add_node"), of)
            case _:
                if not self._text(data["add_duty"], "patch.add_duty").casefold().startswith(_DUTY):
                    self.fault("patch.add_duty", f"the one duty known is {_DUTY!r}")
                return AddDuty(of)

    def _replace_limit(self, data: Mapping[str, Any], of: str) -> ReplaceLimit | None:
        definition = self.definition(data["replace_limit"], "patch.replace_limit")
        if definition is None:
            return None
        if definition.type not in QUANTITIES:
            self.fault("patch.replace_limit", f"bounds a quantity; fact {definition.name} is a {definition.type}")
            return None
        value = self.value(definition, data.get("with"), "patch.with")
        return ReplaceLimit(definition.name, value, of) if isinstance(value, float) else None

    def _comparison(self, data: Any, path: str) -> Leaf | None:
        expression = self.read(data, path)
        if isinstance(expression, Leaf):
            return expression
        if not isinstance(expression, Const) or isinstance(data, bool):
            self.fault(path, "is one comparison of a fact")
        return None

    def _texts(self, data: Mapping[str, Any]) -> None:
        for key in _TEXTS:
            if key in data:
                self._text(data[key], key)

    def _text(self, data: Any, path: str) -> str:
        if not isinstance(data, str) or not data.strip():
            self.fault(path, "is a text")
        return str(data)

    def _texts_in(self, data: Any, path: str) -> tuple[str, ...]:
        if not isinstance(data, Sequence) or isinstance(data, str) or not all(isinstance(item, str) for item in data):
            self.fault(path, "is a list of names")
            return ()
        return tuple(data)
