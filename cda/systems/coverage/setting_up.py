"""What a fresh machine lacks is built here on first use: the corpus store from the shipped policies, and its index."""

import sys
from collections.abc import Callable
from dataclasses import dataclass

from cda.contracts.policy_tools import PolicyTools
from cda.errors import UnavailableError
from cda.retrieval.index import ensure_index
from cda.retrieval.search import PolicySearch
from cda.settings import Settings
from cda.systems.coverage.authored_corpus import build_corpus
from cda.systems.coverage.tools import InProcessPolicyTools
from corpus.store import CorpusStore


@dataclass(frozen=True, slots=True)
class Opened:
    """An open corpus and the tools over it."""

    store: CorpusStore
    tools: PolicyTools
    index_manifest: str | None


def open_corpus(settings: Settings, *, say: Callable[[str], None] | None = None) -> Opened:
    """Open store and index, each built first when it is missing. Raises CorpusError, BackendError, UnavailableError."""
    say = say or (lambda text: print(text, file=sys.stderr))
    if not settings.store_path.exists():
        say(f"no corpus store at {settings.store_path} yet: building it from the shipped policies")
        try:
            build_corpus(["builtin"], settings.store_path)
        except OSError as error:
            reason = f"{settings.store_path}: cannot be written ({type(error).__name__}); set CDA_HOME or CDA_STORE"
            raise UnavailableError(reason) from None
    store = CorpusStore.open(settings.store_path)
    folder, embedder = ensure_index(store, settings.embedder, settings.index_path)
    search = PolicySearch(store, embedder, folder, rule=settings.reranker, lexical=settings.lexical)
    return Opened(store, InProcessPolicyTools(store, search), search.manifest_digest)
