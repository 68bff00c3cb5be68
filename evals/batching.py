"""Waits for Message Batches, so that a run asks by them as it asks by single calls: half the price, and hours.

Samples wait in their threads. What they ask is noted by `cda.llm.batches.BatchClient`, which keeps the journal that a
killed run goes on from; here it is sent once nobody has asked for a while, and looked after until it has ended.
"""

from collections.abc import Callable
from threading import Condition, Thread
from time import monotonic
from typing import Protocol

from cda.contracts.model_client import FailureKind, ModelClient, ModelFailure, ModelReply, ModelRequest, RunMeter
from cda.errors import UnavailableError
from cda.llm.batches import Pending
from evals.record import SERVICE_FAILED

QUIET_S = 2.0  # nobody asked for so long: what waits is sent
POLL_S = 15.0


class Batches(ModelClient, Protocol):
    """A client that raises Pending until a batch that was sent has the answer."""

    @property
    def wanted(self) -> int:
        """Questions that wait to be sent."""
        ...

    def send(self) -> int:
        """Send them; how many went out."""
        ...

    def poll(self) -> bool:
        """Collect what has ended; whether all has."""
        ...

    def load(self) -> int:
        """Read what ended batches of the journal came to."""
        ...


class WaitingClient:
    """A `ModelClient` that blocks until the batch of its question has ended. Safe for any number of threads."""

    def __init__(
        self, batches: Batches, *, say: Callable[[str], None], quiet_s: float = QUIET_S, poll_s: float = POLL_S
    ) -> None:
        self._batches, self._say = batches, say
        self._quiet_s, self._poll_s = quiet_s, poll_s
        self._changed = Condition()
        self._round = 0
        self._waiting = 0
        self._asked_at = 0.0
        self._failure: tuple[int, FailureKind, str] | None = None
        self._closed = False
        if kept := batches.load():
            say(f"{kept} answers of batches of a stopped run are there")
        self._worker = Thread(target=self._work, name="batches", daemon=True)
        self._worker.start()

    def ask(self, request: ModelRequest, meter: RunMeter) -> ModelReply:
        """The answer of a batch. Raises ModelFailure; the call is recorded with the meter either way."""
        first = True
        while True:
            seen = self._round
            try:
                return self._batches.ask(request, meter)
            except Pending:
                self._wait(request, meter, seen, new=first)
            except ModelFailure as failure:
                # What failed in a stopped run is sent anew: its failure was told then.
                if not first or failure.kind.value not in SERVICE_FAILED:
                    raise
            first = False

    def describe(self, role: str) -> str:
        """The model that answers for a role."""
        return self._batches.describe(role)

    def close(self) -> None:
        """Stop waiting. Batches go on at the provider, and are found again by the next run."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        self._worker.join()
        self._batches.close()

    def _wait(self, request: ModelRequest, meter: RunMeter, seen: int, *, new: bool) -> None:
        """Until something came since `seen`. Raises ModelFailure when the time is up, the client is closed, or the
        service did not take the batch."""
        until = monotonic() + meter.remaining_s
        with self._changed:
            self._waiting += 1
            if new:
                self._asked_at = monotonic()
            try:
                while self._round == seen and not self._closed:
                    if not self._changed.wait(max(0.0, until - monotonic())):
                        why = "the batch has not ended in time"
                        raise ModelFailure(FailureKind.TIMED_OUT, request.role, why)
            finally:
                self._waiting -= 1
            if self._closed:
                raise ModelFailure(FailureKind.UNREACHABLE, request.role, "the client was closed")
            if self._failure is not None and self._failure[0] > seen:
                raise ModelFailure(self._failure[1], request.role, self._failure[2])

    def _work(self) -> None:
        polled_at = monotonic()
        while True:
            with self._changed:
                self._changed.wait(timeout=min(self._quiet_s, self._poll_s) / 2)
                if self._closed:
                    return
                quiet = monotonic() - self._asked_at >= self._quiet_s
            try:
                if quiet and self._waiting and self._batches.wanted and (sent := self._batches.send()):
                    self._say(f"{sent} questions sent by batch")
                if monotonic() - polled_at >= self._poll_s and self._waiting:
                    polled_at = monotonic()
                    self._polled()
            except UnavailableError as error:
                self._tell(FailureKind.UNREACHABLE, str(error))
            except Exception as error:  # the thread's boundary: nobody may wait for a thread that died
                self._tell(FailureKind.UNREACHABLE, f"batches failed ({type(error).__name__})")

    def _polled(self) -> None:
        """Look once; whoever waits asks again, and waits again when the answer is not yet there."""
        try:
            self._batches.poll()
        except UnavailableError as error:
            self._say(f"{error}; looking again")  # what was sent is safe: only looking failed
            return
        with self._changed:
            self._round += 1
            self._changed.notify_all()

    def _tell(self, kind: FailureKind, why: str) -> None:
        with self._changed:
            self._round += 1
            self._failure = self._round, kind, why
            self._changed.notify_all()
