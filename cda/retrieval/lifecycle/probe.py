"""Whether an embedder still is the one that an index was made with: its vectors of a few texts, kept and compared.

Compared by cosine and not by hash: two machines add in another order, and a text's vector then differs in its last
digits. Another model of the same name and size is far from that.
"""

from base64 import b64decode, b64encode

import numpy as np

from cda.contracts.embedding import Embedder, Vectors
from cda.retrieval.embedding_cache import EmbeddingCache

PROBES = (
    "continuous glucose monitor for a member with type 1 diabetes",
    "not covered unless a trial of a conventional drug has failed",
    "prior authorization is required",
    "home sleep apnea test",
    "0",
    "A9276 E10.9",
    "the plan rider waives the requirement of step therapy",
    "imaging of the brain without contrast",
)
# The same model quantised anew, or run by instructions that saturate elsewhere, stays above; another model is below.
LEAST_COSINE = 0.98
_KEPT = "probe"  # in the cache, where every other key is a hash


def probe_of(embedder: Embedder) -> str:
    """The embedder's vectors of PROBES, each scaled to whole numbers up to 127, as base64."""
    vectors = embedder.embed(PROBES).astype(np.float64)
    largest = np.abs(vectors).max(axis=1, keepdims=True)
    scaled = np.rint(vectors / np.where(largest > 0, largest, 1.0) * 127)
    return b64encode(scaled.astype(np.int8).tobytes()).decode("ascii")


def same_probe(held: str, found: str) -> bool:
    """Whether two probes are of one embedder: each pair of vectors points the same way, or both are nothing."""
    one, other = _vectors(held), _vectors(found)
    if one.shape != other.shape:
        return False
    lengths = np.linalg.norm(one, axis=1), np.linalg.norm(other, axis=1)
    product = lengths[0] * lengths[1]
    cosine = np.divide(np.vecdot(one, other), product, out=np.zeros_like(product), where=product > 0)
    return bool(np.all((cosine >= LEAST_COSINE) | (lengths[0] + lengths[1] == 0)))


def forget_others(cache: EmbeddingCache, identity: str, probe: str) -> None:
    """Drop the cached vectors of this identity when they are those of an embedder with another probe."""
    kept = cache.get(identity, [_KEPT]).get(_KEPT)
    if kept is not None and not same_probe(kept.decode("ascii"), probe):
        cache.forget(identity)
    cache.put(identity, {_KEPT: probe.encode("ascii")})


def _vectors(probe: str) -> Vectors:
    flat = np.frombuffer(b64decode(probe, validate=True), dtype=np.int8).astype(np.float32)
    return flat.reshape(len(PROBES), -1) if len(flat) % len(PROBES) == 0 else flat.reshape(1, -1)
