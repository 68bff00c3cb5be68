"""Trials: what the line would come to if a fact were other than it is.

Two answers rest on them: which missing facts decide most, and the smallest sets of facts that would flip the outcome.
A trial gives facts representative values, one for each way in which a value can matter to this line's comparisons,
derives anew, and judges. It works on the truths of the leaves alone, with the connectives that evaluation uses; the
number of trials is bounded.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import date
from itertools import combinations, product
from typing import NamedTuple

from cda.contracts.decision import Flip, Outcome
from cda.contracts.facts import Evidence, Fact, FactDefinition, FactState, Value
from cda.criteria.derive import Derivations
from cda.criteria.evaluate import Context, Presumption, leaf_truth
from cda.criteria.expression import Elapsed, Expression, Leaf, children_of, connective
from cda.criteria.rules import Rule
from cda.criteria.truth import Truth
from cda.criteria.values import candidates, plain
from cda.criteria.verdict import Finding, judge

MAX_PAIRS = 40
"""Trials of two facts at once, each some 20 to 50 microseconds: what one line may spend on flips of two."""
MAX_FLIPS = 6
"""Flip sets that are returned."""

_STATED = (Evidence("", source="structured"),)
_MAX_JUDGED = 4096
_Effect = tuple[Truth, bool]
"""The truth of a leaf, or of a rule, and whether the diagnosis codes presume it."""


class _Tried(NamedTuple):
    """What `judge` asks of a rule, under a trial."""

    rule: Rule
    truth: Truth
    by_codes: bool


class TrialForm:
    """The rules of a line as trials work on them: flat lists of leaves, and what each value of a fact makes of them.

    It holds nothing of a member, so one serves every request on the same rules. `as_of` matters to rules that count
    days, and to no others.
    """

    def __init__(
        self,
        rules: Sequence[Rule],
        definitions: Mapping[str, FactDefinition],
        codes: tuple[str, ...],
        as_of: date,
    ) -> None:
        self._rules = rules
        self._silence = Context({}, definitions, codes, as_of)
        self._leaves: list[Expression] = []
        self._compiled = [self._compile(rule.expression) for rule in rules]
        self.places: dict[str, list[int]] = {}
        for place, leaf in enumerate(self._leaves):
            if isinstance(leaf, Leaf | Elapsed):
                self.places.setdefault(leaf.fact, []).append(place)
        self._touched: dict[str, list[int]] = {}
        for number, rule in enumerate(rules):
            for fact in rule.facts:
                self._touched.setdefault(fact, []).append(number)
        self._effects: dict[tuple[str, Value], tuple[_Effect, ...]] = {}
        self._judged: dict[tuple[_Effect, ...], Outcome] = {}
        self.values = {fact: self._representatives(fact) for fact in sorted(self.places)}

    def effects(self, name: str, fact: Fact) -> tuple[_Effect, ...]:
        """What a fact makes of each leaf that compares it."""
        if fact.value is None:
            return self._effects_of(name, fact)
        key = (name, fact.value)
        if (known := self._effects.get(key)) is None:
            known = self._effects[key] = self._effects_of(name, fact)
        return known

    def touched(self, facts: Iterable[str]) -> set[int]:
        """The numbers of the rules that compare one of the facts."""
        return {number for fact in facts for number in self._touched.get(fact, ())}

    def effect(self, number: int, truths: list[Truth], by_codes: list[bool]) -> _Effect:
        """What a rule comes to, given the truths of all leaves and which of them the diagnosis codes presume."""
        of = self._compiled[number]
        truth = of(truths)
        if not self._rules[number].selectors or truth is Truth.UNKNOWN or True not in by_codes:
            return truth, False
        stated = [Truth.UNKNOWN if code else truth for truth, code in zip(truths, by_codes, strict=True)]
        return truth, of(stated) is Truth.UNKNOWN

    def outcome(self, effects: tuple[_Effect, ...]) -> Outcome:
        """The outcome of the line when its rules come to this."""
        if (known := self._judged.get(effects)) is None:
            if len(self._judged) >= _MAX_JUDGED:
                self._judged.clear()
            tried = [_Tried(rule, *effect) for rule, effect in zip(self._rules, effects, strict=True)]
            known = self._judged[effects] = judge(tried)[0]
        return known

    def _compile(self, expression: Expression) -> Callable[[list[Truth]], Truth]:
        """The truth of an expression as a function of the truths of its leaves, which get their places here."""
        children = children_of(expression)
        if not children:
            place = len(self._leaves)
            self._leaves.append(expression)
            return lambda truths: truths[place]
        combine, parts = connective(expression), [self._compile(child) for child in children]
        return lambda truths: combine([part(truths) for part in parts])

    def _effects_of(self, name: str, fact: Fact) -> tuple[_Effect, ...]:
        given = self._silence
        context = Context({name: fact}, given.definitions, given.diagnosis_codes, given.as_of)
        found = [leaf_truth(self._leaves[place], context) for place in self.places.get(name, ())]
        return tuple([(truth, presumption is Presumption.CODES) for truth, presumption in found])

    def _representatives(self, fact: str) -> tuple[Value, ...]:
        """One value for each combination of truths that a value can give this line's comparisons of the fact."""
        leaves = [leaf for place in self.places[fact] if isinstance(leaf := self._leaves[place], Leaf | Elapsed)]
        by_effect: dict[tuple[_Effect, ...], Value] = {}
        for value in candidates(self._silence.definitions[fact], leaves, self._silence.as_of):
            by_effect.setdefault(self.effects(fact, _stated(fact, value)), value)
        return tuple(by_effect.values())


