"""Old targets are removed: never the live one, the one before it, or one that a run writes to.

Only a target that these shared documents know is removed. One that the service has and they do not is another
deployment's, or its documents are lost; it is named and left alone.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass

from backends.base import VectorBackend
from cda.retrieval.lifecycle.manifest import (
    Building,
    Pointer,
    TargetManifest,
    building_name,
    held,
    manifest_name,
    pointer_name,
)
from cda.retrieval.lifecycle.shared_files import Moved, SharedFiles, overtaken
from cda.retrieval.lifecycle.targets import generations

KEEP = 2
OLDER_THAN_DAYS = 30
_COLLECTING = "collecting"  # stands for a run in a Building: the target is on its way out
_DAY = 86_400


@dataclass(frozen=True, slots=True)
class Collection:
    """The targets of a collection, each by what becomes of it. `unknown` lie on the service and in no document."""

    live: str | None
    previous: str | None
    building: tuple[str, ...]
    kept: tuple[str, ...]
    collected: tuple[str, ...]
    unknown: tuple[str, ...]


def collection_of(
    backend: VectorBackend,
    files: SharedFiles,
    collection: str,
    *,
    keep: int = KEEP,
    older_than_days: float = OLDER_THAN_DAYS,
    now: float | None = None,
) -> Collection:
    """What `collect` would remove: targets that are neither live nor previous nor being written to, beyond the `keep`
    verified last, and last verified more than `older_than_days` ago."""
    name = backend.capabilities().name
    pointer, _ = held(files, pointer_name(collection, name), Pointer)
    in_use = {pointer.target, pointer.previous_target} if pointer else set()
    before = (time.time() if now is None else now) - older_than_days * _DAY
    building: list[str] = []
    begun: list[str] = []
    unknown: list[str] = []
    ages: list[tuple[int, str]] = []
    for target in generations(backend, files, collection):
        claim, _ = held(files, building_name(name, target), Building)
        manifest, _ = held(files, manifest_name(name, target), TargetManifest)
        if target in in_use:
            continue
        if claim is not None:
            (begun if claim.run_id == _COLLECTING else building).append(target)
        elif manifest is None:
            unknown.append(target)
        else:
            ages.append((manifest.verified_at, target))
    ages.sort(reverse=True)
    old = [target for verified_at, target in ages[keep:] if verified_at < before]
    return Collection(
        live=pointer.target if pointer else None,
        previous=pointer.previous_target if pointer else None,
        building=tuple(building),
        kept=tuple(sorted(target for _, target in ages if target not in old)),
        collected=tuple(sorted([*old, *begun])),
        unknown=tuple(unknown),
    )


def collect(
    backend: VectorBackend,
    files: SharedFiles,
    collection: str,
    planned: Collection,
    *,
    clock: Callable[[], float] = time.time,
    after: Callable[[str], None] = lambda _step: None,
) -> None:
    """Remove the targets that the plan names. One that became live or previous meanwhile is left alone; a collection
    that was cut short is gone on with by the next. Raises IndexBusy when a run writes to one of them."""
    name = backend.capabilities().name
    for target in planned.collected:
        claim = _claimed(files, target, name, int(clock()))
        after("claim")
        pointer, _ = held(files, pointer_name(collection, name), Pointer)
        if pointer is None or target not in (pointer.target, pointer.previous_target):
            manifest, content = held(files, manifest_name(name, target), TargetManifest)
            if manifest is not None and content is not None:
                _removed(files, manifest_name(name, target), content)
            after("manifest")
            backend.drop(target)
            after("drop")
        _removed(files, building_name(name, target), claim)


def _claimed(files: SharedFiles, target: str, name: str, now: int) -> bytes:
    """Say that the target is on its way out, so that no run writes to it."""
    other, content = held(files, building_name(name, target), Building)
    if other is not None and other.run_id != _COLLECTING:
        raise overtaken(target)
    claim = Building(target, "", _COLLECTING, now).encoded()
    try:
        files.write(building_name(name, target), claim, expect=content)
    except Moved:
        raise overtaken(target) from None
    return claim


def _removed(files: SharedFiles, name: str, content: bytes) -> None:
    try:
        files.remove(name, expect=content)
    except Moved:
        raise overtaken(name) from None
