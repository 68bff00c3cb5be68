"""Where the chain ends, followed as it grows: what other processes have added is read, and nothing is read twice."""

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from cda.ledger.keys import KeyFault
from cda.ledger.record import Position, read_line

TAIL_BYTES = 65536  # more than any record has


@dataclass(slots=True)
class ChainEnd:
    """The last segment, its size, the end of the chain there, and the hashes of the records after the first `before`,
    as far as this process has seen them."""

    segment: str
    size: int
    position: Position
    before: int = 0
    hashes: list[str] = field(default_factory=list)

    def add(self, content: bytes, positions: list[Position]) -> None:
        """What was appended to the segment."""
        self.size += len(content)
        self.hashes += [position.hash for position in positions]
        self.position = positions[-1]

    def after(self, count: int) -> list[str] | None:
        """The hashes of the records after the first `count`; None when not all of them were seen."""
        if count < self.before:
            return None
        del self.hashes[: count - self.before]  # nobody asks for what a checkpoint has covered
        self.before = count
        return list(self.hashes)


def segment_files(folder: Path) -> list[Path]:
    """The segments in order; each is named by the number of its first record."""
    return [folder / name for name in _names(folder)]


def followed(folder: Path, known: ChainEnd | None) -> ChainEnd | None:
    """The end of the chain now, from what was known of it; None when there is no segment. Raises KeyFault for a chain
    that does not go on from there, or does not end in a record."""
    names, size = _names(folder), 0
    while names and not (size := os.stat(f"{folder}/{names[-1]}").st_size):
        names.pop()  # a process died between making a segment and its first record, which will still be written there
    if not names:
        return None
    last = names[-1]
    if known is None or known.segment not in names:
        position = _last_position(folder / last, size)
        return ChainEnd(last, size, position, before=position.count)
    if (known.segment, known.size) != (last, size):
        for name in names[names.index(known.segment) :]:
            _go_on(folder / name, known)
    return known


def hashes_after(folder: Path, count: int) -> list[str]:
    """The hashes of the records after the first `count`, read from the segments."""
    segments = segment_files(folder)
    first = [int(file.name.removesuffix(".jsonl")) for file in segments]
    found: list[str] = []
    for index, file in enumerate(segments):
        if index + 1 < len(segments) and first[index + 1] <= count + 1:
            continue
        records = (read_line(line) for line in file.read_bytes().splitlines(keepends=True))
        found += [str(record["hash"]) for record in records if record["seq"] > count]
    return found


def _names(folder: Path) -> list[str]:
    return sorted(name for name in os.listdir(folder) if name.endswith(".jsonl"))


def _go_on(segment: Path, end: ChainEnd) -> None:
    """Read on in the known segment, or from the start of one that follows it."""
    start = end.size if segment.name == end.segment else 0
    with segment.open("rb") as held:
        held.seek(start)
        content = held.read()
    if os.stat(segment).st_size < start:
        raise KeyFault("the ledger is shorter than it was; see `cda ledger verify`")
    end.segment, end.size = segment.name, start
    positions = list(_positions(content, end.position))
    if positions:
        end.add(content, positions)


def _positions(content: bytes, position: Position) -> Iterator[Position]:
    for line in content.splitlines(keepends=True):
        record = _whole(line)
        if record["seq"] != position.count + 1 or record["prev"] != position.hash:
            raise KeyFault("the ledger does not go on from where it was; see `cda ledger verify`")
        position = Position(int(record["seq"]), str(record["hash"]))
        yield position


def _last_position(segment: Path, size: int) -> Position:
    """The end of the chain in a segment, from its last line."""
    with segment.open("rb") as held:
        held.seek(max(0, size - TAIL_BYTES))
        lines = held.read().splitlines(keepends=True)
    record = _whole(lines[-1] if lines else b"")
    return Position(int(record["seq"]), str(record["hash"]))


def _whole(line: bytes) -> "dict[str, int | str]":
    if not line.endswith(b"\n"):
        raise KeyFault("the ledger ends in a torn record; see `cda ledger verify` and `cda ledger mend`")
    try:
        return dict(read_line(line))
    except ValueError as why:
        raise KeyFault(f"the last record of the ledger {why}; see `cda ledger verify`") from None
