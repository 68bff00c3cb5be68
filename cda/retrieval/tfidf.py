"""TF-IDF with a truncated SVD, fitted on a corpus: the light local embedder, and the reference stand-in.

Its identity is the hash of the fit, so vectors of two fits never meet. The fit is kept beside the index it made.
"""

from collections import Counter
from collections.abc import Sequence
from hashlib import sha256
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from cda.contracts.embedding import Vectors
from cda.errors import UnavailableError
from cda.retrieval.words import stems

MAX_COMPONENTS = 128
MAX_TERMS = 8192
MAX_FITTED = 2000  # documents; a larger corpus is fitted on that many, evenly spaced


class TfidfEmbedder:
    """1-2 grams of stems, sublinear tf, smooth idf, SVD. One more component than the SVD has carries texts that share
    no term with the corpus: they have a direction, at a right angle to every other text."""

    def __init__(self, terms: Sequence[str], idf: NDArray[np.float32], components: NDArray[np.float32]) -> None:
        self._terms = list(terms)
        self._column = {term: i for i, term in enumerate(terms)}
        self._idf = idf
        self._components = components  # (terms, k)
        digest = sha256("\n".join(terms).encode("utf-8") + idf.tobytes() + components.tobytes()).hexdigest()
        self._identity = f"tfidf-svd@{digest[:16]};stems-1-2"

    @classmethod
    def fit(cls, texts: Sequence[str]) -> "TfidfEmbedder":
        """Fit on the texts, in an order that the caller keeps stable. No texts: every text lies outside."""
        step = max(1, -(-len(texts) // MAX_FITTED))
        counts = [Counter(_grams(text)) for text in texts[::step]]
        spread = Counter(term for count in counts for term in count)
        kept = sorted(spread, key=lambda term: (-spread[term], term))[:MAX_TERMS]
        terms = sorted(kept)
        idf = np.asarray([np.log((1 + len(counts)) / (1 + spread[t])) + 1 for t in terms], dtype=np.float32)
        unreduced = cls(terms, idf, np.zeros((len(terms), 0), dtype=np.float32))
        rows = np.stack([unreduced._weights(c) for c in counts]) if counts else np.zeros((0, 0), dtype=np.float32)
        return cls(terms, idf, _right_vectors(rows.astype(np.float64)).astype(np.float32))

    @classmethod
    def load(cls, file: Path) -> "TfidfEmbedder":
        """Read what `save` wrote; UnavailableError when it is missing."""
        if not file.exists():
            raise UnavailableError(f"the fit of the tfidf embedder is missing: {file}; build the index again")
        with np.load(file, allow_pickle=False) as held:
            return cls(held["terms"].tolist(), held["idf"], held["components"])

    def save(self, file: Path) -> None:
        """Write the fit as one .npz."""
        np.savez(file, terms=np.asarray(self._terms, dtype=np.str_), idf=self._idf, components=self._components)

    @property
    def identity(self) -> str:
        """The hash of the fit."""
        return self._identity

    @property
    def dim(self) -> int:
        """At most 129."""
        return int(self._components.shape[1]) + 1

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Shape (n, dim), unit rows."""
        out = np.zeros((len(texts), self.dim), dtype=np.float32)
        for row, text in enumerate(texts):
            counts = Counter(gram for gram in _grams(text) if gram in self._column)
            columns = [self._column[gram] for gram in counts]
            weights = (1 + np.log(np.asarray(list(counts.values()), dtype=np.float32))) * self._idf[columns]
            vector = weights @ self._components[columns] if columns else out[row, :-1]
            norm = float(np.sqrt(vector.dot(vector)))  # as np.linalg.norm has it, without its questions
            if norm > 1e-9:
                out[row, :-1] = vector / np.float32(norm)
            else:
                out[row, -1] = 1.0
        return out

    def _weights(self, counts: Counter[str]) -> NDArray[np.float32]:
        row = np.zeros(len(self._terms), dtype=np.float32)
        for gram, count in counts.items():
            column = self._column.get(gram)
            if column is not None:
                row[column] = (1 + np.log(count)) * self._idf[column]
        norm = np.linalg.norm(row)
        return row / norm if norm else row


def _grams(text: str) -> list[str]:
    words = stems(text)
    return words + [f"{first} {second}" for first, second in pairwise(words)]


def _right_vectors(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """The leading right singular vectors as columns, each with its largest entry positive. By way of the rows' Gram
    matrix, since there are far fewer documents than terms."""
    if not rows.size:
        return np.zeros((rows.shape[1], 0))
    squares, left = np.linalg.eigh(rows @ rows.T)
    keep = np.flatnonzero(squares > 1e-9)[::-1][:MAX_COMPONENTS]
    vectors = rows.T @ left[:, keep] / np.sqrt(squares[keep])
    largest = np.abs(vectors).argmax(axis=0)
    return np.asarray(vectors * np.sign(vectors[largest, np.arange(vectors.shape[1])]))
