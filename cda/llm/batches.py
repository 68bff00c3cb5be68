"""Message Batches: many questions at half the price, answered within a day, and none paid for twice.

The journal holds names alone, no word that was sent or received: the service keeps the answers for weeks, and they are
read from there as often as needed. What is about to be sent is journaled before it is; a batch whose answer was lost,
or whose process died, is found again on the service by what it holds.
"""

import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal
from pathlib import Path
from threading import Lock
from typing import Any

from cda.contracts.model_client import (
    FailureKind,
    ModelCall,
    ModelFailure,
    ModelReply,
    ModelRequest,
    RunMeter,
    Usage,
)
from cda.errors import CdaError, UnavailableError, UsageError
from cda.llm.calling import OK, ProviderClient, judged
from cda.llm.provider import BatchItem, BatchProvider, BatchResult, CallFault, Received, transport_fault

CALL_S = 300.0
MOST = 10_000  # questions in one batch; the service takes ten times as many
MOST_BYTES = 64 * 1024 * 1024  # a quarter of what it takes
TRIES = 4


class Pending(CdaError):
    """The question has no answer yet: it is noted, and is sent with the next batch."""


class BatchClient:
    """A `ModelClient` whose answers come from batches: ask everything, `send`, `poll` until it is true, ask again.

    A question without an answer raises Pending. One that failed is answered with its failure once, and is sent anew
    when it is asked after that. Safe for threads; one process a journal.
    """

    def __init__(self, client: ProviderClient, journal: Path) -> None:
        self._client = client
        self._journal = _Journal(journal)
        self._unread = self._journal.ended()
        self._lock = Lock()
        self._wanted: dict[str, BatchItem] = {}
        self._results: dict[str, BatchResult] = {}

    @property
    def wanted(self) -> int:
        """Questions that wait for a batch to be sent."""
        return len(self._wanted)

    def ask(self, request: ModelRequest, meter: RunMeter) -> ModelReply:
        """The answer of a batch, recorded at its price. Raises Pending, ModelFailure, and what the meter raises."""
        item = self._item(request)
        with self._lock:
            result = self._results.get(item.item_id)
            if result is None:
                self._wanted[item.item_id] = item
                raise Pending(f"a question of the {request.role} waits for its batch")
            if result.fault is not None:
                del self._results[item.item_id]
        meter.admit()
        return self._replied(item, result, meter)

    def send(self) -> int:
        """Send what waits, but for what a batch of the journal answered or holds; how many questions went out."""
        self._found_again()
        self.load()
        with self._lock:
            held = self._journal.under_way() | set(self._results)
            items = [item for key, item in sorted(self._wanted.items()) if key not in held]
            self._wanted.clear()
        for chunk in self._chunks(items):
            self._made(chunk)
        return len(items)

    def poll(self) -> bool:
        """Collect what has ended; whether every batch has. Raises UnavailableError when the service cannot tell."""
        self._found_again()
        self.load()
        for name in self._journal.open():
            if not self._run(self._provider.batch_ended(name)):
                continue
            results = self._run(self._provider.batch_results(name))
            kept = self._journal.items(name)
            if kept is not None and {one.item_id for one in results} != set(kept):
                self._journal.note({"event": "stranger", "batch": name})
                continue
            self._collected(results)
            self._journal.note({"event": "ended", "batch": name})
        return not self._journal.open()

    def load(self) -> int:
        """Read, once, what the batches came to that had ended before this process began; how many answers there are."""
        while self._unread:
            self._collected(self._run(self._provider.batch_results(self._unread[-1])))
            self._unread.pop()
        return len(self._results)

    def describe(self, role: str) -> str:
        """The model that answers for a role."""
        return self._client.describe(role)

    def close(self) -> None:
        """Close the client beneath; batches go on without it."""
        self._client.close()

    @property
    def _provider(self) -> BatchProvider:
        return self._client.batch_provider()

    def _item(self, request: ModelRequest) -> BatchItem:
        choice = self._client.choice(request.role)
        if choice.provider != "anthropic":
            raise UsageError(f"{choice.name}: batches are Anthropic's; choose such a model for the {request.role}")
        sent = json.dumps([request.key, self._provider.body(request, choice)], sort_keys=True)
        return BatchItem(hashlib.sha256(sent.encode()).hexdigest()[:48], request, choice)

    def _chunks(self, items: Sequence[BatchItem]) -> Iterator[list[BatchItem]]:
        chunk: list[BatchItem] = []
        size = 0
        for item in items:
            weight = len(json.dumps(self._provider.body(item.request, item.choice)))
            if chunk and (len(chunk) >= MOST or size + weight > MOST_BYTES):
                yield chunk
                chunk, size = [], 0
            chunk.append(item)
            size += weight
        if chunk:
            yield chunk

    def _made(self, chunk: Sequence[BatchItem]) -> None:
        ids = [item.item_id for item in chunk]
        for attempt in range(TRIES):
            self._journal.note({"event": "intent", "items": ids})
            try:
                name = self._run(self._provider.make_batch(chunk), again=False)
            except CallFault as fault:
                if fault.lost and self._found_again():
                    return
                if not fault.again or attempt == TRIES - 1:
                    if not fault.lost:
                        self._journal.note({"event": "given_up", "items": ids})
                    raise UnavailableError(f"the batch was not taken: {fault.detail}") from None
                self._client.pacing.sleep(fault.wait_s or 0.5 * 2**attempt)
                continue
            self._journal.note({"event": "made", "batch": name, "items": ids})
            return

    def _found_again(self) -> bool:
        """Look on the service for the batch of an intent that no name was journaled for; whether there was one.

        One that is under way shows only its size, and is held to its questions when it has ended.
        """
        ids = self._journal.intent()
        if not ids:
            return False
        for name, count, ended in self._run(self._provider.batches()):
            if count != len(ids) or name in self._journal.names():
                continue
            if ended and {one.item_id for one in self._run(self._provider.batch_results(name))} != set(ids):
                continue
            self._journal.note({"event": "made", "batch": name, "items": list(ids)})
            return True
        self._journal.note({"event": "given_up", "items": list(ids)})
        return False

    def _collected(self, results: Iterable[BatchResult]) -> None:
        with self._lock:
            for one in results:
                held = self._results.get(one.item_id)
                if held is None or held.fault is not None:
                    self._results[one.item_id] = one

    def _replied(self, item: BatchItem, result: BatchResult, meter: RunMeter) -> ModelReply:
        role, failure, answer = item.request.role, None, None
        if result.received is not None:
            failure, answer = judged(item.request, result.received)
        elif result.fault is not None:
            failure = ModelFailure(result.fault.kind, role, result.fault.detail)
        call = self._call(item, result.received, failure)
        meter.record(call)
        if failure is not None or result.received is None:
            raise failure or ModelFailure(FailureKind.UNREACHABLE, role)
        return ModelReply(result.received.turn, answer, call)

    def _call(self, item: BatchItem, received: Received | None, failure: ModelFailure | None) -> ModelCall:
        usage = received.usage if received is not None and received.usage is not None else Usage()
        cost = self._client.prices.cost(item.choice.name, usage, batch=True)
        return ModelCall(
            role=item.request.role,
            model=item.choice.name,
            usage=usage,
            usd=cost if cost else Decimal(0),
            seconds=0.0,
            outcome=OK if failure is None else str(failure.kind),
            static_sha256=hashlib.sha256(item.request.static.encode()).hexdigest(),
        )

    def _run(self, work: Any, *, again: bool = True) -> Any:
        """The result of one request of the batches' own. Raises UnavailableError, or with `again` off the CallFault."""
        fault: CallFault
        try:
            return self._client.background.run(work, CALL_S)
        except CallFault as caught:
            fault = caught
        except TimeoutError as caught:
            fault = transport_fault(caught)
        if not again:
            raise fault
        raise UnavailableError(f"the service's batches: {fault.detail}; run the same again to go on")


