"""Text to vectors. An embedder sees text and keeps none."""

from collections.abc import Sequence
from typing import Protocol

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
