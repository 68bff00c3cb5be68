"""An embedder is known again by its vectors of a few texts, on another machine too, and another one is not."""

from pathlib import Path

import numpy as np
import pytest
from lifecycle_world import World, corpus
from retrieval_world import HashingEmbedder

from backends.errors import IndexMismatch
from cda.contracts.embedding import Vectors
from cda.retrieval.lifecycle.probe import probe_of, same_probe

pytestmark = pytest.mark.promise("lifecycle.manifest")


class Shaken(HashingEmbedder):
    """The same embedder on a machine that rounds otherwise, by `much`."""

    much = 1e-4

    def embed(self, texts: object) -> Vectors:
        vectors = super().embed(texts)  # type: ignore[arg-type]
        noise = np.random.default_rng(7).normal(0, self.much, vectors.shape)
        return (vectors + noise).astype(np.float32)


def test_a_machine_that_rounds_otherwise_has_the_same_probe_and_another_model_has_not() -> None:
    one, same, other = HashingEmbedder(384), Shaken(384), HashingEmbedder(384, "another model")
    assert same_probe(probe_of(one), probe_of(same))
    assert not same_probe(probe_of(one), probe_of(other))
    assert not same_probe(probe_of(one), probe_of(HashingEmbedder(128)))


def test_of_two_texts_that_become_nothing_only_nothing_is_the_same() -> None:
    class Nothing(HashingEmbedder):
        def embed(self, texts: object) -> Vectors:
            vectors = super().embed(texts)  # type: ignore[arg-type]
            vectors[3] = 0.0
            return vectors

    some, none = probe_of(HashingEmbedder(16)), probe_of(Nothing(16))
    assert same_probe(none, none)
    assert not same_probe(some, none)


def test_an_increment_with_another_model_of_the_same_name_is_refused_and_a_fresh_one_uses_no_vector_of_the_old(
    tmp_path: Path,
) -> None:
    World(tmp_path, corpus()).cycle().index()
    world = World(tmp_path, corpus(words="not covered"))
    world.embedder.embed = HashingEmbedder(32, "another model").embed  # type: ignore[method-assign]
    before = world.files.names("building/local")

    with pytest.raises(IndexMismatch, match="--fresh"):
        world.cycle().index()
    assert world.files.names("building/local") == before

    report = world.cycle().index(fresh=True)
    assert (report.state, report.embedded) == ("live", 12)
    assert world.cycle().verify().state == "verified"
