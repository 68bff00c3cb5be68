"""Models that Pinecone hosts: text goes there and comes back as vectors or as an order. Nothing is kept there.

Each is off unless a setting names a model: with none, no text leaves this machine.
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
from backends.pinecone_models import Embedded, PineconeModels
from backends.sparse import SparseVector

EmbeddingModel = Literal["llama-text-embed-v2", "multilingual-e5-large"]
SparseModel = Literal["pinecone-sparse-english-v0"]
RerankModel = Literal["bge-reranker-v2-m3"]

DIMENSIONS: dict[EmbeddingModel, tuple[int, ...]] = {
    "llama-text-embed-v2": (384, 512, 768, 1024, 2048),
    "multilingual-e5-large": (1024,),
}
_INPUTS = 96  # of one request, every embedding model
_DOCUMENTS = 100  # of one reranking


class _Texts:
    """Sends texts to one embedding model, 96 a request, all requests together. A text that is longer than the model
    takes is refused, never cut."""

    def __init__(self, config: PineconeConfig, model: str, dim: int | None, instead: str) -> None:
        # Embedding 96 long texts takes the service longer than a query does.
        self._service = PineconeModels(replace(config, read_deadline_s=config.write_deadline_s))
        self.release = weakref.finalize(self, self._service.close)
        self._model, self._dim, self._instead = model, dim, instead

    def embedded(self, texts: Sequence[str], kind: Literal["passage", "query"]) -> list[Embedded]:
        """One vector a text, in order."""
        parts = [list(texts[start : start + _INPUTS]) for start in range(0, len(texts), _INPUTS)]
        calls = [self._begin(part, kind) for part in parts]
        found = [row for part, call in zip(parts, calls, strict=True) for row in self._finished(part, call, kind)]
        if len(found) != len(texts):
            raise BackendError(f"{self._model} did not answer with one vector a text")
        return found

    def _begin(self, texts: list[str], kind: str) -> Call[list[Embedded] | None]:
        return self._service.begin_embed(self._model, texts, kind, self._dim)

    def _finished(self, texts: list[str], call: Call[list[Embedded] | None], kind: str) -> list[Embedded]:
        """The vectors. A request that was refused is halved until the text that cannot be taken stands alone."""
        found = self._service.finished("embed", call)
        if found is not None:
            return found
        if len(texts) == 1:
            raise InvalidRecord(
                f"a text of {len(texts[0])} characters is more than {self._model} takes, or is no text; it is not cut: "
                f"split it, or {self._instead}"
            )
        halves = texts[: len(texts) // 2], texts[len(texts) // 2 :]
        return [row for half in halves for row in self._finished(half, self._begin(half, kind), kind)]


class HostedEmbedder:
    """Text to unit vectors. A text that is longer than the model takes is refused, never cut. The service tells no
    version of its weights, so the identity names the model; a probe of fixed texts tells a silent change."""

    def __init__(self, config: PineconeConfig, model: EmbeddingModel, dim: int) -> None:
        if dim not in DIMENSIONS[model]:
            raise BackendError(f"{model} makes vectors of {DIMENSIONS[model]} components, not {dim}")
        sent = dim if len(DIMENSIONS[model]) > 1 else None
        self._texts = _Texts(config, model, sent, "embed on this machine (unset CDA_PINECONE_MODEL)")
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
        self._texts.release()

    def _embedded(self, texts: Sequence[str], kind: Literal["passage", "query"]) -> Vectors:
        if not texts:
            return np.zeros((0, self._dim), dtype=np.float32)
        rows = self._texts.embedded(texts, kind)
        if any(isinstance(row, SparseVector) or len(row) != self._dim for row in rows):
            raise self._no_vectors()
        vectors = np.asarray(rows, dtype=np.float64)
        norms = np.linalg.norm(vectors, axis=1, keepdims=True)
        if not np.isfinite(norms).all() or not norms.all():
            raise self._no_vectors()
        units: Vectors = (vectors / norms).astype(np.float32)
        return units

    def _no_vectors(self) -> BackendError:
        return BackendError(f"{self._model} answered with vectors that are none of {self._dim} components")


class HostedSparseEmbedder:
    """Text to sparse vectors: the model's weight of each word that it knows. A text that is longer than the model takes
    is refused, never cut."""

    def __init__(self, config: PineconeConfig, model: SparseModel) -> None:
        self._texts = _Texts(config, model, None, "keep the words on this machine (unset CDA_LEXICAL)")
        self._model: SparseModel = model

    @property
    def identity(self) -> str:
        """Model, and what is sent with a text."""
        return f"pinecone:{self._model};passage/query;uncut"

    def embed(self, texts: Sequence[str]) -> list[SparseVector]:
        """Vectors of passages, in order."""
        return self._sparse(self._texts.embedded(texts, "passage"))

    def embed_queries(self, texts: Sequence[str]) -> list[SparseVector]:
        """Vectors of questions, in order; up to 96 of them in one request."""
        return self._sparse(self._texts.embedded(texts, "query"))

    def close(self) -> None:
        """Close the connections."""
        self._texts.release()

    def _sparse(self, rows: Sequence[Embedded]) -> list[SparseVector]:
        found = [row for row in rows if isinstance(row, SparseVector)]
        if len(found) != len(rows) or any(len(row.places) != len(row.values) for row in found):
            raise BackendError(f"{self._model} answered with vectors that are not sparse")
        return found


class HostedReranker:
    """Orders passages for questions. It sees what it is given and can admit nothing else."""

    def __init__(self, config: PineconeConfig, model: RerankModel) -> None:
        self._service = PineconeModels(config)
        self._release = weakref.finalize(self, self._service.close)
        self._model: RerankModel = model

    @property
    def name(self) -> str:
        """The model."""
        return self._model

    def orders(self, asked: Sequence[tuple[str, Sequence[str]]]) -> list[list[int]]:
        """For each question and its texts, at most 100, the positions of the texts, best first; equal scores keep
        their order. All are under way together."""
        if any(len(texts) > _DOCUMENTS for _, texts in asked):
            raise BackendError(f"{self._model} orders {_DOCUMENTS} passages at once, and no more")
        calls = [
            self._service.begin_rerank(self._model, query, list(texts)) if len(texts) > 1 else None
            for query, texts in asked
        ]
        return [self._finished(call, len(texts)) for call, (_, texts) in zip(calls, asked, strict=True)]

    def _finished(self, call: Call[dict[int, float]] | None, count: int) -> list[int]:
        if call is None:
            return list(range(count))
        scores = self._service.finished("rerank", call)
        if sorted(scores) != list(range(count)):
            raise BackendError(f"{self._model} did not answer with one score a passage")
        return sorted(scores, key=lambda position: (-round(scores[position], 6), position))

    def close(self) -> None:
        """Close the connections."""
        self._release()
