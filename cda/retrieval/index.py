"""The index of one corpus under one embedder: built beside its place, put there whole, refused when it does not match.

manifest.json   what it was built from; its sha256 is the provenance of every answer
vectors/        the local backend's target; not there when the vectors are on a service
lexical/        postings
titles.npz      one vector a policy title, and each clause's title by the clause's place in the order of ids
tfidf.npz       the fit, when the embedder was fitted
"""

import json
import os
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path

import numpy as np

from backends.base import IndexSpec, Record, Vector, VectorBackend, root_hash
from backends.checks import require_spec
from backends.errors import IndexAbsent, IndexMismatch
from backends.local import LocalBackend
from backends.localfiles import locked
from backends.schema import POLICY, Meta
from cda.contracts.embedding import Embedder, Vectors
from cda.retrieval.documents import ClauseStore, content_hash, indexed_text, meta_of, own_codes, said_codes
from cda.retrieval.embedders import (
    FIT_FILE,
    EmbedderName,
    for_building,
    for_searching,
    models_folder,
    stable_identity,
)
from cda.retrieval.embedding_cache import EmbeddingCache, Progress, embed_all
from cda.retrieval.lexical import Entry, LexicalIndex
from cda.retrieval.tfidf import TfidfEmbedder
from cda.retrieval.words import ANALYZER
from corpus.model import Clause

FORMAT = 2
MANIFEST = "manifest.json"
TARGET = "vectors"


@dataclass(frozen=True, slots=True)
class Manifest:
    """What an index was built from."""

    corpus_digest: str
    embedder: str
    dim: int
    schema_digest: str
    analyzer: str
    count: int
    root: str
    local_vectors: bool = True
    format: int = FORMAT

    @property
    def digest(self) -> str:
        """Hex sha256 of the canonical JSON."""
        return sha256(json.dumps(asdict(self), sort_keys=True).encode("utf-8")).hexdigest()

    @property
    def spec(self) -> IndexSpec:
        """What the vectors are opened against."""
        return IndexSpec(POLICY, self.embedder, self.dim)


@dataclass(frozen=True, slots=True)
class Built:
    """A finished build. `embedded` counts the texts that no cache knew."""

    folder: Path
    manifest: Manifest
    embedded: int


@dataclass(frozen=True, slots=True)
class Placed:
    """Where the vectors are: a target of a backend, made from the index's own corpus and embedder."""

    backend: VectorBackend
    target: str


@dataclass(frozen=True, slots=True)
class OpenIndex:
    """An index that matches its corpus and embedder, ready to search."""

    manifest: Manifest
    vectors: Placed
    lexical: LexicalIndex
    title_vectors: Vectors
    title_of: Mapping[str, int]  # by clause id, the row of its policy's title

    def titles(self, clause_ids: Iterable[str], query: Vector) -> dict[str, float]:
        """The cosine of the query's vector and each clause's policy title, from the index alone; nothing for an id that
        only a service's vectors know."""
        title = {i: self.title_of[i] for i in clause_ids if i in self.title_of}
        rows = sorted(set(title.values()))
        cosine = dict(zip(rows, np.vecdot(self.title_vectors[rows], query).tolist(), strict=True))
        return {i: cosine[row] for i, row in title.items()}


def place(root: Path, store: ClauseStore, name: EmbedderName | Embedder, *, local_vectors: bool = True) -> Path:
    """Where the index of this corpus under this embedder lives: any change of either is another place."""
    called, identity = (name, stable_identity(name)) if isinstance(name, str) else ("hosted", name.identity)
    parts = [store.digest, identity, POLICY.digest, ANALYZER, str(FORMAT)]
    kind = called if local_vectors else f"{called}-beside-service"
    return root / f"{kind}-{sha256(json.dumps(parts).encode('utf-8')).hexdigest()[:16]}"


def ensure_index(
    store: ClauseStore,
    name: EmbedderName | Embedder,
    root: Path,
    *,
    cache: EmbeddingCache | None = None,
    progress: Progress | None = None,
    local_vectors: bool = True,
) -> tuple[Path, Embedder]:
    """The folder of this corpus's index, built first when there is none, and the embedder that queries it: the one of
    that name, or the one given.

    Without `local_vectors` it is what searches need beside the vectors of a service: words, codes and titles.
    """
    folder = place(root, store, name, local_vectors=local_vectors)
    if not (folder / MANIFEST).exists():
        # One builder an index, also among processes: a second would take the first one's files away under its reader.
        with locked(root, folder.name):
            if not (folder / MANIFEST).exists():
                clauses = tuple(store.clauses())
                embedder = (
                    for_building(name, lambda: [indexed_text(clause) for clause in clauses], models_folder(root))
                    if isinstance(name, str)
                    else name
                )
                build_index(store, embedder, folder, cache=cache, progress=progress, local_vectors=local_vectors)
                return folder, embedder
    return folder, for_searching(name, folder, models_folder(root)) if isinstance(name, str) else name


