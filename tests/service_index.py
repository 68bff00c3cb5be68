"""One run of the index life-cycle for the corpus of some settings, on the backend that they name."""

from contextlib import closing

from cda.retrieval.embedding_cache import EmbeddingCache
from cda.retrieval.index import ensure_index
from cda.retrieval.lifecycle.goal import Goal
from cda.retrieval.lifecycle.run import LifeCycle, Report
from cda.settings import Settings
from cda.systems.coverage.vector_backend import configured_backend, configured_embedder, shared_files
from corpus.store import CorpusStore


def indexed(settings: Settings) -> Report:
    with (
        CorpusStore.open(settings.store_path) as store,
        closing(EmbeddingCache(settings.home / "embeddings.sqlite")) as cache,
        closing(configured_backend(settings, settings.vector_backend)) as backend,
    ):
        _, embedder = ensure_index(store, configured_embedder(settings), settings.index_path, local_vectors=False)
        goal, files = Goal.of(store, embedder), shared_files(settings)
        return LifeCycle(backend, files, goal, embedder, cache=cache, journals=settings.home / "journals").index()
