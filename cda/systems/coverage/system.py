"""The coverage system, wired: store, index, policy tools, facts, criteria, judge, and the harness that runs them.

`CoverageSystem.open` builds what is missing on a fresh machine; one open system answers any number of requests, from
several threads.
"""

import json
from collections.abc import Callable, Mapping
from datetime import date
from functools import cached_property
from importlib.metadata import version
from typing import Any

from cda.contracts.decision import Difference, GateState, Provenance, RunResult, Versus
from cda.contracts.definitions import definitions_from_data
from cda.contracts.facts import Fact, FactDefinition
from cda.contracts.model_client import ModelClient
from cda.contracts.policy_tools import PolicyTools
from cda.criteria.explain import differences
from cda.criteria.line import LineEvaluation
from cda.errors import PolicyToolError
from cda.harness.loop import Parts, RunSettings, halted, run
from cda.harness.preflight import check
from cda.harness.reasoner import Case, Reasoner
from cda.harness.requests import MalformedRequest, parse_request
from cda.harness.retrieval import gather
from cda.settings import Settings
from cda.systems.coverage.asking_models import models_of, opened_client
from cda.systems.coverage.facts import CaseFacts
from cda.systems.coverage.judge import CriteriaJudge
from cda.systems.coverage.reasoner import CriteriaReasoner
from cda.systems.coverage.setting_up import Opened, open_corpus
from cda.systems.coverage.tools import StoreDirectory


def open_tools(settings: Settings, *, say: Callable[[str], None] | None = None) -> PolicyTools:
    """The policy tools alone, for commands that ask no coverage question."""
    return open_corpus(settings, say=say).tools


