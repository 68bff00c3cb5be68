"""What the doctor looks at for coverage: the store, the index of the chosen embedder, the weights, the trace folder."""

import os
from pathlib import Path

from backends.errors import BackendError
from cda.contracts.health import Finding
from cda.errors import CdaError
from cda.settings import Settings
from corpus.errors import CorpusError
from corpus.store import CorpusStore


def examine(settings: Settings) -> list[Finding]:
    """Findings on everything `cda ask` needs; opens read-only and builds nothing."""
    findings = [_weights(settings), _writable("traces", settings.trace_path)]
    if not settings.store_path.exists():
        missing = Finding(
            name="corpus store",
            state="warn",
            detail=f"none at {settings.store_path}",
            remedy="the first `cda ask` builds it from the shipped policies; or run `cda corpus build`",
        )
        return [missing, *findings]
    try:
        with CorpusStore.open(settings.store_path) as store:
            clauses = sum(1 for _ in store.clauses())
            found = Finding(name="corpus store", state="ok", detail=f"{clauses} clauses, digest {store.digest[:12]}")
            return [found, *_indexes(settings, store), *findings]
    except CorpusError as error:
        broken = Finding(name="corpus store", state="fail", detail=str(error), remedy="run `cda corpus build` again")
        return [broken, *findings]


def _indexes(settings: Settings, store: CorpusStore) -> list[Finding]:
    if settings.vector_backend == "local":
        return [_index(settings, store)]
    from cda.systems.coverage.service_check import examine_service

    return examine_service(settings, store, settings.vector_backend)


def _index(settings: Settings, store: CorpusStore) -> Finding:
    from cda.retrieval.embedders import for_searching, models_folder
    from cda.retrieval.index import open_index, place

    name = f"index ({settings.embedder})"
    try:
        folder = place(settings.index_path, store, settings.embedder)
        if not folder.exists():
            return Finding(name=name, state="warn", detail="none for this corpus", remedy="run `cda corpus index`")
        embedder = for_searching(settings.embedder, folder, models_folder(settings.index_path))
        opened = open_index(folder, store, embedder)
    except (BackendError, CdaError, OSError, ValueError) as error:
        return Finding(name=name, state="fail", detail=str(error), remedy="run `cda corpus index`")
    manifest = opened.manifest
    return Finding(name=name, state="ok", detail=f"{manifest.count} clauses, manifest {manifest.digest[:12]}")


def _weights(settings: Settings) -> Finding:
    from cda.retrieval.embedders import models_folder, sentence_model

    try:
        model = sentence_model(settings.embedder, models_folder(settings.index_path))
    except (CdaError, BackendError, OSError) as error:
        return Finding(name="embedder", state="fail", detail=str(error), remedy="install the package again")
    return Finding(name="embedder", state="ok", detail=model.identity if model else "tfidf, fitted with the index")


def _writable(name: str, folder: Path) -> Finding:
    nearest = next(place for place in (folder, *folder.absolute().parents) if place.exists())
    if nearest.is_dir() and os.access(nearest, os.W_OK):
        return Finding(name=name, state="ok", detail=str(folder))
    detail = f"{nearest} is no folder that can be written"
    return Finding(name=name, state="fail", detail=detail, remedy="set CDA_TRACE_DIR or CDA_HOME")
