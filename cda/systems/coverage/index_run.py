"""What an index command works with: the corpus, the embedder, the backend, and the life-cycle over them."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass

from backends.base import VectorBackend
from backends.factory import BackendName
from cda.contracts.embedding import Embedder
from cda.errors import UnavailableError
from cda.retrieval.documents import indexed_text
from cda.retrieval.embedders import for_building, models_folder
from cda.retrieval.embedding_cache import EmbeddingCache
from cda.retrieval.index import MANIFEST, ensure_index, place
from cda.retrieval.lifecycle.goal import Goal
from cda.retrieval.lifecycle.run import LifeCycle
from cda.retrieval.lifecycle.shared_files import SharedFiles
from cda.settings import Settings
from cda.systems.coverage.index_progress import IndexProgress
from cda.systems.coverage.setting_up import open_store, to_stderr
from cda.systems.coverage.vector_backend import configured_backend, configured_embedder, shared_files
from corpus.store import CorpusStore


@dataclass(frozen=True, slots=True)
class IndexRun:
    """The life-cycle of the settings' corpus on one backend, and what it is made of."""

    cycle: LifeCycle
    backend: VectorBackend
    files: SharedFiles
    goal: Goal


@contextmanager
def index_run(settings: Settings, name: BackendName, progress: IndexProgress, *, build: bool) -> Iterator[IndexRun]:
    """Everything open for a run on a service; with `build` what searches need on this machine is built first.

    Raises CorpusError, BackendError, UnavailableError; a disk that is full or closed is one of the latter.
    """
    with (
        own_disk(settings),
        open_store(settings, say=to_stderr) as store,
        closing(EmbeddingCache(settings.home / "embeddings.sqlite")) as cache,
        closing(configured_backend(settings, name)) as backend,
        progress,
    ):
        embedder = _embedder(settings, store, cache, progress, build=build)
        goal, files = Goal.of(store, embedder), shared_files(settings)
        cycle = LifeCycle(
            backend,
            files,
            goal,
            embedder,
            cache=cache,
            journals=settings.home / "journals",
            hosted=settings.pinecone_model is not None,
            after=progress.step,
        )
        yield IndexRun(cycle, backend, files, goal)


@contextmanager
def own_disk(settings: Settings) -> Iterator[None]:
    """A disk of this machine that takes no more is something that is missing, not a fault of the program."""
    try:
        yield
    except (OSError, sqlite3.Error) as error:
        why = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise UnavailableError(
            f"{settings.home} cannot be written ({why}); free its disk or set CDA_HOME, then run this again: "
            "it goes on where it stopped"
        ) from None


def _embedder(
    settings: Settings, store: CorpusStore, cache: EmbeddingCache, progress: IndexProgress, *, build: bool
) -> Embedder:
    name, root = configured_embedder(settings), settings.index_path
    if build or (place(root, store, name, local_vectors=False) / MANIFEST).exists():
        heard = progress.embedded
        return ensure_index(store, name, root, cache=cache, progress=heard, local_vectors=False)[1]
    if not isinstance(name, str):
        return name
    return for_building(name, lambda: [indexed_text(clause) for clause in store.clauses()], models_folder(root))
