"""The way back: queries go to the target that was live before."""

import time
from collections.abc import Callable

from backends.base import VectorBackend
from cda.errors import UsageError
from cda.retrieval.lifecycle.manifest import Pointer, TargetManifest, held, manifest_name, pointer_name
from cda.retrieval.lifecycle.shared_files import Moved, SharedFiles, overtaken


def roll_back(
    backend: VectorBackend, files: SharedFiles, collection: str, *, clock: Callable[[], float] = time.time
) -> Pointer:
    """Send queries back to the target that was live before. UsageError when there is none that is still whole,
    IndexBusy when somebody else moves the pointer at the same moment."""
    service = backend.capabilities().name
    name = pointer_name(collection, service)
    pointer, content = held(files, name, Pointer)
    if pointer is None or pointer.previous_target in (None, pointer.target):
        raise UsageError(
            "there is no earlier target to go back to: the live one was changed in place; "
            "index the earlier corpus store instead"
        )
    earlier = str(pointer.previous_target)
    manifest, _ = held(files, manifest_name(service, earlier), TargetManifest)
    if manifest is None or manifest.digest != pointer.previous_manifest or backend.describe(earlier) is None:
        raise UsageError(f"the earlier target {earlier} has been changed or collected since")
    back = Pointer(
        target=manifest.target,
        manifest=manifest.digest,
        promoted_at=int(clock()),
        previous_target=pointer.target,
        previous_manifest=pointer.manifest,
    )
    try:
        files.write(name, back.encoded(), expect=content)
    except Moved:
        raise overtaken(name) from None
    return back
