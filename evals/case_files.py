"""Reads case sets: `evals/cases/SET.json`, or a folder `evals/cases/SET/` of such files. Fails closed.

A file is a JSON list of cases or {"cases": [...]}. `NAME.first.json` beside a round is a record of its first score and
holds no cases. A fault names the file, the case and the field; every id is unique within a suite.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, TypeVar

from pydantic import ValidationError

from cda.errors import UsageError
from evals.case_model import CaseModel, CoverageCase, InjectionCase, MetamorphicPair, RetrievalCase, VerifierCase

CASES = Path(__file__).parent / "cases"
COVERAGE_SETS = ("floor", "expanded", "adversarial", "metamorphic", "medicare", "rounds")
ModelT = TypeVar("ModelT", bound=CaseModel)


@dataclass(frozen=True, slots=True)
class CoverageSet:
    """A named set of coverage cases, in the files' order; `pairs` says which of them stand under a law."""

    name: str
    cases: tuple[CoverageCase, ...]
    pairs: tuple[MetamorphicPair, ...] = ()


def load_coverage(names: Sequence[str] = (), folder: Path = CASES) -> tuple[CoverageSet, ...]:
    """The named coverage sets, or all that there are. Raises UsageError for an unknown name or a broken file."""
    for name in names:
        if name not in COVERAGE_SETS:
            raise UsageError(f"--set {name}: no such set; there are {', '.join(COVERAGE_SETS)}")
        if not _files(folder, name):
            raise UsageError(f"--set {name}: {folder / name}.json does not exist")
    chosen = names or [name for name in COVERAGE_SETS if _files(folder, name)]
    sets = tuple(_coverage_set(name, folder) for name in dict.fromkeys(chosen))
    _unique((case.case_id for held in sets for case in held.cases), folder)
    return sets


def load_verifier(folder: Path = CASES) -> tuple[VerifierCase, ...]:
    """The planted faults; empty when there is no such set."""
    cases = tuple(_read_all(folder, "verifier", VerifierCase))
    _unique((case.case_id for case in cases), folder)
    return cases


def load_retrieval(folder: Path = CASES) -> tuple[RetrievalCase, ...]:
    """The labelled queries; empty when there is no such set."""
    cases = tuple(_read_all(folder, "retrieval", RetrievalCase))
    _unique((case.case_id for case in cases), folder)
    return cases


def load_injection(folder: Path = CASES) -> tuple[InjectionCase, ...]:
    """The attacks and their look-alikes; empty when there is no such set."""
    cases = tuple(_read_all(folder, "injection", InjectionCase))
    _unique((case.case_id for case in cases), folder)
    return cases


def load_file(path: Path) -> CoverageSet:
    """The coverage cases of one file anywhere, as a set named for the file."""
    cases = tuple(_read(path, CoverageCase))
    _unique((case.case_id for case in cases), path)
    return CoverageSet(path.stem, cases)


def case_digest(cases: Iterable[CaseModel]) -> str:
    """Sha256 over the whole content of the cases, whatever their order."""
    lines = sorted(case.model_dump_json(exclude_defaults=True) for case in cases)
    return sha256("\n".join(lines).encode("utf-8")).hexdigest()


def _coverage_set(name: str, folder: Path) -> CoverageSet:
    if name != "metamorphic":
        return CoverageSet(name, tuple(_read_all(folder, name, CoverageCase)))
    pairs = tuple(_read_all(folder, name, MetamorphicPair))
    _unique((pair.pair_id for pair in pairs), folder / name)
    return CoverageSet(name, tuple(case for pair in pairs for case in (pair.base, pair.twin)), pairs)


def _files(folder: Path, name: str) -> list[Path]:
    inside = sorted(file for file in (folder / name).glob("*.json") if not file.name.endswith(".first.json"))
    single = folder / f"{name}.json"
    return [single, *inside] if single.exists() else inside


def _read_all(folder: Path, name: str, form: type[ModelT]) -> Iterator[ModelT]:
    for file in _files(folder, name):
        yield from _read(file, form, blind=name == "rounds")


def _read(path: Path, form: type[ModelT], *, blind: bool = False) -> Iterator[ModelT]:
    for place, entry in enumerate(_entries(path)):
        raw = dict(entry)
        if blind and "facts" in raw:
            # A round's facts are what its author read out of the chart: labels, which a request must not hand over.
            raw["labelled_facts"] = raw.pop("facts")
        try:
            yield form.model_validate(raw)
        except ValidationError as error:
            fault = error.errors(include_url=False, include_input=False)[0]
            named = raw.get("case_id", raw.get("pair_id", f"entry {place}"))
            where = ".".join(map(str, fault["loc"])) or "the case"
            raise UsageError(f"{path}: case {named}: {where}: {fault['msg']}") from None


def _entries(path: Path) -> list[Mapping[str, Any]]:
    try:
        data = json.loads(path.read_text(encoding="utf-8-sig"))
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path}: cannot be read ({type(error).__name__})") from None
    except (ValueError, RecursionError) as error:
        where = f" (line {error.lineno}, column {error.colno})" if isinstance(error, json.JSONDecodeError) else ""
        raise UsageError(f"{path}: not a JSON document{where}") from None
    found = data.get("cases") if isinstance(data, dict) else data
    if not isinstance(found, list) or not all(isinstance(entry, dict) for entry in found):
        raise UsageError(f'{path}: a file of cases is a list of objects, or {{"cases": [...]}}')
    return found


def _unique(ids: Iterable[str], where: Path) -> None:
    seen: set[str] = set()
    for name in ids:
        if name in seen:
            raise UsageError(f"{where}: the id {name} is there twice")
        seen.add(name)
