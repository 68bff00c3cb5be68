"""The `policy` MCP server: the five policy tools, read-only, over whatever implements `PolicyTools`."""

from collections.abc import Callable, Mapping
from importlib.metadata import version
from typing import Any, Literal

from cda.contracts.policy_tools import PolicyTools
from cda.errors import UsageError
from cda.retrieval.search import PolicySearch
from cda.serving.guarded import guarded, stdio_key
from cda.serving.kernel import Kernel
from cda.serving.quiet_log import log_quietly
from cda.serving.tool_server import ServedTool, ToolServer
from cda.serving.transport import Http, serve
from cda.serving.wire import reserve_stdout
from cda.settings import Settings
from cda.systems.coverage.loading_search import LoadingSearch
from cda.systems.coverage.served_tools import served
from cda.systems.coverage.setting_up import to_stderr
from cda.systems.coverage.tools import InProcessPolicyTools
from cda.systems.coverage.vector_backend import open_policy_search
from corpus.store import CorpusStore

INSTRUCTIONS = (
    "Dated coverage policy clauses, verbatim from one corpus. A clause holds only inside its window: pass as_of_date, "
    "and re-read a clause with get_clause_by_id before quoting it. Rider clauses hold for their own plan only. "
    "Clauses whose date_state is UNDATED or AMBIGUOUS are in effect on no date."
)


def policy_server(
    tools: PolicyTools,
    *,
    on_start: Callable[[], None] = lambda: None,
    kernel: Callable[[Mapping[str, ServedTool[Any]]], Kernel] | None = None,
    stdio_secret: str | None = None,
) -> ToolServer:
    """The server over `tools`; `on_start` runs when serving begins and returns at once (it may start a thread)."""
    return ToolServer(
        "policy",
        title="Coverage policy corpus",
        version=version("coverage-determination-agent"),
        instructions=INSTRUCTIONS,
        tools=served(tools),
        on_start=on_start,
        kernel=kernel,
        stdio_secret=stdio_secret,
    )


def run_policy_server(
    settings: Settings, *, transport: Literal["stdio", "http"], at: Http, keyed: bool = False
) -> None:
    """Serve the settings' corpus until the client goes or a signal comes; the index is opened, or built when there is
    none, while the server already answers. `keyed`: callers need a key, and every call is on the ledger.

    Raises StoreMissing without a store, UsageError for a host that needs names, keys or TLS, UnavailableError for an
    address that cannot be bound and for keys or a ledger that cannot be trusted.
    """
    if transport == "http":
        at.check(keyed=keyed)  # refuse before anything is opened
    wire = reserve_stdout() if transport == "stdio" else None
    log_quietly()
    kernel = guarded(settings, clean=False) if keyed else None  # clauses are quoted verbatim
    secret = stdio_key(settings) if keyed and wire is not None else None
    with CorpusStore.open(settings.store_path) as store:
        search = LoadingSearch(lambda: _open_search(settings, store))
        tools = InProcessPolicyTools(store, search)
        server = policy_server(tools, on_start=search.start, kernel=kernel, stdio_secret=secret)
        serve(server, wire=wire, at=at)


def _open_search(settings: Settings, store: CorpusStore) -> PolicySearch:
    if settings.embedder == "minilm-int8-dynamic":
        raise UsageError("CDA_EMBEDDER: the server searches with minilm-int8 or tfidf")
    return open_policy_search(settings, store, say=to_stderr)
