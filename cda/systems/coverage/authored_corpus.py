"""Authored policies checked and compiled with the criterion language and the fact definitions of this application."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from cda.contracts.definitions import definitions_from_data
from cda.contracts.facts import FactDefinition
from cda.criteria.criterion import validate_criterion
from cda.criteria.derive import validate_definition
from cda.criteria.references import validate_references
from cda.errors import CriterionError
from cda.extraction import check_definition
from corpus import build
from corpus.contents import Contents
from corpus.errors import Fault


def check_corpus(sources: Sequence[str | Path]) -> tuple[Contents | None, tuple[Fault, ...]]:
    """The compiled contents of `sources` (folders, files, or "builtin"), None when there is a fault, and all faults."""
    return build.check(
        sources, criterion_validator=_Criteria(), fact_validator=_fact_faults, reference_validator=_reference_faults
    )


def build_corpus(sources: Sequence[str | Path], out: Path) -> str:
    """Write the store of `sources` at `out` and return its digest. Raises CorpusFaults, with every fault; then nothing
    is written."""
    return build.build(
        sources,
        out,
        criterion_validator=_Criteria(),
        fact_validator=_fact_faults,
        reference_validator=_reference_faults,
    )


def _reference_faults(contents: Contents) -> list[tuple[str, str]]:
    """What only shows across clauses and definitions: derivations compare other facts."""
    definitions = definitions_from_data(contents.facts)
    derived = [
        (name, fault)
        for name, definition in sorted(definitions.items())
        for fault in validate_definition(definition, definitions)
    ]
    return derived + validate_references(contents.clauses, definitions)


def _fact_faults(name: str, definition: Mapping[str, Any]) -> list[str]:
    """What is wrong with a definition, its vocabulary included."""
    return _faults_of(name, lambda: check_definition(definitions_from_data({name: definition})[name]))


def _faults_of(name: str, check: Callable[[], object]) -> list[str]:
    try:
        check()
    except CriterionError as error:
        return [str(error).removeprefix(f"fact {name}: ")]
    return []


class _Criteria:
    """Validates criteria against the definitions that are themselves without fault; they are read once."""

    def __init__(self) -> None:
        self._definitions: dict[str, FactDefinition] | None = None

    def __call__(self, criterion: Mapping[str, Any], facts: Mapping[str, Mapping[str, Any]]) -> list[str]:
        if self._definitions is None:
            sound = {
                name: data
                for name, data in facts.items()
                if not _faults_of(name, partial(definitions_from_data, {name: data}))
            }
            self._definitions = definitions_from_data(sound)
        return validate_criterion(criterion, self._definitions)
