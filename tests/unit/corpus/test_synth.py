"""Large invented corpora for measuring."""

from collections import defaultdict
from datetime import date, timedelta
from itertools import pairwise
from pathlib import Path

import pytest

from corpus.codes import system_of
from corpus.model import DateState
from corpus.store import CorpusStore
from corpus.store_writer import write_store
from corpus.synth import WORDS_MAX, WORDS_MIN, synthesize

pytestmark = pytest.mark.promise("corpus.synth")


def test_the_seed_alone_decides() -> None:
    assert synthesize(500, 3) == synthesize(500, 3)
    assert synthesize(500, 3) != synthesize(500, 4)


@pytest.mark.parametrize("count", [1, 2, 999, 3000])
def test_it_has_exactly_the_clauses_asked_for(count: int) -> None:
    contents = synthesize(count, 0)
    ids = [clause.clause_id for clause in contents.clauses]
    assert len(ids) == len(set(ids)) == count
    assert sorted(ids) == sorted(id_ for version in contents.versions for id_ in version.clause_ids)


def test_a_corpus_has_at_least_one_clause() -> None:
    with pytest.raises(ValueError, match="at least one"):
        synthesize(0, 0)


def test_it_keeps_the_rules_of_an_authored_corpus() -> None:
    contents = synthesize(4000, 1)
    plans = {plan.plan_id: plan.payer_id for plan in contents.plans}
    policies = {version.policy_id: version for version in contents.versions if version.source == "policy"}
    windows: defaultdict[str, list[tuple[date, date | None]]] = defaultdict(list)
    for version in contents.versions:
        if version.source == "rider":
            (target,) = version.overrides_policy_ids
            assert plans[version.plan_id or ""] == version.payer_id == policies[target].payer_id
        elif version.date_state is DateState.DATED and version.effective_start:
            windows[version.policy_id].append((version.effective_start, version.effective_end))
    for dated in windows.values():
        for (_, end), (start, _) in pairwise(sorted(dated, key=lambda window: window[0])):
            assert end is not None
            assert start == end + timedelta(days=1)
    for clause in contents.clauses:
        assert set(clause.codes) <= {code.code for code in contents.codes}
        assert clause.criterion is None
        assert WORDS_MIN <= len(clause.text.split()) <= WORDS_MAX
    assert all(system_of(code.code) == code.system for code in contents.codes)
    states = {clause.date_state for clause in contents.clauses}
    assert states == {DateState.DATED, DateState.UNDATED}


def test_it_is_written_and_read_like_any_other(tmp_path: Path) -> None:
    contents = synthesize(1500, 2)
    write_store(contents, tmp_path / "synth.sqlite")
    with CorpusStore.open(tmp_path / "synth.sqlite") as store:
        assert list(store.clauses()) == sorted(contents.clauses, key=lambda clause: clause.clause_id)
        assert store.meta["corpora"]["synth"]["clauses"] == 1500
