"""Which target a run writes to. A name says embedder and schema; generations of one make are numbered."""

import json
import re
from hashlib import sha256

from backends.base import IndexSpec, VectorBackend
from cda.retrieval.lifecycle.manifest import Pointer
from cda.retrieval.lifecycle.shared_files import SharedFiles


def make_of(spec: IndexSpec) -> str:
    """What all targets of one collection, embedder and schema begin with."""
    parts = json.dumps([spec.embedder, spec.dim, spec.schema.digest])
    return f"{spec.schema.name}-{sha256(parts.encode('utf-8')).hexdigest()[:12]}"


def generations(backend: VectorBackend, files: SharedFiles, prefix: str) -> list[str]:
    """Every target that begins so, on the service or in the shared documents, oldest generation first."""
    service = backend.capabilities().name
    names = (*files.names(f"manifests/{service}"), *files.names(f"building/{service}"))
    known = {name.rpartition("/")[2].removesuffix(".json") for name in names}
    found = {name for name in known.union(backend.targets()) if name.startswith(f"{prefix}-")}
    return sorted((name for name in found if _number(name)), key=lambda name: (_number(name), name))


def choose(backend: VectorBackend, files: SharedFiles, spec: IndexSpec, pointer: Pointer | None, *, fresh: bool) -> str:
    """The target to write to.

    The live one when it is of this make, else the newest of this make, else a first generation. `fresh`: a generation
    after the live one; one that was begun and not promoted is gone on with.
    """
    make = make_of(spec)
    known = generations(backend, files, make)
    live = pointer.target if pointer and pointer.target in known else None
    if live and not fresh:
        return live
    newest = known[-1] if known else None
    if newest and newest != live and (not fresh or live is None or _number(newest) > _number(live)):
        return newest
    return f"{make}-g{_number(newest) + 1 if newest else 1}"


def _number(target: str) -> int:
    found = re.search(r"-g(\d+)\Z", target)
    return int(found[1]) if found else 0
