"""Text to vectors. An embedder sees text and keeps none."""

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

Vectors = NDArray[np.float32]


class Embedder(Protocol):
    """Turns texts into unit vectors. A vector is a function of its text and of `identity` alone, never of its batch."""

    @property
    def identity(self) -> str:
        """Weights hash, pooling and windows; an index built under another identity is refused."""
        ...

    @property
    def dim(self) -> int:
        """Number of components."""
        ...

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Return an array of shape (len(texts), dim), float32, rows of unit L2 norm. Long texts are never cut."""
        ...


@runtime_checkable
class QueryEmbedder(Protocol):
    """An embedder that makes another vector of a question than of a passage with the same words."""

    def embed_queries(self, texts: Sequence[str]) -> Vectors:
        """As `embed`, for questions."""
        ...


def embed_queries(embedder: Embedder, texts: Sequence[str]) -> Vectors:
    """The vectors of questions, by whichever way the embedder has for them."""
    return embedder.embed_queries(texts) if isinstance(embedder, QueryEmbedder) else embedder.embed(texts)
