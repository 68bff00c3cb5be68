"""The search as its callers see it: eligibility, hydration, refusals, determinism."""

import shutil
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from retrieval_world import CountingEmbedder, FakeStore, PlantedEmbedder, make_clause, small_corpus

from backends.errors import IndexAbsent, IndexMismatch
from cda.errors import PolicyToolError
from cda.retrieval import index as index_module
from cda.retrieval.documents import indexed_text
from cda.retrieval.embedders import EmbedderName
from cda.retrieval.fusion import Rule
from cda.retrieval.index import build_index, ensure_index, open_index, place
from cda.retrieval.search import PolicySearch
from cda.retrieval.tfidf import TfidfEmbedder

ON = date(2024, 8, 1)
RULES: list[Rule] = ["rrf", "weighted", "date_aware", "adaptive"]


def searcher(store: FakeStore, root: Path, **settings: Any) -> PolicySearch:
    folder, embedder = ensure_index(store, "tfidf", root)
    return PolicySearch(store, embedder, folder, **settings)


def ids(search: PolicySearch, query: str = "glucose sensor", **changes: Any) -> list[str]:
    asked = {"payer_id": "AAA", "as_of": ON, "k": 25} | changes
    return [hit.clause.clause_id for hit in search.search([query], **asked)[0].hits]


@pytest.mark.promise("retrieval.filter_inside")
@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("lexical", ["tantivy", "rank-bm25"])
def test_only_the_eligible_are_found(store: FakeStore, tmp_path: Path, rule: Rule, lexical: Any) -> None:
    search = searcher(store, tmp_path, rule=rule, lexical=lexical)
    base = {"P-1.v2.C1", "P-1.v2.C2", "P-2.v1.C1", "P-2.v1.C2"}
    assert set(ids(search)) == base
    assert set(ids(search, plan_id="AAA-GOLD")) == base | {"R-GOLD.C1"}
    assert set(ids(search, as_of=date(2024, 6, 30))) == {"P-1.v1.C1", "P-2.v1.C1", "P-2.v1.C2"}
    assert set(ids(search, include_superseded=True)) == base | {"P-1.v1.C1", "P-9.v1.C1"}
    assert set(ids(search, payer_id="BBB", plan_id="AAA-GOLD")) == {"Q-1.v1.C1"}
    assert ids(search, payer_id="CCC") == []


@pytest.mark.promise("retrieval.code_leg")
def test_codes_rank_and_do_not_filter(store: FakeStore, tmp_path: Path) -> None:
    search = searcher(store, tmp_path)
    found = ids(search, "what are the rules", codes=["95810"])
    assert found[0] == "P-2.v1.C2"
    assert len(found) == 4
    assert ids(search, "g4733")[0] == "P-2.v1.C1"


@pytest.mark.promise("retrieval.hydrated")
def test_a_hit_is_the_stores_own_clause_whole(store: FakeStore, tmp_path: Path) -> None:
    hit = searcher(store, tmp_path).search(["fingersticks"], payer_id="AAA", as_of=ON)[0].hits[0]
    held = store.clause("P-1.v2.C1")
    assert held is not None
    assert (hit.clause.text, hit.clause.text_sha256) == (held.text, held.text_sha256)
    assert hit.clause.codes == ("A9276", "95249")
    assert (hit.legs.lexical_rank, hit.legs.code_rank) == (1, None)


@pytest.mark.promise("retrieval.hydrated")
def test_what_the_store_lost_or_changed_is_dropped_and_counted(store: FakeStore, tmp_path: Path) -> None:
    search = searcher(store, tmp_path)
    changed = store.clause("P-1.v2.C2")
    assert changed is not None
    store.forget("P-1.v2.C1")
    store.rewrite(replace(changed, effective_start=date(2024, 7, 2)))
    answer = search.search(["glucose sensor"], payer_id="AAA", as_of=ON, k=25)[0]
    assert {hit.clause.clause_id for hit in answer.hits} == {"P-2.v1.C1", "P-2.v1.C2"}
    assert answer.dropped == 2
    assert "2 hit(s) dropped" in answer.notes[0]


