"""Sparse vectors on Pinecone over the wire double: the one filter, ties by id, and what is refused."""

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from conformance.backend import SPEC, record
from doubles.pinecone_server import Fault, PineconeDouble
from doubles.pinecone_store import Delay
from pydantic import SecretStr

from backends.errors import BackendError, BackendUnavailable, IndexAbsent, IndexMismatch, InvalidFilter, InvalidRecord
from backends.filters import All, AnyOf, Contains, Eq, Everything, Ge, In, Le, Nothing, Where, evaluate
from backends.pinecone import PineconeBackend
from backends.pinecone_config import PineconeConfig
from backends.pinecone_inference import HostedEmbedder, HostedSparseEmbedder
from backends.pinecone_sparse import PineconeSparse
from backends.schema import PLAN_ANY, POLICY
from backends.sparse import SparseRecord, SparseVector

pytestmark = pytest.mark.promise("pinecone.sparse")
MODEL = "the model"
ASKED = SparseVector((7, 9), (1.0, 2.0))


@pytest.fixture
def double() -> Iterator[PineconeDouble]:
    with PineconeDouble() as running:
        yield running


def config(double: PineconeDouble, **changes: Any) -> PineconeConfig:
    given: dict[str, Any] = {"api_key": SecretStr(double.key), "index": "i", "namespace": "n", "host": double.host}
    return PineconeConfig(**(given | changes))


@pytest.fixture
def index(double: PineconeDouble) -> Iterator[PineconeSparse]:
    made = PineconeSparse(config(double), POLICY, MODEL)
    yield made
    made.close()


def sparse(name: str, weights: dict[int, float], **fields: Any) -> SparseRecord:
    meta = record(name, **fields).meta
    return SparseRecord(name, SparseVector(tuple(weights), tuple(weights.values())), meta, f"h-{name}")


def found(index: PineconeSparse, where: Where = Everything(), k: int = 50, asked: SparseVector = ASKED) -> list[str]:  # noqa: B008 - frozen
    return [hit.id for hit in index.search("w", [asked], where=where, k=k)[0]]


def test_products_rank_ties_go_by_id_and_what_shares_nothing_is_not_found(index: PineconeSparse) -> None:
    assert not index.holds("w")
    held = [sparse("b", {7: 1.0}), sparse("a", {7: 1.0}), sparse("c", {7: 1.0, 9: 1.0}), sparse("none", {8: 5.0})]
    assert index.build("w", held) == 4
    assert index.holds("w")
    hits = index.search("w", [ASKED], where=Everything(), k=50)[0]
    assert [(hit.id, hit.score, hit.rank, hit.content_hash) for hit in hits] == [
        ("c", 3.0, 1, "h-c"),
        ("a", 1.0, 2, "h-a"),
        ("b", 1.0, 3, "h-b"),
    ]
    assert found(index, k=2) == ["c", "a"]
    assert found(index, asked=SparseVector((), ())) == []


def test_more_ties_than_any_first_look_shows_are_still_broken_by_id(index: PineconeSparse) -> None:
    index.build("w", [sparse(f"r{i:03}", {7: 1.0}) for i in range(300)])
    assert found(index, k=3) == ["r000", "r001", "r002"]


def test_every_filter_admits_what_the_oracle_admits(index: PineconeSparse) -> None:
    fields = [
        {"payer_id": payer, "plan_id": plan, "codes": codes, "effective_start_i": start, "effective_end_i": end}
        for payer in ("P", "Q")
        for plan in (PLAN_ANY, "HMO")
        for codes in (("A9276",), ("A9276", "J0135"))
        for start, end in ((20230101, 20240630), (20240701, 99991231))
    ]
    held = [sparse(f"r{i:02}", {7: 1.0}, **given) for i, given in enumerate(fields)]
    index.build("w", held)
    first, last = POLICY["effective_start_i"], POLICY["effective_end_i"]
    for where in (
        Everything(),
        Nothing(),
        Eq(POLICY["payer_id"], "P"),
        In(POLICY["plan_id"], (PLAN_ANY, "HMO")),
        In(POLICY["plan_id"], ()),
        Contains(POLICY["codes"], "J0135"),
        *(All((Le(first, day), Ge(last, day))) for day in (20240630, 20240701)),
        AnyOf((Eq(POLICY["payer_id"], "Q"), Contains(POLICY["codes"], "J0135"))),
    ):
        assert found(index, where) == [one.id for one in held if evaluate(where, one.meta)]


def test_what_cannot_be_asked_is_refused_before_a_request(double: PineconeDouble, index: PineconeSparse) -> None:
    index.build("w", [sparse("a", {7: 1.0})])
    before = len(double.seen)
    with pytest.raises(InvalidFilter, match="10001 values"):
        found(index, In(POLICY["plan_id"], tuple(str(i) for i in range(10_001))))
    for k in (0, 1001):
        with pytest.raises(ValueError, match="k must be in"):
            found(index, k=k)
    assert len(double.seen) == before


