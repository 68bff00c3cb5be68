"""Embedders by the name that the settings give them."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal

from cda.contracts.embedding import Embedder
from cda.retrieval.minilm import MiniLM, packaged_weights
from cda.retrieval.tfidf import TfidfEmbedder

EmbedderName = Literal["minilm-int8", "tfidf"]
FIT_FILE = "tfidf.npz"


def stable_identity(name: EmbedderName) -> str:
    """What an index's place is derived from: the identity, or for a fitted embedder its name (the corpus does the
    rest). Loads nothing."""
    return name if name == "tfidf" else MiniLM(packaged_weights()).identity


def for_building(name: EmbedderName, texts: Callable[[], Sequence[str]]) -> Embedder:
    """The embedder that a new index of these texts is made with."""
    if name == "tfidf":
        return TfidfEmbedder.fit(texts())
    return MiniLM(packaged_weights())


def for_searching(name: EmbedderName, index: Path) -> Embedder:
    """The embedder that queries the index in this folder."""
    if name == "tfidf":
        return TfidfEmbedder.load(index / FIT_FILE)
    return MiniLM(packaged_weights())
