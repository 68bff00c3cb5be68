import http.client
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import anyio
import pytest
from conformance.policy_tools import CANARY, PolicyToolsConformance
from conformance.tiny_corpus import CONTENTS
from integration.policy_servers import COMMAND, INITIALIZE, RawStdio, environment, http_server
from mcp import Client

from cda.contracts.policy_tools import PolicyTools
from cda.errors import PolicyToolError, UnavailableError
from cda.retrieval.index import ensure_index
from cda.retrieval.search import PolicySearch
from cda.systems.coverage.mcp_client import McpPolicyTools
from cda.systems.coverage.tools import InProcessPolicyTools
from corpus.store import CorpusStore
from corpus.store_writer import write_store

PROXIED = ("--host", "0.0.0.0", "--allow-host", "policy.example", "--behind-proxy")  # noqa: S104
TOOLS = ("search_policies", "get_clause_by_id", "list_policy_versions", "lookup_code", "get_plan_riders")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("policy")
    write_store(CONTENTS, found / "corpus.sqlite")
    return found


@pytest.fixture(scope="module")
def in_process(folder: Path) -> Iterator[PolicyTools]:
    with CorpusStore.open(folder / "corpus.sqlite") as store:
        index, embedder = ensure_index(store, "tfidf", folder / "home" / "index")
        yield InProcessPolicyTools(store, PolicySearch(store, embedder, index))


@pytest.fixture(scope="module")
def over_stdio(folder: Path) -> Iterator[McpPolicyTools]:
    with (
        (folder / "stdio-stderr").open("w", encoding="utf-8") as errlog,
        McpPolicyTools.over_stdio(COMMAND, env=environment(folder), errlog=errlog) as tools,
    ):
        yield tools
    assert CANARY not in (folder / "stdio-stderr").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def address(folder: Path) -> Iterator[str]:
    with http_server(folder) as (url, _process):
        yield url
    assert (folder / "http-stdout").read_bytes() == b""
    assert CANARY not in (folder / "http-stderr").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def over_http(address: str) -> Iterator[McpPolicyTools]:
    with McpPolicyTools.over_http(address) as tools:
        yield tools


class TestOverStdio(PolicyToolsConformance):
    @pytest.fixture
    def tools(self, over_stdio: McpPolicyTools) -> PolicyTools:
        return over_stdio

    @pytest.fixture
    def reference(self, in_process: PolicyTools) -> PolicyTools:
        return in_process


class TestOverHttp(PolicyToolsConformance):
    @pytest.fixture
    def tools(self, over_http: McpPolicyTools) -> PolicyTools:
        return over_http

    @pytest.fixture
    def reference(self, in_process: PolicyTools) -> PolicyTools:
        return in_process


@pytest.fixture(scope="module")
def raw(folder: Path) -> Iterator[RawStdio]:
    client = RawStdio(folder)
    client.ask("initialize", INITIALIZE)
    client.notify("notifications/initialized", {})
    yield client
    assert client.close() == 0


HOSTILE: list[Any] = [
    CANARY,
    int(CANARY),
    float(CANARY),
    [CANARY],
    {"ssn": CANARY},
    {CANARY: 1},
    True,
    CANARY * 2000,
    f"\x00{CANARY}",
    f"\u202e{CANARY}\u2028",
    f"'; DROP TABLE clauses; -- {CANARY}",
    f"../../etc/passwd{CANARY}",
    f"%s%n{CANARY}\r\nerror forged",
]
FIELDS = {
    "search_policies": ("k", "payer_id", "plan_id", "as_of_date", "codes", "include_superseded", "queries"),
    "get_clause_by_id": ("clause_id",),
    "list_policy_versions": ("policy_id",),
    "lookup_code": ("code", "payer_id", "as_of_date"),
    "get_plan_riders": ("plan_id", "as_of_date"),
}
VALID: dict[str, dict[str, Any]] = {
    "search_policies": {"query": "insulin"},
    "get_clause_by_id": {"clause_id": "ACM-MP-1.v1.C1"},
    "list_policy_versions": {"policy_id": "ACM-MP-1"},
    "lookup_code": {"code": "95249"},
    "get_plan_riders": {"plan_id": "ACM-GOLD"},
}


