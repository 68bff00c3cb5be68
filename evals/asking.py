"""Asks coverage cases of an open system and makes their records; one `Asker` a process."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from cda.contracts.policy_tools import ClauseView
from cda.errors import PolicyToolError
from cda.settings import Settings
from cda.systems.coverage.system import CoverageSystem
from evals.case_model import CoverageCase
from evals.record import Record, record_of


@dataclass(frozen=True, slots=True)
class Asked:
    """A case and the set that it is of."""

    set: str
    case: CoverageCase


class Asker:
    """Answers cases. What it looks up about clauses and codes for scoring is looked up once; no answer is kept."""

    def __init__(self, system: CoverageSystem) -> None:
        self._system = system
        self._clauses: dict[str, ClauseView | None] = {}
        self._families: dict[tuple[str, str], str] = {}

    def answer(self, asked: Asked) -> Record:
        """Ask one case."""
        case = asked.case
        result = self._system.ask(case.request())
        return record_of(case, asked.set, result, family=self._family(case), fetch=self.clause)

    def clause(self, clause_id: str) -> ClauseView | None:
        """A clause as the corpus has it, None for an unknown id."""
        if clause_id not in self._clauses:
            try:
                self._clauses[clause_id] = self._system.tools.get_clause_by_id(clause_id)
            except PolicyToolError:
                self._clauses[clause_id] = None
        return self._clauses[clause_id]

    def _family(self, case: CoverageCase) -> str:
        """The policy that governs the first code, whatever its version: cases of one policy are not independent."""
        key = (case.payer_id.strip().upper(), case.procedure_codes[0] if case.procedure_codes else "")
        if key not in self._families:
            try:
                governed = self._system.tools.lookup_code(key[1], payer_id=key[0] or None).governed_by
            except PolicyToolError:
                governed = ()
            bulletins = [policy.policy_id for policy in governed if policy.doc_type == "medical_policy_bulletin"]
            self._families[key] = min(bulletins or [policy.policy_id for policy in governed], default="none")
        return self._families[key]


_open: list[Asker] = []  # of a worker process, made once by `open_worker`


def open_worker(settings: dict[str, Any]) -> None:
    """Open the system of this worker process."""
    import signal

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent hears it and stops the workers
    _open.append(Asker(CoverageSystem.open(Settings.model_construct(**settings), say=lambda _: None)))


def answer_in_worker(chunk: Sequence[Asked]) -> list[str]:
    """The records of a chunk of cases, as lines."""
    return [_open[0].answer(asked).to_json() for asked in chunk]
