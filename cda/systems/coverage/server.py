"""The `policy` MCP server: the five policy tools, read-only, over whatever implements `PolicyTools`."""

from collections.abc import Callable, Mapping
from importlib.metadata import version
from typing import Any, Literal

from cda.contracts.policy_tools import ClauseView, CodeView, PolicyTools
from cda.errors import UsageError
from cda.retrieval.search import PolicySearch
from cda.serving.guarded import guarded
from cda.serving.kernel import Kernel
from cda.serving.quiet_log import log_quietly
from cda.serving.tool_server import ServedTool, ToolServer
from cda.serving.transport import Http, serve_http, serve_stdio
from cda.serving.wire import reserve_stdout
from cda.settings import Settings
from cda.systems.coverage.loading_search import LoadingSearch
from cda.systems.coverage.setting_up import to_stderr
from cda.systems.coverage.tool_arguments import (
    GetClauseByIdArguments,
    GetPlanRidersArguments,
    ListPolicyVersionsArguments,
    LookupCodeArguments,
    PlanRiders,
    PolicyVersions,
    SearchAnswers,
    SearchPoliciesArguments,
)
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
        tools=_served(tools),
        on_start=on_start,
        kernel=kernel,
        stdio_secret=stdio_secret,
    )


def run_policy_server(
    settings: Settings, *, transport: Literal["stdio", "http"], at: Http, keyed: bool = False
) -> None:
    """Serve the settings' corpus until the client goes or a signal comes; the index is opened, or built when there is
    none, while the server already answers. `keyed`: callers need a key, and every call is on the ledger.

    Raises StoreMissing without a store, UsageError for a host that needs names or TLS, UnavailableError for an address
    that cannot be bound and for keys or a ledger that cannot be trusted.
    """
    if transport == "http":
        at.check(keyed=keyed)  # refuse before anything is opened
    wire = reserve_stdout() if transport == "stdio" else None
    log_quietly()
    kernel = guarded(settings, clean=False) if keyed else None  # clauses are quoted verbatim
    secret = settings.api_key.get_secret_value() if settings.api_key else None
    with CorpusStore.open(settings.store_path) as store:
        search = LoadingSearch(lambda: _open_search(settings, store))
        tools = InProcessPolicyTools(store, search)
        server = policy_server(tools, on_start=search.start, kernel=kernel, stdio_secret=secret)
        try:
            if wire is None:
                serve_http(server, at)
            else:
                serve_stdio(server, wire)
        finally:
            server.kernel.close()


def _open_search(settings: Settings, store: CorpusStore) -> PolicySearch:
    if settings.embedder == "minilm-int8-dynamic":
        raise UsageError("CDA_EMBEDDER: the server searches with minilm-int8 or tfidf")
    return open_policy_search(settings, store, say=to_stderr)


def _served(tools: PolicyTools) -> tuple[ServedTool[Any], ...]:
    def search_policies(asked: SearchPoliciesArguments) -> SearchAnswers:
        answers = tools.search_policies(
            asked.texts,
            payer_id=asked.payer_id,
            plan_id=asked.plan_id,
            as_of=asked.as_of_date,
            codes=asked.codes,
            k=asked.k,
            include_superseded=asked.include_superseded,
        )
        return SearchAnswers(answers=answers)

    def get_clause_by_id(asked: GetClauseByIdArguments) -> ClauseView:
        return tools.get_clause_by_id(asked.clause_id)

    def list_policy_versions(asked: ListPolicyVersionsArguments) -> PolicyVersions:
        return PolicyVersions(versions=tools.list_policy_versions(asked.policy_id))

    def lookup_code(asked: LookupCodeArguments) -> CodeView:
        return tools.lookup_code(asked.code, payer_id=asked.payer_id, as_of=asked.as_of_date)

    def get_plan_riders(asked: GetPlanRidersArguments) -> PlanRiders:
        return PlanRiders(riders=tools.get_plan_riders(asked.plan_id, as_of=asked.as_of_date))

    return (
        ServedTool(
            "search_policies",
            "Search policy clauses",
            "Find clauses by meaning, words and codes, for one query or several at once. Each hit is a whole clause "
            "with its window and its rank in each leg; scores compare only inside one answer. Filters hold inside "
            "the search. A rider is found only when its plan_id is given.",
            SearchPoliciesArguments,
            SearchAnswers,
            search_policies,
        ),
        ServedTool(
            "get_clause_by_id",
            "Read one clause",
            "The whole text of a clause, its sha256, window, codes and criterion, read from the store now.",
            GetClauseByIdArguments,
            ClauseView,
            get_clause_by_id,
        ),
        ServedTool(
            "list_policy_versions",
            "List the versions of a policy",
            "All versions of a policy or rider, oldest first, each with its window and its clause ids in order.",
            ListPolicyVersionsArguments,
            PolicyVersions,
            list_policy_versions,
        ),
        ServedTool(
            "lookup_code",
            "Look up a code",
            "Whether a procedure or diagnosis code is known, and which policy versions name it, with the clauses that "
            "govern it. Bare codes, no descriptors. A diagnosis code is governed by no policy by itself.",
            LookupCodeArguments,
            CodeView,
            lookup_code,
        ),
        ServedTool(
            "get_plan_riders",
            "List the riders of a plan",
            "The riders of a plan, the policies each overrides, its window and its clause ids.",
            GetPlanRidersArguments,
            PlanRiders,
            get_plan_riders,
        ),
    )
