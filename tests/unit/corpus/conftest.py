"""Validators that judge nothing, and what the corpus tests stand on."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from corpus.build import build
from corpus.store import CorpusStore

HERE = Path(__file__).parent


def accepts_any_criterion_however_wrong(criterion: Mapping[str, Any], facts: Mapping[str, Any]) -> list[str]:
    return []


def accepts_any_fact_however_wrong(name: str, definition: Mapping[str, Any]) -> list[str]:
    return []


UNJUDGED: dict[str, Any] = {
    "criterion_validator": accepts_any_criterion_however_wrong,
    "fact_validator": accepts_any_fact_however_wrong,
}


@pytest.fixture
def unjudged() -> dict[str, Any]:
    return UNJUDGED


@pytest.fixture
def sound() -> Path:
    return HERE / "sound.yaml"


@pytest.fixture(scope="session")
def shipped(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CorpusStore]:
    """The store of all shipped data."""
    path = tmp_path_factory.mktemp("shipped") / "corpus.sqlite"
    build(["builtin"], path, **UNJUDGED)
    with CorpusStore.open(path) as store:
        yield store
