"""Embedders by the name that the settings give them. `models` is where files that are built here are kept."""

from collections.abc import Callable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Literal

from cda.contracts.embedding import Embedder
from cda.retrieval.minilm import MiniLM, Weights, packaged_weights
from cda.retrieval.requantise import requantised_weights
from cda.retrieval.tfidf import TfidfEmbedder

EmbedderName = Literal["minilm-int8", "minilm-int8-dynamic", "tfidf"]
FIT_FILE = "tfidf.npz"


def models_folder(root: Path) -> Path:
    """Where model files that are built on this machine live, beside the indexes under `root`."""
    return root / "models"


def stable_identity(name: EmbedderName) -> str:
    """What an index's place is derived from; loads and builds nothing. The full identity for packaged weights, the
    source for re-quantised ones, the bare name for a fitted embedder, whose fit follows from the corpus."""
    match name:
        case "minilm-int8":
            return packaged_weights().identity
        case "minilm-int8-dynamic":
            return f"{name} of {packaged_weights().sha256[:16]}"
        case "tfidf":
            return name


def sentence_model(name: EmbedderName, models: Path) -> MiniLM | None:
    """The sentence model of that name, not yet loaded; None when the embedder is fitted on a corpus instead."""
    match name:
        case "minilm-int8":
            return _model(packaged_weights())
        case "minilm-int8-dynamic":
            return _model(requantised_weights(models))
        case "tfidf":
            return None


def start_loading(name: EmbedderName, models: Path) -> None:
    """Begin to load the model in the background, so that it is there when the first query is. The embedder of an index
    that is opened later in this process is this very model. About 0.06 s here and 0.3 s of another core."""
    model = sentence_model(name, models)
    if model:
        model.start_loading()


@lru_cache(maxsize=2)
def _model(weights: Weights) -> MiniLM:
    """One model a process: 90 MB and a third of a second are not paid twice."""
    return MiniLM(weights)


def for_building(name: EmbedderName, texts: Callable[[], Sequence[str]], models: Path) -> Embedder:
    """The embedder that a new index of these texts is made with."""
    return sentence_model(name, models) or TfidfEmbedder.fit(texts())


def for_searching(name: EmbedderName, index: Path, models: Path) -> Embedder:
    """The embedder that queries the index in this folder."""
    return sentence_model(name, models) or TfidfEmbedder.load(index / FIT_FILE)
