"""Asks by Message Batches: half the price for an answer that may take hours. It stands in a client's place.

Samples wait in their threads; what they ask is gathered and handed in together once nobody has asked for a while. Every
batch is written down before and after it is handed in, so that a run that was killed finds its batches again, also the
one whose id it never heard, and pays for nothing twice.
"""

import json
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from threading import Condition, Event, Thread
from time import monotonic
from typing import Any, Protocol

from cda.contracts.model_client import FailureKind, ModelCall, ModelFailure, ModelReply, ModelRequest, RunMeter

QUIET_S = 2.0  # nobody asked for so long: what waits is handed in
POLL_S = 15.0
MOST = 10_000  # requests of one batch


class BatchedAnswer(Protocol):
    """One result of a batch, not yet held to a contract."""

    def reply_to(self, request: ModelRequest) -> tuple[ModelReply | ModelFailure, ModelCall]:
        """The result as the answer to its request, and what it cost."""
        ...


class Batches(Protocol):
    """A provider's batches."""

    def submit(self, requests: list[tuple[str, ModelRequest]]) -> str:
        """Hand in requests under ids of their own; the batch's id."""
        ...

    def ended(self, batch_id: str) -> bool:
        """Whether every request of the batch has a result."""
        ...

    def collect(self, batch_id: str) -> Iterator[tuple[str, BatchedAnswer]]:
        """The results of a batch that has ended, by the requests' ids."""
        ...

    def recent(self) -> Iterator[tuple[str, int]]:
        """The latest batches, newest first: id and number of requests."""
        ...

    def describe(self, role: str) -> str:
        """The model that answers for a role."""
        ...

    def close(self) -> None:
        """Free what is held."""
        ...


@dataclass(slots=True)
class _Waiting:
    """A request that waits for its result."""

    request: ModelRequest
    done: Event = field(default_factory=Event)
    answer: BatchedAnswer | None = None
    failure: ModelFailure | None = None


