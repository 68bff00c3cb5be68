"""Exact vector search over memory-mapped files: mask first, then only the rows from the first admitted to the last.

Rows are kept sorted by partition, then by their days from the last field to the first (end, then start), then by id. A
search that names its payer reads inside one contiguous slice, and a date leaves of it little more than what is in
effect. At 100,000 x 384 that is 7 to 12 times less memory traffic than a full scan, and memory traffic is all that an
exact scan costs. For that order every write makes the target's files anew: write once with all there is to write.
"""

import os
import shutil
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

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
    Vector,
    Vectors,
    Visibility,
    WriteReport,
)
from backends.checks import checked_query, checked_records, require_id_length, require_spec
from backends.errors import BackendError, IndexAbsent
from backends.filters import Where, pinned
from backends.localfiles import MANIFEST, Generation, locked, read, read_manifest, write
from backends.products import products

CAPABILITIES = Capabilities(
    name="local", exact=True, max_dim=8192, max_k=1000, id_max_length=512, server_side_filter=True
)
_VISIBLE = "visible"  # the token of every write: the next read shows it
_NO_SCORE = np.float32(-4.0)  # of a row that the filter does not admit; a cosine is never under -1
_GROUP = 16  # scores of which the best is looked at first


class _Span(NamedTuple):
    """The rows from the first that a filter admits to the last, those among them that it does not, and how many it
    does."""

    first: int
    stop: int
    admitted: int
    others: NDArray[np.bool_] | None


class LocalBackend:
    """Targets are folders under `root`."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._open: dict[str, tuple[tuple[int, int], Generation]] = {}
        self._closed = False

    def capabilities(self) -> Capabilities:
        """Exact, filtered, any number of rows that memory-maps."""
        return CAPABILITIES

    def targets(self) -> tuple[str, ...]:
        """See `VectorBackend.targets`."""
        self._require_open()
        if not self._root.is_dir():
            return ()
        return tuple(sorted(place.name for place in self._root.iterdir() if (place / MANIFEST).is_file()))

    def describe(self, target: str) -> TargetInfo | None:
        """See `VectorBackend.describe`."""
        self._require_open()
        found = read_manifest(self._place(target))
        return found[0] if found else None

    def ensure(self, target: str, spec: IndexSpec) -> TargetInfo:
        """See `VectorBackend.ensure`."""
        place = self._place(target)
        with locked(self._root, target):
            info = self.describe(target)
            if info is None:
                return write(place, spec, [])
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
        """See `VectorBackend.upsert`. One batch: everything or nothing."""
        fresh: dict[str, Record] = {}
        for record in checked_records(spec, records):
            require_id_length(record.id, record.id, CAPABILITIES)
            fresh[record.id] = record
        with locked(self._root, target):
            held = {row.id: row for row in self._load(target, spec).records()}
            write(self._place(target), spec, list((held | fresh).values()))
        return _reported(tuple(fresh), on_batch)

    def delete(self, target: str, spec: IndexSpec, ids: Sequence[str], *, foreign: Sequence[str] = ()) -> WriteReport:
        """See `VectorBackend.delete`. Nothing foreign can lie in a local target."""
        with locked(self._root, target):
            gone = frozenset(ids)
            held = self._load(target, spec).records()
            kept = [row for row in held if row.id not in gone]
            if len(kept) < len(held):
                write(self._place(target), spec, kept)
        return _reported((*ids, *foreign), None)

    def scan(self, target: str, spec: IndexSpec, *, after: str | None = None, limit: int = 1000) -> ScanPage:
        """See `VectorBackend.scan`; by row, so a write between two pages makes the later one refuse."""
        opened = self._load(target, spec)
        generation, _, start = (after or f"{opened.files}:0").partition(":")
        if generation != opened.files:
            raise BackendError(f"target {target!r} was written to during the scan; scan it again")
        first, metas = int(start), opened.columns.metas(int(start), int(start) + limit)
        stop = first + len(metas)
        found = map(Scanned, opened.ids[first:stop], opened.hashes[first:stop], metas)
        return ScanPage(tuple(found), (), f"{generation}:{stop}" if stop < opened.info.count else None)

    def wait_visible(self, target: str, token: str, *, deadline_s: float) -> Visibility:  # noqa: ARG002
        """See `VectorBackend.wait_visible`; a write that returned is visible."""
        self._require_open()
        return Visibility(confirmed=True)

    def search(self, target: str, spec: IndexSpec, vectors: Vectors, *, k: int, where: Where) -> list[SearchPage]:
        """See `VectorBackend.search`. One product a vector, so that no score depends on the batch it came in."""
        self._require_open()
        units = checked_query(CAPABILITIES, spec, vectors, k, where)
        opened = self._load(target, spec)
        spans = [span for part in _slices(opened, where, spec) if (span := _span(opened, where, *part)) is not None]
        return [_page(opened, spans, vector, k) for vector in units]

    def drop(self, target: str) -> None:
        """See `VectorBackend.drop`. The manifest goes first, so nobody opens what is half gone."""
        self._require_open()
        place = self._place(target)
        with locked(self._root, target):
            (place / MANIFEST).unlink(missing_ok=True)
            shutil.rmtree(place, ignore_errors=True)
        self._open.pop(target, None)

    def usage(self) -> Usage:
        """Nothing: there is no service."""
        return Usage()

    def close(self) -> None:
        """Drop the memory maps."""
        self._open.clear()
        self._closed = True

    def _require_open(self) -> None:
        if self._closed:
            raise BackendError("the local backend is closed")

    def _place(self, target: str) -> Path:
        self._require_open()
        if not target or not all(c.isascii() and (c.isalnum() or c in "-_.") for c in target) or target[0] == ".":
            raise BackendError("a local target is named with ASCII letters, digits, '-', '_' and '.', not '.' first")
        return self._root / target

    def _load(self, target: str, spec: IndexSpec) -> Generation:
        """The target's files; opened once, and again when a write has replaced them."""
        place = self._place(target)
        try:
            found = os.stat(place / MANIFEST)
        except FileNotFoundError:
            raise IndexAbsent(f"there is no local index {target!r}; build it first") from None
        stamp = found.st_ino, found.st_mtime_ns
        known = self._open.get(target)
        if known is not None and known[0] == stamp:
            require_spec(known[1].info, spec)
            return known[1]
        opened = read(place, spec)
        if opened is None:
            raise IndexAbsent(f"there is no local index {target!r}; build it first")
        self._open[target] = stamp, opened
        return opened


