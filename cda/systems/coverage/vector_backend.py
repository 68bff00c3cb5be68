"""The vector backend of the settings, and the search over it."""

from collections.abc import Callable
from pathlib import Path
from typing import Literal

from backends.base import IndexSpec, VectorBackend
from backends.factory import (
    BackendConfig,
    BackendName,
    needing,
    open_backend,
    open_bucket,
    open_documents,
    open_words,
)
from backends.pgvector_config import PgVectorConfig
from backends.pinecone_config import PineconeConfig
from backends.schema import POLICY
from cda.contracts.embedding import Embedder
from cda.errors import UnavailableError
from cda.retrieval.documents import ClauseStore
from cda.retrieval.embedders import EmbedderName
from cda.retrieval.embedding_cache import EmbeddingCache, Progress
from cda.retrieval.index import Placed, ensure_index
from cda.retrieval.lifecycle.document_files import DocumentFiles
from cda.retrieval.lifecycle.manifest import live
from cda.retrieval.lifecycle.probe import probe_of
from cda.retrieval.lifecycle.shared_files import FolderFiles, SharedFiles
from cda.retrieval.search import PolicySearch, Reranker
from cda.retrieval.server_words import ServerWords
from cda.retrieval.sparse_leg import SparseLeg
from cda.retrieval.words import ANALYZER
from cda.settings import Settings

SPARSE_MODEL: Literal["pinecone-sparse-english-v0"] = "pinecone-sparse-english-v0"  # of CDA_LEXICAL=pinecone


def configured_backend(settings: Settings, name: BackendName) -> VectorBackend:
    """The backend of that name under these settings, not yet asked anything. UnavailableError without its key."""
    pinecone = _pinecone(settings) if name == "pinecone" else None
    return open_backend(BackendConfig(name, settings.index_path, pinecone, _pgvector(settings)))


def shared_files(settings: Settings) -> SharedFiles:
    """Where the manifests and pointers of indexes on services are. BackendError when that is not to be had."""
    kind, _, place = settings.manifests_place.partition(":")
    match kind:
        case "postgres":
            return DocumentFiles(open_documents(_pgvector(settings)))
        case "s3":
            bucket, _, prefix = place.removeprefix("//").partition("/")
            return DocumentFiles(open_bucket(bucket, prefix))
        case _:
            return FolderFiles(Path(place.removeprefix("//")).expanduser())


def open_policy_search(
    settings: Settings,
    store: ClauseStore,
    *,
    cache: EmbeddingCache | None = None,
    progress: Progress | None = None,
    say: Callable[[str], None] = lambda _: None,
) -> PolicySearch:
    """The search of these settings; `say` hears which texts leave this machine. What it needs here, and the words of a
    corpus on a service, are built when they are missing; a service's vectors are never built by the way: IndexAbsent
    names the command."""
    name = settings.vector_backend
    for told in leaving(settings):
        say(told)
    folder, embedder = ensure_index(
        store,
        configured_embedder(settings),
        settings.index_path,
        cache=cache,
        progress=progress,
        local_vectors=name == "local",
    )
    vectors = None if name == "local" else _live_vectors(settings, name, store, embedder)
    words = None
    if settings.lexical == "postgres":
        words = ServerWords(open_words(_pgvector(settings), POLICY, ANALYZER), store)
    return PolicySearch(
        store,
        embedder,
        folder,
        rule=settings.reranker,
        lexical=settings.lexical,
        vectors=vectors,
        words=words,
        distant=_sparse_leg(settings, store, say) if settings.lexical == "pinecone" else None,
        reranker=_reranker(settings),
    )


def configured_embedder(settings: Settings) -> EmbedderName | Embedder:
    """The name of an embedder of this machine, or a hosted one."""
    if settings.pinecone_model is None:
        return settings.embedder
    config = _pinecone(settings)
    with needing("pinecone"):
        from backends.pinecone_inference import HostedEmbedder

        return HostedEmbedder(config, settings.pinecone_model, settings.pinecone_dimension)


def leaving(settings: Settings) -> tuple[str, ...]:
    """What the hosted models of these settings are sent, a sentence each; nothing leaves without them."""
    hosted = {
        "CDA_PINECONE_MODEL": settings.pinecone_model
        and f"clause texts and questions are sent to Pinecone's {settings.pinecone_model}",
        "CDA_LEXICAL": settings.lexical == "pinecone"
        and f"clause texts and questions are sent to Pinecone's {SPARSE_MODEL}",
        "CDA_PINECONE_RERANK": settings.pinecone_rerank
        and f"questions and the texts of the clauses found are sent to Pinecone's {settings.pinecone_rerank}",
    }
    return tuple(f"{sentence} ({variable})" for variable, sentence in hosted.items() if sentence)


def _sparse_leg(settings: Settings, store: ClauseStore, say: Callable[[str], None]) -> SparseLeg:
    config = _pinecone(settings)
    with needing("pinecone"):
        from backends.pinecone_inference import HostedSparseEmbedder
        from backends.pinecone_sparse import PineconeSparse

        embedder = HostedSparseEmbedder(config, SPARSE_MODEL)
        return SparseLeg(PineconeSparse(config, POLICY, embedder.identity), embedder, store, say=say)


def _reranker(settings: Settings) -> Reranker | None:
    if settings.pinecone_rerank is None:
        return None
    config = _pinecone(settings)
    with needing("pinecone"):
        from backends.pinecone_inference import HostedReranker

        return HostedReranker(config, settings.pinecone_rerank)


def _live_vectors(settings: Settings, name: BackendName, store: ClauseStore, embedder: Embedder) -> Placed:
    spec = IndexSpec(POLICY, embedder.identity, embedder.dim)
    target, manifest = live(shared_files(settings), POLICY.name, name, spec=spec, corpus_digest=store.digest)
    manifest.require_probe(probe_of(embedder))
    return Placed(configured_backend(settings, name), target)


def _pgvector(settings: Settings) -> PgVectorConfig:
    return PgVectorConfig(settings.database_url, settings.postgres_path, hnsw=settings.pgvector_hnsw)


def _pinecone(settings: Settings) -> PineconeConfig:
    if settings.pinecone_api_key is None:
        raise UnavailableError("Pinecone needs a key; set PINECONE_API_KEY")
    tags = dict(tag.split("=", 1) for tag in settings.pinecone_tags.split(",") if tag)
    return PineconeConfig(
        api_key=settings.pinecone_api_key,
        index=settings.pinecone_index,
        namespace=settings.pinecone_namespace,
        cloud=settings.pinecone_cloud,
        region=settings.pinecone_region,
        host=settings.pinecone_host,
        deletion_protection=settings.pinecone_protected,
        tags=tags,
    )
