"""Asks coverage cases of an open system and makes their records; one `Asker` a process."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from cda.contracts.model_client import ModelClient
from cda.contracts.policy_tools import ClauseView
from cda.errors import PolicyToolError
from cda.settings import Settings
from cda.systems.coverage.system import CoverageSystem
from evals.case_model import CoverageCase
from evals.paid import sampling
from evals.record import Record, Sample, record_of
from evals.shipped_corpus import Worlds
from evals.suite import Say


@dataclass(frozen=True, slots=True)
class Asked:
    """A case, the set that it is of, and which asking of it this is, from 1."""

    set: str
    case: CoverageCase
    repeat: int = 1

    @property
    def sample(self) -> Sample:
        """Which asking of which case."""
        return self.case.case_id, self.repeat


class Asker:
    """Answers cases, each by the system over the corpus that it names. What is looked up about clauses and codes for
    scoring is looked up once; no answer is kept."""

    def __init__(self, worlds: Worlds, *, say: Say = lambda _: None, model_client: ModelClient | None = None) -> None:
        self._worlds, self._client = worlds, model_client
        self._say = say
        self._systems: dict[str, CoverageSystem] = {}
        self._clauses: dict[tuple[str, str], ClauseView | None] = {}
        self._families: dict[tuple[str, str, str], str] = {}

    def system(self, corpus: str = "") -> CoverageSystem:
        """The system over the shipped corpus with that overlay, opened once."""
        if corpus not in self._systems:
            self._systems[corpus] = CoverageSystem.open(self._worlds[corpus], say=self._say, model_client=self._client)
        return self._systems[corpus]

    def answer(self, asked: Asked) -> Record:
        """Ask one case."""
        case = asked.case
        with sampling(asked.sample):
            result = self.system(case.corpus).ask(case.request())
        return record_of(
            case,
            asked.set,
            result,
            family=self._family(case),
            fetch=lambda clause_id: self.clause(clause_id, case.corpus),
            repeat=asked.repeat,
        )

    def clause(self, clause_id: str, corpus: str = "") -> ClauseView | None:
        """A clause as the corpus has it, None for an unknown id."""
        key = (corpus, clause_id)
        if key not in self._clauses:
            try:
                self._clauses[key] = self.system(corpus).tools.get_clause_by_id(clause_id)
            except PolicyToolError:
                self._clauses[key] = None
        return self._clauses[key]

    def _family(self, case: CoverageCase) -> str:
        """The policy that governs the first code, whatever its version: cases of one policy are not independent."""
        payer, code = case.payer_id.strip().upper(), case.procedure_codes[0] if case.procedure_codes else ""
        key = (case.corpus, payer, code)
        if key not in self._families:
            try:
                governed = self.system(case.corpus).tools.lookup_code(code, payer_id=payer or None).governed_by
            except PolicyToolError:
                governed = ()
            bulletins = [policy.policy_id for policy in governed if policy.doc_type == "medical_policy_bulletin"]
            self._families[key] = min(bulletins or [policy.policy_id for policy in governed], default="none")
        return self._families[key]


_open: list[Asker] = []  # of a worker process, made once by `open_worker`


def open_worker(worlds: dict[str, dict[str, Any]]) -> None:
    """Open the systems of this worker process."""
    import gc
    import signal

    from cda.retrieval import minilm

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent hears it and stops the workers
    minilm.THREADS = 1  # a worker has one core; a vector does not depend on what is embedded beside it
    asker = Asker({name: Settings.model_construct(**held) for name, held in worlds.items()})
    for name in worlds:
        asker.system(name)
    # What is open stays open: looking through it for garbage took a tenth of every case's time.
    gc.freeze()
    gc.set_threshold(50_000)
    _open.append(asker)


def plain_worlds(worlds: Worlds) -> dict[str, dict[str, Any]]:
    """The worlds as `open_worker` takes them over a process boundary."""
    return {
        name: {field: getattr(settings, field) for field in Settings.model_fields} for name, settings in worlds.items()
    }


def answer_in_worker(chunk: Sequence[Asked]) -> list[str]:
    """The records of a chunk of cases, as lines."""
    return [_open[0].answer(asked).to_json() for asked in chunk]