@pytest.mark.promise("speed.reads")
@pytest.mark.parametrize("rule", ["adaptive", "rrf", "date_aware", "weighted"])
def test_several_queries_share_their_reads_of_the_store(store: FakeStore, tmp_path: Path, rule: Rule) -> None:
    search = searcher(store, tmp_path, rule=rule)
    store.reads = 0
    found = search.search(["glucose sensor", "sleep testing", "prior authorization"], payer_id="AAA", as_of=ON)
    assert all(answer.hits for answer in found)
    assert 1 <= store.reads <= 2


@pytest.mark.promise("retrieval.one_embedding")
def test_several_queries_are_one_embedding_call_and_answered_each_as_alone(store: FakeStore, tmp_path: Path) -> None:
    embedder = CountingEmbedder(TfidfEmbedder.fit([indexed_text(clause) for clause in store.clauses()]))
    build_index(store, embedder, tmp_path / "index")
    search = PolicySearch(store, embedder, tmp_path / "index")
    embedder.calls = 0
    queries = ["glucose sensor", "sleep testing at home", "glucose sensor"]
    together = search.search(queries, payer_id="AAA", as_of=ON, codes=["A9276"])
    assert embedder.calls == 1
    assert [answer.query for answer in together] == queries
    assert together == [search.search([q], payer_id="AAA", as_of=ON, codes=["A9276"])[0] for q in queries]


@pytest.mark.promise("retrieval.bad_query")
@pytest.mark.parametrize(
    ("queries", "changes", "word"),
    [
        ([""], {}, "query 1"),
        (["fine", " \u200b\n"], {}, "query 2"),
        (["?!"], {}, "no word"),
        (["x" * 8001], {}, "8000 characters"),
        ([], {}, "queries"),
        ("a string", {}, "queries"),
        (["fine"] * 17, {}, "queries"),
        (["fine"], {"k": 0}, "k must be"),
        (["fine"], {"k": 26}, "k must be"),
        (["fine"], {"k": True}, "k must be"),
        (["fine"], {"payer_id": ""}, "payer_id"),
        (["fine"], {"as_of": 20240101}, "day"),
    ],
)
def test_a_bad_argument_is_refused_before_anything_is_embedded(
    store: FakeStore, tmp_path: Path, queries: Any, changes: dict[str, Any], word: str
) -> None:
    embedder = CountingEmbedder(TfidfEmbedder.fit([indexed_text(clause) for clause in store.clauses()]))
    build_index(store, embedder, tmp_path / "index")
    search = PolicySearch(store, embedder, tmp_path / "index")
    embedder.calls = 0
    with pytest.raises(PolicyToolError, match=word) as raised:
        search.search(queries, **changes)
    assert raised.value.code == "invalid_argument"
    assert embedder.calls == 0


@pytest.mark.promise("retrieval.deterministic")
@pytest.mark.parametrize("rule", RULES)
def test_another_build_gives_the_same_answers(tmp_path: Path, rule: Rule) -> None:
    answers = [
        searcher(FakeStore(order), tmp_path / name, rule=rule).search(["sensor", "home test"], payer_id="AAA", as_of=ON)
        for name, order in (("one", small_corpus()), ("two", small_corpus()[::-1]))
    ]
    assert answers[0] == answers[1]


@pytest.mark.promise("retrieval.tiny")
@pytest.mark.parametrize("clauses", [[], [make_clause("P-1.v1.C1", "An insulin pump is covered.")]])
@pytest.mark.parametrize("rule", RULES)
def test_a_store_of_none_or_one_is_searched(tmp_path: Path, clauses: list[Any], rule: Rule) -> None:
    search = searcher(FakeStore(clauses), tmp_path, rule=rule)
    assert ids(search, "pump") == [clause.clause_id for clause in clauses]


@pytest.mark.promise("retrieval.adaptive")
def test_words_that_explain_nothing_leave_the_order_to_meaning(tmp_path: Path) -> None:
    clauses = [make_clause("P-1.v1.C1", "apple"), make_clause("P-1.v1.C2", "pear will")]
    planted = {indexed_text(clauses[0]): (0, 1.0), "will they pay for fruit": (0, 1.0)}
    store, embedder = FakeStore(clauses), PlantedEmbedder(2, planted)
    build_index(store, embedder, tmp_path / "index")
    adaptive = PolicySearch(store, embedder, tmp_path / "index")
    assert ids(adaptive, "will they pay for fruit") == ["P-1.v1.C1", "P-1.v1.C2"]
    assert ids(adaptive, "pear will")[0] == "P-1.v1.C2"