@pytest.mark.promise("tools.no_echo", "server.strict")
@pytest.mark.parametrize("tool", TOOLS)
@pytest.mark.parametrize("value", HOSTILE, ids=range(len(HOSTILE)))
def test_a_hostile_value_in_any_field_is_refused_and_never_comes_back(raw: RawStdio, tool: str, value: Any) -> None:
    for field in FIELDS[tool]:
        given = {} if field == "queries" else VALID[tool]
        if isinstance(value, (list, str)) and field in ("queries", "codes"):
            continue  # a list of any texts is what these two take, and an answer names its query
        if value is True and field == "include_superseded":
            continue
        answer = raw.call(tool, given | {field: value})
        assert answer["result"]["isError"] is True, (field, answer)
        assert CANARY not in json.dumps(answer)
        assert len(json.dumps(answer)) < 600


@pytest.mark.promise("tools.no_echo", "server.strict")
@pytest.mark.parametrize("tool", TOOLS)
def test_an_unknown_argument_is_refused_and_its_name_never_comes_back(raw: RawStdio, tool: str) -> None:
    for extra in ({CANARY: 1}, {f"ssn_{CANARY}": CANARY}, {"limit": None}):
        answer = raw.call(tool, VALID[tool] | extra)
        (block,) = answer["result"]["content"]
        assert block["text"].startswith("invalid_argument: unknown argument; known are ")
        assert CANARY not in block["text"]
        assert "http" not in block["text"]


@pytest.mark.promise("tools.no_echo", "server.strict")
@pytest.mark.parametrize(
    ("method", "params"),
    [
        (CANARY, {}),
        ("tools/call", {"name": CANARY, "arguments": {}}),
        ("tools/call", {"name": {"a": CANARY}}),
        ("tools/call", {"name": "lookup_code", "arguments": CANARY}),
        ("tools/call", {"name": "lookup_code", "arguments": {}}),
        ("tools/list", {"cursor": {"a": CANARY}}),
        ("resources/read", {"uri": f"x://{CANARY}"}),
        ("prompts/get", {"name": CANARY}),
        ("completion/complete", {"ref": {"type": CANARY}}),
        ("logging/setLevel", {"level": CANARY}),
    ],
)
def test_a_hostile_request_is_refused_in_fixed_words(raw: RawStdio, method: str, params: Any) -> None:
    answer = raw.ask(method, params)
    assert "error" in answer or answer["result"]["isError"]
    assert CANARY not in json.dumps(answer)


@pytest.mark.promise("server.stdout_is_protocol", "tools.no_echo")
def test_every_byte_of_stdout_is_protocol_and_no_line_of_stderr_repeats_input(folder: Path) -> None:
    client = RawStdio(folder)
    client.send(CANARY)
    client.send("{" + CANARY)
    client.ask("initialize", INITIALIZE)
    client.notify("notifications/initialized", {})
    client.notify(f"notifications/{CANARY}", {"a": CANARY})
    client.notify("notifications/cancelled", {"requestId": [CANARY]})
    client.notify("notifications/progress", {"progressToken": {"a": CANARY}})
    client.call("search_policies", VALID["search_policies"])
    client.call(CANARY, {CANARY: CANARY})
    client.call("lookup_code", {"code": CANARY * 5000})
    assert client.close() == 0
    for line in client.lines:
        assert json.loads(line)["jsonrpc"] == "2.0"
    assert CANARY not in "".join(client.lines)
    assert CANARY not in client.stderr
    assert len(client.stderr) < 2000


def _nodes(schema: Any) -> Iterator[dict[str, Any]]:
    if isinstance(schema, dict):
        yield schema
        for name, part in schema.items():
            children = part.values() if name == "properties" else [part]
            for child in children:
                yield from _nodes(child)


@pytest.mark.promise("server.schemas")
def test_the_list_of_tools_is_one_small_page_of_schemas_that_every_client_reads(raw: RawStdio) -> None:
    listed = raw.ask("tools/list", {})["result"]
    assert [tool["name"] for tool in listed["tools"]] == list(TOOLS)
    assert "nextCursor" not in listed
    assert len(json.dumps(listed)) < 30_000
    for tool in listed["tools"]:
        schema = tool["inputSchema"]
        assert schema["type"] == "object"
        assert schema["properties"]
        assert schema["additionalProperties"] is False
        for node in _nodes(schema):
            assert not {"$ref", "anyOf", "oneOf", "allOf", "$defs"} & set(node)
            if "description" in node or "items" in node:
                assert isinstance(node["type"], str)
        assert tool["outputSchema"]["type"] == "object"
        assert tool["annotations"]["readOnlyHint"] is True
        assert tool["annotations"]["idempotentHint"] is True
        assert tool["annotations"]["destructiveHint"] is False


