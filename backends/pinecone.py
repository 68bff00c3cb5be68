"""Pinecone behind the protocol: one index, and in it one namespace a target.

The first record of a target is its marker, which tells embedder, dimension and schema; it is what `ensure` writes and
what every other verb looks for, so an unknown namespace is an error and never an empty answer. Writing the marker
again is also how a deletion gets a log position, since the library tells none for it.
"""

import weakref
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from backends.asciiids import encoded
from backends.base import (
    Capabilities,
    IndexSpec,
    Record,
    Scanned,
    ScanPage,
    SearchPage,
    TargetInfo,
    Usage,
    Vectors,
    Visibility,
    WriteReport,
)
from backends.batching import batches
from backends.checks import checked_query, checked_records, require_spec
from backends.deadlines import Call
from backends.errors import BackendError, IndexMismatch
from backends.filters import Where
from backends.pinecone_config import PineconeConfig
from backends.pinecone_filters import MAX_IN_VALUES, compile_filter
from backends.pinecone_ranking import Ranking
from backends.pinecone_records import MARKER, scanned
from backends.pinecone_service import LIST_PAGE, Match, PineconeService
from backends.pinecone_targets import Targets, absent
from backends.pinecone_writing import NOTHING, Upload

# Limits: https://docs.pinecone.io/reference/api/database-limits (upsert 2 MB and 1,000 records, 40 KB of metadata,
# ids of 512 characters, 1,000 ids a deletion); max_k is the local backend's, so that a change of backend changes
# nothing else.
CAPABILITIES = Capabilities(
    name="pinecone",
    exact=False,
    max_dim=20_000,
    max_k=1000,
    id_max_length=512,
    server_side_filter=True,
    max_in_values=MAX_IN_VALUES,
    max_request_bytes=2_000_000,
    max_records_per_request=1_000,
    max_meta_bytes=40_960,
    read_after_write="token",
    atomic_upsert=False,
    counts_eligible=False,
)
_IDS_A_DELETE = 1_000
_URL_BYTES = 6_000  # of ids in a fetch, which names them in its address


