from pathlib import Path

import pytest
from coverage_world import settings

from cda.errors import UsageError
from corpus.store import CorpusStore
from evals.shipped_corpus import worlds

pytestmark = pytest.mark.promise("evals.provenance")


def test_an_older_store_that_lies_about_is_not_what_is_judged(tmp_path: Path) -> None:
    (tmp_path / "corpus.sqlite").write_bytes(b"an older corpus")
    found = worlds(settings(tmp_path), ("hostile",), lambda _: None)
    with CorpusStore.open(found[""].store_path) as plain, CorpusStore.open(found["hostile"].store_path) as hostile:
        assert {c.clause_id for c in plain.clauses()} < {c.clause_id for c in hostile.clauses()}
        assert plain.digest != hostile.digest


def test_a_store_that_was_named_is_judged_as_it_is(tmp_path: Path) -> None:
    named = settings(tmp_path, CDA_STORE=tmp_path / "mine.sqlite")
    assert worlds(named, (), lambda _: None) == {"": named}


def test_an_unknown_overlay_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no folder of evals/corpora"):
        worlds(settings(tmp_path), ("../corpora",), lambda _: None)