class CoverageSystem:
    """Answers coverage questions over one corpus store and one index."""

    def __init__(self, settings: Settings, opened: Opened, model_client: ModelClient | None = None) -> None:
        self._settings = settings
        self._opened = opened
        self._client = model_client
        self.definitions: Mapping[str, FactDefinition] = definitions_from_data(opened.store.fact_definitions())
        self._facts = CaseFacts(self.definitions)
        self._criteria = CriteriaReasoner(self.definitions)
        self._reasoner = self._chosen(model_client)
        self._directory = StoreDirectory(opened.store)

    @classmethod
    def open(
        cls,
        settings: Settings,
        *,
        say: Callable[[str], None] | None = None,
        model_client: ModelClient | None = None,
    ) -> "CoverageSystem":
        """Open store and index, building what is missing; `say` hears of each long step, and of what leaves the machine
        when a model is first asked.

        model_client: who asks models; None opens one from settings if the reasoner needs it, and it is closed by
        `close`. Raises the errors of the corpus and the index, and UnavailableError where no model can be asked.
        """
        if settings.reasoner != "criteria" and model_client is None:
            model_client = opened_client(settings, say=say)
        return cls(settings, open_corpus(settings, say=say), model_client)

    def close(self) -> None:
        """Cancel what is asked of models."""
        if self._client is not None:
            self._client.close()

    @property
    def tools(self) -> PolicyTools:
        """The five policy tools this system answers with."""
        return self._opened.tools

    def ask(self, raw: Mapping[str, Any], *, versus: date | None = None) -> RunResult:
        """Answer one request (the JSON object of CoverageRequest); never raises for what is in it."""
        result = self._run(raw)
        if versus is None or result.gate.state is GateState.HALT:
            return result
        other_raw = {**raw, "as_of_date": versus.isoformat()}
        other = self._run(other_raw)
        answered = result.determination is not None and other.determination is not None
        told = Versus(
            as_of_date=versus,
            outcome=other.determination.outcome if other.determination else None,
            gate=other.gate.state,
            differences=self._differences(raw, other_raw) if answered else (),
        )
        return result.model_copy(update={"versus": told})

    def ask_line(self, raw: bytes, number: int) -> RunResult:
        """Answer one line of a batch; a line that is no JSON object is a HALT that says so."""
        try:
            decoded = json.loads(raw.decode("utf-8-sig"))
        except (ValueError, RecursionError):
            result = halted("request: not a JSON document", self._provenance, trace_dir=self._settings.trace_path)
        else:
            result = self._run(decoded)
        return result.model_copy(update={"line": number})

    def read_facts(self, raw: Mapping[str, Any], names: tuple[str, ...]) -> dict[str, Fact]:
        """What the request gives for these facts, fenced spans left out; empty when pre-flight halts."""
        read = self._case(raw)
        if read is None:
            return {}
        case, fences = read
        return self._facts.named(case, tuple(name for name in names if name in self.definitions), ignore=fences)

    def _chosen(self, client: ModelClient | None) -> Reasoner:
        """The reasoner of the settings; the criteria's own needs no client and is given none."""
        name = self._settings.reasoner
        if name == "criteria" or client is None:
            return self._criteria
        if name == "hybrid":
            from cda.systems.coverage.hybrid import HybridReasoner

            passes = self._settings.hybrid_passes
            return HybridReasoner(self._criteria, self._facts, self.definitions, client, passes=passes)
        from cda.systems.coverage.agentic import AgenticReasoner

        return AgenticReasoner(self._criteria, self._facts, self.definitions, client, self.tools)

    def _run(self, raw: object) -> RunResult:
        return run(raw, parts=self.parts, settings=self._run_settings)

    def _differences(self, one: Mapping[str, Any], other: Mapping[str, Any]) -> tuple[Difference, ...]:
        """What differs line by line; none when the corpus can no longer be read, which each answer says by itself."""
        try:
            pairs = zip(self._evaluated(one), self._evaluated(other), strict=True)
            return tuple(found for before, after in pairs for found in differences(before, after))
        except PolicyToolError:
            return ()

    def _evaluated(self, raw: Mapping[str, Any]) -> tuple[LineEvaluation, ...]:
        """The lines of a request as far as criteria go; nothing is verified here, since the answers were."""
        read = self._case(raw)
        if read is None:
            return ()
        case, fences = read
        gathered = gather(case, self.tools, question="", max_iterations=1, k=8, checkpoint=lambda: None)
        facts = self._facts.read(case, gathered.usable, ignore=fences)
        return self._criteria.evaluate(case, gathered.usable, facts)

    def _case(self, raw: Mapping[str, Any]) -> tuple[Case, list[tuple[int, int]]] | None:
        """The request after pre-flight and the spans of its narrative that are no evidence; None when it halts."""
        try:
            checked = check(parse_request(raw), directory=self._directory, fact_check=self._facts.fault)
        except MalformedRequest:
            return None
        if checked.as_of is None or checked.preflight.halt_reason is not None:
            return None
        fences = [(flag.start, flag.end) for flag in checked.preflight.injection_flags if flag.field == "narrative"]
        return Case(request=checked.request, as_of=checked.as_of, plan=checked.plan, codes=checked.codes), fences

    @cached_property
    def parts(self) -> Parts:
        """What a run of this system is made of; another reasoner is tried by replacing that part."""
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
            embedder=self._settings.pinecone_model or self._settings.embedder,
            reranker="+".join(filter(None, (self._settings.reranker, self._settings.pinecone_rerank))),
            reasoner=self._reasoner.name,
            model=models_of(self._reasoner.name, self._client),
            skills_digest=self._skills_digest(),
            code_version=version("coverage-determination-agent"),
        )

    def _skills_digest(self) -> str | None:
        if self._reasoner.name == "criteria":
            return None
        from cda.systems.coverage.roles import fingerprint

        return fingerprint(self._reasoner.name)

    @cached_property
    def _run_settings(self) -> RunSettings:
        return RunSettings(
            max_iterations=self._settings.max_iterations,
            max_seconds=self._settings.run_timeout_s,
            max_tokens=self._settings.run_max_tokens,
            max_usd=self._settings.run_max_usd,
            fault=self._settings.fault,
            trace_dir=self._settings.trace_path,
        )
