"""Whether a ledger is what was written: the first record that is not, by name.

What each attack meets: a flipped byte, its record's hash; a removed or reordered middle, the sequence and the previous
hash; a cut tail or a missing file, the signed head; a chain made anew, the signed checkpoints. Whoever holds the
signing key, or an old head together with an old ledger, can pass: keep copies of checkpoints elsewhere.
"""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cda.ledger.chain_end import segment_files
from cda.ledger.checkpoints import CHECKPOINTS, HEAD, RETAINED, checked
from cda.ledger.keys import Ring
from cda.ledger.locks import lock
from cda.ledger.record import GENESIS, merkle_root, read_line

PATIENCE_S = 10.0


@dataclass(frozen=True, slots=True)
class Verdict:
    """`fault` says what is wrong with the first bad record or document, None when nothing is; `segment`, `line` and
    `seq` where. `open_intents` are calls that were begun and have no outcome: their process died, or they still run."""

    records: int
    checkpoints: int
    fault: str | None = None
    segment: str | None = None
    line: int | None = None
    seq: int | None = None
    first: int = 1
    open_intents: tuple[str, ...] = ()

    @property
    def sound(self) -> bool:
        """True when the ledger is what was written."""
        return self.fault is None


class _Bad(Exception):
    def __init__(self, fault: str, segment: str | None = None, line: int | None = None, seq: int | None = None) -> None:
        super().__init__(fault)
        self.fault, self.segment, self.line, self.seq = fault, segment, line, seq


@dataclass(slots=True)
class _Walk:
    """How far the chain was followed."""

    first: int = 1
    count: int = 0
    hash: str = GENESIS
    checkpoints: int = 0


@dataclass(frozen=True, slots=True)
class _Moment:
    """The ledger as it stands between two writes: servers go on while it is read. `segments` with their sizes."""

    segments: tuple[tuple[Path, int], ...]
    documents: Mapping[str, bytes]

    @classmethod
    def of(cls, folder: Path, head: Path) -> "_Moment":
        with _between_writes(folder):
            segments = tuple((file, file.stat().st_size) for file in segment_files(folder))
            places = (head / name for name in (HEAD, CHECKPOINTS, RETAINED))
            return cls(segments, {place.name: place.read_bytes() for place in places if place.exists()})


@contextmanager
def _between_writes(folder: Path) -> Iterator[None]:
    """While nobody writes. A copy of a ledger has no lock, and nobody writes there; who holds it for too long hangs."""
    descriptor = None
    try:
        with suppress(OSError):
            descriptor = os.open(folder / ".lock", os.O_RDONLY)
            lock(descriptor, PATIENCE_S, shared=True)
        yield
    finally:
        if descriptor is not None:
            os.close(descriptor)


def verify(folder: Path, head: Path, ring: Ring) -> Verdict:
    """Follow the whole chain, then hold it against the checkpoints and the head."""
    walk = _Walk()
    hashes: dict[int, str] = {}
    calls: dict[str, None] = {}
    now = _Moment.of(folder, head)
    try:
        _start_after_retention(now, ring, walk)
        for record in _records(now, walk):
            hashes[record["seq"]] = record["hash"]
            if record["kind"] == "intent":
                calls[record["call"]] = None
            elif record["kind"] == "outcome":
                calls.pop(record["call"], None)
        _check_checkpoints(now, ring, walk, hashes)
        _check_head(now, ring, walk, hashes)
    except _Bad as bad:
        return Verdict(walk.count, walk.checkpoints, bad.fault, bad.segment, bad.line, bad.seq, walk.first)
    return Verdict(walk.count, walk.checkpoints, first=walk.first, open_intents=tuple(calls))


def _start_after_retention(now: _Moment, ring: Ring, walk: _Walk) -> None:
    if RETAINED in now.documents:
        try:
            kept = checked(now.documents[RETAINED], ring)
        except ValueError as why:
            raise _Bad(f"{RETAINED} {why}") from None
        walk.first, walk.count, walk.hash = int(kept["count"]) + 1, int(kept["count"]), str(kept["hash"])


def _records(now: _Moment, walk: _Walk) -> Iterator[Mapping[str, Any]]:
    for file, size in now.segments:
        expected = f"{walk.count + 1:012d}.jsonl"
        if file.name != expected:
            raise _Bad(f"the segment {expected} is missing before {file.name}", file.name, None, walk.count + 1)
        try:
            content = file.read_bytes()[:size]
        except OSError:
            raise _Bad("the segment cannot be read, or was removed meanwhile", file.name) from None
        for number, line in enumerate(content.splitlines(keepends=True), 1):
            if not line.endswith(b"\n"):
                raise _Bad("the last record is torn", file.name, number, walk.count + 1)
            try:
                record = read_line(line)
            except ValueError as why:
                raise _Bad(f"the record {why}", file.name, number, walk.count + 1) from None
            if record["seq"] != walk.count + 1:
                raise _Bad(f"record {walk.count + 1} is missing", file.name, number, walk.count + 1)
            if record["prev"] != walk.hash:
                raise _Bad("the record does not follow the one before it", file.name, number, record["seq"])
            walk.count, walk.hash = record["seq"], record["hash"]
            yield record


def _check_checkpoints(now: _Moment, ring: Ring, walk: _Walk, hashes: dict[int, str]) -> None:
    previous, start = "", 0
    for number, line in enumerate(now.documents.get(CHECKPOINTS, b"").splitlines(), 1):
        try:
            body = checked(line, ring)
        except ValueError as why:
            raise _Bad(f"checkpoint {number} {why}", CHECKPOINTS, number) from None
        if body["previous"] != previous or body["from"] != start + 1:
            raise _Bad(f"checkpoint {number} does not follow the one before it", CHECKPOINTS, number)
        previous, start = body["sig"], int(body["count"])
        walk.checkpoints = number
        if start < walk.first:
            continue  # its records were removed by retention
        if start > walk.count:
            raise _Bad(f"the ledger ends at record {walk.count}, a checkpoint vouches for {start}", seq=walk.count + 1)
        covered = range(max(int(body["from"]), walk.first), start + 1)
        root = merkle_root([hashes[seq] for seq in covered]) if covered.start == body["from"] else body["root"]
        if hashes[start] != body["hash"] or root != body["root"]:
            raise _Bad(f"the records are not those that checkpoint {number} vouches for", seq=int(body["from"]))


def _check_head(now: _Moment, ring: Ring, walk: _Walk, hashes: dict[int, str]) -> None:
    if HEAD not in now.documents:
        if walk.count:
            raise _Bad("the head is missing")
        return
    try:
        body = checked(now.documents[HEAD], ring)
    except ValueError as why:
        raise _Bad(f"the head {why}", HEAD) from None
    if int(body["count"]) > walk.count:
        raise _Bad(f"the ledger ends at record {walk.count}, its head says {body['count']}", seq=walk.count + 1)
    # A process that died between record and head leaves the head behind, never another hash at its place.
    if int(body["count"]) in hashes and hashes[int(body["count"])] != body["hash"]:
        raise _Bad("the record is not the one that the head vouches for", seq=int(body["count"]))
