"""What an index run will do and what it will cost, before it does anything."""

import json
from dataclasses import asdict, dataclass
from hashlib import sha256

from backends.base import Capabilities
from cda.retrieval.embedding_cache import EmbeddingCache, text_key
from cda.retrieval.lifecycle.costs import token_dollars, write_dollars
from cda.retrieval.lifecycle.goal import Difference, Goal

# A component of a vector as JSON text, sign and separators included; measured on unit vectors of 384 components.
_BYTES_PER_COMPONENT = 22
BYTES_PER_TOKEN = 4  # English clause text
_DELETES_PER_REQUEST = 1000
_SECONDS_PER_REQUEST = {"pinecone": 0.15}
_SECONDS_PER_TEXT = 0.02  # the packaged sentence model on one core


@dataclass(frozen=True, slots=True)
class Plan:
    """The work of one run. Ids are exact: nothing is written or deleted that is not named here."""

    target: str
    backend: str
    fresh: bool
    corpus_digest: str
    embedder: str
    added: tuple[str, ...]
    changed: tuple[str, ...]
    unchanged: int
    orphaned: tuple[str, ...]
    foreign: tuple[str, ...]
    embed: int
    tokens: int
    bytes: int
    requests: int
    usd: str
    seconds: float

    @property
    def writes(self) -> tuple[str, ...]:
        """The ids that will be written, sorted."""
        return tuple(sorted((*self.added, *self.changed)))

    @property
    def digest(self) -> str:
        """Hex sha256 of the plan."""
        return sha256(json.dumps(asdict(self), sort_keys=True).encode("utf-8")).hexdigest()


def plan_of(
    goal: Goal,
    differs: Difference,
    target: str,
    capabilities: Capabilities,
    *,
    fresh: bool,
    cache: EmbeddingCache | None,
    hosted: bool = False,
) -> Plan:
    """The plan, with estimates: bytes and requests from the records' sizes, seconds from the figures above, dollars
    from published prices. `hosted`: texts are sent to an embedder that is paid by the token."""
    writes = [goal.records[i] for i in (*differs.added, *differs.changed)]
    keys = {text_key(record.text) for record in writes}
    unknown = keys - set(cache.get(goal.spec.embedder, sorted(keys))) if cache else keys
    texts = {text_key(record.text): len(record.text) for record in writes}
    size = sum(goal.spec.dim * _BYTES_PER_COMPONENT + len(json.dumps(dict(record.meta))) + 100 for record in writes)
    requests = _requests(len(writes), size, capabilities) + -(-len(differs.orphaned) // _DELETES_PER_REQUEST)
    tokens = sum(texts[key] for key in unknown) // BYTES_PER_TOKEN if hosted else 0
    name = capabilities.name
    usd = write_dollars(name, size, requests) + token_dollars(goal.spec.embedder, tokens)
    return Plan(
        target=target,
        backend=name,
        fresh=fresh,
        corpus_digest=goal.corpus_digest,
        embedder=goal.spec.embedder,
        added=differs.added,
        changed=differs.changed,
        unchanged=differs.unchanged,
        orphaned=differs.orphaned,
        foreign=differs.foreign,
        embed=len(unknown),
        tokens=tokens,
        bytes=size,
        requests=requests,
        usd=f"{usd:.4f}",
        seconds=round(len(unknown) * _SECONDS_PER_TEXT + requests * _SECONDS_PER_REQUEST.get(name, 0.01), 1),
    )


def _requests(records: int, size: int, capabilities: Capabilities) -> int:
    by_bytes = -(-size // capabilities.max_request_bytes) if capabilities.max_request_bytes else 1
    by_count = -(-records // capabilities.max_records_per_request) if capabilities.max_records_per_request else 1
    return max(by_bytes, by_count) if records else 0