def test_a_build_that_was_cut_short_is_not_there_and_is_made_good(
    double: PineconeDouble, index: PineconeSparse
) -> None:
    def broken() -> Iterator[SparseRecord]:
        yield sparse("a", {7: 1.0})
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        index.build("w", broken())
    assert not index.holds("w")
    with pytest.raises(IndexAbsent, match="no target 'w'"):
        found(index)
    index.build("w", [sparse("a", {7: 1.0}), sparse("b", {7: 1.0})])
    assert found(index) == ["a", "b"]


def test_what_the_service_does_not_show_or_count_is_not_called_finished(double: PineconeDouble) -> None:
    for trouble, words in ((Delay(forever=True), "not seen"), (None, "not taken")):
        index = PineconeSparse(config(double, index=f"i-{words[-4:]}", write_deadline_s=0.5), POLICY, MODEL)
        double.store.delay = trouble or Delay()
        double.store.count_short = 0 if trouble else 1
        with pytest.raises(BackendUnavailable, match=words):
            index.build("w", [sparse("a", {7: 1.0})])
        assert not index.holds("w")
        index.close()


def test_a_late_view_is_waited_for(double: PineconeDouble, index: PineconeSparse) -> None:
    double.store.delay = Delay(queries=3, fetches_too=True)
    index.build("w", [sparse("a", {7: 1.0})])
    assert index.holds("w")
    assert found(index) == ["a"]


def test_failures_that_pass_are_not_noticed(double: PineconeDouble, index: PineconeSparse) -> None:
    double.faults += [Fault("status", path="/vectors/upsert", status=503), Fault("lose_answer", path="/vectors/upsert")]
    index.build("w", [sparse("a", {7: 1.0})])
    double.faults += [Fault("cut", path="/query")]
    assert found(index) == ["a"]


def test_a_namespace_that_is_gone_is_an_error_and_no_empty_answer(
    double: PineconeDouble, index: PineconeSparse
) -> None:
    index.build("w", [sparse("a", {7: 1.0})])
    assert found(index, Eq(POLICY["payer_id"], "nobody")) == []
    double.store.indexes["i-words"].namespaces.clear()
    with pytest.raises(IndexAbsent, match="no target 'w'"):
        found(index)


def test_words_of_another_model_or_in_an_index_of_another_kind_are_refused(
    double: PineconeDouble, index: PineconeSparse
) -> None:
    index.build("w", [sparse("a", {7: 1.0})])
    other = PineconeSparse(config(double), POLICY, "another")
    with pytest.raises(IndexMismatch, match="was built with embedder 'the model'"):
        other.holds("w")
    other.close()
    dense = PineconeBackend(config(double, index="dense-words"))
    dense.ensure("w", SPEC)
    dense.close()
    wrong = PineconeSparse(config(double, index="dense"), POLICY, MODEL)
    with pytest.raises(IndexMismatch, match="holds dense vectors"):
        wrong.holds("w")
    wrong.close()
    with pytest.raises(BackendError, match="39 characters"):
        PineconeSparse(config(double, index="i" * 40), POLICY, MODEL)


def test_a_record_that_the_service_could_not_keep_is_refused_here(
    double: PineconeDouble, index: PineconeSparse
) -> None:
    for weights in ({}, dict.fromkeys(range(1001), 1.0)):
        with pytest.raises(InvalidRecord, match="'a': a sparse vector of"):
            index.build("w", [sparse("a", weights)])
    with pytest.raises(InvalidRecord, match="codes"):
        index.build("w", [replace(sparse("a", {7: 1.0}), meta={})])
    assert not double.asked("/vectors/upsert")


@pytest.mark.promise("pinecone.hosted")
def test_the_hosted_model_weighs_words_and_refuses_what_it_would_cut(double: PineconeDouble) -> None:
    embedder = HostedSparseEmbedder(config(double), "pinecone-sparse-english-v0")
    one, other = embedder.embed(["monitor monitor glucose", "pump"])
    assert (sorted(one.values), other.values) == ([1.0, 2.0], (1.0,))
    assert embedder.embed([]) == []
    embedder.embed_queries(["a question"])
    sent = [json.loads(seen.body)["parameters"] for seen in double.asked("/embed")]
    assert [one["input_type"] for one in sent] == ["passage", "query"]
    assert all(one["truncate"] == "NONE" for one in sent)
    with pytest.raises(InvalidRecord, match=r"more than pinecone-sparse-english-v0 takes.*unset CDA_LEXICAL") as caught:
        embedder.embed(["fine", "word " * 513])
    assert "word word" not in str(caught.value)
    embedder.close()


@pytest.mark.promise("pinecone.hosted")
def test_vectors_of_the_other_kind_are_an_error(double: PineconeDouble, monkeypatch: pytest.MonkeyPatch) -> None:
    sparse_model: Any = "llama-text-embed-v2"
    embedder = HostedSparseEmbedder(config(double), sparse_model)
    with pytest.raises(BackendError, match="not sparse"):
        embedder.embed(["a"])
    embedder.close()
    monkeypatch.setattr("doubles.pinecone_models.DENSE", {})
    monkeypatch.setattr("doubles.pinecone_models.SPARSE", {"multilingual-e5-large": 512})
    dense = HostedEmbedder(config(double), "multilingual-e5-large", 1024)
    with pytest.raises(BackendError, match="none of 1024 components"):
        dense.embed(["a"])
    dense.close()
