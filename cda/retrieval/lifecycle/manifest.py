"""What a target was made from, and which target queries go to: the documents that the life-cycle shares.

manifests/BACKEND/TARGET.json     the last verified state of a target
building/BACKEND/TARGET.json      a run that has begun to write to a target and has not been verified yet
costs/COLLECTION-BACKEND.json     what the runs have cost so far
pointer/COLLECTION-BACKEND.json   the target that is live, the manifest it was verified with, and the one before
"""

import json
from dataclasses import asdict, dataclass
from hashlib import sha256
from typing import Any, Self, TypeVar

from backends.base import IndexSpec
from backends.errors import IndexAbsent, IndexMismatch
from cda.retrieval.lifecycle.probe import same_probe
from cda.retrieval.lifecycle.shared_files import SharedFiles

FORMAT = 1


@dataclass(frozen=True, slots=True)
class Document:
    """A shared document: canonical JSON of named fields, one of them `format`."""

    def encoded(self) -> bytes:
        """Canonical JSON, so that equal documents are equal bytes."""
        return json.dumps(asdict(self), sort_keys=True, ensure_ascii=False).encode("utf-8")

    @classmethod
    def decoded(cls, content: bytes, where: str) -> Self:
        """The document. IndexMismatch when it is not one of this format."""
        try:
            held: dict[str, Any] = json.loads(content)
            if held.get("format") != FORMAT:
                raise ValueError
            return cls(**held)
        except (ValueError, TypeError):
            raise IndexMismatch(f"the shared document {where} is damaged or of another format") from None


@dataclass(frozen=True, slots=True)
class TargetManifest(Document):
    """A verified state. `root` stands for every (id, content hash); `probe` for the embedder, see `probe_of`."""

    target: str
    collection: str
    backend: str
    embedder: str
    dim: int
    probe: str
    schema_digest: str
    corpus_digest: str
    count: int
    root: str
    verified_at: int  # seconds since the epoch
    format: int = FORMAT

    @property
    def digest(self) -> str:
        """Hex sha256 of what was verified, whenever and wherever: the last digits of a probe are a machine's own."""
        held = asdict(self) | {"verified_at": 0, "probe": ""}
        return sha256(json.dumps(held, sort_keys=True).encode("utf-8")).hexdigest()

    def require(self, *, spec: IndexSpec, corpus_digest: str) -> None:
        """IndexMismatch, naming what differs, unless it was made from this corpus with this embedder and schema."""
        for what, held, wanted in (
            ("embedder", self.embedder, spec.embedder),
            ("dimension", self.dim, spec.dim),
            ("schema", self.schema_digest, spec.schema.digest),
            ("corpus", self.corpus_digest, corpus_digest),
        ):
            if held != wanted:
                raise IndexMismatch(
                    f"the {self.backend} index {self.target} was built with {what} {held!r}, this run has {wanted!r}; "
                    f"run `cda corpus index --backend {self.backend}`"
                )

    def require_probe(self, found: str) -> None:
        """IndexMismatch unless the embedder's probe is still the one of when the target was built."""
        if not same_probe(self.probe, found):
            raise IndexMismatch(
                f"the embedder {self.embedder} gives other vectors than when {self.target} was built; "
                f"run `cda corpus index --backend {self.backend} --fresh`"
            )


@dataclass(frozen=True, slots=True)
class Building(Document):
    """A run under way: towards which corpus, and since when."""

    target: str
    corpus_digest: str
    run_id: str
    since: int
    format: int = FORMAT


@dataclass(frozen=True, slots=True)
class Pointer(Document):
    """Where queries go. `manifest` is the digest of what was promoted; `previous` is what was live before it."""

    target: str
    manifest: str
    promoted_at: int
    previous_target: str | None = None
    previous_manifest: str | None = None
    format: int = FORMAT


DocumentT = TypeVar("DocumentT", bound=Document)


def held(files: SharedFiles, name: str, kind: type[DocumentT]) -> tuple[DocumentT | None, bytes | None]:
    """A document and its bytes, which a later write must name; None and None when there is none."""
    content = files.read(name)
    return (None, None) if content is None else (kind.decoded(content, name), content)


def manifest_name(backend: str, target: str) -> str:
    """Where the manifest of a target is kept."""
    return f"manifests/{backend}/{target}.json"


def building_name(backend: str, target: str) -> str:
    """Where a run that writes to a target says so."""
    return f"building/{backend}/{target}.json"


def pointer_name(collection: str, backend: str) -> str:
    """Where the pointer of a collection on a backend is kept."""
    return f"pointer/{collection}-{backend}.json"


def live(
    files: SharedFiles, collection: str, backend: str, *, spec: IndexSpec, corpus_digest: str
) -> tuple[str, TargetManifest]:
    """The target that queries of this corpus and embedder go to, and its manifest.

    Raises IndexAbsent when nothing was promoted, IndexMismatch when what was promoted is of another make.
    """
    pointer, _ = held(files, pointer_name(collection, backend), Pointer)
    if pointer is None:
        raise IndexAbsent(f"no {backend} index is live; run `cda corpus index --backend {backend}`")
    manifest, _ = held(files, manifest_name(backend, pointer.target), TargetManifest)
    if manifest is None:
        raise IndexAbsent(
            f"the manifest of the live {backend} index {pointer.target} is lost; "
            f"run `cda corpus verify-index --backend {backend}`"
        )
    manifest.require(spec=spec, corpus_digest=corpus_digest)
    if manifest.digest != pointer.manifest:
        raise IndexMismatch(
            f"the {backend} index {pointer.target} was verified anew and not promoted; "
            f"run `cda corpus index --backend {backend}`"
        )
    return pointer.target, manifest