class BatchClient:
    """A `ModelClient` over batches; `request.key` is the id of a request and must be unique (`evals.paid` makes it)."""

    def __init__(
        self,
        batches: Batches,
        file: Path,
        *,
        say: Callable[[str], None],
        quiet_s: float = QUIET_S,
        poll_s: float = POLL_S,
    ) -> None:
        self._batches, self._file, self._say = batches, file, say
        self._quiet_s, self._poll_s = quiet_s, poll_s
        self._changed = Condition()
        self._waiting: dict[str, _Waiting] = {}
        self._fresh: list[str] = []
        self._asked_at = 0.0
        self._closed = False
        self._answers: dict[str, BatchedAnswer] = {}
        self._under_way, self._unheard = self._read()
        self._heard = set(self._under_way)
        self._worker: Thread | None = None

    def ask(self, request: ModelRequest, meter: RunMeter) -> ModelReply:
        """The result of the request's batch. Raises ModelFailure; the call is recorded with the meter either way."""
        meter.admit()
        waiting = self._enter(request)
        if not waiting.done.wait(max(0.0, meter.remaining_s)):
            raise ModelFailure(FailureKind.TIMED_OUT, request.role, "the batch has not ended in time")
        if waiting.failure is not None:
            raise waiting.failure
        assert waiting.answer is not None
        reply, call = waiting.answer.reply_to(request)
        if isinstance(reply, ModelFailure):
            self._note({"again": request.key})  # asked once more, it goes into a new batch
            meter.record(call)
            raise reply
        meter.record(call)
        return reply

    def describe(self, role: str) -> str:
        """As the batches say."""
        return self._batches.describe(role)

    def close(self) -> None:
        """Stop waiting. Batches under way go on at the provider, and are found again by the next run."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        if self._worker is not None:
            self._worker.join()
        self._batches.close()

    def _enter(self, request: ModelRequest) -> _Waiting:
        with self._changed:
            waiting = _Waiting(request)
            if self._closed:
                waiting.failure = ModelFailure(FailureKind.UNREACHABLE, request.role, "the client was closed")
                waiting.done.set()
            elif request.key in self._answers:
                waiting.answer = self._answers.pop(request.key)
                waiting.done.set()
            else:
                self._waiting[request.key] = waiting
                if not any(request.key in keys for keys in (*self._under_way.values(), *self._unheard)):
                    self._fresh.append(request.key)
                self._asked_at = monotonic()
                if self._worker is None:
                    self._worker = Thread(target=self._work, name="batches", daemon=True)
                    self._worker.start()
                self._changed.notify_all()
        return waiting

    def _work(self) -> None:
        """Hand in and collect until closed. What goes wrong is told to everyone who waits."""
        looked_at = 0.0
        while True:
            with self._changed:
                if self._closed:
                    self._tell_all()
                    return
                self._changed.wait(timeout=min(self._quiet_s, self._poll_s) / 2)
                quiet = monotonic() - self._asked_at >= self._quiet_s
                due = monotonic() - looked_at >= self._poll_s
                fresh = self._fresh[:MOST] if self._fresh and (quiet or len(self._fresh) >= MOST) else []
            try:
                if self._unheard and quiet:
                    self._find_unheard()
                elif fresh:
                    self._hand_in(fresh)
                if due and self._under_way:
                    looked_at = monotonic()
                    self._collect_ended()
            except ModelFailure as failure:
                with self._changed:
                    self._tell_all(failure.kind, str(failure))
            except Exception as error:  # the thread's boundary: nobody may wait for a thread that died
                with self._changed:
                    self._tell_all(FailureKind.UNREACHABLE, f"batches failed ({type(error).__name__})")

    def _tell_all(self, kind: FailureKind = FailureKind.UNREACHABLE, why: str = "the client was closed") -> None:
        for waiting in self._waiting.values():
            waiting.failure = ModelFailure(kind, waiting.request.role, why)
            waiting.done.set()
        self._waiting.clear()
        self._fresh.clear()

    def _hand_in(self, keys: list[str]) -> None:
        with self._changed:
            requests = [(key, self._waiting[key].request) for key in keys]
        self._note({"keys": keys})
        batch_id = self._batches.submit(requests)
        self._note({"keys": keys, "batch": batch_id})
        with self._changed:
            self._under_way[batch_id] = frozenset(keys)
            self._heard.add(batch_id)
            self._fresh = [key for key in self._fresh if key not in self._under_way[batch_id]]
        self._say(f"batch {batch_id}: {len(keys)} requests handed in")

    def _collect_ended(self) -> None:
        for batch_id in list(self._under_way):
            if not self._batches.ended(batch_id):
                continue
            found = dict(self._batches.collect(batch_id))
            self._deliver(batch_id, found)

    def _deliver(self, batch_id: str, found: dict[str, BatchedAnswer]) -> None:
        with self._changed:
            keys = self._under_way.pop(batch_id, frozenset())
            missing = keys - found.keys()
            for key, answer in ((key, found[key]) for key in keys & found.keys()):
                waiting = self._waiting.pop(key, None)
                if waiting is None:
                    self._answers[key] = answer  # a sample of the run before has not asked again yet
                    continue
                waiting.answer = answer
                waiting.done.set()
            self._fresh += [key for key in missing if key in self._waiting]
        self._say(f"batch {batch_id}: {len(found)} results")

    def _find_unheard(self) -> None:
        """Look for batches that were handed in just before a kill: among the latest of their size, by their ids. One
        that never arrived is handed in again."""
        known = set(self._under_way) | self._heard
        sizes = {len(keys) for keys in self._unheard}
        for batch_id, size in self._batches.recent():
            if batch_id in known or size not in sizes:
                continue
            while not self._batches.ended(batch_id):
                with self._changed:
                    if self._closed:
                        return
                    self._changed.wait(timeout=self._poll_s)
            found = dict(self._batches.collect(batch_id))
            keys = frozenset(found)
            if any(keys & unheard for unheard in self._unheard):
                self._note({"keys": sorted(keys), "batch": batch_id})
                with self._changed:
                    self._unheard = [unheard for unheard in self._unheard if not unheard & keys]
                    self._under_way[batch_id] = keys
                    self._heard.add(batch_id)
                self._deliver(batch_id, found)
        with self._changed:
            lost = frozenset(key for keys in self._unheard for key in keys)
            self._fresh += [key for key in self._waiting if key in lost]
            self._unheard = []

    def _note(self, line: dict[str, Any]) -> None:
        data = (json.dumps(line) + "\n").encode("utf-8")
        descriptor = os.open(self._file, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            os.write(descriptor, data)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def _lines(self) -> Iterator[dict[str, Any]]:
        """What was noted; a last line that a kill tore is cut off: what it would have said is found as unheard."""
        if not self._file.exists():
            return
        whole = 0
        for line in self._file.read_bytes().splitlines(keepends=True):
            if not line.endswith(b"\n"):
                break
            whole += len(line)
            yield json.loads(line)
        os.truncate(self._file, whole)

    def _read(self) -> tuple[dict[str, frozenset[str]], list[frozenset[str]]]:
        """Batches by id with their keys, and key sets that were handed in without an id having been heard. A batch
        that was collected before is collected again, which costs nothing."""
        batches: dict[str, frozenset[str]] = {}
        intents: list[frozenset[str]] = []
        for line in self._lines():
            if "again" in line:
                batches = {batch_id: keys - {line["again"]} for batch_id, keys in batches.items()}
                continue
            keys = frozenset(line["keys"])
            if "batch" in line:
                batches[line["batch"]] = keys
                intents = [intent for intent in intents if not intent & keys]
            else:
                intents.append(keys)
        return batches, intents
