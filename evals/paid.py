"""Answers of a model that were paid for, kept until the run ends, so that a kill loses none and none is paid for twice.

`PaidClient` stands before any client. Each call is one line, written through to the disk before the caller sees the
answer; when the run goes on, the same request of the same sample is answered from its line and its cost is counted
again where it was counted before. The key holds the case, the repeat and how often this sample has asked the very same:
one sample never takes the answer of another. A failure is kept for what it cost and is asked anew.
"""

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import asdict, dataclass, field, replace
from decimal import Decimal
from hashlib import sha256
from pathlib import Path
from threading import Lock
from typing import Any

from cda.contracts.model_client import (
    ModelCall,
    ModelClient,
    ModelFailure,
    ModelReply,
    ModelRequest,
    ModelTurn,
    RunMeter,
    ToolCall,
    Turn,
    Usage,
)
from evals.record import Sample

_sample: ContextVar["_Asking | None"] = ContextVar("sample", default=None)


@dataclass(slots=True)
class _Asking:
    """A sample that is being asked, and how often it has put each request."""

    sample: Sample
    counts: dict[str, int] = field(default_factory=dict)
    lock: Lock = field(default_factory=Lock)

    def key(self, digest: str) -> str:
        """The key of the next call with this digest."""
        with self.lock:
            number = self.counts[digest] = self.counts.get(digest, 0) + 1
        return sha256(json.dumps([*self.sample, digest, number]).encode("utf-8")).hexdigest()[:40]

    def failed(self, digest: str) -> None:
        """The last call with this digest gave no answer: the next one is asked for under the same key."""
        with self.lock:
            self.counts[digest] -= 1


@contextmanager
def sampling(sample: Sample) -> Iterator[None]:
    """Calls made inside, in this context, are of that sample."""
    token = _sample.set(_Asking(sample))
    try:
        yield
    finally:
        _sample.reset(token)


def digest_of(request: ModelRequest, model: str) -> str:
    """Hex sha256 of everything that is sent, and of the model that it is sent to."""
    shown = [
        request.role,
        request.key,
        model,
        request.static,
        [_shown(turn) for turn in request.turns],
        request.answer.model_json_schema() if request.answer else None,
        [[tool.name, tool.description, dict(tool.schema)] for tool in request.tools],
    ]
    return sha256(json.dumps(shown, sort_keys=True, default=str).encode("utf-8")).hexdigest()


def _shown(turn: Turn) -> list[Any]:
    """A turn as it counts: what a provider keeps for itself in a turn of the model is left out."""
    if isinstance(turn, ModelTurn):
        return ["model", turn.text, [asdict(call) for call in turn.calls]]
    return [type(turn).__name__, asdict(turn)]


@dataclass(frozen=True, slots=True)
class Spent:
    """All that was paid, by role and model: every call of the run, over every resume, failed ones and those of samples
    that were never finished too."""

    rows: Mapping[tuple[str, str], list[Any]]

    def as_json(self) -> dict[str, Any]:
        """For the scorecard: calls, failed calls, tokens and money, whole and by role."""
        names = ("calls", "failed_calls", "input_tokens", "cache_read_tokens", "cache_write_tokens", "output_tokens")
        roles = [
            {"role": role, "model": model, **dict(zip(names, row[:6], strict=True)), "usd": str(row[6])}
            for (role, model), row in sorted(self.rows.items())
        ]
        whole = {name: sum(row[place] for row in self.rows.values()) for place, name in enumerate(names)}
        return {**whole, "usd": str(sum((row[6] for row in self.rows.values()), Decimal(0))), "roles": roles}


