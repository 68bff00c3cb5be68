"""The shipped case sets are asked of the shipped corpus, as it is in this code: never of an older store lying about."""

from cda.settings import Settings
from cda.systems.coverage.authored_corpus import build_corpus
from corpus import BUILTIN
from evals.provenance import code_digest
from evals.suite import Say


def on_shipped_corpus(settings: Settings, say: Say) -> Settings:
    """The settings with a store built from this code's corpus, kept for as long as the code stays the same. A store
    that was named (CDA_STORE) is what the user wants judged, and stays."""
    if settings.store is not None:
        return settings
    folder = settings.home / "evals"
    file = folder / f"corpus-{code_digest()[:16]}.sqlite"
    if not file.exists():
        say("building the shipped corpus")
        folder.mkdir(parents=True, exist_ok=True)
        for old in folder.glob("corpus-*.sqlite"):
            old.unlink()
        build_corpus([BUILTIN], file)
    return settings.model_copy(update={"store": file})
