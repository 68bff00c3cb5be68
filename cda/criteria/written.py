"""What is written about a requested code, whoever asks: who governs it, under which rules, from which facts.

Pure, and so worked out once for the same clauses in effect: a run asks for the facts to read and then for the answer,
and the next run is often about the same code, version and plan.
"""

from collections.abc import Mapping, Sequence
from datetime import date
from functools import cached_property
from operator import is_

from cda.contracts.facts import FactDefinition
from cda.contracts.policy_tools import ClauseView
from cda.criteria.derive import Derivations
from cda.criteria.expression import Elapsed, facts_of, walk
from cda.criteria.governing import Governing, governing
from cda.criteria.rules import LineRules, Substitution, patched_rules, with_codes
from cda.criteria.trials import TrialForm

_KEPT_READINGS = 64


class Written:
    """What is written about one code under one plan, by clauses in effect: who governs, the rules, the facts that they
    and the routing clauses compare, and how those are derived. Nothing here depends on a member's facts."""

    def __init__(
        self,
        clauses: tuple[ClauseView, ...],
        definitions: Mapping[str, FactDefinition],
        found: Governing,
    ) -> None:
        self.clauses, self.definitions, self.found = clauses, definitions, found
        self._readings: dict[tuple[tuple[str, ...], str | None, Substitution | None], LineRules] = {}
        self._forms: dict[tuple[tuple[str, ...], date | None], TrialForm] = {}

    @cached_property
    def rules(self) -> LineRules:
        """The rules before any diagnosis code is looked at."""
        return patched_rules(self.found, self.definitions)

    @cached_property
    def compared(self) -> frozenset[str]:
        """Every fact that a rule or a routing clause compares."""
        facts = frozenset(fact for rule in self.rules.rules for fact in rule.facts)
        return facts | {fact for _, when in self.found.routing for fact in facts_of(when)}

    @cached_property
    def derivations(self) -> Derivations:
        """How those facts follow from others."""
        return Derivations(self.definitions, self.compared)

    def under(
        self, codes: tuple[str, ...], *, without: str | None = None, substitution: Substitution | None = None
    ) -> LineRules:
        """The rules under the diagnosis codes of a request; see `line_rules` for the trials."""
        key = (codes, without, substitution)
        if (known := self._readings.get(key)) is None:
            changed = without is not None or substitution is not None
            patched = (
                patched_rules(self.found, self.definitions, without=without, substitution=substitution)
                if changed
                else self.rules
            )
            if len(self._readings) >= _KEPT_READINGS:
                self._readings.clear()
            known = self._readings[key] = with_codes(patched, self.definitions, codes)
        return known

    @cached_property
    def _counts_days(self) -> bool:
        return any(isinstance(node, Elapsed) for rule in self.rules.rules for node in walk(rule.expression))

    def trial_form(self, codes: tuple[str, ...], as_of: date) -> TrialForm:
        """The rules under these codes as trials work on them; one for every day unless a rule counts days."""
        rules = self.under(codes).rules
        key = (codes, as_of if self._counts_days else None)
        if (known := self._forms.get(key)) is None:
            if len(self._forms) >= _KEPT_READINGS:
                self._forms.clear()
            known = self._forms[key] = TrialForm(rules, self.definitions, codes, as_of)
        return known


_KEPT = 256
_WRITTEN: dict[tuple[str, str | None, str, tuple[str, ...]], Written] = {}
"""What was asked for of late, by code, plan, payer and the ids of the clauses in effect."""


def written_of(
    clauses: Sequence[ClauseView],
    definitions: Mapping[str, FactDefinition],
    *,
    procedure_code: str,
    as_of: date,
    plan_id: str | None,
    payer_id: str,
) -> Written:
    """What these clauses say of the code; as worked out before when those in effect are the very same views in the same
    order. Raises as `governing` does."""
    in_force = tuple([clause for clause in clauses if clause.payer_id == payer_id and clause.in_effect(as_of)])
    key = (procedure_code, plan_id, payer_id, tuple([clause.clause_id for clause in in_force]))
    known = _WRITTEN.get(key)
    if known is not None and known.definitions is definitions and all(map(is_, known.clauses, in_force)):
        return known
    found = governing(
        in_force,
        definitions,
        procedure_code=procedure_code,
        as_of=as_of,
        plan_id=plan_id,
        payer_id=payer_id,
    )
    if len(_WRITTEN) >= _KEPT:
        _WRITTEN.clear()
    written = _WRITTEN[key] = Written(in_force, definitions, found)
    return written