def build_index(
    store: ClauseStore,
    embedder: Embedder,
    folder: Path,
    *,
    cache: EmbeddingCache | None = None,
    progress: Progress | None = None,
    local_vectors: bool = True,
) -> Built:
    """Build the whole index into `folder`, or nothing. An index that is already there is replaced."""
    clauses = sorted(store.clauses(), key=lambda clause: clause.clause_id)
    titles = sorted({clause.policy_title for clause in clauses})
    texts = [*(map(indexed_text, clauses) if local_vectors else ()), *titles]
    vectors, embedded = embed_all(embedder, texts, cache=cache, progress=progress)
    ids = [clause.clause_id for clause in clauses]
    metas = [meta_of(clause) for clause in clauses]
    hashes = [content_hash(clause, meta) for clause, meta in zip(clauses, metas, strict=True)]
    draft = folder.with_name(f".{folder.name}.{os.getpid()}.draft")
    shutil.rmtree(draft, ignore_errors=True)
    draft.mkdir(parents=True)
    try:
        if local_vectors:
            spec = IndexSpec(POLICY, embedder.identity, embedder.dim)
            backend = LocalBackend(draft)
            backend.ensure(TARGET, spec)
            backend.upsert(TARGET, spec, map(Record, ids, vectors, metas, hashes))
            backend.close()
        LexicalIndex.build(draft / "lexical", POLICY, _entries(clauses, metas, hashes))
        number = {title: i for i, title in enumerate(titles)}
        title_of = np.asarray([number[clause.policy_title] for clause in clauses], dtype=np.int32)
        np.savez(draft / "titles.npz", vectors=vectors[len(texts) - len(titles) :], title_of=title_of)
        if isinstance(embedder, TfidfEmbedder):
            embedder.save(draft / FIT_FILE)
        root = root_hash(zip(ids, hashes, strict=True))
        manifest = Manifest(store.digest, embedder.identity, embedder.dim, POLICY.digest, ANALYZER, len(clauses), root)
        (draft / MANIFEST).write_text(json.dumps(asdict(manifest), sort_keys=True), encoding="utf-8")
        _put(draft, folder)
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    return Built(folder, manifest, embedded)


def open_index(folder: Path, store: ClauseStore, embedder: Embedder, *, vectors: Placed | None = None) -> OpenIndex:
    """Open an index for this corpus and this embedder; `vectors` for one that keeps them elsewhere. IndexAbsent, or
    IndexMismatch that names what differs."""
    manifest = read_manifest(folder)
    for what, held, wanted in (
        ("format", manifest.format, FORMAT),
        ("corpus", manifest.corpus_digest, store.digest),
        ("embedder", manifest.embedder, embedder.identity),
        ("dimension", manifest.dim, embedder.dim),
        ("schema", manifest.schema_digest, POLICY.digest),
        ("analyzer", manifest.analyzer, ANALYZER),
    ):
        if held != wanted:
            raise IndexMismatch(
                f"the index {folder} was built with {what} {held!r}, this run has {wanted!r}; build the index again"
            )
    if vectors is None:
        vectors = _local_vectors(folder, manifest)
    else:
        _require_there(vectors, manifest.spec)
    with np.load(folder / "titles.npz", allow_pickle=False) as titles:
        lexical = LexicalIndex.open(folder / "lexical", POLICY)
        title_of = dict(zip(lexical.ids, titles["title_of"].tolist(), strict=True))
        return OpenIndex(manifest, vectors, lexical, titles["vectors"], title_of)


def _local_vectors(folder: Path, manifest: Manifest) -> Placed:
    backend = LocalBackend(folder)
    info = backend.describe(TARGET)
    if info is None or (info.count, info.root) != (manifest.count, manifest.root):
        raise IndexMismatch(f"the vectors under {folder} are not those of its manifest; build the index again")
    return Placed(backend, TARGET)


def _require_there(vectors: Placed, spec: IndexSpec) -> None:
    """A service that is not as it should be is told before the first question, not in the middle of an answer."""
    info = vectors.backend.describe(vectors.target)
    if info is None:
        name = vectors.backend.capabilities().name
        raise IndexAbsent(
            f"the {name} backend has no target {vectors.target!r}; check its settings, "
            f"or run `cda corpus index --backend {name}`"
        )
    require_spec(info, spec)


def read_manifest(folder: Path) -> Manifest:
    """The manifest of the index in this folder. IndexAbsent when there is none, IndexMismatch when it is damaged."""
    file = folder / MANIFEST
    if not file.exists():
        raise IndexAbsent(f"there is no index under {folder}; run `cda corpus index --backend local`")
    try:
        return Manifest(**json.loads(file.read_text(encoding="utf-8")))
    except (ValueError, TypeError):
        raise IndexMismatch(f"the manifest under {folder} is damaged; build the index again") from None


def _entries(clauses: Sequence[Clause], metas: Sequence[Meta], hashes: Sequence[str]) -> Iterator[Entry]:
    for clause, meta, digest in zip(clauses, metas, hashes, strict=True):
        yield Entry(clause.clause_id, indexed_text(clause), own_codes(clause), said_codes(clause), meta, digest)


def _put(draft: Path, folder: Path) -> None:
    """Rename the finished draft into its place. Whoever comes second with the same index keeps the first one's."""
    old = draft.with_name(f"{draft.name}.old")
    if folder.exists():
        folder.rename(old)
    try:
        draft.rename(folder)
    except OSError:
        if not (folder / MANIFEST).exists():
            raise
    shutil.rmtree(old, ignore_errors=True)
