"""Whether a ledger is what was written: the first record that is not, by name.

What each attack meets: a flipped byte, its record's hash; a removed or reordered middle, the sequence and the previous
hash; a cut tail or a missing file, the signed head; a chain made anew, the signed checkpoints. Whoever holds the
signing key, or an old head together with an old ledger, can pass: keep copies of checkpoints elsewhere.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cda.ledger.chain_end import segment_files
from cda.ledger.checkpoints import CHECKPOINTS, HEAD, RETAINED, checked
from cda.ledger.keys import Ring
from cda.ledger.record import GENESIS, merkle_root, read_line


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


def verify(folder: Path, head: Path, ring: Ring) -> Verdict:
    """Follow the whole chain, then hold it against the checkpoints and the head."""
    walk = _Walk()
    hashes: dict[int, str] = {}
    calls: dict[str, None] = {}
    try:
        _start_after_retention(head, ring, walk)
        for record in _records(folder, walk):
            hashes[record["seq"]] = record["hash"]
            if record["kind"] == "intent":
                calls[record["call"]] = None
            elif record["kind"] == "outcome":
                calls.pop(record["call"], None)
        _check_checkpoints(head, ring, walk, hashes)
        _check_head(head, ring, walk, hashes)
    except _Bad as bad:
        return Verdict(walk.count, walk.checkpoints, bad.fault, bad.segment, bad.line, bad.seq, walk.first)
    return Verdict(walk.count, walk.checkpoints, first=walk.first, open_intents=tuple(calls))


def _start_after_retention(head: Path, ring: Ring, walk: _Walk) -> None:
    place = head / RETAINED
    if place.exists():
        try:
            kept = checked(place.read_bytes(), ring)
        except ValueError as why:
            raise _Bad(f"{RETAINED} {why}") from None
        walk.first, walk.count, walk.hash = int(kept["count"]) + 1, int(kept["count"]), str(kept["hash"])


def _records(folder: Path, walk: _Walk) -> Iterator[Mapping[str, Any]]:
    for file in segment_files(folder):
        expected = f"{walk.count + 1:012d}.jsonl"
        if file.name != expected:
            raise _Bad(f"the segment {expected} is missing before {file.name}", file.name, None, walk.count + 1)
        for number, line in enumerate(file.read_bytes().splitlines(keepends=True), 1):
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


def _check_checkpoints(head: Path, ring: Ring, walk: _Walk, hashes: dict[int, str]) -> None:
    place = head / CHECKPOINTS
    previous, start = "", 0
    for number, line in enumerate(place.read_bytes().splitlines() if place.exists() else (), 1):
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


def _check_head(head: Path, ring: Ring, walk: _Walk, hashes: dict[int, str]) -> None:
    place = head / HEAD
    if not place.exists():
        if walk.count:
            raise _Bad("the head is missing")
        return
    try:
        body = checked(place.read_bytes(), ring)
    except ValueError as why:
        raise _Bad(f"the head {why}", HEAD) from None
    if int(body["count"]) > walk.count:
        raise _Bad(f"the ledger ends at record {walk.count}, its head says {body['count']}", seq=walk.count + 1)
    # A process that died between record and head leaves the head behind, never another hash at its place.
    if int(body["count"]) in hashes and hashes[int(body["count"])] != body["hash"]:
        raise _Bad("the record is not the one that the head vouches for", seq=int(body["count"]))
