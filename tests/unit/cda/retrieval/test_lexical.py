"""The lexical leg and the code leg, and the original's scorer as a reference."""

from collections.abc import Sequence
from datetime import date
from pathlib import Path

import pytest
from retrieval_world import FakeStore, make_clause, small_corpus

from backends.errors import IndexAbsent, IndexMismatch
from backends.filters import Everything, eligible
from backends.schema import POLICY, Schema
from cda.retrieval.codes import all_forms
from cda.retrieval.documents import content_hash, indexed_text, meta_of, own_codes, said_codes
from cda.retrieval.legs import Leg
from cda.retrieval.lexical import Entry, LexicalIndex
from cda.retrieval.reference_bm25 import ReferenceBm25
from corpus.model import Clause


def entry(clause: Clause) -> Entry:
    return Entry(
        clause.clause_id,
        indexed_text(clause),
        own_codes(clause),
        said_codes(clause),
        meta_of(clause),
        content_hash(clause),
    )


def built(folder: Path, clauses: Sequence[Clause]) -> LexicalIndex:
    LexicalIndex.build(folder / "lexical", POLICY, map(entry, clauses))
    return LexicalIndex.open(folder / "lexical", POLICY)


def ids(leg: Leg) -> list[str]:
    return [hit.id for hit in leg.hits]


ON_OLD, ON_NEW = date(2024, 6, 30), date(2024, 7, 1)


@pytest.mark.promise("retrieval.filter_inside")
def test_the_filter_stands_inside_both_legs(tmp_path: Path) -> None:
    index = built(tmp_path, small_corpus())
    reference = ReferenceBm25(small_corpus())
    for day, plan, expected in (
        (ON_OLD, None, {"P-1.v1.C1"}),
        (ON_NEW, None, {"P-1.v2.C1", "P-1.v2.C2"}),
        (ON_NEW, "AAA-GOLD", {"P-1.v2.C1", "P-1.v2.C2", "R-GOLD.C1"}),
    ):
        where = eligible(payer_id="AAA", plan_id=plan, as_of=day)
        assert set(ids(index.codes(["A9276"], where))) == expected
        for leg in (index, reference):
            assert set(ids(leg.text("glucose sensor", where))) == expected


@pytest.mark.promise("retrieval.filter_inside")
@pytest.mark.parametrize("depth", [1, 5])
def test_many_better_matches_outside_the_filter_displace_nobody(tmp_path: Path, depth: int) -> None:
    others = [make_clause(f"B-{i:03}.v1.C1", "sensor sensor sensor", payer_id="BBB") for i in range(300)]
    mine = [make_clause(f"A-{i}.v1.C1", "A sensor, among many other words that say nothing") for i in range(5)]
    where = eligible(payer_id="AAA", plan_id=None, as_of=ON_NEW)
    for leg in (built(tmp_path, [*others, *mine]), ReferenceBm25([*others, *mine])):
        assert ids(leg.text("sensor", where, depth)) == [f"A-{i}.v1.C1" for i in range(depth)]


@pytest.mark.promise("retrieval.lexical_order")
def test_ties_are_ordered_by_id_at_any_depth_and_in_any_build_order(tmp_path: Path) -> None:
    clauses = [make_clause(f"P-{i:03}.v1.C1", "the same words") for i in range(200)]
    shuffled = sorted(clauses, key=lambda clause: clause.clause_id[::-1])
    for name, order in (("a", clauses), ("b", shuffled)):
        index = built(tmp_path / name, order)
        for depth in (1, 7, 50):
            assert ids(index.text("same words", Everything(), depth)) == [f"P-{i:03}.v1.C1" for i in range(depth)]