def _reported(ids: tuple[str, ...], on_batch: Callable[[WriteReport], None] | None) -> WriteReport:
    report = WriteReport(ids, (), _VISIBLE)
    if on_batch is not None:
        on_batch(report)
    return report


def _slices(opened: Generation, where: Where, spec: IndexSpec) -> list[tuple[int, int]]:
    values = pinned(where, spec.schema[spec.schema.partition])
    if values is None:
        return [(0, opened.info.count)]
    return sorted(opened.bounds[value] for value in values if value in opened.bounds)


def _span(opened: Generation, where: Where, start: int, stop: int) -> _Span | None:
    """What a filter admits of the rows start to stop; None when that is nothing."""
    mask = opened.columns.mask(where, start, stop)
    count = int(np.count_nonzero(mask))
    if not count:
        return None
    first, last = int(mask.argmax()), mask.size - int(mask[::-1].argmax())
    others = None if count == last - first else ~mask[first:last]
    return _Span(start + first, start + last, count, others)


def _page(opened: Generation, spans: list[_Span], vector: Vector, k: int) -> SearchPage:
    scored: list[tuple[float, str, int]] = []
    for span in spans:
        scores = products(opened.vectors, span.first, span.stop, vector)
        if span.others is not None:
            scores[span.others] = _NO_SCORE
        best = _best(scores, k, span.admitted)
        for score, row in zip(scores[best].tolist(), best.tolist(), strict=True):
            at = span.first + row
            scored.append((-round(min(max(score, -1.0), 1.0), 6), opened.ids[at], at))
    scored.sort()
    hits = tuple(
        [Hit(record_id, -score, rank, opened.hashes[row]) for rank, (score, record_id, row) in enumerate(scored[:k], 1)]
    )
    return SearchPage(hits, eligible=sum(span.admitted for span in spans), exact=True)


def _best(scores: Vector, k: int, admitted: int) -> NDArray[np.intp]:
    """Positions of the k best and of all that could tie with the k-th after rounding: ids break ties, not luck. The
    k-th best of the maxima of groups is a lower bound for the k-th best of all, and much quicker found."""
    if admitted <= k:
        return np.flatnonzero(scores > _NO_SCORE)
    groups = scores.size // _GROUP
    seen = scores[: groups * _GROUP].reshape(_GROUP, groups).max(axis=0) if groups > k else scores
    floor = np.partition(seen, seen.size - k)[seen.size - k] - 1e-6
    return np.flatnonzero(scores >= max(floor, _NO_SCORE / 2))
