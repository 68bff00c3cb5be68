"""The store: read-only, addressed by content, the same bytes for the same policies."""

import os
import sqlite3
import stat
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpus.build import build, check
from corpus.contents import Contents, digest
from corpus.errors import StoreDamaged, StoreMissing
from corpus.model import Clause, DateState, DocType
from corpus.store import CorpusStore
from corpus.store_writer import write_store

C2 = "MHP-MP-0210.v3.C2"


@pytest.fixture
def contents(unjudged: dict[str, Any]) -> Contents:
    compiled, _ = check(["builtin"], **unjudged)
    assert compiled is not None
    return compiled


@pytest.mark.promise("corpus.whole_text")
def test_every_clause_comes_back_equal(contents: Contents, shipped: CorpusStore) -> None:
    assert list(shipped.clauses()) == sorted(contents.clauses, key=lambda clause: clause.clause_id)
    for clause in contents.clauses:
        assert shipped.clause(clause.clause_id) == clause


@pytest.mark.promise("corpus.whole_text")
def test_a_store_gives_back_the_contents_it_was_written_from(contents: Contents, shipped: CorpusStore) -> None:
    back = shipped.contents()
    assert digest(back, shipped.meta["icd10cm_sha256"]) == shipped.digest
    assert set(back.versions) == set(contents.versions)
    assert back.corpora == contents.corpora


@pytest.mark.promise("corpus.whole_text")
@pytest.mark.parametrize("column", ["text", "sha256"])
def test_a_text_without_its_hash_is_an_error(column: str, contents: Contents, tmp_path: Path) -> None:
    path = tmp_path / "store.sqlite"
    write_store(contents, path)
    with sqlite3.connect(path) as connection:
        if column == "text":
            connection.execute("UPDATE texts SET text = replace(text, 'unless', 'when')")
        else:
            a, b = connection.execute("SELECT sha256 FROM texts LIMIT 2").fetchall()
            connection.execute("UPDATE clauses SET text_sha256 = ? WHERE text_sha256 = ?", (a[0], b[0]))
            connection.execute("UPDATE texts SET sha256 = x'00' WHERE sha256 = ?", a)
            connection.execute("UPDATE texts SET sha256 = ? WHERE sha256 = ?", (a[0], b[0]))
    connection.close()
    with CorpusStore.open(path) as store, pytest.raises(StoreDamaged, match="build the store again"):
        list(store.clauses())


@pytest.mark.promise("corpus.read_only")
def test_nothing_can_be_written_through_an_open_store(shipped: CorpusStore) -> None:
    with pytest.raises(sqlite3.OperationalError, match="readonly"):
        shipped._connection.execute("DELETE FROM clauses")


@pytest.mark.promise("corpus.read_only")
def test_what_is_no_store_is_refused_with_what_to_do(tmp_path: Path, contents: Contents) -> None:
    other = tmp_path / "other.sqlite"
    sqlite3.connect(other).execute("CREATE TABLE t (x)").connection.close()
    (tmp_path / "text.sqlite").write_text("not a database, but long enough to be looked at" * 100, encoding="utf-8")
    old = tmp_path / "old.sqlite"
    write_store(contents, old)
    with sqlite3.connect(old) as connection:
        connection.execute("PRAGMA user_version = 999")
    connection.close()
    for name, words in [
        ("nowhere.sqlite", "no corpus store at"),
        ("other.sqlite", "is no store"),
        ("text.sqlite", "is no store"),
        ("old.sqlite", "schema version 999"),
    ]:
        with pytest.raises(StoreMissing, match=words) as caught:
            CorpusStore.open(tmp_path / name)
        assert "cda corpus build" in str(caught.value)


@pytest.mark.promise("corpus.read_only")
def test_a_new_store_replaces_the_file_while_an_open_one_goes_on_reading(contents: Contents, tmp_path: Path) -> None:
    path = tmp_path / "a folder with #%? in it" / "store.sqlite"
    write_store(contents, path)
    with CorpusStore.open(path) as before:
        fewer = replace(contents, clauses=contents.clauses[:1], versions=contents.versions[:1])
        write_store(fewer, path)
        with CorpusStore.open(path) as after:
            assert before.digest != after.digest
            assert len(list(after.clauses())) == 1
        assert len(list(before.clauses())) == len(contents.clauses)
    assert [item.name for item in path.parent.iterdir()] == ["store.sqlite"]
    mask = os.umask(0)
    os.umask(mask)
    assert stat.S_IMODE(path.stat().st_mode) == 0o644 & ~mask


@pytest.mark.promise("corpus.read_only")
def test_many_threads_read_the_same_clauses(shipped: CorpusStore) -> None:
    ids = [clause.clause_id for clause in shipped.clauses()] * 20
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(shipped.clause, ids))
    assert [clause.clause_id for clause in found if clause] == ids


@pytest.mark.promise("corpus.same_bytes")
def test_the_same_policies_give_the_same_file(contents: Contents, tmp_path: Path) -> None:
    turned = replace(
        contents,
        clauses=contents.clauses[::-1],
        versions=contents.versions[::-1],
        plans=contents.plans[::-1],
        codes=contents.codes[::-1],
        facts=dict(reversed(contents.facts.items())),
        corpora=dict(reversed(contents.corpora.items())),
    )
    assert write_store(contents, tmp_path / "one.sqlite") == write_store(turned, tmp_path / "two.sqlite")
    assert (tmp_path / "one.sqlite").read_bytes() == (tmp_path / "two.sqlite").read_bytes()


