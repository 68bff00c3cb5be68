"""Appending: one chain for all threads and processes, on the disk before the call returns.

Threads that come together share one write and one fsync. Processes take turns at a lock file, and whoever holds it
first reads what others have added. The head (how long the chain is, and its last hash, signed) is written to another
folder after every write, so that a cut tail is missed; checkpoints with a Merkle root follow every `every` records.
"""

import json
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from cda.ledger.chain_end import TAIL_BYTES, ChainEnd, followed, hashes_after
from cda.ledger.checkpoints import CHECKPOINTS, HEAD, HEAD_BYTES, signed
from cda.ledger.keys import KeyFault, SigningKey
from cda.ledger.locks import lock
from cda.ledger.record import Entry, Position, line_of, merkle_root

SEGMENT_BYTES = 64 * 1024 * 1024
EVERY = 256  # records between two checkpoints
LOCK_S = 10.0  # for other processes to finish their write


class LedgerUnavailable(Exception):
    """The ledger cannot be written, so what it should record must not happen."""


@dataclass(slots=True)
class _Batch:
    """What threads have handed in since the last write; all of them wait for `done`."""

    entries: list[Entry] = field(default_factory=list)
    done: threading.Event = field(default_factory=threading.Event)
    failure: Exception | None = None


class Ledger:
    """The ledger of one folder. Raises LedgerUnavailable when it cannot be written safely, at opening already."""

    def __init__(
        self,
        folder: Path,
        head: Path,
        keys: Path,
        *,
        every: int = EVERY,
        segment_bytes: int = SEGMENT_BYTES,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        for inside in (folder, head):
            if keys.resolve() == inside.resolve() or inside.resolve() in keys.resolve().parents:
                raise LedgerUnavailable("the ledger's keys must lie apart from it and its head; set CDA_LEDGER_KEYS")
        if folder.resolve() == head.resolve():
            raise LedgerUnavailable("the ledger's head must lie apart from the ledger; set CDA_LEDGER_HEAD")
        self._folder, self._head, self._key = folder, head, SigningKey(keys)
        self._every, self._segment_bytes, self._now = every, segment_bytes, now
        self._turn, self._writing = threading.Lock(), threading.Lock()
        self._waiting = _Batch()
        self._known: ChainEnd | None = None
        self._checkpointed: tuple[int, dict[str, Any] | None] | None = None  # size of the file, its last document
        try:
            for place in (folder, head):
                place.mkdir(parents=True, exist_ok=True, mode=0o700)
            with self._alone():
                end = self._end()
                self._key.sign(b"")
                if not end.position.count:
                    self._sign_head(end.position, first=True)  # before the first record: one of them always was there
        except (OSError, KeyFault) as fault:
            raise LedgerUnavailable(_why(fault)) from None

    def append(self, entry: Entry) -> None:
        """Return when the record is on the disk. Raises LedgerUnavailable when it may not be."""
        with self._turn:
            batch = self._waiting
            batch.entries.append(entry)
            leads = len(batch.entries) == 1
        if leads:
            with self._writing:
                with self._turn:
                    self._waiting = _Batch()
                try:
                    self._write(batch.entries)
                except Exception as fault:  # every waiting thread must hear of it
                    batch.failure = fault
                batch.done.set()
        batch.done.wait()
        if batch.failure is not None:
            raise LedgerUnavailable(_why(batch.failure)) from None

    def close(self) -> None:
        """Sign a checkpoint over what has none yet."""
        try:
            with self._alone():
                self._checkpoint(self._end(), at_least=1)
        except (OSError, KeyFault) as fault:
            raise LedgerUnavailable(_why(fault)) from None

    def _write(self, entries: Sequence[Entry]) -> None:
        at = self._now().isoformat(timespec="microseconds")
        with self._alone():
            end = self._end()
            if end.size >= self._segment_bytes:
                end.segment, end.size = f"{end.position.count + 1:012d}.jsonl", 0
            content, position, positions = b"", end.position, []
            for entry in entries:
                line, position = line_of(entry, position, at)
                content += line
                positions.append(position)
            self._known = None  # until it is certain what stands there
            _append(f"{self._folder}/{end.segment}", content, end.size)
            self._sign_head(position)
            end.add(content, positions)
            self._known = end
            self._checkpoint(end, at_least=self._every)

    def _end(self) -> ChainEnd:
        """The end of the chain, followed when another process has written."""
        before = self._known.position if self._known else None
        known, self._known = self._known, None  # a fault on the way leaves nothing that is half followed
        end = followed(self._folder, known)
        if end is None:
            if self._head_count():
                raise KeyFault("the ledger's segments are missing, but its head is there; see `cda ledger verify`")
            return ChainEnd(f"{1:012d}.jsonl", 0, Position())
        if end.position != before:
            self._require_head(end.position)
        self._known = end
        return end

    def _require_head(self, position: Position) -> None:
        """Refuse to go on with a chain that is shorter than its head says, or another: it would be covered up."""
        head = self._read_head()
        if head is None:
            raise KeyFault("the ledger's head is missing; see `cda ledger verify`")
        count = int(head["count"])
        if count > position.count:
            raise KeyFault("the ledger is shorter than its head says; see `cda ledger verify`")
        # Only a process that died between a record and the head leaves more records than the head knows of.
        at_head = [position.hash] if count == position.count else hashes_after(self._folder, count - 1)[:1]
        if count and at_head != [head.get("hash")]:
            raise KeyFault("the ledger is another than its head says; see `cda ledger verify`")

    def _read_head(self) -> dict[str, Any] | None:
        try:
            head = json.loads((self._head / HEAD).read_bytes())
        except FileNotFoundError:
            return None
        except ValueError:
            head = None
        if not isinstance(head, dict) or not isinstance(head.get("count"), int):
            raise KeyFault("the ledger's head is damaged; see `cda ledger verify`")
        return head

    def _head_count(self) -> int:
        head = self._read_head()
        return int(head["count"]) if head is not None else 0

    def _sign_head(self, position: Position, *, first: bool = False) -> None:
        """Write the head over itself; only the first is made, so that one which was taken away is missed."""
        document = signed({"count": position.count, "hash": position.hash}, self._key).ljust(HEAD_BYTES)
        descriptor = os.open(f"{self._head}/{HEAD}", os.O_WRONLY | (os.O_CREAT if first else 0), 0o600)
        try:
            if os.pwrite(descriptor, document, 0) != len(document):
                raise OSError(None, "the disk is full")
            os.ftruncate(descriptor, HEAD_BYTES)  # a head of an earlier version may be longer
        finally:
            os.close(descriptor)

    def _checkpoint(self, end: ChainEnd, *, at_least: int) -> None:
        """Sign the records since the last checkpoint when there are so many of them."""
        last = self._last_checkpoint()
        start = int(last["count"]) if last else 0
        if end.position.count - start < at_least:
            return
        hashes = end.after(start)
        body: dict[str, Any] = {
            "from": start + 1,
            "count": end.position.count,
            "hash": end.position.hash,
            "root": merkle_root(hashes_after(self._folder, start) if hashes is None else hashes),
            "previous": str(last["sig"]) if last else "",
        }
        place = f"{self._head}/{CHECKPOINTS}"
        _append(place, signed(body, self._key) + b"\n", os.stat(place).st_size if os.path.exists(place) else 0)

    def _last_checkpoint(self) -> dict[str, Any] | None:
        """The newest checkpoint, read only when there is another one than last time."""
        try:
            size = os.stat(f"{self._head}/{CHECKPOINTS}").st_size
        except FileNotFoundError:
            return None
        if self._checkpointed is None or self._checkpointed[0] != size:
            self._checkpointed = size, last_checkpoint(self._head)
        return self._checkpointed[1]

    @contextmanager
    def _alone(self) -> Iterator[None]:
        descriptor = os.open(f"{self._folder}/.lock", os.O_CREAT | os.O_RDWR, 0o600)
        try:
            lock(descriptor, LOCK_S)
            yield
        finally:
            os.close(descriptor)


def last_checkpoint(head: Path) -> dict[str, Any] | None:
    """The newest checkpoint; None when there is none."""
    try:
        with (head / CHECKPOINTS).open("rb") as held:
            held.seek(max(0, held.seek(0, os.SEEK_END) - TAIL_BYTES))
            lines = held.read().splitlines()
    except FileNotFoundError:
        return None
    return json.loads(lines[-1]) if lines else None


def _append(file: str, content: bytes, size: int) -> None:
    """Add to a file of known size, and to the disk. What could be written only in part is taken back."""
    descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        try:
            written = os.write(descriptor, content)
            if written != len(content):
                raise OSError(None, "the disk is full")
            os.fsync(descriptor)
        except OSError:
            os.ftruncate(descriptor, size)
            raise
    finally:
        os.close(descriptor)


def _why(fault: Exception) -> str:
    return (fault.strerror or type(fault).__name__) if isinstance(fault, OSError) else str(fault)
