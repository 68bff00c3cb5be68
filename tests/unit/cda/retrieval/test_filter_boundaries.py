"""Every clause that is shipped, on both sides of every boundary of its version, under every compiler."""

import json
from datetime import date, timedelta
from pathlib import Path

import numpy as np
import pytest
from doubles import pinecone_rules as service

from backends.base import Record
from backends.columns import Columns
from backends.filters import eligible, evaluate
from backends.pinecone_filters import compile_filter
from backends.pinecone_records import stored
from backends.schema import POLICY
from cda.retrieval.documents import meta_of
from cda.systems.coverage.authored_corpus import build_corpus
from corpus import BUILTIN
from corpus.store import CorpusStore


@pytest.mark.promise("backends.boundaries")
def test_a_clause_is_eligible_on_exactly_the_days_it_is_in_effect(tmp_path: Path) -> None:
    build_corpus([BUILTIN], tmp_path / "corpus.sqlite")
    with CorpusStore.open(tmp_path / "corpus.sqlite") as store:
        clauses = list(store.clauses())
    metas = [meta_of(clause) for clause in clauses]
    columns = Columns.of(POLICY, metas)
    kept = [
        service.check_metadata(
            json.loads(json.dumps(stored(Record(c.clause_id, np.ones(2, np.float32), m, "h"))["metadata"])),
            service.Semantics(),
        )
        for c, m in zip(clauses, metas, strict=True)
    ]
    edges = {day for clause in clauses for day in (clause.effective_start, clause.effective_end) if day}
    days = {edge + timedelta(days=step) for edge in edges for step in (-1, 0, 1)} | {date(2199, 1, 1), date.max}
    plans = sorted({clause.plan_id for clause in clauses if clause.plan_id})[:1]
    checked = 0
    for day in sorted(days):
        where = eligible(payer_id=None, plan_id=plans[0], as_of=day)
        expected = [row for row, c in enumerate(clauses) if c.plan_id in (None, plans[0]) and c.in_effect(day)]
        compiled = compile_filter(where, POLICY)
        assert compiled is not None
        assert [row for row, meta in enumerate(metas) if evaluate(where, meta)] == expected, day
        assert np.flatnonzero(columns.mask(where)).tolist() == expected, day
        found = [row for row, held in enumerate(kept) if service.admits(compiled, held, service.Semantics())]
        assert found == expected, day
        checked += len(expected)
    assert checked > 1000
