"""What a suite is to `cda eval`: it loads its cases, runs them, and hands back figures, decisions and failures."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from cda.settings import Settings

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Options:
    """What the command line asks of a suite. Empty `sets` and `case_ids`: all there are.

    repeats: how often each case is asked. batch: by the model's batches. retry_failed: take up the finished run and ask
    again what the model's service failed. judge: have a model's opinion on each answer, beside the score.
    """

    settings: Settings
    sets: tuple[str, ...] = ()
    case_ids: tuple[str, ...] = ()
    file: Path | None = None
    limit: int | None = None
    concurrency: int = 1
    repeats: int = 1
    batch: bool = False
    retry_failed: bool = False
    judge: bool = False

    @property
    def asks_models(self) -> bool:
        """Whether a case or the judge asks a model."""
        return self.settings.reasoner != "criteria" or self.judge

    @property
    def whole(self) -> bool:
        """Whole sets were asked for, so that floors and the baseline apply."""
        return not self.case_ids and self.file is None and self.limit is None


@dataclass(frozen=True, slots=True)
class Decision:
    """What was answered to one case, in one word or two, and whether that is right."""

    answer: str
    right: bool


@dataclass(frozen=True, slots=True)
class Run:
    """A finished run.

    scorecard: the document of `--json`. decisions: by case id. figures: those a baseline compares, with True when more
    is better. failures: the floors that are not met, in words. lines: the scorecard for a terminal. report: makes the
    HTML page, given the comparison with the baseline (None: there is none); None when the suite has no page.
    """

    scorecard: Mapping[str, Any]
    decisions: Mapping[str, Decision]
    figures: Mapping[str, bool]
    failures: Sequence[str]
    lines: Sequence[str]
    report: Callable[[Mapping[str, Any] | None], str] | None = field(default=None)


class Prepared(Protocol):
    """Cases loaded, nothing asked yet. `case_set` holds count and digest, and under `sets` those of each set."""

    case_set: Mapping[str, Any]

    def run(self, say: Say) -> Run:
        """Ask every case."""
        ...


Suite = Callable[[Options], Prepared]