@pytest.mark.promise("retrieval.tiny")
@pytest.mark.parametrize("others", [None, 0, 1, 3])
def test_tiny_corpora_are_safe(tmp_path: Path, others: int | None) -> None:
    clauses = [] if others is None else [make_clause("P-1.v1.C1", "An insulin pump")]
    clauses += [make_clause(f"P-2.v1.C{i}", "A hearing aid") for i in range(others or 0)]
    for leg in (built(tmp_path, clauses), ReferenceBm25(clauses)):
        hits = leg.text("insulin pump for home", Everything()).hits
        assert [hit.id for hit in hits][:1] == ["P-1.v1.C1"] * (others is not None)
        assert all(hit.score > 0 for hit in hits)
        assert leg.text("?", Everything()).status == "empty_query"


@pytest.mark.promise("retrieval.negation_words")
def test_a_negated_query_finds_the_negated_clause_first(tmp_path: Path) -> None:
    clauses = [
        make_clause("P-1.v1.C1", "The device is covered."),
        make_clause("P-1.v1.C2", "The device is not covered."),
    ]
    assert ids(built(tmp_path, clauses).text("device isn't covered", Everything()))[0] == "P-1.v1.C2"


@pytest.mark.promise("retrieval.code_leg")
def test_codes_rank_by_how_many_are_held_and_equals_share_a_rank(tmp_path: Path) -> None:
    clauses = [
        make_clause("P-1.v1.C1", "Both.", codes=("A9276", "95249")),
        make_clause("P-1.v1.C2", "One.", codes=("A9276",)),
        make_clause("P-1.v1.C3", "One.", codes=("A9276",)),
        make_clause("P-1.v1.C4", "Not for A9276; see there.", codes=("J0135",)),
        make_clause("P-1.v1.C5", "None.", codes=("J1745",)),
    ]
    hits = built(tmp_path, clauses).codes(["95249", "A9276"], Everything()).hits
    assert [(hit.id[-2:], hit.rank) for hit in hits] == [("C1", 1), ("C2", 2), ("C3", 2), ("C4", 4)]


@pytest.mark.promise("retrieval.code_leg")
@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ("MHP-MP-0142", "MHP-MP-0142.v1.C1"),
        ("MHP-MP-1042.v1.C1", "MHP-MP-1042.v1.C1"),
        ("g4733", "MHP-MP-0142.v1.C2"),
        ("95249-59", "MHP-MP-0142.v1.C2"),
        ("modifier 59", "MHP-MP-0142.v1.C2"),
        ("J1744", "MHP-MP-1042.v1.C1"),
    ],
)
def test_a_code_or_id_finds_its_clause_first(tmp_path: Path, asked: str, expected: str) -> None:
    clauses = [
        make_clause("MHP-MP-0142.v1.C1", "A."),
        make_clause("MHP-MP-0142.v1.C2", "For G47.33, bill 95249-59."),
        make_clause("MHP-MP-1042.v1.C1", "Drugs J1740-J1745."),
    ]
    index = built(tmp_path, clauses)
    assert ids(index.codes(all_forms([asked]), Everything()))[0] == expected


@pytest.mark.promise("retrieval.code_leg")
def test_no_codes_make_an_empty_leg(tmp_path: Path) -> None:
    index = built(tmp_path, small_corpus())
    assert index.codes([], Everything()) == Leg("empty_query")
    assert index.codes(["Z9999"], Everything()) == Leg("ok")


@pytest.mark.promise("retrieval.index_mismatch")
def test_an_index_of_another_schema_or_none_is_refused(tmp_path: Path) -> None:
    built(tmp_path, small_corpus())
    with pytest.raises(IndexMismatch, match="schema"):
        LexicalIndex.open(tmp_path / "lexical", Schema("policy", POLICY.fields, "policy_id"))
    with pytest.raises(IndexAbsent):
        LexicalIndex.open(tmp_path / "elsewhere", POLICY)


@pytest.mark.promise("retrieval.no_text")
def test_no_file_of_the_index_holds_clause_text(tmp_path: Path) -> None:
    store = FakeStore(small_corpus())
    built(tmp_path, list(store.clauses()))
    held = b"".join(file.read_bytes() for file in sorted((tmp_path / "lexical").iterdir()))
    for clause in store.clauses():
        for start in range(len(clause.text) - 20):
            assert clause.text[start : start + 20].encode() not in held
