"""The shipped case sets are asked of the shipped corpus, as it is in this code: never of an older store lying about.

A case may name an overlay (`evals/corpora/NAME`): policies that are added to the shipped ones for it alone. They are
searched in local files whatever the backend.
"""

from collections.abc import Iterable
from pathlib import Path

from cda.errors import UsageError
from cda.settings import Settings
from cda.systems.coverage.authored_corpus import build_corpus
from corpus import BUILTIN
from evals.corpus_view import overlay_folder
from evals.provenance import code_digest
from evals.suite import Say

Worlds = dict[str, Settings]
"""Settings by the overlay's name; the empty name is the corpus without one."""


def worlds(settings: Settings, overlays: Iterable[str], say: Say, *, own_store: bool = False) -> Worlds:
    """Settings with a store of this code's corpus, alone and under each overlay, built when missing and kept for as
    long as the code stays the same. A store that the user named (CDA_STORE), or wants judged (own_store), stays.
    Raises UsageError for an unknown overlay."""
    keep = own_store or settings.store is not None
    found: Worlds = {"": settings if keep else _with_store(settings, "", say)}
    for name in sorted(set(overlays) - {""}):
        found[name] = _with_store(settings, name, say)
    return found


def _with_store(settings: Settings, overlay: str, say: Say) -> Settings:
    sources: list[str | Path] = [BUILTIN]
    if overlay:
        try:
            sources.append(overlay_folder(overlay))
        except KeyError:
            raise UsageError(f"a case names the corpus {overlay}, which is no folder of evals/corpora") from None
    kind = f"corpus-{overlay}" if overlay else "corpus"
    folder = settings.home / "evals"
    file = folder / f"{kind}.{code_digest()[:16]}.sqlite"
    if not file.exists():
        say(f"building the shipped corpus{f' with {overlay}' if overlay else ''}")
        folder.mkdir(parents=True, exist_ok=True)
        for old in folder.glob(f"{kind}.*.sqlite"):
            old.unlink()
        build_corpus(sources, file)
    changes: dict[str, object] = {"store": file}
    if overlay:  # what is on a service is deployed there, and an overlay never is
        changes |= {"vector_backend": "local"}
        changes |= {"lexical": "tantivy"} if settings.lexical in ("postgres", "pinecone") else {}
    return settings.model_copy(update=changes)
