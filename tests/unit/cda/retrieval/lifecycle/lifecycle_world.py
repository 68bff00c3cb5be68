"""A small corpus on a local backend with its shared documents, and a run that can be killed after any step."""

import os
import sys
from pathlib import Path

from retrieval_world import FakeStore, HashingEmbedder, make_clause

from backends.base import VectorBackend
from backends.local import LocalBackend
from cda.retrieval.embedding_cache import EmbeddingCache
from cda.retrieval.lifecycle.goal import Goal
from cda.retrieval.lifecycle.run import LifeCycle, Told
from cda.retrieval.lifecycle.shared_files import FolderFiles
from corpus.model import Clause

STEPS = ("plan", "claim", "ensure", "upsert", "visible", "verify", "manifest", "release", "promote", "prune")


def corpus(count: int = 12, words: str = "covered") -> list[Clause]:
    """`count` clauses of two payers; with other `words`, the last one is another."""
    clauses = [
        make_clause(
            f"P-{n}.v1.C1", f"Item number {n} is covered for members of group {n * 7}.", payer_id="ABC"[n % 2] * 3
        )
        for n in range(count)
    ]
    last = clauses[-1]
    return [*clauses[:-1], make_clause(last.clause_id, f"The last item is {words}.", payer_id=last.payer_id)]


class World:
    """One machine's folder: the service, the shared documents, the cache."""

    def __init__(self, root: Path, clauses: list[Clause], backend: VectorBackend | None = None) -> None:
        self.root = root
        self.embedder = HashingEmbedder(32)
        self.store = FakeStore(clauses)
        self.backend = backend or LocalBackend(root / "service")
        self.files = FolderFiles(root / "shared")
        self.cache = EmbeddingCache(root / "cache.sqlite")

    def holding(self, clauses: list[Clause]) -> "World":
        """The same machine with another corpus."""
        return World(self.root, clauses, self.backend)

    def cycle(self, after: Told = lambda _step, _done, _of: None) -> LifeCycle:
        return LifeCycle(
            self.backend,
            self.files,
            Goal.of(self.store, self.embedder),
            self.embedder,
            cache=self.cache,
            journals=self.root / "journals",
            clock=lambda: 1.0,
            wait_s=1,
            after=after,
        )


def killed_after(step: str) -> Told:
    """Ends the process, with nothing cleaned up, when the step is done."""

    def after(done_step: str, _done: int, _of: int) -> None:
        if done_step == step:
            os._exit(137)

    return after


if __name__ == "__main__":
    folder, wanted, stop = Path(sys.argv[1]), sys.argv[2], sys.argv[3]
    world = World(folder, corpus(10, wanted))
    world.cycle(killed_after(stop)).index(prune=True)
    print(world.embedder.texts)