@pytest.mark.promise("corpus.digest")
def test_where_a_file_lies_does_not_move_the_digest(tmp_path: Path, sound: Path, unjudged: dict[str, Any]) -> None:
    first = build([sound], tmp_path / "one.sqlite", **unjudged)
    moved = tmp_path / "elsewhere" / "deep"
    moved.mkdir(parents=True)
    (moved / "renamed.yml").write_text("\n\n" + sound.read_text("utf-8"), "utf-8")
    assert build([tmp_path / "elsewhere"], tmp_path / "two.sqlite", **unjudged) == first


CHANGES: Mapping[str, Any] = {
    "text": {"text": "Other words."},
    "codes": {"codes": ()},
    "start": {"effective_start": date(2020, 1, 1)},
    "end": {"effective_end": date(2030, 1, 1)},
    "state": {"date_state": DateState.AMBIGUOUS},
    "criterion": {"criterion": {"scope": "other"}},
    "no criterion": {"criterion": None},
    "section": {"section": "Other"},
}


@pytest.mark.promise("corpus.digest")
@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES.keys())
def test_any_change_of_a_clause_moves_the_digest(change: dict[str, Any], contents: Contents) -> None:
    first, *rest = contents.clauses
    changed = replace(contents, clauses=(replace(first, **change), *rest))
    assert digest(changed, "") != digest(contents, "")


@pytest.mark.promise("corpus.digest")
@pytest.mark.parametrize("kind", ["payers", "plans", "codes", "versions", "clauses"])
def test_leaving_anything_out_moves_the_digest(kind: str, contents: Contents) -> None:
    fewer: dict[str, Any] = {kind: getattr(contents, kind)[1:]}
    assert digest(replace(contents, **fewer), "") != digest(contents, "")
    assert digest(replace(contents, facts={**contents.facts, "other": {}}), "") != digest(contents, "")
    assert digest(contents, "another table") != digest(contents, "")


@pytest.mark.promise("corpus.windows")
@given(
    start=st.dates(date(2000, 1, 1), date(2030, 1, 1)),
    days=st.integers(0, 4000) | st.none(),
    day=st.dates(date(1999, 1, 1), date(2045, 1, 1)),
    state=st.sampled_from(DateState),
)
def test_a_clause_is_in_effect_on_both_ends_of_its_window(
    start: date, days: int | None, day: date, state: DateState
) -> None:
    end = None if days is None else date.fromordinal(start.toordinal() + days)
    clause = Clause(
        "P.v1.C1", "S", "T.", "P", "P", DocType.BULLETIN, "policy", "X", None, "v1", start, end, date_state=state
    )
    dated = state is DateState.DATED
    assert clause.in_effect(start) is dated
    assert clause.in_effect(end or date.max) is dated
    assert clause.in_effect(day) is (dated and start <= day and (end is None or day <= end))


@pytest.mark.promise("corpus.windows")
def test_look_ups_tell_what_exists(shipped: CorpusStore) -> None:
    assert shipped.clause("MHP-MP-0142.v3.C1") is None
    assert shipped.versions("MHP-MP-9999") == ()
    assert [version.version for version in shipped.versions("MHP-MP-0142")] == ["v1", "v2"]
    assert [version.version for version in shipped.versions("CMS-NCD-280.8")] == ["v1", "v3", "v2"]
    (rider,) = shipped.versions("MHP-RID-DME-EXPAND")
    assert (rider.version, rider.plan_id, rider.source) == ("v1", "MHP-PPO-GOLD", "rider")
    assert [r.policy_id for r in shipped.riders("MHP-PPO-GOLD")] == ["MHP-RID-DME-EXPAND", "MHP-RID-STEP-WAIVE"]
    assert shipped.riders("MHP-HMO-BASE") == ()
    assert shipped.payers() == {"MHP", "CSM", "NBA", "CMS"}
    assert shipped.plan("MHP-HMO-NONE") is None
    plan = shipped.plan("CMS-MEDICARE")
    assert plan is not None
    assert (plan.payer_id, plan.adverse_to_clinician_review) == ("CMS", True)
    assert {plan.plan_id for plan in shipped.plans() if plan.adverse_to_clinician_review} == {"CMS-MEDICARE"}
    code = shipped.code("0501T")
    assert code is not None
    assert code.system == "CPT"
    assert shipped.code("a9276") is None


@pytest.mark.promise("corpus.windows")
def test_a_code_names_the_versions_and_the_clauses_that_govern_it(shipped: CorpusStore) -> None:
    uses = {(use.version.policy_id, use.version.version): use.clause_ids for use in shipped.code_in_policies("95810")}
    assert uses == {
        ("CSM-MP-0331", "v1"): tuple(f"CSM-MP-0331.v1.{name}" for name in ("C1", "C3", "C4")),
        ("CSM-MP-0331", "v2"): ("CSM-MP-0331.v2.C1", "CSM-MP-0331.v2.C3"),
        ("CSM-RID-SLEEP-NARROW", "v1"): ("CSM-RID-SLEEP-NARROW.C1",),
    }
    # Named by a policy and governed by none of its clauses; then known and named by nothing.
    assert [use.clause_ids for use in shipped.code_in_policies("E0607")] == [(), ()]
    assert shipped.code_in_policies("31241") == ()
    assert shipped.code("31241") is not None
