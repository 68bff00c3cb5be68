"""Vectors already paid for, on disk, keyed by (embedder identity, sha256 of the text). No text is kept."""

import sqlite3
from collections.abc import Callable, Sequence
from functools import cached_property
from hashlib import sha256
from pathlib import Path

import numpy as np

from cda.contracts.embedding import Embedder, Vectors

Progress = Callable[[int, int], None]  # done, of how many
CHUNK = 32  # texts between two commits: what a crash can cost


class EmbeddingCache:
    """One SQLite file; safe for several processes, since a key's vector never changes."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self.put_count = 0  # vectors that were given to this object, each of them just embedded

    @cached_property
    def _db(self) -> sqlite3.Connection:
        # Opened when a vector is first asked for: an index that is there already needs no cache, and its folder may be
        # read-only.
        self._file.parent.mkdir(parents=True, exist_ok=True)
        db = sqlite3.connect(self._file, timeout=60, isolation_level=None)
        db.execute("PRAGMA journal_mode=WAL")
        db.execute(
            "CREATE TABLE IF NOT EXISTS vectors "
            "(identity TEXT, text_sha256 TEXT, vector BLOB, PRIMARY KEY (identity, text_sha256)) WITHOUT ROWID"
        )
        return db

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
        self.put_count += len(vectors)
        with self._db:
            self._db.executemany(
                "INSERT OR IGNORE INTO vectors VALUES (?, ?, ?)",
                [(identity, key, vector) for key, vector in vectors.items()],
            )

    def forget(self, identity: str) -> None:
        """Drop every vector of this embedder."""
        self._db.execute("DELETE FROM vectors WHERE identity = ?", (identity,))

    def close(self) -> None:
        """Close the file, if it was opened."""
        if "_db" in self.__dict__:
            self._db.close()


def text_key(text: str) -> str:
    """What stands for a text in the cache."""
    return sha256(text.encode("utf-8")).hexdigest()


def embed_all(
    embedder: Embedder, texts: Sequence[str], *, cache: EmbeddingCache | None = None, progress: Progress | None = None
) -> tuple[Vectors, int]:
    """The vectors of all texts, in order, and how many had to be embedded. Equal texts are embedded once."""
    keys = [text_key(text) for text in texts]
    rows: dict[str, list[int]] = {}
    for row, key in enumerate(keys):
        rows.setdefault(key, []).append(row)
    out = np.zeros((len(texts), embedder.dim), dtype=np.float32)
    known = cache.get(embedder.identity, list(rows)) if cache else {}
    for key, vector in known.items():
        out[rows[key]] = np.frombuffer(vector, dtype=np.float32)
    missing = [key for key in rows if key not in known]
    for start in range(0, len(missing), CHUNK):
        part = missing[start : start + CHUNK]
        vectors = embedder.embed([texts[rows[key][0]] for key in part])
        for key, fresh in zip(part, vectors, strict=True):
            out[rows[key]] = fresh
        if cache:
            cache.put(embedder.identity, {key: fresh.tobytes() for key, fresh in zip(part, vectors, strict=True)})
        if progress:
            progress(len(rows) - len(missing) + start + len(part), len(rows))
    return out, len(missing)
