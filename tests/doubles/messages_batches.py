"""Message Batches as the double knows them: made, polled, listed, cancelled, and their results as JSON lines."""

import json
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from doubles.messages_api import Refused

COUNTS = ("processing", "succeeded", "errored", "canceled", "expired")
MOST = 100_000


@dataclass
class Batch:
    """One batch; `polls` is how often it is still in progress when looked at."""

    number: int
    requests: list[dict[str, Any]]
    polls: int
    cancelled: bool = False
    results: list[dict[str, Any]] = field(default_factory=list)

    @property
    def name(self) -> str:
        return f"msgbatch_{self.number:04}"


class Batches:
    """All batches. `expiring` and `failing` hold custom ids whose result is expired or errored; `polls` is what a new
    batch takes; `lose_next` makes the next batch and drops the answer."""

    def __init__(self, answered: Callable[[Mapping[str, Any]], dict[str, Any]]) -> None:
        self._answered, self._lock = answered, threading.RLock()
        self.made: list[Batch] = []
        self.polls = 1
        self.expiring: set[str] = set()
        self.failing: dict[str, str] = {}

    def route(self, method: str, parts: list[str], body: Any, url: str) -> tuple[bytes, str]:
        with self._lock:
            match method, parts:
                case "POST", []:
                    return self._document(self._make(body["requests"]), url), "application/json"
                case "GET", []:
                    rows = [json.loads(self._document(batch, url)) for batch in reversed(self.made)]
                    page = {"data": rows, "has_more": False, "first_id": None, "last_id": None}
                    return json.dumps(page).encode(), "application/json"
                case "GET", [name]:
                    batch = self._find(name)
                    batch.polls -= 1
                    return self._document(batch, url), "application/json"
                case "POST", [name, "cancel"]:
                    batch = self._find(name)
                    batch.cancelled, batch.polls = True, 0
                    return self._document(batch, url), "application/json"
                case "GET", [name, "results"]:
                    lines = self._ended(self._find(name))
                    text = "".join(json.dumps(line) + "\n" for line in reversed(lines))
                    return text.encode(), "application/x-jsonl"
        raise Refused(404, "not_found_error", "no such path")

    def _make(self, requests: list[dict[str, Any]]) -> Batch:
        names = [one["custom_id"] for one in requests]
        if not names or len(names) > MOST or len(set(names)) != len(names) or any(len(name) > 64 for name in names):
            raise Refused(400, "invalid_request_error", "requests: unique custom ids of at most 64 characters")
        if any("stream" in one["params"] for one in requests):
            raise Refused(400, "invalid_request_error", "stream: not supported in batches")
        batch = Batch(len(self.made) + 1, requests, self.polls)
        self.made.append(batch)
        return batch

    def _find(self, name: str) -> Batch:
        for batch in self.made:
            if batch.name == name:
                return batch
        raise Refused(404, "not_found_error", f"batch {name}")

    def _ended(self, batch: Batch) -> list[dict[str, Any]]:
        if batch.polls > 0:
            raise Refused(400, "invalid_request_error", "the batch has not ended")
        if not batch.results:
            batch.results = [self._result(batch, one) for one in batch.requests]
        return batch.results

    def _result(self, batch: Batch, one: Mapping[str, Any]) -> dict[str, Any]:
        name = one["custom_id"]
        result: dict[str, Any]
        if batch.cancelled:
            result = {"type": "canceled"}
        elif name in self.expiring:
            result = {"type": "expired"}
        elif name in self.failing:
            kind = self.failing[name]
            result = {"type": "errored", "error": Refused(500, kind, "it failed").document()}
        else:
            try:
                result = {"type": "succeeded", "message": self._answered(one["params"])}
            except Refused as refused:
                result = {"type": "errored", "error": refused.document()}
        return {"custom_id": name, "result": result}

    def _document(self, batch: Batch, url: str) -> bytes:
        ended = batch.polls <= 0
        counts = dict.fromkeys(COUNTS, 0)
        if ended:
            for line in self._ended(batch):
                counts[line["result"]["type"]] += 1
        else:
            counts["processing"] = len(batch.requests)
        whole = {
            "id": batch.name,
            "type": "message_batch",
            "processing_status": "ended" if ended else "in_progress",
            "request_counts": counts,
            "created_at": "2026-12-01T00:00:00Z",
            "expires_at": "2026-12-02T00:00:00Z",
            "ended_at": "2026-12-01T00:01:00Z" if ended else None,
            "cancel_initiated_at": None,
            "archived_at": None,
            "results_url": f"{url}/{batch.name}/results" if ended else None,
        }
        return json.dumps(whole).encode()
