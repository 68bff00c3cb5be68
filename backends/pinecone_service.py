"""One Pinecone index through the wrapped client library: its objects become our values here, and nothing of it leaves.

Written for pinecone 9.1 to 10: index creation by keywords, the vectors API, attribute access only.
"""

import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Literal

from pinecone import Index, ServerlessSpec
from pinecone.errors import exceptions as sdk
from pinecone.models.response_info import ResponseInfo

from backends.deadlines import Call
from backends.errors import BackendUnavailable, IndexAbsent, IndexMismatch
from backends.pinecone_client import ATTEMPTS, PineconeClient
from backends.pinecone_config import PineconeConfig
from backends.pinecone_records import kept_sparse
from backends.sparse import SparseVector

LIST_PAGE = 100  # ids a page: pinecone 10.2 refuses more
# The headers of log positions, newest name first; 9.1 reads only the older ones itself.
_WRITTEN_AT = ("x-pinecone-request-lsn", "x-pinecone-lsn-committed")
_SEEN_UP_TO = ("x-pinecone-max-indexed-lsn", "x-pinecone-lsn-reconciled")


@dataclass(frozen=True, slots=True)
class IndexKind:
    """What the vectors of an index are, and how they are compared."""

    vectors: Literal["dense", "sparse"]
    metric: Literal["cosine", "dotproduct"]


DENSE = IndexKind("dense", "cosine")
SPARSE = IndexKind("sparse", "dotproduct")


@dataclass(frozen=True, slots=True)
class IndexFacts:
    """What the control plane tells of an index."""

    host: str
    dim: int | None
    vectors: str
    metric: str | None
    ready: bool


@dataclass(frozen=True, slots=True)
class Match:
    """One stored vector as the service tells it; score is 0 outside a query."""

    id: str
    score: float
    metadata: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Answer:
    """The matches of one query, and the log position up to which it saw writes, if the service told."""

    matches: tuple[Match, ...]
    reconciled: int | None


