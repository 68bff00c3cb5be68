"""The index command on this machine's own files, which have no pointer: an index is found by what it was made from."""

from contextlib import closing
from pathlib import Path
from typing import Any

from backends.local import LocalBackend
from backends.localfiles import locked
from cda.contracts.embedding import Embedder
from cda.retrieval.documents import indexed_text
from cda.retrieval.embedders import for_building, for_searching, models_folder
from cda.retrieval.embedding_cache import EmbeddingCache
from cda.retrieval.index import MANIFEST, TARGET, build_index, place, read_manifest
from cda.retrieval.lifecycle.goal import Goal
from cda.retrieval.lifecycle.verify import Verification, verify
from cda.settings import Settings
from cda.systems.coverage.index_progress import IndexProgress
from cda.systems.coverage.index_run import own_disk
from cda.systems.coverage.setting_up import open_store, to_stderr
from cda.systems.coverage.vector_backend import configured_embedder, open_policy_search
from corpus.store import CorpusStore

_NO_COST = {"upserted": 0, "bytes": 0, "requests": 0, "tokens": 0, "usd": "0.0000"}  # nothing leaves this machine


def build_local(settings: Settings, progress: IndexProgress, *, plan_only: bool, fresh: bool) -> dict[str, Any]:
    """Build the index when there is none for this corpus and embedder, or `fresh`; or say what would be built."""
    name = configured_embedder(settings)
    with (
        own_disk(settings),
        open_store(settings, say=to_stderr) as store,
        closing(EmbeddingCache(settings.home / "embeddings.sqlite")) as cache,
        progress,
    ):
        folder = place(settings.index_path, store, name)
        left = (folder / MANIFEST).exists() and not fresh
        if plan_only:
            return _document(folder, "planned", sum(1 for _ in store.clauses()), left=left) | _NO_COST
        if not left and folder.exists():
            with locked(settings.index_path, folder.name):
                build_index(store, _for_building(settings, store), folder, cache=cache, progress=progress.embedded)
        local = settings.model_copy(update={"vector_backend": "local"})
        search = open_policy_search(local, store, cache=cache, progress=progress.embedded)
        manifest = read_manifest(folder)
    return _document(folder, "unchanged" if left else "built", manifest.count, left=left) | {
        "embedder": manifest.embedder,
        "manifest": search.manifest_digest,
        "embedded": cache.put_count,
        "promoted": True,
    }


def verify_local(settings: Settings) -> tuple[Verification, str | None]:
    """What differs between this corpus and its local index, and the digest of the index's manifest."""
    name = configured_embedder(settings)
    with own_disk(settings), open_store(settings, say=to_stderr) as store:
        folder = place(settings.index_path, store, name)
        if not (folder / MANIFEST).exists():
            return Verification(folder.name, expected=sum(1 for _ in store.clauses()), found=0), None
        embedder = for_searching(name, folder, models_folder(settings.index_path)) if isinstance(name, str) else name
        with (
            closing(LocalBackend(folder)) as backend,
            closing(EmbeddingCache(settings.home / "embeddings.sqlite")) as cache,
        ):
            found = verify(backend, TARGET, Goal.of(store, embedder), embedder, cache=cache)
        return found, read_manifest(folder).digest


def _for_building(settings: Settings, store: CorpusStore) -> Embedder:
    name = configured_embedder(settings)
    if not isinstance(name, str):
        return name
    texts = [indexed_text(clause) for clause in store.clauses()]
    return for_building(name, lambda: texts, models_folder(settings.index_path))


def _document(folder: Path, state: str, count: int, *, left: bool) -> dict[str, Any]:
    built = 0 if left else count
    return {
        "target": folder.name,
        "state": state,
        "backend": "local",
        "added": built,
        "changed": 0,
        "unchanged": count - built,
        "orphaned": 0,
        "embedded": 0,
        "upserted": built,
        "deleted": 0,
        "failed": [],
        "promoted": False,
    }