class PaidAnswers:
    """The file of one run's answers. Safe for several threads of one process."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._lock = Lock()
        self._kept: dict[str, dict[str, Any]] = {}
        self._calls: list[dict[str, Any]] = []
        self._read()

    def __len__(self) -> int:
        return len(self._kept)

    def kept(self, key: str, request: ModelRequest) -> ModelReply | None:
        """The answer under a key, as the contract asks for it; None when it has to be asked for."""
        held = self._kept.get(key)
        return _reply(held, request) if held else None

    def keep(self, key: str | None, calls: list[ModelCall], reply: ModelReply | None) -> None:
        """Write a call down, with its answer unless it failed; on the disk when this returns."""
        held: dict[str, Any] = {"key": key, "calls": [_plain_call(call) for call in calls]}
        if reply is not None:
            answer = None if reply.answer is None else reply.answer.model_dump(mode="json", by_alias=True)
            held |= {
                "turn": asdict(reply.turn),
                "answer": answer,
                "call": _plain_call(reply.call),
            }
        data = (json.dumps(held, ensure_ascii=False, separators=(",", ":")) + "\n").encode("utf-8")
        with self._lock:
            descriptor = os.open(self._file, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
            try:
                os.write(descriptor, data)
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
            self._take(held)

    def spent(self) -> Spent:
        """What was paid so far."""
        rows: dict[tuple[str, str], list[Any]] = {}
        with self._lock:
            for call in self._calls:
                row = rows.setdefault((call["role"], call["model"]), [0, 0, 0, 0, 0, 0, Decimal(0)])
                usage = call["usage"]
                counted = (
                    1,
                    call["outcome"] != "ok",
                    usage["input"],
                    usage["cache_read"],
                    usage["cache_write"],
                    usage["output"],
                )
                for place, value in enumerate(counted):
                    row[place] += value
                row[6] += Decimal(call["usd"])
        return Spent(rows)

    def _read(self) -> None:
        """What an earlier, killed run left; a torn last line is cut off."""
        if not self._file.exists():
            return
        whole = 0
        for line in self._file.read_bytes().splitlines(keepends=True):
            try:
                held = json.loads(line)
            except ValueError:
                break
            if not line.endswith(b"\n"):
                break
            whole += len(line)
            self._take(held)
        os.truncate(self._file, whole)

    def _take(self, held: dict[str, Any]) -> None:
        self._calls += held["calls"]
        if held["key"] and "call" in held:
            self._kept[held["key"]] = held


class PaidClient:
    """A client whose answers are kept in `answers`."""

    def __init__(self, inner: ModelClient, answers: PaidAnswers) -> None:
        self._inner, self._answers = inner, answers

    def ask(self, request: ModelRequest, meter: RunMeter) -> ModelReply:
        """The kept answer to this very call, else the inner client's, kept before anything else happens to it."""
        # Outside a sample nothing tells equal requests apart: such a call is kept for its cost alone.
        asking = _sample.get()
        digest = digest_of(request, self.describe(request.role))
        key = asking.key(digest) if asking else None
        kept = self._answers.kept(key, request) if key else None
        if kept is not None:
            meter.admit()
            meter.record(kept.call)
            return kept
        deferred = _Deferred(meter)
        try:
            reply = self._inner.ask(replace(request, key=key or request.key), deferred)
        except ModelFailure:
            if asking:
                asking.failed(digest)
            self._answers.keep(key, deferred.calls, None)
            deferred.settle()
            raise
        self._answers.keep(key, deferred.calls, reply)
        deferred.settle()
        return reply

    def describe(self, role: str) -> str:
        """As the inner client."""
        return self._inner.describe(role)

    def close(self) -> None:
        """Close the inner client."""
        self._inner.close()


class _Deferred:
    """Holds calls back from the run's meter: a cap that a paid answer passes must not keep it from being kept."""

    def __init__(self, meter: RunMeter) -> None:
        self._meter = meter
        self.calls: list[ModelCall] = []

    @property
    def remaining_s(self) -> float:
        return self._meter.remaining_s

    def admit(self) -> None:
        self._meter.admit()

    def record(self, call: ModelCall) -> None:
        self.calls.append(call)

    def settle(self) -> None:
        """Count the calls; raises as the meter does."""
        for call in self.calls:
            self._meter.record(call)


def _plain_call(call: ModelCall) -> dict[str, Any]:
    return {**asdict(call), "usd": str(call.usd)}


def _reply(held: Mapping[str, Any], request: ModelRequest) -> ModelReply:
    turn, call = held["turn"], held["call"]
    calls = tuple(ToolCall(**one) for one in turn["calls"])
    return ModelReply(
        turn=ModelTurn(**{**turn, "calls": calls}),
        answer=request.answer.model_validate(held["answer"]) if request.answer else None,
        call=ModelCall(**{**call, "usage": Usage(**call["usage"]), "usd": Decimal(call["usd"])}),
    )
