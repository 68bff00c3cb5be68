"""The state of the service: indexes, namespaces, and a log of writes that the two read paths follow behind.

A write gets the next position of its namespace's log. Queries, statistics and listings show the log up to one position,
fetches up to another: read-after-write is eventual, and a fetch that sees a write says nothing about a query
(pinecone 10.2.0, models/response_info).
"""

import threading
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from doubles import pinecone_rules as rules


@dataclass
class Delay:
    """How far reads lag: each write is shown by this further query of its namespace, or never; with `fetches_too`,
    fetches lag as well and count as queries."""

    queries: int = 0
    forever: bool = False
    fetches_too: bool = False


@dataclass
class View:
    """What one read path shows."""

    vectors: dict[str, dict[str, Any]] = field(default_factory=dict)
    position: int = 0

    def apply(self, entries: list[tuple[int, str, Any]]) -> None:
        for position, verb, what in entries:
            if verb == "upsert":
                self.vectors.update({vector["id"]: vector for vector in what})
            else:
                for name in what:
                    self.vectors.pop(name, None)
            self.position = position


class Namespace:
    """One namespace of one index."""

    def __init__(self) -> None:
        self.log: list[tuple[int, str, Any]] = []
        self.due: list[int] = []  # queries still to come until the entry is shown
        self.queried, self.fetched = View(), View()
        self.committed = 0

    def write(self, verb: str, what: Any, delay: Delay) -> int:
        self.committed += 1
        entry = (self.committed, verb, what)
        if not delay.fetches_too:
            self.fetched.apply([entry])
        self.log.append(entry)
        self.due.append(-1 if delay.forever else delay.queries)
        self._settle(delay)
        return self.committed

    def read_comes(self, delay: Delay) -> None:
        self.due = (
            [left if left < 0 else left - 1 for left in self.due] if any(left > 0 for left in self.due) else self.due
        )
        self._settle(delay)

    def _settle(self, delay: Delay) -> None:
        while self.log and self.due[0] == 0:
            entry = self.log.pop(0)
            self.due.pop(0)
            self.queried.apply([entry])
            if delay.fetches_too:
                self.fetched.apply([entry])


@dataclass
class IndexState:
    """One index and its namespaces."""

    model: dict[str, Any]
    dimension: int | None  # None: sparse
    namespaces: dict[str, Namespace] = field(default_factory=dict)
    describes_until_ready: int = 0


class Store:
    """All indexes of one project. One lock over everything: the double is right before it is fast."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.indexes: dict[str, IndexState] = {}
        self.semantics = rules.Semantics()
        self.delay = Delay()
        self.lose: set[str] = set()  # ids whose next upsert is counted and not kept
        self.count_short = 0  # upserts that still leave out, and do not count, their last vector

    def upsert(self, index: IndexState, namespace: str, vectors: list[dict[str, Any]]) -> tuple[int, int]:
        """(counted, position)."""
        kept = vectors
        if self.count_short > 0:
            self.count_short -= 1
            kept = vectors[:-1]
        counted = len(kept)
        lost = {vector["id"] for vector in kept} & self.lose
        self.lose -= lost
        kept = [vector for vector in kept if vector["id"] not in lost]
        space = index.namespaces.setdefault(namespace, Namespace())
        return counted, space.write("upsert", kept, self.delay)

    def query(
        self,
        index: IndexState,
        namespace: str,
        vector: list[float] | dict[str, Any],
        top_k: int,
        where: dict[str, Any] | None,
    ) -> tuple[list[tuple[float, dict[str, Any]]], int | None]:
        """Best first, in an order of ties that is not that of ids; a namespace that is not there is empty."""
        space = index.namespaces.get(namespace)
        if space is None:
            return [], None
        space.read_comes(self.delay)
        held = [
            one
            for one in space.queried.vectors.values()
            if where is None or rules.admits(where, one["metadata"], self.semantics)
        ]
        if not held:
            return [], space.queried.position
        if isinstance(vector, dict):
            held = [one for one in held if _product(vector, one["sparseValues"])]
            scores = np.asarray([_product(vector, one["sparseValues"]) for one in held], dtype=np.float32)
        else:
            matrix = np.stack([one["values"] for one in held])
            query = np.asarray(vector, dtype=np.float32)
            scores = np.vecdot(matrix, query) / (np.linalg.norm(matrix, axis=1) * np.linalg.norm(query))
        order = sorted(range(len(held)), key=lambda row: (-float(scores[row]), held[row]["id"][::-1]))
        return [(float(scores[row]), held[row]) for row in order[:top_k]], space.queried.position


def _product(query: dict[str, Any], kept: dict[str, Any]) -> float:
    """Of two sparse vectors; records that share no index with the question are no matches."""
    held = dict(zip(kept["indices"], kept["values"], strict=True))
    return sum(value * held.get(index, 0.0) for index, value in zip(query["indices"], query["values"], strict=True))
