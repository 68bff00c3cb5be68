"""Pinecone behind the protocol: one index, and in it one namespace a target.

The first record of a target is its marker, which tells embedder, dimension and schema; it is what `ensure` writes and
what every other verb looks for, so an unknown namespace is an error and never an empty answer. Writing the marker
again is also how a deletion gets a log position, since the library tells none for it.
"""

import threading
import time
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from backends.asciiids import decoded, encoded
from backends.base import (
    Capabilities,
    Hit,
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
from backends.checks import checked_query, require_spec
from backends.deadlines import Call
from backends.errors import BackendError, BackendUnavailable, IndexAbsent, IndexMismatch
from backends.filters import Where
from backends.pinecone_config import PineconeConfig
from backends.pinecone_filters import MAX_IN_VALUES, compile_filter
from backends.pinecone_records import HASH, MARKER, marker, scanned, size, told_by
from backends.pinecone_service import LIST_PAGE, Answer, Match, PineconeService
from backends.pinecone_writing import NOTHING, UNKNOWN, Upload

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
_MARGIN = 16  # candidates beyond k, so that ties at the k-th place are ours to break
_DEEPEST = 10_000  # the service's largest top_k


class PineconeBackend:
    """Thread-safe. Holds no vector and no text; what it knows of a target is what the target's marker told."""

    def __init__(self, config: PineconeConfig) -> None:
        self._service = PineconeService(config)
        self._release = weakref.finalize(self, self._service.close)  # also when nobody closes it, and at the end
        self._prefix = f"{config.namespace}."
        self._known: dict[str, TargetInfo] = {}
        self._lock = threading.Lock()
        self._closed = False

    def capabilities(self) -> Capabilities:
        """Filtered in the search, up to date by token."""
        return CAPABILITIES

    def targets(self) -> tuple[str, ...]:
        """See `VectorBackend.targets`; namespaces that do not begin with the configured name are not looked at."""
        self._require_open()
        if self._service.index_facts() is None:
            return ()
        found = self._service.namespaces()
        return tuple(sorted(name.removeprefix(self._prefix) for name in found if name.startswith(self._prefix)))

    def describe(self, target: str) -> TargetInfo | None:
        """See `VectorBackend.describe`; the count lags behind writes."""
        namespace = self._namespace(target)
        if self._service.index_facts() is None:
            return None
        counted = self._service.begin_namespaces()
        info = self._told(target, self._service.begin_fetch(namespace, [MARKER]))
        if info is None:
            return None
        count = self._service.finished("count the namespaces", counted).get(namespace, 1) - 1
        return replace(info, count=max(0, count))

    def ensure(self, target: str, spec: IndexSpec) -> TargetInfo:
        """See `VectorBackend.ensure`; makes the index too when there is none."""
        namespace = self._namespace(target)
        facts = self._service.index_facts() or self._service.create_index(spec.dim)
        if facts.dim != spec.dim:
            raise IndexMismatch(
                f"the Pinecone index {self._service.config.index!r} has the dimension {facts.dim}, "
                f"this run has {spec.dim}; set CDA_PINECONE_INDEX to another name"
            )
        info = self.describe(target)
        if info is None:
            info = self._made(target, namespace, spec)
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
        return upload.written(spec, records, CAPABILITIES)

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
        return WriteReport(tuple(accepted), (), str(self._mark(namespace, spec) if accepted else NOTHING))

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
        namespace = self._namespace(target)
        wanted, info = int(token), self._known.get(target) or self.describe(target)
        if info is None:
            raise _absent(target)
        if wanted == UNKNOWN:
            return Visibility(confirmed=False, why="the service told no log position for the write")
        ends, pause = time.monotonic() + deadline_s, 0.02
        while True:
            probe = self._service.begin_query(namespace, [1.0] + [0.0] * (info.dim - 1), 1, None)
            seen = self._service.finished("query", probe).reconciled
            if seen is not None and seen >= wanted:
                return Visibility(confirmed=True)
            if time.monotonic() + pause > ends:
                at = "no log position" if seen is None else f"log position {seen}"
                return Visibility(False, f"answers show {at} after {deadline_s:g} s, the write is at {wanted}")
            time.sleep(pause)
            pause = min(2 * pause, 1.0)

    def search(self, target: str, spec: IndexSpec, vectors: Vectors, *, k: int, where: Where) -> list[SearchPage]:
        """See `VectorBackend.search`. The first search of a target also asks for its marker, in the same moment."""
        namespace = self._namespace(target)
        self._require_index(target)
        units = checked_query(CAPABILITIES, spec, vectors, k, where)
        compiled = compile_filter(where, spec.schema)
        asked = [vector.tolist() for vector in units] if compiled is not None else []
        info = self._known.get(target)
        marker_call = None if info else self._service.begin_fetch(namespace, [MARKER])
        calls = [self._service.begin_query(namespace, vector, k + _MARGIN, compiled) for vector in asked]
        if marker_call is not None:
            info = self._told(target, marker_call)
        if info is None:
            raise _absent(target)
        require_spec(info, spec)
        pages = [
            self._page(namespace, vector, compiled, k, self._service.finished("query", call))
            for vector, call in zip(asked, calls, strict=True)
        ]
        if pages and not any(page.hits for page in pages):
            with self._lock:  # nobody there, or no target any more
                self._known.pop(target, None)
            self._opened(target, spec)
        return pages or [SearchPage((), None, CAPABILITIES.exact) for _ in units]

    def drop(self, target: str) -> None:
        """See `VectorBackend.drop`; the index itself stays."""
        namespace = self._namespace(target)
        with self._lock:
            self._known.pop(target, None)
        if self._service.index_facts() is not None:
            self._service.drop_namespace(namespace)

    def usage(self) -> Usage:
        """Requests, bytes of upserts, and the read units that answers told."""
        return self._service.usage

    def close(self) -> None:
        """Close the connections."""
        self._closed = True
        self._release()

    def _page(
        self, namespace: str, vector: list[float], where: Mapping[str, Any] | None, k: int, answer: Answer
    ) -> SearchPage:
        """The k best with ties by id. More candidates are asked for while the last one ties with the k-th, and while
        strangers in the namespace leave fewer than k of ours."""
        depth = k + _MARGIN
        while True:
            found = sorted(_ours(answer.matches), key=lambda one: one[:2])
            told_all = len(answer.matches) < depth or depth == _DEEPEST
            if told_all or (len(found) >= k and found[k - 1][0] != found[-1][0]):
                break
            depth = min(4 * depth, _DEEPEST)
            answer = self._service.finished("query", self._service.begin_query(namespace, vector, depth, where))
        hits = (Hit(name, 0.0 - lower, rank, content) for rank, (lower, name, content) in enumerate(found[:k], 1))
        return SearchPage(tuple(hits), None, CAPABILITIES.exact)

    @property
    def _patience(self) -> float:
        return self._service.config.write_deadline_s

    def _told(self, target: str, fetch: Call[tuple[Match, ...]]) -> TargetInfo | None:
        """What the marker tells, remembered; None when there is none."""
        found = self._service.finished("fetch", fetch)
        with self._lock:
            if not found:
                self._known.pop(target, None)
                return None
            self._known[target] = told_by(found[0].metadata, target, 0)
            return self._known[target]

    def _made(self, target: str, namespace: str, spec: IndexSpec) -> TargetInfo:
        """Write the marker and wait until it is seen. What others wrote into the namespace is not taken over."""
        if namespace in self._service.namespaces() and self._service.list_ids(namespace, None, 1)[0]:
            raise IndexMismatch(
                f"the namespace {namespace!r} holds vectors that cda did not write; set CDA_PINECONE_NAMESPACE"
            )
        self._mark(namespace, spec)
        ends, pause = time.monotonic() + self._patience, 0.02
        while (info := self.describe(target)) is None:
            if time.monotonic() + pause > ends:
                raise BackendUnavailable(f"target {target!r} was made and is not seen yet; try again in a minute")
            time.sleep(pause)
            pause = min(2 * pause, 1.0)
        return info

    def _mark(self, namespace: str, spec: IndexSpec) -> int:
        return self._service.finished(
            "mark", self._service.begin_upsert(namespace, [marker(spec)], size(marker(spec)))
        )[1]

    def _opened(self, target: str, spec: IndexSpec) -> str:
        """The namespace of a target that is there and made with this spec."""
        namespace = self._namespace(target)
        self._require_index(target)
        info = self._known.get(target) or self._told(target, self._service.begin_fetch(namespace, [MARKER]))
        if info is None:
            raise _absent(target)
        require_spec(info, spec)
        return namespace

    def _require_index(self, target: str) -> None:
        if self._service.index_facts() is None:
            raise IndexAbsent(
                f"there is no Pinecone index {self._service.config.index!r}, and so no target {target!r} in it; check "
                "CDA_PINECONE_INDEX and the key's project, or run `cda corpus index --backend pinecone`, which makes it"
            )

    def _namespace(self, target: str) -> str:
        self._require_open()
        if not target or not all(c.isascii() and (c.isalnum() or c in "-_.") for c in target) or target[0] == ".":
            raise BackendError("a target is named with ASCII letters, digits, '-', '_' and '.', not '.' first")
        return self._prefix + target

    def _require_open(self) -> None:
        if self._closed:
            raise BackendError("the pinecone backend is closed")


def _ours(matches: Iterable[Match]) -> Iterator[tuple[float, str, str]]:
    """(negative score, id, content hash) of the matches that were written here."""
    for match in matches:
        record_id, content_hash = decoded(match.id), match.metadata.get(HASH)
        if record_id is not None and isinstance(content_hash, str):
            yield -round(min(1.0, max(-1.0, match.score)), 6), record_id, content_hash


def _absent(target: str) -> IndexAbsent:
    return IndexAbsent(
        f"there is no target {target!r} in the Pinecone index; run `cda corpus index --backend pinecone`"
    )
