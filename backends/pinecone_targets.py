"""The targets of one Pinecone index: a namespace each, whose first record, the marker, tells what it was made with.

An unknown namespace is empty to the service; here it is an error, because it has no marker.
"""

import threading
import time
from collections.abc import Sequence

from backends.base import IndexSpec, TargetInfo, Visibility
from backends.checks import require_spec, require_target_name
from backends.deadlines import Call
from backends.errors import BackendUnavailable, IndexAbsent, IndexMismatch
from backends.pinecone_records import MARKER, marker, size, told_by
from backends.pinecone_service import Match, PineconeService
from backends.pinecone_writing import UNKNOWN
from backends.sparse import SparseVector


class Targets:
    """What is known of the targets, asked once each. Thread-safe."""

    def __init__(self, service: PineconeService, prefix: str) -> None:
        self._service = service
        self._prefix = prefix
        self._known: dict[str, TargetInfo] = {}
        self._lock = threading.Lock()

    def names(self) -> tuple[str, ...]:
        """Those there are, sorted; namespaces that do not begin with the configured name are not looked at."""
        if self._service.index_facts() is None:
            return ()
        found = self._service.namespaces()
        return tuple(sorted(name.removeprefix(self._prefix) for name in found if name.startswith(self._prefix)))

    def namespace(self, target: str) -> str:
        """Where the target is. BackendError for a name that no target may have."""
        require_target_name(target)
        return self._prefix + target

    def known(self, target: str) -> TargetInfo | None:
        """What was told before, without a request."""
        return self._known.get(target)

    def begin_asking(self, target: str) -> Call[tuple[Match, ...]]:
        """Ask for the marker; `told` takes the answer."""
        return self._service.begin_fetch(self.namespace(target), [MARKER])

    def told(self, target: str, fetch: Call[tuple[Match, ...]]) -> TargetInfo | None:
        """What the marker tells, remembered; None when there is none."""
        found = self._service.finished("fetch", fetch)
        with self._lock:
            if not found:
                self._known.pop(target, None)
                return None
            self._known[target] = told_by(found[0].metadata, target, 0)
            return self._known[target]

    def asked(self, target: str) -> TargetInfo | None:
        """What the marker tells now."""
        return self.told(target, self.begin_asking(target))

    def opened(self, target: str, spec: IndexSpec) -> str:
        """The namespace of a target that is there and made with this spec."""
        self.require_index(target)
        info = self.known(target) or self.asked(target)
        if info is None:
            raise absent(target)
        require_spec(info, spec)
        return self.namespace(target)

    def reopened(self, target: str, spec: IndexSpec) -> str:
        """The same, asked anew: nobody was found there, or it is there no more."""
        self.forget(target)
        return self.opened(target, spec)

    def made(self, target: str, spec: IndexSpec) -> TargetInfo:
        """Write the marker and wait until it is seen. What others wrote into the namespace is not taken over."""
        namespace = self.namespace(target)
        if namespace in self._service.namespaces() and self._service.list_ids(namespace, None, 1)[0]:
            raise IndexMismatch(
                f"the namespace {namespace!r} holds vectors that cda did not write; set CDA_PINECONE_NAMESPACE"
            )
        return self.marked(target, spec)

    def marked(self, target: str, spec: IndexSpec) -> TargetInfo:
        """Write the marker beside what is there and wait until it is seen."""
        self.mark(target, spec)
        ends, pause = time.monotonic() + self._service.config.write_deadline_s, 0.02
        while (info := self.asked(target)) is None:
            if time.monotonic() + pause > ends:
                raise BackendUnavailable(f"target {target!r} was made and is not seen yet; try again in a minute")
            time.sleep(pause)
            pause = min(2 * pause, 1.0)
        return info

    def mark(self, target: str, spec: IndexSpec) -> int:
        """Write the marker; its log position, behind all writes before it."""
        held = marker(spec)
        call = self._service.begin_upsert(self.namespace(target), [held], size(held))
        return self._service.finished("mark", call)[1]

    def seen(self, target: str, wanted: int, probe: Sequence[float] | SparseVector, deadline_s: float) -> Visibility:
        """Ask until an answer tells that it saw the log up to the position, or until the deadline is over."""
        if wanted == UNKNOWN:
            return Visibility(confirmed=False, why="the service told no log position for the write")
        ends, pause = time.monotonic() + deadline_s, 0.02
        while True:
            call = self._service.begin_query(self.namespace(target), probe, 1, None)
            seen = self._service.finished("query", call).reconciled
            if seen is not None and seen >= wanted:
                return Visibility(confirmed=True)
            if time.monotonic() + pause > ends:
                at = "no log position" if seen is None else f"log position {seen}"
                return Visibility(False, f"answers show {at} after {deadline_s:g} s, the write is at {wanted}")
            time.sleep(pause)
            pause = min(2 * pause, 1.0)

    def forget(self, target: str) -> None:
        """What is known of a target holds no more."""
        with self._lock:
            self._known.pop(target, None)

    def require_index(self, target: str) -> None:
        """IndexAbsent when there is no index at all."""
        if self._service.index_facts() is None:
            raise IndexAbsent(
                f"there is no Pinecone index {self._service.config.index!r}, and so no target {target!r} in it; check "
                "CDA_PINECONE_INDEX and the key's project, or run `cda corpus index --backend pinecone`, which makes it"
            )


def absent(target: str) -> IndexAbsent:
    """The error for a target that is not there."""
    return IndexAbsent(
        f"there is no target {target!r} in the Pinecone index; run `cda corpus index --backend pinecone`"
    )
