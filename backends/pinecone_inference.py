"""Models that Pinecone hosts: text goes there and comes back as vectors or as an order. Nothing is kept there.

An embedder is off unless a setting names a model, and so is a reranker: with neither, no text leaves this machine.
Model limits: https://docs.pinecone.io/models/overview
"""

import weakref
from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

import numpy as np

from backends.base import Vectors
from backends.deadlines import Call
from backends.errors import BackendError, InvalidRecord
from backends.pinecone_config import PineconeConfig
from backends.pinecone_service import PineconeService

EmbeddingModel = Literal["llama-text-embed-v2", "multilingual-e5-large"]
RerankModel = Literal["bge-reranker-v2-m3"]

DIMENSIONS: dict[EmbeddingModel, tuple[int, ...]] = {
    "llama-text-embed-v2": (384, 512, 768, 1024, 2048),
    "multilingual-e5-large": (1024,),
}
_INPUTS = 96  # of one request, both models
_DOCUMENTS = 100  # of one reranking


class HostedEmbedder:
    """Text to unit vectors. A text that is longer than the model takes is refused, never cut. The service tells no
    version of its weights, so the identity names the model; a probe of fixed texts tells a silent change."""

    def __init__(self, config: PineconeConfig, model: EmbeddingModel, dim: int) -> None:
        if dim not in DIMENSIONS[model]:
            raise BackendError(f"{model} makes vectors of {DIMENSIONS[model]} components, not {dim}")
        self._service = _patient(config)
        self._release = weakref.finalize(self, self._service.close)
        self._model: EmbeddingModel = model
        self._dim = dim

    @property
    def identity(self) -> str:
        """Model, size, and what is sent with a text."""
        return f"pinecone:{self._model};dim={self._dim};passage/query;uncut"

    @property
    def dim(self) -> int:
        """Number of components."""
        return self._dim

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Unit vectors of passages, in order."""
        return self._embedded(texts, "passage")

    def embed_queries(self, texts: Sequence[str]) -> Vectors:
        """Unit vectors of questions, in order; up to 96 of them in one request."""
        return self._embedded(texts, "query")

    def close(self) -> None:
        """Close the connections."""
        self._release()

    def _embedded(self, texts: Sequence[str], kind: Literal["passage", "query"]) -> Vectors:
        if not texts:
            return np.zeros((0, self._dim), dtype=np.float32)
        parts = [list(texts[start : start + _INPUTS]) for start in range(0, len(texts), _INPUTS)]
        calls = [self._begin(part, kind) for part in parts]
        rows = [row for part, call in zip(parts, calls, strict=True) for row in self._finished(part, call, kind)]
        vectors = np.asarray(rows, dtype=np.float64).reshape(len(texts), -1)
        norms = np.linalg.norm(vectors, axis=1, keepdims=True)
        if vectors.shape[1] != self._dim or not np.isfinite(norms).all() or not norms.all():
            raise BackendError(f"{self._model} answered with vectors that are none of {self._dim} components")
        units: Vectors = (vectors / norms).astype(np.float32)
        return units

    def _begin(self, texts: list[str], kind: str) -> Call[list[list[float]] | None]:
        dim = self._dim if len(DIMENSIONS[self._model]) > 1 else None
        return self._service.begin_embed(self._model, texts, kind, dim)

    def _finished(self, texts: list[str], call: Call[list[list[float]] | None], kind: str) -> list[list[float]]:
        """The vectors. A request that was refused is halved until the text that cannot be taken stands alone."""
        found = self._service.finished("embed", call)
        if found is not None:
            return found
        if len(texts) == 1:
            raise InvalidRecord(
                f"a text of {len(texts[0])} characters is more than {self._model} takes, or is no text; it is not cut: "
                "split it, or embed on this machine (unset CDA_PINECONE_MODEL)"
            )
        halves = texts[: len(texts) // 2], texts[len(texts) // 2 :]
        return [row for half in halves for row in self._finished(half, self._begin(half, kind), kind)]


class HostedReranker:
    """Orders passages for a question. It sees what it is given and can admit nothing else."""

    def __init__(self, config: PineconeConfig, model: RerankModel) -> None:
        self._service = PineconeService(config)
        self._release = weakref.finalize(self, self._service.close)
        self._model: RerankModel = model

    @property
    def name(self) -> str:
        """The model."""
        return self._model

    def order(self, query: str, texts: Sequence[str]) -> list[int]:
        """The positions of the texts, best first; equal scores keep their order. At most 100 texts."""
        if len(texts) > _DOCUMENTS:
            raise BackendError(f"{self._model} orders {_DOCUMENTS} passages at once, not {len(texts)}")
        if len(texts) < 2:
            return list(range(len(texts)))
        scores = self._service.finished("rerank", self._service.begin_rerank(self._model, query, list(texts)))
        if sorted(scores) != list(range(len(texts))):
            raise BackendError(f"{self._model} did not answer with one score a passage")
        return sorted(scores, key=lambda position: (-round(scores[position], 6), position))

    def close(self) -> None:
        """Close the connections."""
        self._release()


def _patient(config: PineconeConfig) -> PineconeService:
    """Embedding 96 long texts takes the service longer than a query does."""
    return PineconeService(replace(config, read_deadline_s=config.write_deadline_s))
