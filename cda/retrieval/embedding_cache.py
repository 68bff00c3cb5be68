"""Vectors already paid for, on disk, keyed by (embedder identity, sha256 of the text). No text is kept."""

import sqlite3
from collections.abc import Callable, Sequence
from hashlib import sha256
from pathlib import Path

import numpy as np

from cda.contracts.embedding import Embedder, Vectors

Progress = Callable[[int, int], None]  # done, of how many
CHUNK = 32  # texts between two commits: what a crash can cost


class EmbeddingCache:
    """One SQLite file; safe for several processes, since a key's vector never changes."""

    def __init__(self, file: Path) -> None:
        file.parent.mkdir(parents=True, exist_ok=True)
        self._db = sqlite3.connect(file, timeout=60, isolation_level=None)
        self._db.execute("PRAGMA journal_mode=WAL")
        self._db.execute(
            "CREATE TABLE IF NOT EXISTS vectors "
            "(identity TEXT, text_sha256 TEXT, vector BLOB, PRIMARY KEY (identity, text_sha256)) WITHOUT ROWID"
        )

    def get(self, identity: str, keys: Sequence[str]) -> dict[str, bytes]:
        """The known vectors among the keys, float32 bytes."""
        found: dict[str, bytes] = {}
        for start in range(0, len(keys), 500):
            part = keys[start : start + 500]
            marks = ",".join("?" * len(part))
            query = f"SELECT text_sha256, vector FROM vectors WHERE identity = ? AND text_sha256 IN ({marks})"  # noqa: S608
            found.update(self._db.execute(query, (identity, *part)))
        return found

    def put(self, identity: str, vectors: dict[str, bytes]) -> None:
        """Keep vectors; a known key keeps the vector it has."""
        with self._db:
            self._db.executemany(
                "INSERT OR IGNORE INTO vectors VALUES (?, ?, ?)",
                [(identity, key, vector) for key, vector in vectors.items()],
            )

    def close(self) -> None:
        """Close the file."""
        self._db.close()


def embed_all(
    embedder: Embedder, texts: Sequence[str], *, cache: EmbeddingCache | None = None, progress: Progress | None = None
) -> tuple[Vectors, int]:
    """The vectors of all texts, in order, and how many had to be embedded. Equal texts are embedded once."""
    keys = [sha256(text.encode("utf-8")).hexdigest() for text in texts]
    by_key = dict(zip(keys, texts, strict=True))
    known = cache.get(embedder.identity, list(by_key)) if cache else {}
    missing = [key for key in by_key if key not in known]
    for start in range(0, len(missing), CHUNK):
        part = missing[start : start + CHUNK]
        vectors = embedder.embed([by_key[key] for key in part])
        fresh = {key: vector.tobytes() for key, vector in zip(part, vectors, strict=True)}
        if cache:
            cache.put(embedder.identity, fresh)
        known |= fresh
        if progress:
            progress(len(by_key) - len(missing) + start + len(part), len(by_key))
    out = np.zeros((len(texts), embedder.dim), dtype=np.float32)
    for row, key in enumerate(keys):
        out[row] = np.frombuffer(known[key], dtype=np.float32)
    return out, len(missing)
