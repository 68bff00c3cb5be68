"""The hybrid reasoner: code plans and fetches, one call to a model reads facts, the criteria engine decides.

The model's facts can stop an answer and never make one. What is determined is what the criteria give on the facts that
the rules read; where the model's reading, or both readings together, would give another outcome, or the two contradict
each other on a fact that decides, the line goes to REVIEW and shows both.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from cda.agents.answers import MAX_FACTS
from cda.contracts.decision import NotedConflict
from cda.contracts.facts import Fact, FactDefinition, FactState
from cda.contracts.model_client import FailureKind, ModelClient, ModelFailure
from cda.contracts.policy_tools import ClauseView
from cda.criteria.derive import Derivations
from cda.criteria.line import LineEvaluation
from cda.harness.reasoner import Case, LineReasoned, Reasoned
from cda.systems.coverage.facts import CaseFacts
from cda.systems.coverage.model_facts import Checked, alike, checked_facts, given_value, shown_facts, shown_narrative
from cda.systems.coverage.reasoner import CriteriaReasoner
from cda.systems.coverage.roles import extractor

Facts = Mapping[str, Fact]


class HybridReasoner:
    """Decides by criteria as data, on facts that a model and the rules read alike. `passes` 2 reads deciding facts
    twice, and a fact that the model reads in two ways is one that it does not know."""

    name = "hybrid"

    def __init__(
        self,
        criteria: CriteriaReasoner,
        facts: CaseFacts,
        definitions: Mapping[str, FactDefinition],
        client: ModelClient,
        *,
        passes: int = 1,
    ) -> None:
        self._criteria, self._facts, self._definitions = criteria, facts, definitions
        self._client, self._passes = client, passes

    def determine(self, case: Case, clauses: Sequence[ClauseView], facts: Facts) -> Reasoned:
        """The criteria's answer, its lines sent to REVIEW where the model's reading speaks against them."""
        told = self._criteria.determine(case, clauses, facts)
        names = self._asked(case, clauses)
        if not names:
            return told
        checked = self._read(case, names, facts, key="1")
        if self._passes > 1:
            checked = self._again(case, clauses, facts, checked)
        return self._compared(case, clauses, facts, checked, told)

    def _asked(self, case: Case, clauses: Sequence[ClauseView]) -> tuple[str, ...]:
        """The facts to read: those the clauses can use and the request does not state. None without a narrative."""
        if not shown_narrative(case.request.narrative, case.fences).strip():
            return ()
        stated = {name for name, value in (case.request.facts or {}).items() if value is not None}
        return tuple(name for name in self._facts.needed(case, clauses) if name not in stated)

    def _read(self, case: Case, names: Sequence[str], facts: Facts, *, key: str) -> Checked:
        if len(names) > MAX_FACTS:
            detail = f"the clauses use {len(names)} facts, and one call reads {MAX_FACTS}"
            raise ModelFailure(FailureKind.REJECTED, extractor().name, detail)
        narrative = shown_narrative(case.request.narrative, case.fences)
        shown = {
            "as_of": case.as_of.isoformat(),
            "codes": list(case.codes),
            "facts": shown_facts(names, self._definitions),
            "narrative": narrative,
        }
        reading = extractor().ask(self._client, case.meter, shown, key=key)
        return checked_facts(reading.facts, names, self._definitions, narrative=narrative, read=facts)

    def _again(self, case: Case, clauses: Sequence[ClauseView], facts: Facts, first: Checked) -> Checked:
        decisive = {name for line in self._lines(case, clauses, facts, first) for name in self._deciding(line)}
        names = [name for name in first.facts if name in decisive]
        if not names:
            return first
        second = self._read(case, names, facts, key="2")
        differ = {
            name
            for name in names
            if (first.facts[name].state, first.facts[name].value)
            != (second.facts[name].state, second.facts[name].value)
        }
        unsure = {name: Fact.unknown(name, "two readings differ") for name in differ}
        return Checked({**first.facts, **unsure}, {**first.broken, **dict.fromkeys(differ, "two readings differ")})

    def _lines(
        self, case: Case, clauses: Sequence[ClauseView], facts: Facts, checked: Checked
    ) -> Iterator[LineEvaluation]:
        """Each code's lines under the rules' facts, under the model's, and under both."""
        for one in (facts, _alone(facts, checked), _together(facts, checked)):
            yield from self._criteria.evaluate(case, clauses, one)

    def _compared(
        self, case: Case, clauses: Sequence[ClauseView], facts: Facts, checked: Checked, told: Reasoned
    ) -> Reasoned:
        codes = len(case.codes)
        lines = list(self._lines(case, clauses, facts, checked))
        reasoned, noted = [], list(told.determination.noted_conflicts)
        for place, line in enumerate(told.lines):
            views = lines[place::codes]
            reasons, conflicts = self._against(views, facts, checked)
            noted += [conflict for conflict in conflicts if conflict not in noted]
            reasoned.append(replace(line, review_reasons=(*line.review_reasons, *reasons)) if reasons else line)
        determination = told.determination.model_copy(update={"noted_conflicts": tuple(noted)})
        return Reasoned(determination, tuple[LineReasoned, ...](reasoned))

    def _against(
        self, views: Sequence[LineEvaluation], facts: Facts, checked: Checked
    ) -> tuple[list[str], list[NotedConflict]]:
        """Why the model's reading speaks against a line, as reasons without and as conflicts with the chart's words."""
        by_rules, *others = views
        decisive = {name for view in views for name in self._deciding(view)}
        outcomes = list(dict.fromkeys(view.outcome.value for view in others if view.outcome is not by_rules.outcome))
        differing = [
            name for name in checked.facts if name in decisive and _differ(facts.get(name), checked.facts[name])
        ]
        if not outcomes:
            differing = [name for name in differing if _contradict(facts.get(name), checked.facts[name])]
        reasons, conflicts = [], []
        for name in differing:
            words = f"{self._definitions[name].label} ({name}): the model and the rules read it differently"
            broken = checked.broken.get(name)
            by_model = (
                f"the model's reading does not stand ({broken})"
                if broken
                else f"the model: {_told(checked.facts[name])}"
            )
            reasons.append(f"model_disagrees: {words}")
            ruled = _told(facts.get(name) or Fact.unknown(name))
            then = f"; with the model's it is {', '.join(outcomes)}" if outcomes else ""
            text = f"{words}; {by_model}; the rules: {ruled}{then}"
            conflicts.append(NotedConflict(kind="fact", text=text, changes_answer=True))
        if outcomes and not reasons:
            reasons.append(f"model_disagrees: on the model's reading the answer is {', '.join(outcomes)}")
        return reasons, conflicts

    def _deciding(self, line: LineEvaluation) -> frozenset[str]:
        """The facts that the line rests on or lacks, and those that these are derived from."""
        named = {node.fact for entry in line.deciding for node in entry.tree.walk() if node.fact is not None}
        named |= {missing.fact for missing in line.missing}
        known = sorted(name for name in named if name in self._definitions)
        return frozenset(known) | frozenset(Derivations(self._definitions, known).facts)


def _alone(facts: Facts, checked: Checked) -> Facts:
    """The model's facts; what it was not asked for is as the request states it."""
    return {**facts, **checked.facts}


def _together(facts: Facts, checked: Checked) -> Facts:
    """The rules' facts, and the model's where the rules know none."""
    open_ = {name for name in checked.facts if name not in facts or facts[name].state is FactState.UNKNOWN}
    return {**facts, **{name: checked.facts[name] for name in open_}}


def _differ(ruled: Fact | None, given: Fact) -> bool:
    known = ruled is not None and ruled.state is FactState.KNOWN
    return known != (given.state is FactState.KNOWN) or _contradict(ruled, given)


def _contradict(ruled: Fact | None, given: Fact) -> bool:
    if ruled is None or ruled.state is not FactState.KNOWN or given.state is not FactState.KNOWN:
        return False
    return not alike(ruled.value, given.value)


def _told(fact: Fact) -> str:
    if fact.state is not FactState.KNOWN or fact.value is None:
        return "unknown" if fact.state is FactState.UNKNOWN else "in conflict"
    quotes = [piece.quote for piece in fact.evidence if piece.quote]
    return given_value(fact.value) + (f" in {' '.join(quotes[0].split())!r}" if quotes else "")
