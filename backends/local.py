"""Exact vector search over memory-mapped files: mask first, then only the rows from the first admitted to the last.

Rows are kept sorted by partition, then by their days from the last field to the first (end, then start), then by id. A
search that names its payer reads inside one contiguous slice, and a date leaves of it little more than what is in
effect. At 100,000 x 384 that is 7 to 12 times less memory traffic than a full scan, and memory traffic is all that an
exact scan costs.
"""

import json
import os
import shutil
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from backends.base import Capabilities, Hit, IndexSpec, Record, SearchPage, TargetInfo, Vector, Vectors
from backends.columns import Columns
from backends.errors import BackendError, IndexAbsent, IndexMismatch, InvalidFilter, InvalidRecord
from backends.filters import Where, pinned
from backends.schema import Kind

FORMAT = 1
CAPABILITIES = Capabilities(
    name="local", exact=True, max_dim=8192, max_k=1000, id_max_length=512, server_side_filter=True
)


@dataclass(frozen=True, slots=True)
class _Open:
    info: TargetInfo
    vectors: Vectors
    columns: Columns
    ids: list[str]
    hashes: list[str]
    bounds: dict[str, tuple[int, int]]  # partition value to its half-open slice of rows


class LocalBackend:
    """Targets are folders under `root`; each is written beside its place and renamed into it when complete."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._open: dict[str, _Open] = {}
        self._closed = False

    def capabilities(self) -> Capabilities:
        """Exact, filtered, any number of rows that memory-maps."""
        return CAPABILITIES

    def create(self, target: str, spec: IndexSpec, records: Iterable[Record]) -> TargetInfo:
        """See `VectorBackend.create`."""
        place = self._place(target)
        rows = _checked(spec, records)
        info = TargetInfo(
            target, spec.embedder, spec.dim, spec.schema.digest, spec.corpus_digest, len(rows), _root_hash(rows)
        )
        draft = place.with_name(f".{target}.{os.getpid()}.draft")
        shutil.rmtree(draft, ignore_errors=True)
        draft.mkdir(parents=True)
        try:
            _write(draft, spec, rows, info)
            _swap(draft, place)
        finally:
            shutil.rmtree(draft, ignore_errors=True)
        self._open.pop(target, None)
        return info

    def describe(self, target: str) -> TargetInfo | None:
        """See `VectorBackend.describe`."""
        manifest = self._place(target) / "manifest.json"
        if not manifest.exists():
            return None
        try:
            held = json.loads(manifest.read_text(encoding="utf-8"))
            if held.pop("format") != FORMAT:
                raise IndexMismatch(f"target {target!r} was written in another format; build the index again")
            return TargetInfo(**held)
        except (ValueError, TypeError, KeyError):
            raise IndexMismatch(f"the manifest of target {target!r} is damaged; build the index again") from None

    def search(self, target: str, spec: IndexSpec, vectors: Vectors, *, k: int, where: Where) -> list[SearchPage]:
        """See `VectorBackend.search`. One product a vector, so that no score depends on the batch it came in."""
        if self._closed:
            raise BackendError("the local backend is closed")
        if type(k) is not int or not 1 <= k <= CAPABILITIES.max_k:
            raise ValueError(f"k must be in 1..{CAPABILITIES.max_k}")
        opened = self._load(target, spec)
        slices = _slices(opened, where, spec)
        masks = [opened.columns.mask(where, start, stop) for start, stop in slices]
        admitted = [np.flatnonzero(mask) for mask in masks]
        return [_page(opened, slices, admitted, _unit(vector, spec.dim), k) for vector in vectors]

    def close(self) -> None:
        """Drop the memory maps."""
        self._open.clear()
        self._closed = True

    def _place(self, target: str) -> Path:
        if not target or not all(c.isascii() and (c.isalnum() or c in "-_.") for c in target) or target[0] == ".":
            raise BackendError("a local target is named with ASCII letters, digits, '-', '_' and '.', not '.' first")
        return self._root / target

    def _load(self, target: str, spec: IndexSpec) -> _Open:
        opened = self._open.get(target)
        if opened is None:
            info = self.describe(target)
            if info is None:
                raise IndexAbsent(f"there is no local index {target!r}; build it first")
            opened = _read(self._place(target), info, spec)
        _require_spec(opened.info, spec)
        self._open[target] = opened
        return opened


def _checked(spec: IndexSpec, records: Iterable[Record]) -> list[Record]:
    rows: list[Record] = []
    seen: set[str] = set()
    for record in records:
        if not record.id or len(record.id) > CAPABILITIES.id_max_length or "\x00" in record.id:
            raise InvalidRecord(f"record id of {len(record.id)} characters: 1 to 512 without NUL are allowed")
        if record.id in seen:
            raise InvalidRecord(f"record {record.id!r} comes twice")
        seen.add(record.id)
        spec.schema.check(record.id, record.meta)
        try:
            vector = _unit(record.vector, spec.dim)
        except InvalidFilter as why:
            raise InvalidRecord(f"record {record.id!r}: {why}") from None
        rows.append(Record(record.id, vector, record.meta, record.content_hash))
    days = [field.name for field in reversed(spec.schema.fields) if field.kind is Kind.DAY]
    partition = spec.schema.partition
    rows.sort(key=lambda record: (record.meta[partition], [record.meta[name] for name in days], record.id))
    return rows


def _unit(vector: Vector, dim: int) -> Vector:
    """The vector with norm 1; no direction, no search."""
    vector = np.asarray(vector, dtype=np.float32)
    if vector.shape != (dim,):
        raise InvalidFilter(f"a vector of shape {vector.shape} where {dim} components are needed")
    norm = float(np.linalg.norm(vector.astype(np.float64)))
    if not np.isfinite(norm) or norm == 0.0:
        raise InvalidFilter("a vector is zero or not finite; it has no direction")
    return vector if abs(norm - 1.0) < 1e-6 else (vector / np.float32(norm)).astype(np.float32)


def _root_hash(rows: list[Record]) -> str:
    lines = sorted(json.dumps([row.id, row.content_hash]) for row in rows)
    return sha256("\n".join(lines).encode("utf-8")).hexdigest()


def _write(folder: Path, spec: IndexSpec, rows: list[Record], info: TargetInfo) -> None:
    _write_vectors(folder / "vectors.npy", spec.dim, rows)
    columns = Columns.of(spec.schema, [row.meta for row in rows])
    np.savez(folder / "columns.npz", allow_pickle=False, **columns.arrays)
    held = {"ids": [row.id for row in rows], "hashes": [row.content_hash for row in rows], "values": columns.values}
    (folder / "rows.json").write_text(json.dumps(held, ensure_ascii=False), encoding="utf-8")
    (folder / "manifest.json").write_text(json.dumps({"format": FORMAT, **asdict(info)}), encoding="utf-8")


def _write_vectors(file: Path, dim: int, rows: list[Record]) -> None:
    """Row by row into the file: the vectors are in memory once already, and twice would be the peak of a build."""
    with file.open("wb") as out:
        header = {"descr": "<f4", "fortran_order": False, "shape": (len(rows), dim)}
        np.lib.format.write_array_header_1_0(out, header)
        for row in rows:
            out.write(row.vector.astype("<f4").tobytes())


def _swap(draft: Path, place: Path) -> None:
    """Put the finished folder in place. Between the two renames a reader finds no target, never half of one."""
    if place.exists():
        old = place.with_name(f"{draft.name}.old")
        place.rename(old)
        draft.rename(place)
        shutil.rmtree(old)
    else:
        draft.rename(place)


def _read(folder: Path, info: TargetInfo, spec: IndexSpec) -> _Open:
    _require_spec(info, spec)
    vectors: Vectors = np.asarray(
        np.load(folder / "vectors.npy", mmap_mode="r" if info.count else None, allow_pickle=False)
    )
    held = json.loads((folder / "rows.json").read_text(encoding="utf-8"))
    with np.load(folder / "columns.npz", allow_pickle=False) as arrays:
        columns = Columns(spec.schema, info.count, {name: arrays[name] for name in arrays.files}, held["values"])
    if vectors.shape != (info.count, info.dim) or len(held["ids"]) != info.count:
        raise IndexMismatch(f"target {info.target!r} does not hold what its manifest says; build the index again")
    partition = columns.arrays[spec.schema.partition]
    edges = np.searchsorted(partition, np.arange(len(columns.values[spec.schema.partition]) + 1))
    bounds = {
        value: (int(edges[i]), int(edges[i + 1])) for i, value in enumerate(columns.values[spec.schema.partition])
    }
    return _Open(info, vectors, columns, held["ids"], held["hashes"], bounds)


def _require_spec(info: TargetInfo, spec: IndexSpec) -> None:
    for what, held, wanted in (
        ("embedder", info.embedder, spec.embedder),
        ("dimension", info.dim, spec.dim),
        ("schema", info.schema_digest, spec.schema.digest),
        ("corpus", info.corpus_digest, spec.corpus_digest),
    ):
        if held != wanted:
            raise IndexMismatch(
                f"target {info.target!r} was built with {what} {held!r}, this run has {wanted!r}; build the index again"
            )


def _slices(opened: _Open, where: Where, spec: IndexSpec) -> list[tuple[int, int]]:
    values = pinned(where, spec.schema[spec.schema.partition])
    if values is None:
        return [(0, opened.info.count)]
    return sorted(opened.bounds[value] for value in values if value in opened.bounds)


def _page(
    opened: _Open, slices: list[tuple[int, int]], admitted: list[NDArray[np.intp]], vector: Vector, k: int
) -> SearchPage:
    scored: list[tuple[float, str, int]] = []
    for (start, _), rows in zip(slices, admitted, strict=True):
        if not rows.size:
            continue
        # Row by row, not as a matrix product: one thread, half the CPU, and no score depends on the row's neighbours.
        first = int(rows[0])
        scanned = opened.vectors[start + first : start + int(rows[-1]) + 1]
        scores = np.vecdot(scanned, vector)[rows - first]
        if scores.size > k:
            best = _best(scores, k)
            scores, rows = scores[best], rows[best]  # noqa: PLW2901 - the rest of them is not looked at again
        for score, row in zip(scores.tolist(), rows.tolist(), strict=True):
            scored.append((-round(min(max(score, -1.0), 1.0), 6), opened.ids[start + row], start + row))
    scored.sort()
    hits = tuple(
        [Hit(record_id, -score, rank, opened.hashes[row]) for rank, (score, record_id, row) in enumerate(scored[:k], 1)]
    )
    return SearchPage(hits, eligible=sum(int(rows.size) for rows in admitted), exact=True)


def _best(scores: Vector, k: int) -> NDArray[np.intp]:
    """Positions of the k best and of all that could tie with the k-th after rounding: ids break ties, not luck."""
    floor = np.partition(scores, scores.size - k)[scores.size - k] - 1e-6
    return np.flatnonzero(scores >= floor)