@pytest.mark.promise("server.schemas")
def test_one_query_and_a_list_of_one_answer_alike_and_both_or_none_is_refused(raw: RawStdio) -> None:
    one = raw.call("search_policies", {"query": "insulin"})["result"]["structuredContent"]
    assert raw.call("search_policies", {"queries": ["insulin"]})["result"]["structuredContent"] == one
    for given in ({}, {"query": "a", "queries": ["b"]}):
        (block,) = raw.call("search_policies", given)["result"]["content"]
        assert block["text"] == "invalid_argument: give exactly one of query and queries"


@pytest.mark.promise("server.strict")
@pytest.mark.parametrize(
    "given", [{"k": "8"}, {"k": 8.0}, {"k": True}, {"as_of_date": "20240315"}, {"as_of_date": "2024-W11-5"}]
)
def test_nothing_is_coerced(raw: RawStdio, given: dict[str, Any]) -> None:
    answer = raw.call("search_policies", {"query": "insulin"} | given)
    assert answer["result"]["isError"] is True


@pytest.mark.promise("server.strict")
def test_an_optional_argument_sent_as_null_counts_as_left_out(raw: RawStdio) -> None:
    plain = raw.call("lookup_code", {"code": "95249"})
    null = raw.call("lookup_code", {"code": "95249", "payer_id": None, "as_of_date": None})
    assert null["result"] == plain["result"]
    assert raw.call("lookup_code", {"code": None})["result"]["isError"] is True


@pytest.mark.promise("server.eras")
@pytest.mark.parametrize("mode", ["legacy", "auto"])
def test_a_client_of_either_era_gets_typed_answers_and_the_server_names_its_version(address: str, mode: str) -> None:
    async def talk() -> None:
        async with Client(address, mode=mode) as client:
            assert client.server_info is not None
            assert client.server_info.name == "policy"
            assert client.server_info.version
            for tool, arguments in VALID.items():
                result = await client.call_tool(tool, arguments)  # the client checks the answer against its schema
                assert result.is_error is False
                assert result.structured_content

    anyio.run(talk)


def _post(address: str, headers: dict[str, str], body: bytes) -> tuple[int, bytes]:
    parts = urlsplit(address)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=20)
    try:
        connection.request("POST", parts.path, body=body, headers=headers)
        response = connection.getresponse()
        return response.status, response.read()
    finally:
        connection.close()


JSON = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}


@pytest.mark.promise("server.loopback")
@pytest.mark.parametrize(
    ("headers", "status"),
    [({"Host": f"evil-{CANARY}.example"}, 421), ({"Origin": f"https://evil-{CANARY}.example"}, 403)],
)
def test_a_page_that_rebinds_its_name_to_the_loopback_is_refused(
    address: str, headers: dict[str, str], status: int
) -> None:
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": INITIALIZE}).encode()
    found, answer = _post(address, JSON | headers, body)
    assert found == status
    assert CANARY.encode() not in answer


@pytest.mark.promise("tools.no_echo")
@pytest.mark.parametrize(
    ("headers", "body"),
    [
        ({}, b"{" + CANARY.encode()),
        ({}, json.dumps({"jsonrpc": "2.0", "id": 1, "method": CANARY, "params": {}}).encode()),
        ({}, json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": CANARY}).encode()),
        ({}, json.dumps([CANARY]).encode()),
        ({"Mcp-Session-Id": CANARY}, json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}).encode()),
        ({"Content-Type": f"text/{CANARY}"}, b"{}"),
    ],
)
def test_a_hostile_http_request_is_refused_without_an_echo(address: str, headers: dict[str, str], body: bytes) -> None:
    status, answer = _post(address, JSON | headers, body)
    assert status >= 400
    assert CANARY.encode() not in answer


