"""Each entry of a case file by itself: its form, and every rule of its kind."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pydantic import ValidationError

from evals.case_model import CaseModel, CoverageCase, InjectionCase, MetamorphicPair, RetrievalCase, VerifierCase
from evals.corpus_view import shipped
from evals.validation.bearing import bearing_faults
from evals.validation.duplicates import Placed
from evals.validation.finding import Broken, Finding
from evals.validation.injections import injection_faults
from evals.validation.labels import label_faults
from evals.validation.narratives import narrative_faults
from evals.validation.pairs import pair_faults
from evals.validation.planted import planted_faults
from evals.validation.queries import query_faults


@dataclass(slots=True)
class Held:
    """The sound part of what was read, by kind; each entry with the name of its file."""

    cases: list[Placed] = field(default_factory=list)
    pairs: list[tuple[str, MetamorphicPair]] = field(default_factory=list)
    planted: list[tuple[str, VerifierCase]] = field(default_factory=list)
    queries: list[tuple[str, RetrievalCase]] = field(default_factory=list)
    attacks: list[tuple[str, InjectionCase]] = field(default_factory=list)

    @property
    def lists(self) -> tuple[list[Any], ...]:
        """The entries of each kind, in the order of the fields."""
        return self.cases, self.pairs, self.planted, self.queries, self.attacks


def judge(entries: Sequence[Mapping[str, Any]], file: str, held: Held, *, blind: bool = False) -> Iterator[Finding]:
    """What is wrong with each entry by itself; those of sound form are put into `held`. `blind`: facts are labels."""
    for place, entry in enumerate(entries):
        raw = {"labelled_facts" if blind and key == "facts" else key: value for key, value in entry.items()}
        named = str(raw.get("case_id") or raw.get("pair_id") or f"entry {place}")
        try:
            case = _form(raw).model_validate(raw)
        except ValidationError as error:
            for fault in error.errors(include_url=False, include_input=False):
                where = ".".join(map(str, fault["loc"])) or "the case"
                yield Finding(file, named, "form", f"{where}: {fault['msg']}")
            continue
        yield from (Finding(file, at, rule, message) for at, (rule, message) in _faults(case))
        _keep(case, file, held)


def _form(raw: Mapping[str, Any]) -> type[CaseModel]:
    """The form of an entry, told from what only that form has."""
    if "pair_id" in raw:
        return MetamorphicPair
    if "caught_by" in raw or "fault" in raw:
        return VerifierCase
    if "family" in raw:
        return InjectionCase
    return RetrievalCase if "query" in raw else CoverageCase


def _faults(case: CaseModel) -> Iterator[tuple[str, Broken]]:
    """(id, fault) of one entry."""
    match case:
        case CoverageCase():
            yield from ((case.case_id, fault) for fault in _case_faults(case))
        case MetamorphicPair():
            yield from ((case.pair_id, fault) for fault in pair_faults(case))
            yield from ((side.case_id, fault) for side in (case.base, case.twin) for fault in _case_faults(side))
        case VerifierCase():
            yield from ((case.case_id, fault) for fault in planted_faults(case, shipped()))
        case InjectionCase():
            yield from ((case.case_id, fault) for fault in injection_faults(case, shipped()))
        case RetrievalCase():
            yield from ((case.case_id, fault) for fault in query_faults(case, shipped()))


def _case_faults(case: CoverageCase) -> Iterator[Broken]:
    try:
        view = shipped(case.corpus)
    except KeyError:
        yield "corpus", f"there is no overlay {case.corpus!r} in evals/corpora; leave it out or add one"
        return
    yield from label_faults(case, view)
    yield from bearing_faults(case, view)
    yield from narrative_faults(case, view)


def _keep(case: CaseModel, file: str, held: Held) -> None:
    match case:
        case CoverageCase():
            held.cases.append((file, case))
        case MetamorphicPair():
            held.pairs.append((file, case))
        case VerifierCase():
            held.planted.append((file, case))
        case InjectionCase():
            held.attacks.append((file, case))
        case RetrievalCase():
            held.queries.append((file, case))