class _Journal:
    """Append-only lines of names, each on the disk before what it announces is done."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._lines = _read(file)

    def note(self, line: dict[str, Any]) -> None:
        self._file.parent.mkdir(parents=True, exist_ok=True)
        with self._file.open("a", encoding="utf-8") as out:
            out.write(json.dumps(line) + "\n")
            out.flush()
            os.fsync(out.fileno())
        self._lines.append(line)

    def intent(self) -> list[str] | None:
        """The questions of the last intent, when nobody knows what became of it."""
        for line in reversed(self._lines):
            if line["event"] in ("made", "given_up"):
                return None
            if line["event"] == "intent":
                return list(line["items"])
        return None

    def names(self) -> set[str]:
        return {line["batch"] for line in self._lines if "batch" in line}

    def items(self, name: str) -> list[str] | None:
        return next((line["items"] for line in self._lines if line.get("batch") == name and "items" in line), None)

    def open(self) -> list[str]:
        return self._by({"made"}, without={"ended", "stranger"})

    def ended(self) -> list[str]:
        return self._by({"ended"}, without=set())

    def under_way(self) -> set[str]:
        return {item for name in self.open() for item in self.items(name) or []}

    def _by(self, events: set[str], *, without: set[str]) -> list[str]:
        out = {line["batch"] for line in self._lines if line["event"] in without}
        return [line["batch"] for line in self._lines if line["event"] in events and line["batch"] not in out]


def _read(file: Path) -> list[dict[str, Any]]:
    """The lines of a journal; a last line that a crash cut is dropped. Raises UsageError for a broken one before it."""
    if not file.exists():
        return []
    *whole, last = file.read_text(encoding="utf-8").split("\n")
    if last:  # no line end: it was being written when the process died, and what it announced was not begun
        file.write_text("".join(f"{line}\n" for line in whole), encoding="utf-8")
    try:
        return [json.loads(line) for line in whole if line]
    except ValueError:
        raise UsageError(f"{file}: is no journal of batches; name another file") from None
