"""The coverage system, wired: store, index, policy tools, facts, criteria, judge, and the harness that runs them.

`CoverageSystem.open` builds what is missing on a fresh machine; one open system answers any number of requests, from
several threads.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date
from functools import cached_property
from importlib.metadata import version
from typing import Any

from cda.contracts.decision import GateState, Provenance, RunResult, Versus
from cda.contracts.definitions import definitions_from_data
from cda.contracts.facts import Fact, FactDefinition
from cda.contracts.policy_tools import PolicyTools
from cda.criteria.explain import differences
from cda.criteria.line import LineEvaluation
from cda.harness.loop import Parts, RunSettings, halted, run
from cda.harness.preflight import check
from cda.harness.reasoner import Case
from cda.harness.requests import parse_request
from cda.harness.retrieval import gather
from cda.settings import Settings
from cda.systems.coverage.facts import CaseFacts
from cda.systems.coverage.judge import CriteriaJudge
from cda.systems.coverage.reasoner import CriteriaReasoner
from cda.systems.coverage.setting_up import Opened, open_corpus
from cda.systems.coverage.tools import StoreDirectory


@dataclass(frozen=True, slots=True)
class _Read:
    """One request as far as its evaluation goes, for questions that need no verified answer."""

    case: Case
    evaluations: tuple[LineEvaluation, ...]


def open_tools(settings: Settings, *, say: Callable[[str], None] | None = None) -> PolicyTools:
    """The policy tools alone, for commands that ask no coverage question."""
    return open_corpus(settings, say=say).tools


class CoverageSystem:
    """Answers coverage questions over one corpus store and one index."""

    def __init__(self, settings: Settings, opened: Opened) -> None:
        self._settings = settings
        self._opened = opened
        self.definitions: Mapping[str, FactDefinition] = definitions_from_data(opened.store.fact_definitions())
        self._facts = CaseFacts(self.definitions)
        self._reasoner = CriteriaReasoner(self.definitions)
        self._directory = StoreDirectory(opened.store)

    @classmethod
    def open(cls, settings: Settings, *, say: Callable[[str], None] | None = None) -> "CoverageSystem":
        """Open store and index, building what is missing; `say` hears of each long step. Raises the errors of the
        corpus and the index."""
        return cls(settings, open_corpus(settings, say=say))

    @property
    def tools(self) -> PolicyTools:
        """The five policy tools this system answers with."""
        return self._opened.tools

    def ask(self, raw: Mapping[str, Any], *, versus: date | None = None) -> RunResult:
        """Answer one request (the JSON object of CoverageRequest); never raises for what is in it."""
        result = run(raw, parts=self._parts, settings=self._run_settings)
        if versus is None or result.gate.state is GateState.HALT:
            return result
        other = run({**raw, "as_of_date": versus.isoformat()}, parts=self._parts, settings=self._run_settings)
        return result.model_copy(update={"versus": self._versus(raw, versus, other)})

    def ask_line(self, raw: bytes, number: int) -> RunResult:
        """Answer one line of a batch; a line that is no JSON object is a HALT that says so."""
        try:
            decoded = json.loads(raw.decode("utf-8"))
        except (ValueError, RecursionError):
            return halted("request: not a JSON document", self._provenance).model_copy(update={"line": number})
        return run(decoded, parts=self._parts, settings=self._run_settings).model_copy(update={"line": number})

    def read_facts(self, raw: Mapping[str, Any], names: tuple[str, ...]) -> dict[str, Fact]:
        """What the narrative gives for these facts, fenced spans left out; empty when pre-flight halts."""
        checked = check(parse_request(raw), directory=self._directory)
        if checked.as_of is None:
            return {}
        case = Case(request=checked.request, as_of=checked.as_of, plan=checked.plan, codes=checked.codes)
        fences = [(f.start, f.end) for f in checked.preflight.injection_flags if f.field == "narrative"]
        return self._facts.named(case, tuple(name for name in names if name in self.definitions), ignore=fences)

    def _versus(self, raw: Mapping[str, Any], day: date, other: RunResult) -> Versus:
        one, two = self._read(raw), self._read({**raw, "as_of_date": day.isoformat()})
        found = [
            difference
            for before, after in zip(one.evaluations, two.evaluations, strict=True)
            for difference in differences(before, after)
        ]
        return Versus(
            as_of_date=day,
            outcome=other.determination.outcome if other.determination else None,
            gate=other.gate.state,
            differences=tuple(found),
        )

    def _read(self, raw: Mapping[str, Any]) -> _Read:
        checked = check(parse_request(raw), directory=self._directory)
        if checked.as_of is None:
            raise ValueError("a request that halts is not evaluated")
        case = Case(request=checked.request, as_of=checked.as_of, plan=checked.plan, codes=checked.codes)
        gathered = gather(case, self.tools, question="", max_iterations=1, k=8, checkpoint=lambda: None)
        fences = [(f.start, f.end) for f in checked.preflight.injection_flags if f.field == "narrative"]
        facts = self._facts.read(case, gathered.usable, ignore=fences)
        return _Read(case, self._reasoner.evaluate(case, gathered.usable, facts))

    @cached_property
    def _parts(self) -> Parts:
        return Parts(
            tools=self.tools,
            directory=self._directory,
            facts=self._facts,
            reasoner=self._reasoner,
            judge=CriteriaJudge(self.definitions),
            provenance=self._provenance,
            fact_check=self._facts.fault,
        )

    @cached_property
    def _provenance(self) -> Provenance:
        return Provenance(
            corpus_digest=self._opened.store.digest,
            index_manifest=self._opened.index_manifest,
            backend=self._settings.vector_backend,
            embedder=self._settings.embedder,
            reranker=self._settings.reranker,
            reasoner=self._reasoner.name,
            code_version=version("coverage-determination-agent"),
        )

    @cached_property
    def _run_settings(self) -> RunSettings:
        return RunSettings(
            max_iterations=self._settings.max_iterations,
            max_seconds=self._settings.run_timeout_s,
            fault=self._settings.fault,
            trace_dir=self._settings.trace_path,
        )