@pytest.mark.promise("server.loopback")
@pytest.mark.parametrize("options", [["--host", "0.0.0.0"], ["--host", "0.0.0.0", "--allow-host", "*"]])  # noqa: S104
def test_a_host_beyond_the_loopback_without_an_allow_list_is_refused(folder: Path, options: list[str]) -> None:
    refused = subprocess.run(
        [*COMMAND, "--transport", "http", "--port", "0", *options],
        env=environment(folder),
        capture_output=True,
        timeout=30,
        check=False,
    )
    assert refused.returncode != 0
    assert b"host" in refused.stderr
    assert b"serving http" not in refused.stderr


@pytest.mark.promise("server.loopback")
def test_an_allowed_host_is_answered_and_another_is_not(folder: Path) -> None:
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": INITIALIZE}).encode()
    with http_server(folder, *PROXIED) as (url, _process):
        there = url.replace("0.0.0.0", "127.0.0.1")  # noqa: S104
        assert _post(there, JSON | {"Host": "policy.example"}, body)[0] == 200
        assert _post(there, JSON, body)[0] == 421


@pytest.mark.promise("server.dead")
def test_a_server_that_dies_is_a_refusal_at_once_and_ever_after(folder: Path) -> None:
    with http_server(folder) as (url, process), McpPolicyTools.over_http(url, deadline_s=10) as tools:
        assert tools.lookup_code("95249").code == "95249"
        process.kill()
        process.wait(timeout=20)
        _refused_at_once(tools)
    _refused_at_once(tools)


@pytest.mark.promise("server.dead")
def test_a_server_process_that_exits_is_a_refusal_at_once(folder: Path, tmp_path: Path) -> None:
    script = tmp_path / "dies.py"
    script.write_text(
        "import os, sys\n"
        "from cda.systems.coverage import mcp_command, tools\n"
        "tools.InProcessPolicyTools.get_plan_riders = lambda *a, **k: os._exit(9)\n"
        "mcp_command.mcp_group(['policy'])\n",
        encoding="utf-8",
    )
    with McpPolicyTools.over_stdio([sys.executable, str(script)], env=environment(folder), deadline_s=20) as tools:
        assert tools.lookup_code("95249").code == "95249"
        started = time.monotonic()
        with pytest.raises(PolicyToolError, match="did not answer") as refused:
            tools.get_plan_riders("ACM-GOLD")
        assert refused.value.code == "search_unavailable"
        assert time.monotonic() - started < 10
        _refused_at_once(tools)


@pytest.mark.promise("server.dead")
def test_a_call_that_is_never_answered_ends_at_its_deadline(folder: Path, tmp_path: Path) -> None:
    script = tmp_path / "hangs.py"
    script.write_text(
        "import threading\n"
        "from cda.systems.coverage import mcp_command, tools\n"
        "tools.InProcessPolicyTools.get_plan_riders = lambda *a, **k: threading.Event().wait(60)\n"
        "mcp_command.mcp_group(['policy'])\n",
        encoding="utf-8",
    )
    with McpPolicyTools.over_stdio([sys.executable, str(script)], env=environment(folder), deadline_s=5) as tools:
        started = time.monotonic()
        with pytest.raises(PolicyToolError) as refused:
            tools.get_plan_riders("ACM-GOLD")
        assert refused.value.code == "search_unavailable"
        assert time.monotonic() - started < 8
        assert tools.lookup_code("95249").code == "95249"


def _refused_at_once(tools: PolicyTools) -> None:
    started = time.monotonic()
    with pytest.raises(PolicyToolError, match="the policy server") as refused:
        tools.lookup_code("95249")
    assert refused.value.code == "search_unavailable"
    assert time.monotonic() - started < 5


@pytest.mark.promise("server.dead")
def test_what_is_no_server_is_unavailable_before_the_first_answer(folder: Path) -> None:
    with pytest.raises(UnavailableError, match="cannot be reached"):
        McpPolicyTools.over_stdio([sys.executable, "-c", "pass"], env={})
    with pytest.raises(UnavailableError, match="cannot be reached"):
        McpPolicyTools.over_stdio([str(folder / "no-such-program")], env={})
    with pytest.raises(UnavailableError, match="cannot be reached"):
        McpPolicyTools.over_http("http://127.0.0.1:9/mcp")