class PineconeService(PineconeClient):
    """One index of one account. Every verb that asks it may also raise IndexAbsent and IndexMismatch."""

    def __init__(self, config: PineconeConfig, kind: IndexKind = DENSE) -> None:
        super().__init__(config)
        self._kind = kind
        self._index: Index | None = None
        self._facts: IndexFacts | None = None

    # control plane

    def index_facts(self) -> IndexFacts | None:
        """What the index is, asked once; None when there is none of that name."""
        with self._lock:
            if self._facts is None or not self._facts.ready:
                self._facts = self._read("describe the index", self._described)
            return self._facts

    def create_index(self, dim: int | None) -> IndexFacts:
        """Make the serverless index and wait until it is ready. A sparse one has no dimension."""
        config = self.config

        def create() -> None:
            # A conflict: a lost answer was asked for again, or somebody was faster. What is there is looked at next.
            with suppress(sdk.ConflictError):
                self._client.indexes.create(
                    name=config.index,
                    dimension=dim,
                    metric=self._kind.metric,
                    vector_type=self._kind.vectors,
                    spec=ServerlessSpec(cloud=config.cloud, region=config.region),
                    deletion_protection="enabled" if config.deletion_protection else "disabled",
                    tags={**config.tags, "made-by": "cda"},
                    timeout=-1,
                )

        self._write("create the index", create)
        ends, pause = time.monotonic() + config.create_deadline_s, 0.05
        while (facts := self.index_facts()) is None or not facts.ready:
            if time.monotonic() + pause > ends:
                raise BackendUnavailable(
                    f"the Pinecone index {config.index!r} is not ready after {config.create_deadline_s:g} s; try later"
                )
            time.sleep(pause)
            pause = min(2 * pause, 5.0)
        return facts

    def _described(self) -> IndexFacts | None:
        try:
            model = self._client.indexes.describe(self.config.index)
        except sdk.NotFoundError:
            return None
        kind, metric = str(model.vector_type), str(model.metric)
        return IndexFacts(str(model.host or ""), model.dimension, kind, metric, bool(model.status.ready))

    # data plane

    def begin_query(
        self, namespace: str, vector: Sequence[float] | SparseVector, k: int, where: Mapping[str, Any] | None
    ) -> Call[Answer]:
        """Ask for the k nearest under a filter."""
        index = self._data()
        asked: dict[str, Any] = (
            {"sparse_vector": kept_sparse(vector)} if isinstance(vector, SparseVector) else {"vector": list(vector)}
        )

        def query() -> Answer:
            found = index.query(
                top_k=k,
                **asked,
                namespace=namespace,
                filter=dict(where) if where is not None else None,
                include_metadata=True,
            )
            self._count(read_units=found.usage.read_units if found.usage else None)
            matches = tuple(Match(one.id, float(one.score), dict(one.metadata or {})) for one in found.matches)
            return Answer(matches, _position(found.response_info, _SEEN_UP_TO))

        return self._begin(query, self.config.read_deadline_s)

    def begin_upsert(self, namespace: str, vectors: Sequence[Mapping[str, Any]], size: int) -> Call[tuple[int, int]]:
        """Write vectors; the service's own count of them, and the log position (-1 when it told none)."""
        index = self._data()
        timeout = self.config.write_deadline_s / ATTEMPTS

        def upsert() -> tuple[int, int]:
            told = index.upsert(vectors=list(vectors), namespace=namespace, timeout=timeout)
            self._count(bytes_sent=size)
            position = _position(told.response_info, _WRITTEN_AT)
            return told.upserted_count, -1 if position is None else position

        return self._begin(upsert, self.config.write_deadline_s)

    def begin_fetch(self, namespace: str, ids: Sequence[str]) -> Call[tuple[Match, ...]]:
        """The stored metadata of those ids that exist."""
        index = self._data()

        def fetch() -> tuple[Match, ...]:
            found = index.fetch(ids=list(ids), namespace=namespace)
            self._count(read_units=found.usage.read_units if found.usage else None)
            return tuple(Match(name, 0.0, dict(one.metadata or {})) for name, one in sorted(found.vectors.items()))

        return self._begin(fetch, self.config.read_deadline_s)

    def begin_delete(self, namespace: str, ids: Sequence[str]) -> Call[None]:
        """Remove exactly these ids."""
        index = self._data()

        def delete() -> None:
            index.delete(ids=list(ids), namespace=namespace, timeout=self.config.write_deadline_s / ATTEMPTS)
            self._count()

        return self._begin(delete, self.config.write_deadline_s)

    def list_ids(self, namespace: str, after: str | None, limit: int) -> tuple[list[str], str | None]:
        """A page of at most LIST_PAGE ids and the token of the next."""
        index = self._data()

        def page() -> tuple[list[str], str | None]:
            found = index.list_paginated(namespace=namespace, limit=min(limit, LIST_PAGE), pagination_token=after)
            self._count(read_units=found.usage.read_units if found.usage else None)
            following = found.pagination.next if found.pagination else None
            return [one.id for one in found.vectors if one.id is not None], following or None

        return self._read("list ids", page)

    def begin_namespaces(self) -> Call[dict[str, int]]:
        """Every namespace of the index with its count of vectors, which lags."""
        index = self._data()

        def counted() -> dict[str, int]:
            found = index.describe_index_stats()
            self._count()
            return {name: held.vector_count for name, held in found.namespaces.items()}

        return self._begin(counted, self.config.read_deadline_s)

    def namespaces(self) -> dict[str, int]:
        """The same, waited for."""
        return self.finished("count the namespaces", self.begin_namespaces())

    def drop_namespace(self, namespace: str) -> None:
        """Remove a namespace with all it holds; one that is not there is fine."""
        index = self._data()

        def drop() -> None:
            with suppress(sdk.NotFoundError):
                index.delete_namespace(name=namespace, timeout=self.config.write_deadline_s / ATTEMPTS)
            self._count()

        self._write("drop a namespace", drop)

    def close(self) -> None:
        """Let what is under way end by itself and take no more."""
        self._pool.shutdown(wait=False, cancel_futures=True)  # first: what begins later would open a connection anew
        if self._index is not None:
            self._index.close()
        super().close()

    def _data(self) -> Index:
        facts = self.index_facts()
        if facts is None:
            raise IndexAbsent(
                f"there is no Pinecone index {self.config.index!r}; check CDA_PINECONE_INDEX, "
                "or run `cda corpus index --backend pinecone`, which makes it"
            )
        if not facts.ready or not facts.host:
            raise BackendUnavailable(
                f"the Pinecone index {self.config.index!r} is not ready yet; try again in a minute"
            )
        if (facts.vectors, facts.metric) != (self._kind.vectors, self._kind.metric):
            raise IndexMismatch(
                f"the Pinecone index {self.config.index!r} holds {facts.vectors} vectors with the metric "
                f"{facts.metric!r}, not {self._kind.vectors} ones with {self._kind.metric!r}; "
                "set CDA_PINECONE_INDEX to another name"
            )
        with self._lock:
            if self._index is None:
                self._index = self._client.index(host=facts.host)
            return self._index


def _position(info: ResponseInfo | None, headers: tuple[str, str]) -> int | None:
    """The log position that an answer tells; None when it tells none."""
    told = [info.raw_headers[name] for name in headers if name in info.raw_headers] if info else []
    return int(told[0]) if told and told[0].isdecimal() else None
