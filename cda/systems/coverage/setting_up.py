"""What a fresh machine lacks is built here on first use: the corpus store from the shipped policies, and its index."""

import sqlite3
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from cda.contracts.policy_tools import PolicyTools
from cda.errors import UnavailableError
from cda.patterns import keep_in
from cda.retrieval.embedders import models_folder, start_loading
from cda.retrieval.embedding_cache import EmbeddingCache
from cda.retrieval.search import PolicySearch
from cda.settings import Settings
from cda.systems.coverage.tools import InProcessPolicyTools
from cda.systems.coverage.vector_backend import open_policy_search
from corpus import BUILTIN
from corpus.store import CorpusStore

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Opened:
    """An open corpus and the tools over it."""

    store: CorpusStore
    tools: PolicyTools
    index_manifest: str | None


def open_corpus(settings: Settings, *, say: Say | None = None) -> Opened:
    """Open store and index, each built first when it is missing; `say` hears of each long step (default: stderr).

    Raises CorpusError, BackendError, UnavailableError.
    """
    say = say or to_stderr
    if settings.policy_tools == "mcp":
        return Opened(open_store(settings, say=say), _over_mcp(settings), None)
    keep_in(settings.home)
    with _writing(settings.home):
        if settings.pinecone_model is None:
            start_loading(settings.embedder, models_folder(settings.index_path))
    store = open_store(settings, say=say)
    search = open_search(settings, store, say=say)
    return Opened(store, InProcessPolicyTools(store, search), search.manifest_digest)


def open_store(settings: Settings, *, say: Say) -> CorpusStore:
    """The corpus store, built from the shipped policies when there is none."""
    path = settings.store_path
    if not path.exists():
        from cda.systems.coverage.authored_corpus import build_corpus  # its readers of YAML are needed this once

        say(f"no corpus store at {path} yet: building it from the shipped policies")
        with _writing(path):
            build_corpus([BUILTIN], path)
    return CorpusStore.open(path)


def open_search(settings: Settings, store: CorpusStore, *, say: Say) -> PolicySearch:
    """The search over the store's index; one on this machine is built when there is none for this store and
    embedder."""
    progress = _Progress(say)
    with _writing(settings.home), closing(EmbeddingCache(settings.home / "embeddings.sqlite")) as cache:
        return open_policy_search(settings, store, cache=cache, progress=progress.heard, say=say)


@contextmanager
def _writing(place: Path) -> Iterator[None]:
    """A place that cannot be written is something that is missing here, not a fault of the program."""
    try:
        yield
    except (OSError, sqlite3.Error) as error:
        kind = type(error).__name__
        raise UnavailableError(f"{place} cannot be written ({kind}); set CDA_HOME or CDA_STORE") from None


class _Progress:
    """Says how far the embedding is: at its start and at each tenth of it."""

    def __init__(self, say: Say) -> None:
        self._say = say
        self._tenth = -1

    def heard(self, done: int, of: int) -> None:
        """`done` of `of` texts are embedded."""
        tenth = 10 * done // max(of, 1)
        if tenth > self._tenth:
            self._tenth = tenth
            self._say(f"building the index: {done} of {of} texts embedded")


def _over_mcp(settings: Settings) -> PolicyTools:
    try:
        from cda.systems.coverage.mcp_client import McpPolicyTools, settings_environment
    except ModuleNotFoundError as error:
        raise UnavailableError(f"CDA_POLICY_TOOLS=mcp needs {error.name}: install the extra `servers`") from None
    command = (sys.executable, "-m", "cda.systems.coverage.mcp_command", "policy")
    return McpPolicyTools.over_stdio(command, env=settings_environment(settings))


def to_stderr(text: str) -> None:
    """Say a step where it does not mix with an answer."""
    print(text, file=sys.stderr)
