"""What the doctor finds on an index on a service: what it can do, what it holds, how old it is, what it has cost."""

import time
from contextlib import closing

from backends.base import Capabilities, IndexSpec, TargetInfo, VectorBackend
from backends.errors import BackendError, IndexAbsent, IndexMismatch
from backends.factory import BackendName
from backends.schema import POLICY
from cda.contracts.embedding import Embedder
from cda.contracts.health import Finding
from cda.errors import CdaError
from cda.retrieval.embedders import for_searching, models_folder, sentence_model
from cda.retrieval.index import MANIFEST, place
from cda.retrieval.lifecycle.collect import collection_of
from cda.retrieval.lifecycle.costs import Costs, costs_name
from cda.retrieval.lifecycle.manifest import Pointer, TargetManifest, held, live, pointer_name
from cda.retrieval.lifecycle.probe import probe_of
from cda.retrieval.lifecycle.shared_files import SharedFiles
from cda.settings import Settings
from cda.systems.coverage.vector_backend import configured_backend, configured_embedder, shared_files
from corpus.store import CorpusStore

_DAY = 86_400


def examine_service(settings: Settings, store: CorpusStore, name: BackendName) -> list[Finding]:
    """Findings on the configured service; asks it, writes nothing. The first failure ends the list."""
    mend = f"run `cda corpus index --backend {name}`"
    index = f"index ({name})"
    findings: list[Finding] = []
    try:
        files = shared_files(settings)
        with closing(configured_backend(settings, name)) as backend:
            findings.append(_capabilities(backend.capabilities()))
            findings += _costs(files, name)
            embedder = _embedder(settings, store)
            if embedder is None:
                detail = "none was made from this corpus on this machine, and the embedder is fitted with it"
                return [*findings, Finding(name=index, state="warn", detail=detail, remedy=mend)]
            findings.append(_index(backend, files, store, embedder, index, mend))
            findings += _others(backend, files, name)
    except (IndexAbsent, IndexMismatch) as error:
        findings.append(Finding(name=index, state="fail", detail=str(error), remedy=mend))
    except (BackendError, CdaError, OSError, ValueError) as error:
        remedy = "correct what is named; nothing is known to be wrong with the index"
        findings.append(Finding(name=index, state="fail", detail=str(error), remedy=remedy))
    return findings


def _embedder(settings: Settings, store: CorpusStore) -> Embedder | None:
    """The embedder of the settings; None for one that is fitted with an index that is not here."""
    name = configured_embedder(settings)
    if not isinstance(name, str):
        return name
    folder, models = place(settings.index_path, store, name, local_vectors=False), models_folder(settings.index_path)
    if (folder / MANIFEST).exists():
        return for_searching(name, folder, models)
    return sentence_model(name, models)


def _capabilities(can: Capabilities) -> Finding:
    bounds = {
        "dimension": can.max_dim,
        "k": can.max_k,
        "values of a filter": can.max_in_values,
        "bytes a request": can.max_request_bytes,
        "records a request": can.max_records_per_request,
        "bytes of fields": can.max_meta_bytes,
    }
    said = ", ".join(f"{what} {most:,}" for what, most in bounds.items() if most is not None)
    detail = (
        f"{'exact' if can.exact else 'approximate'} search, "
        f"filtered {'inside' if can.server_side_filter else 'after'} it, "
        f"writes are seen {'at once' if can.read_after_write == 'immediate' else 'by log position'}; at most {said}"
    )
    return Finding(name=f"capabilities ({can.name})", state="ok", detail=detail)


def _index(
    backend: VectorBackend, files: SharedFiles, store: CorpusStore, embedder: Embedder, index: str, mend: str
) -> Finding:
    """The manifest against this corpus and embedder, and against what the service says that it holds."""
    name = backend.capabilities().name
    spec = IndexSpec(POLICY, embedder.identity, embedder.dim)
    target, manifest = live(files, POLICY.name, name, spec=spec, corpus_digest=store.digest)
    manifest.require_probe(probe_of(embedder))
    info, count = backend.describe(target), sum(1 for _ in store.clauses())
    if info is None:
        return Finding(name=index, state="fail", detail=f"the target {target} is gone from the service", remedy=mend)
    pointer, _ = held(files, pointer_name(POLICY.name, name), Pointer)
    detail = (
        f"{target}: {count} clauses in the corpus, {manifest.count} in the manifest, {info.count} on the service; "
        f"verified {_ago(manifest.verified_at)}, live since {_ago(pointer.promoted_at if pointer else 0)}"
    )
    if _as_many(info, manifest, count):
        return Finding(name=index, state="ok", detail=detail)
    check = f"run `cda corpus verify-index --backend {name}`, which names what differs"
    return Finding(name=index, state="warn", detail=detail, remedy=check)


def _as_many(info: TargetInfo, manifest: TargetManifest, count: int) -> bool:
    return info.count == manifest.count == count


def _costs(files: SharedFiles, name: str) -> list[Finding]:
    costs, _ = held(files, costs_name(POLICY.name, name), Costs)
    if costs is None:
        return []
    detail = (
        f"{costs.runs} index runs, the first {_ago(costs.since)}: {costs.embedded} texts embedded "
        f"({costs.tokens} paid tokens), "
        f"{costs.upserted} records written, {costs.deleted} deleted, {costs.requests} requests, "
        f"{costs.bytes_sent:,} bytes sent; about {float(costs.usd):.4f} USD"
    )
    return [Finding(name=f"cost so far ({name})", state="ok", detail=detail)]


def _others(backend: VectorBackend, files: SharedFiles, name: str) -> list[Finding]:
    """Runs that are not finished, and old targets that could go."""
    found = collection_of(backend, files, POLICY.name)
    findings = []
    if found.building:
        detail = f"a run has written to {', '.join(found.building)} and is not finished"
        remedy = f"finish it with `cda corpus index --backend {name}`"
        findings.append(Finding(name=f"unfinished ({name})", state="warn", detail=detail, remedy=remedy))
    if found.collected:
        detail = f"{', '.join(found.collected)} can go"
        remedy = f"run `cda corpus collect-index --backend {name}`"
        findings.append(Finding(name=f"old targets ({name})", state="warn", detail=detail, remedy=remedy))
    return findings


def _ago(instant: int) -> str:
    days = max(0, int(time.time()) - instant) // _DAY
    return "today" if days == 0 else f"{days} days ago"