@pytest.mark.promise("retrieval.index_mismatch")
def test_an_index_of_another_corpus_or_embedder_is_refused(store: FakeStore, tmp_path: Path) -> None:
    folder, embedder = ensure_index(store, "tfidf", tmp_path)
    with pytest.raises(IndexMismatch, match="embedder"):
        open_index(folder, store, TfidfEmbedder.fit(["other"]))
    with pytest.raises(IndexMismatch, match="corpus"):
        open_index(folder, FakeStore(small_corpus()[1:]), embedder)
    with pytest.raises(IndexAbsent, match="cda corpus index"):
        open_index(tmp_path / "none", store, embedder)
    (folder / "manifest.json").write_text("{}", encoding="utf-8")
    with pytest.raises(IndexMismatch, match="damaged"):
        open_index(folder, store, embedder)


@pytest.mark.promise("retrieval.index_mismatch")
def test_vectors_swapped_under_the_manifest_are_refused(store: FakeStore, tmp_path: Path) -> None:
    folder, embedder = ensure_index(store, "tfidf", tmp_path)
    other, _ = ensure_index(FakeStore(small_corpus()[1:]), "tfidf", tmp_path)
    assert other != folder
    shutil.rmtree(folder / "vectors")
    shutil.copytree(other / "vectors", folder / "vectors")
    with pytest.raises(IndexMismatch, match="vectors"):
        open_index(folder, store, embedder)


@pytest.mark.promise("retrieval.index_whole")
def test_a_build_that_fails_leaves_nothing_and_the_next_one_succeeds(
    store: FakeStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def power_cut(*_: object) -> None:
        raise OSError("no space left")

    with monkeypatch.context() as patch:
        patch.setattr(index_module.LexicalIndex, "build", power_cut)
        with pytest.raises(OSError, match="no space"):
            ensure_index(store, "tfidf", tmp_path)
    assert [path.suffix for path in tmp_path.iterdir()] == [".lock"]
    folder, _ = ensure_index(store, "tfidf", tmp_path)
    assert {path.name for path in tmp_path.iterdir() if path.suffix != ".lock"} == {folder.name}


@pytest.mark.promise("retrieval.index_whole")
def test_an_index_is_built_once_and_opened_afterwards(store: FakeStore, tmp_path: Path) -> None:
    first, _ = ensure_index(store, "tfidf", tmp_path)
    stamp = (first / "manifest.json").stat().st_mtime_ns
    second, embedder = ensure_index(store, "tfidf", tmp_path)
    assert (second, (second / "manifest.json").stat().st_mtime_ns) == (first, stamp)
    assert PolicySearch(store, embedder, second).manifest_digest == PolicySearch(store, embedder, first).manifest_digest


@pytest.mark.promise("retrieval.lazy_model")
def test_every_corpus_and_embedder_has_its_own_place_and_asking_for_it_builds_nothing(
    store: FakeStore, tmp_path: Path
) -> None:
    other = FakeStore(small_corpus()[1:])
    names: list[EmbedderName] = ["minilm-int8", "minilm-int8-dynamic", "tfidf"]
    places = {place(tmp_path, held, name) for held in (store, other) for name in names}
    assert len(places) == 6
    assert list(tmp_path.iterdir()) == []


@pytest.mark.promise("retrieval.no_text")
def test_no_file_of_an_index_holds_clause_text(store: FakeStore, tmp_path: Path) -> None:
    folder, _ = ensure_index(store, "tfidf", tmp_path)
    held = b"".join(file.read_bytes() for file in sorted(folder.rglob("*")) if file.is_file())
    for clause in store.clauses():
        for start in range(len(clause.text) - 20):
            assert clause.text[start : start + 20].encode() not in held
            assert clause.text[start : start + 20].encode("utf-32-le") not in held
