"""Embedders by the name that the settings give them. `models` is where files that are built here are kept."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal

from cda.contracts.embedding import Embedder
from cda.retrieval.minilm import MiniLM, packaged_weights
from cda.retrieval.requantise import requantised_weights
from cda.retrieval.tfidf import TfidfEmbedder

EmbedderName = Literal["minilm-int8", "minilm-int8-dynamic", "tfidf"]
FIT_FILE = "tfidf.npz"


def sentence_model(name: EmbedderName, models: Path) -> MiniLM | None:
    """The sentence model of that name, not yet loaded; None when the embedder is fitted on a corpus instead."""
    match name:
        case "minilm-int8":
            return MiniLM(packaged_weights())
        case "minilm-int8-dynamic":
            return MiniLM(requantised_weights(models))
        case "tfidf":
            return None


def for_building(name: EmbedderName, texts: Callable[[], Sequence[str]], models: Path) -> Embedder:
    """The embedder that a new index of these texts is made with."""
    return sentence_model(name, models) or TfidfEmbedder.fit(texts())


def for_searching(name: EmbedderName, index: Path, models: Path) -> Embedder:
    """The embedder that queries the index in this folder."""
    return sentence_model(name, models) or TfidfEmbedder.load(index / FIT_FILE)