class Trials:
    """Trials over one evaluated line."""

    def __init__(
        self,
        findings: Sequence[Finding],
        context: Context,
        derivations: Derivations,
        outcome: Outcome,
        form: TrialForm,
    ) -> None:
        self._context = context
        self._derivations = derivations
        self._outcome = outcome
        self._form = form
        self._values = form.values
        # An explanation has the shape of its expression, so its leaves stand in the order of the form's.
        nodes = [node for finding in findings for node in finding.node.walk() if not node.children]
        self._truths = [node.truth for node in nodes]
        self._by_codes = [node.presumption is Presumption.CODES for node in nodes]
        self._as_is = [form.effect(number, self._truths, self._by_codes) for number in range(len(findings))]
        self._single: dict[tuple[str, Value], Outcome | None] = {}

    def share(self, fact: str) -> float:
        """The fraction of the fact's representative values that alone would decide the line."""
        outcomes = [self._alone(fact, value) for value in self._values.get(fact, ())]
        possible = [outcome for outcome in outcomes if outcome is not None]
        decided = [outcome for outcome in possible if outcome is not Outcome.INSUFFICIENT_EVIDENCE]
        return len(decided) / len(possible) if possible else 0.0

    def flips(self, preferred: Sequence[str]) -> tuple[Flip, ...]:
        """The smallest sets of facts that would change the outcome, at most MAX_FLIPS.

        Sets of two are tried when no single fact leads to another decided outcome. Those that decide come before those
        that open the line, then small sets before large, then facts in the order of `preferred`.
        """
        facts = list(dict.fromkeys([*(fact for fact in preferred if fact in self._values), *self._values]))
        found = [Flip(facts={fact: plain(v)}, outcome=o) for fact in facts for v, o in self._flipping(fact)]
        if not any(flip.outcome is not Outcome.INSUFFICIENT_EVIDENCE for flip in found):
            found = [*self._pairs(facts), *found]
        found.sort(key=lambda flip: flip.outcome is Outcome.INSUFFICIENT_EVIDENCE)
        return tuple(found[:MAX_FLIPS])

    def _flipping(self, fact: str) -> Iterator[tuple[Value, Outcome]]:
        """One value for each other outcome that the fact alone leads to."""
        reached: set[Outcome] = {self._outcome}
        for value in self._values[fact]:
            outcome = self._alone(fact, value)
            if outcome is not None and outcome not in reached:
                reached.add(outcome)
                yield value, outcome

    def _pairs(self, facts: Sequence[str]) -> Iterator[Flip]:
        """Pairs of facts that lead to another decided outcome, among the first MAX_PAIRS tried.

        The condition that a chart names is left as it is: a flip that swaps diseases helps no one.
        """
        tried = 0
        for pair in combinations([fact for fact in facts if not self._names_condition(fact)], 2):
            for values in product(*(self._values[fact] for fact in pair)):
                if tried == MAX_PAIRS:
                    return
                tried += 1
                changes = dict(zip(pair, values, strict=True))
                outcome = self._outcome_with(changes)
                if outcome not in (None, self._outcome, Outcome.INSUFFICIENT_EVIDENCE):
                    yield Flip(facts={fact: plain(value) for fact, value in changes.items()}, outcome=outcome)
                    break

    def _names_condition(self, fact: str) -> bool:
        stated = self._context.facts.get(fact)
        return bool(self._context.definitions[fact].dx) and stated is not None and stated.state is FactState.KNOWN

    def _alone(self, fact: str, value: Value) -> Outcome | None:
        key = (fact, value)
        if key not in self._single:
            self._single[key] = self._outcome_with({fact: value})
        return self._single[key]

    def _outcome_with(self, changes: Mapping[str, Value]) -> Outcome | None:
        """The outcome under the changes; None when they contradict what else is stated."""
        stated = {name: _stated(name, value) for name, value in changes.items()}
        if self._derivations.facts.isdisjoint(changes):
            return self._judged(stated)
        before, names = self._context.facts, self._derivations.facts | stated.keys()
        after = self._derivations.apply({**before, **stated}, self._context.as_of)
        changed = {name: after.get(name, Fact.unknown(name)) for name in names if after.get(name) != before.get(name)}
        if any(fact.state is FactState.CONFLICT for fact in changed.values()):
            return None
        return self._judged(changed)

    def _judged(self, changed: Mapping[str, Fact]) -> Outcome:
        """The outcome when the changed facts are as given and all others as they are."""
        form, truths, by_codes = self._form, self._truths.copy(), self._by_codes.copy()
        for name, fact in changed.items():
            if name in form.places:
                for place, effect in zip(form.places[name], form.effects(name, fact), strict=True):
                    truths[place], by_codes[place] = effect
        effects = self._as_is.copy()
        for number in form.touched(changed):
            effects[number] = form.effect(number, truths, by_codes)
        return form.outcome(tuple(effects))


def _stated(name: str, value: Value) -> Fact:
    return Fact(name, FactState.KNOWN, value, _STATED)