class PineconeBackend:
    """Thread-safe. Holds no vector and no text; what it knows of a target is what the target's marker told."""

    def __init__(self, config: PineconeConfig) -> None:
        self._service = PineconeService(config)
        self._release = weakref.finalize(self, self._service.close)  # also when nobody closes it, and at the end
        self._targets = Targets(self._service, f"{config.namespace}.")
        self._closed = False

    def capabilities(self) -> Capabilities:
        """Filtered in the search, up to date by token."""
        return CAPABILITIES

    def targets(self) -> tuple[str, ...]:
        """See `VectorBackend.targets`; namespaces that do not begin with the configured name are not looked at."""
        self._require_open()
        return self._targets.names()

    def describe(self, target: str) -> TargetInfo | None:
        """See `VectorBackend.describe`; the count lags behind writes."""
        namespace = self._namespace(target)
        if self._service.index_facts() is None:
            return None
        counted = self._service.begin_namespaces()
        info = self._targets.asked(target)
        if info is None:
            return None
        count = self._service.finished("count the namespaces", counted).get(namespace, 1) - 1
        return replace(info, count=max(0, count))

    def ensure(self, target: str, spec: IndexSpec) -> TargetInfo:
        """See `VectorBackend.ensure`; makes the index too when there is none."""
        self._require_open()
        facts = self._service.index_facts() or self._service.create_index(spec.dim)
        if facts.dim != spec.dim:
            raise IndexMismatch(
                f"the Pinecone index {self._service.config.index!r} has the dimension {facts.dim}, "
                f"this run has {spec.dim}; set CDA_PINECONE_INDEX to another name"
            )
        info = self.describe(target)
        if info is None:
            info = self._targets.made(target, spec)
        require_spec(info, spec)
        return info

    def upsert(
        self,
        target: str,
        spec: IndexSpec,
        records: Iterable[Record],
        *,
        on_batch: Callable[[WriteReport], None] | None = None,
    ) -> WriteReport:
        """See `VectorBackend.upsert`. Four requests are under way at once. A service that does not answer ends the
        whole with BackendUnavailable, after the batches under way were reported."""
        upload = Upload(self._service, self._opened(target, spec), on_batch)
        return upload.written(checked_records(spec, records), CAPABILITIES)

    def delete(self, target: str, spec: IndexSpec, ids: Sequence[str], *, foreign: Sequence[str] = ()) -> WriteReport:
        """See `VectorBackend.delete`; the target's own marker is never among what is removed."""
        namespace = self._opened(target, spec)
        names = [(record_id, encoded(record_id)) for record_id in ids] + [(name, name) for name in foreign]
        names = [(told, kept) for told, kept in names if kept != MARKER]
        accepted: list[str] = []
        for start in range(0, len(names), _IDS_A_DELETE):
            part = names[start : start + _IDS_A_DELETE]
            self._service.finished("delete", self._service.begin_delete(namespace, [kept for _, kept in part]))
            accepted += [told for told, _ in part]
        return WriteReport(tuple(accepted), (), str(self._targets.mark(target, spec) if accepted else NOTHING))

    def scan(self, target: str, spec: IndexSpec, *, after: str | None = None, limit: int = 1000) -> ScanPage:
        """See `VectorBackend.scan`: ids by listing, hashes and fields by fetching them."""
        namespace = self._opened(target, spec)
        fetches: list[Call[tuple[Match, ...]]] = []
        left = limit
        while left > 0:
            ids, after = self._service.list_ids(namespace, after, min(left, LIST_PAGE))
            left -= len(ids)
            sized = ((name, name, 3 * len(name) + 5) for name in ids if name != MARKER)
            for part in batches(sized, max_bytes=_URL_BYTES, max_count=LIST_PAGE):
                fetches.append(self._service.begin_fetch(namespace, part.ids))
            if after is None:
                break
        records: list[Scanned] = []
        foreign: list[str] = []
        for fetch in fetches:
            for match in self._service.finished("fetch", fetch):
                record = scanned(match.id, match.metadata, spec.schema)
                if record is None:
                    foreign.append(match.id)
                else:
                    records.append(record)
        return ScanPage(tuple(records), tuple(foreign), after)

    def wait_visible(self, target: str, token: str, *, deadline_s: float) -> Visibility:
        """See `VectorBackend.wait_visible`: asks until an answer tells that it saw the log up to the token."""
        self._require_open()
        info = self._targets.known(target) or self.describe(target)
        if info is None:
            raise absent(target)
        return self._targets.seen(target, int(token), [1.0] + [0.0] * (info.dim - 1), deadline_s)

    def search(self, target: str, spec: IndexSpec, vectors: Vectors, *, k: int, where: Where) -> list[SearchPage]:
        """See `VectorBackend.search`. The first search of a target also asks for its marker, in the same moment."""
        namespace = self._namespace(target)
        self._targets.require_index(target)
        units = checked_query(CAPABILITIES, spec, vectors, k, where)
        compiled = compile_filter(where, spec.schema)
        asked = [vector.tolist() for vector in units] if compiled is not None else []
        info = self._targets.known(target)
        marker_call = None if info else self._targets.begin_asking(target)
        rankings = [Ranking(self._service, namespace, vector, compiled, k) for vector in asked]
        if marker_call is not None:
            info = self._targets.told(target, marker_call)
        if info is None:
            raise absent(target)
        require_spec(info, spec)
        pages = [SearchPage(ranking.hits(), None, CAPABILITIES.exact) for ranking in rankings]
        if pages and not any(page.hits for page in pages):
            self._targets.reopened(target, spec)
        return pages or [SearchPage((), None, CAPABILITIES.exact) for _ in units]

    def drop(self, target: str) -> None:
        """See `VectorBackend.drop`; the index itself stays."""
        namespace = self._namespace(target)
        self._targets.forget(target)
        if self._service.index_facts() is not None:
            self._service.drop_namespace(namespace)

    def usage(self) -> Usage:
        """Requests, bytes of upserts, and the read units that answers told."""
        return self._service.usage

    def close(self) -> None:
        """Close the connections."""
        self._closed = True
        self._release()

    def _opened(self, target: str, spec: IndexSpec) -> str:
        self._require_open()
        return self._targets.opened(target, spec)

    def _namespace(self, target: str) -> str:
        self._require_open()
        return self._targets.namespace(target)

    def _require_open(self) -> None:
        if self._closed:
            raise BackendError("the pinecone backend is closed")
