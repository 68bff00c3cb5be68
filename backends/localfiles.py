"""A local target on disk: `manifest.json`, which names the generation of files that is valid, and that generation.

A write makes a new generation beside the old one and then replaces the manifest in one rename, so a reader sees the
target as it was or as it is now, and a crash leaves at most an unused generation, which the next write removes.
"""

import fcntl
import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from uuid import uuid4

import numpy as np

from backends.base import IndexSpec, Record, TargetInfo, Vectors, root_hash
from backends.checks import require_spec
from backends.columns import Columns
from backends.errors import IndexMismatch
from backends.schema import Kind

FORMAT = 2
MANIFEST = "manifest.json"


@dataclass(frozen=True, slots=True)
class Generation:
    """One state of a target. Rows are sorted by partition, then by their days from the last field to the first."""

    info: TargetInfo
    files: str
    vectors: Vectors
    columns: Columns
    ids: list[str]
    hashes: list[str]
    bounds: dict[str, tuple[int, int]]  # partition value to its half-open slice of rows

    def records(self) -> list[Record]:
        """Every row as it was written; the vectors are views of the file."""
        metas = self.columns.metas()
        return [Record(*row) for row in zip(self.ids, self.vectors, metas, self.hashes, strict=True)]


def read_manifest(folder: Path) -> tuple[TargetInfo, str] | None:
    """What the target holds and the name of its generation; None when there is none."""
    try:
        text = (folder / MANIFEST).read_text(encoding="utf-8")
    except (FileNotFoundError, NotADirectoryError):
        return None
    try:
        held = json.loads(text)
        if held.pop("format") != FORMAT:
            raise IndexMismatch(f"target {folder.name!r} was written in another format; build the index again")
        files = held.pop("files")
        return TargetInfo(**held), str(files)
    except (ValueError, TypeError, KeyError, AttributeError):
        raise IndexMismatch(f"the manifest of target {folder.name!r} is damaged; build the index again") from None


def read(folder: Path, spec: IndexSpec) -> Generation | None:
    """The valid generation, memory-mapped; None when there is no target."""
    found = read_manifest(folder)
    while found is not None:
        try:
            return _read(folder / found[1], *found, spec)
        except FileNotFoundError:
            again = read_manifest(folder)  # a writer may have replaced what the manifest named a moment ago
            if again == found:
                raise IndexMismatch(f"target {folder.name!r} lacks a file; build the index again") from None
            found = again
    return None


def write(folder: Path, spec: IndexSpec, rows: list[Record]) -> TargetInfo:
    """Make these rows what the target holds, whole or not at all. The caller holds the target's lock."""
    rows = _sorted(spec, rows)
    root = root_hash((row.id, row.content_hash) for row in rows)
    info = TargetInfo(folder.name, spec.embedder, spec.dim, spec.schema.digest, len(rows), root)
    folder.mkdir(parents=True, exist_ok=True)
    fresh = folder / uuid4().hex
    draft = folder / f"{fresh.name}.json"
    try:
        fresh.mkdir()
        _write_vectors(fresh / "vectors.npy", spec.dim, rows)
        columns = Columns.of(spec.schema, [row.meta for row in rows])
        np.savez(fresh / "columns.npz", allow_pickle=False, **columns.arrays)
        held = {"ids": [row.id for row in rows], "hashes": [row.content_hash for row in rows], "values": columns.values}
        (fresh / "rows.json").write_text(json.dumps(held, ensure_ascii=False), encoding="utf-8")
        draft.write_text(json.dumps({"format": FORMAT, "files": fresh.name, **asdict(info)}), encoding="utf-8")
        draft.replace(folder / MANIFEST)
    except BaseException:
        shutil.rmtree(fresh, ignore_errors=True)
        draft.unlink(missing_ok=True)
        if not any(folder.iterdir()):
            folder.rmdir()
        raise
    for old in folder.iterdir():
        if old.is_dir() and old != fresh:
            shutil.rmtree(old, ignore_errors=True)
    return info


@contextmanager
def locked(root: Path, target: str) -> Iterator[None]:
    """One writer a target at a time, also among processes."""
    root.mkdir(parents=True, exist_ok=True)
    file = os.open(root / f".{target}.lock", os.O_RDWR | os.O_CREAT, 0o644)
    try:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
    finally:
        os.close(file)


def _read(files: Path, info: TargetInfo, name: str, spec: IndexSpec) -> Generation:
    require_spec(info, spec)
    vectors: Vectors = np.asarray(
        np.load(files / "vectors.npy", mmap_mode="r" if info.count else None, allow_pickle=False)
    )
    held = json.loads((files / "rows.json").read_text(encoding="utf-8"))
    with np.load(files / "columns.npz", allow_pickle=False) as arrays:
        columns = Columns(spec.schema, info.count, {name: arrays[name] for name in arrays.files}, held["values"])
    if vectors.shape != (info.count, info.dim) or len(held["ids"]) != info.count:
        raise IndexMismatch(f"target {info.target!r} does not hold what its manifest says; build the index again")
    partition = columns.arrays[spec.schema.partition]
    edges = np.searchsorted(partition, np.arange(len(columns.values[spec.schema.partition]) + 1))
    bounds = {
        value: (int(edges[i]), int(edges[i + 1])) for i, value in enumerate(columns.values[spec.schema.partition])
    }
    return Generation(info, name, vectors, columns, held["ids"], held["hashes"], bounds)


def _sorted(spec: IndexSpec, rows: list[Record]) -> list[Record]:
    days = [field.name for field in reversed(spec.schema.fields) if field.kind is Kind.DAY]
    partition = spec.schema.partition
    return sorted(rows, key=lambda row: (row.meta[partition], [row.meta[name] for name in days], row.id))


def _write_vectors(file: Path, dim: int, rows: list[Record]) -> None:
    """Row by row into the file: the vectors are in memory once already, and twice would be the peak of a build."""
    with file.open("wb") as out:
        header = {"descr": "<f4", "fortran_order": False, "shape": (len(rows), dim)}
        np.lib.format.write_array_header_1_0(out, header)
        for row in rows:
            out.write(row.vector.astype("<f4").tobytes())
