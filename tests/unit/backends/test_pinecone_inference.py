"""Hosted models over the wire double: what is sent, what is refused, what comes back."""

import json
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from doubles.pinecone_server import Fault, PineconeDouble
from pydantic import SecretStr

from backends.errors import AccessRefused, BackendError, BackendUnavailable, InvalidRecord
from backends.pinecone_config import PineconeConfig
from backends.pinecone_inference import HostedEmbedder, HostedReranker


@pytest.fixture
def double() -> Iterator[PineconeDouble]:
    with PineconeDouble() as running:
        yield running


def config(double: PineconeDouble, **changes: Any) -> PineconeConfig:
    given: dict[str, Any] = {"api_key": SecretStr(double.key), "index": "i", "namespace": "n", "host": double.host}
    return PineconeConfig(**(given | changes))


@pytest.fixture
def embedder(double: PineconeDouble) -> Iterator[HostedEmbedder]:
    made = HostedEmbedder(config(double), "llama-text-embed-v2", 384)
    yield made
    made.close()


def sent(double: PineconeDouble, path: str = "/embed") -> list[dict[str, Any]]:
    return [json.loads(one.body) for one in double.asked(path)]


@pytest.mark.promise("pinecone.hosted")
def test_vectors_are_of_the_asked_size_and_of_length_one(embedder: HostedEmbedder) -> None:
    vectors = embedder.embed(["a monitor is covered", "not covered", "a monitor is covered"])
    assert (vectors.shape, vectors.dtype) == ((3, 384), np.float32)
    assert np.linalg.norm(vectors, axis=1) == pytest.approx([1, 1, 1], abs=1e-6)
    assert (vectors[0] == vectors[2]).all()
    assert embedder.embed([]).shape == (0, 384)
    assert "llama-text-embed-v2;dim=384" in embedder.identity


@pytest.mark.promise("pinecone.hosted")
def test_passages_and_questions_are_told_apart_and_nothing_may_be_cut(
    double: PineconeDouble, embedder: HostedEmbedder
) -> None:
    embedder.embed(["a passage"])
    embedder.embed_queries(["one question", "another"])
    parameters = [one["parameters"] for one in sent(double)]
    assert [one["input_type"] for one in parameters] == ["passage", "query"]
    assert all(one["truncate"] == "NONE" and one["dimension"] == 384 for one in parameters)


@pytest.mark.promise("pinecone.hosted")
def test_many_texts_are_sent_by_96_and_come_back_in_order(double: PineconeDouble, embedder: HostedEmbedder) -> None:
    texts = [f"text number {i}" for i in range(200)]
    vectors = embedder.embed(texts)
    assert sorted(len(one["inputs"]) for one in sent(double)) == [8, 96, 96]
    assert (vectors[150] == embedder.embed([texts[150]])[0]).all()


@pytest.mark.promise("pinecone.hosted")
def test_a_text_that_is_too_long_is_refused_and_never_cut(embedder: HostedEmbedder) -> None:
    long = "word " * 2100
    with pytest.raises(InvalidRecord, match="10500 characters is more than llama-text-embed-v2 takes") as caught:
        embedder.embed(["fine", "fine too", long, "fine as well"])
    assert "word" not in str(caught.value)


@pytest.mark.promise("pinecone.hosted")
@pytest.mark.parametrize(("model", "dim"), [("llama-text-embed-v2", 1000), ("multilingual-e5-large", 384)])
def test_a_size_that_the_model_does_not_make_is_refused_at_once(double: PineconeDouble, model: Any, dim: int) -> None:
    with pytest.raises(BackendError, match="makes vectors of"):
        HostedEmbedder(config(double), model, dim)


@pytest.mark.promise("pinecone.passing_failures")
def test_a_model_that_fails_for_a_moment_is_asked_again(double: PineconeDouble, embedder: HostedEmbedder) -> None:
    double.faults += [Fault("status", status=429, headers={"Retry-After": "0.05"}), Fault("cut"), Fault("drop")]
    assert embedder.embed(["a"]).shape == (1, 384)


@pytest.mark.promise("pinecone.deadline")
def test_a_model_that_does_not_answer_is_an_error_in_time(double: PineconeDouble) -> None:
    embedder = HostedEmbedder(config(double, write_deadline_s=0.6), "multilingual-e5-large", 1024)
    double.faults.append(Fault("status", times=999, status=503))
    with pytest.raises(BackendUnavailable, match="did not embed in time"):
        embedder.embed(["a"])
    embedder.close()


@pytest.mark.promise("pinecone.access")
def test_a_wrong_key_is_told_by_the_model_too(double: PineconeDouble) -> None:
    embedder = HostedEmbedder(config(double, api_key=SecretStr("another")), "multilingual-e5-large", 1024)
    with pytest.raises(AccessRefused, match="PINECONE_API_KEY"):
        embedder.embed(["a"])
    embedder.close()


@pytest.mark.promise("pinecone.hosted")
def test_a_reranker_orders_what_it_is_given_and_keeps_ties_in_place(double: PineconeDouble) -> None:
    reranker = HostedReranker(config(double), "bge-reranker-v2-m3")
    texts = ["nothing of it", "glucose", "glucose monitor", "nothing of that"]
    assert reranker.orders([("glucose monitor", texts), ("q", []), ("q", ["alone"])]) == [[2, 1, 0, 3], [], [0]]
    assert len(sent(double, "/rerank")) == 1
    assert sent(double, "/rerank")[0]["return_documents"] is False
    with pytest.raises(BackendError, match="100 passages"):
        reranker.orders([("q", ["t"] * 101)])
    assert len(sent(double, "/rerank")) == 1
    reranker.close()
