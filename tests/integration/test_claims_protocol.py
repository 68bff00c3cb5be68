"""What the public conformance runner asks of any server, asked without it; `make mcp-conformance` runs the whole."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import yaml
from integration.claims_servers import ERA, TOOLS, Site, Wire, message, post, routed, stateless, stdio

pytestmark = pytest.mark.promise("claims.protocol")
BASELINE = Path(__file__).parent / "mcp_conformance" / "expected-failures.yaml"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Site:
    return Site.at(tmp_path_factory.mktemp("protocol") / "home")


@pytest.fixture(scope="module")
def address(site: Site) -> Iterator[str]:
    with site.http() as address:
        yield address


@pytest.fixture(scope="module")
def wire(site: Site) -> Iterator[Wire]:
    with stdio(site) as wire:
        wire.first = wire.start()["result"]
        yield wire


def asked(address: str, site: Site, body: dict[str, Any], **headers: str) -> tuple[int, Any]:
    status, text = post(address, site.secret, body, **headers)
    return status, message(text)


def test_initialize_names_the_server_its_version_and_what_it_can(wire: Wire) -> None:
    assert wire.first["protocolVersion"] == "2025-06-18"
    assert wire.first["serverInfo"]["version"]
    assert "tools" in wire.first["capabilities"]
    assert not wire.first["capabilities"].keys() & {"logging", "completions"}, "nothing that is not there"


def test_ping_is_answered_with_nothing(wire: Wire) -> None:
    assert wire.ask("ping", {})["result"] == {}


def test_tools_are_listed_with_names_and_schemas_that_any_client_reads(wire: Wire) -> None:
    tools = wire.ask("tools/list", {})["result"]["tools"]

    for tool in tools:
        assert tool["name"].replace("_", "").isalnum()
        assert tool["inputSchema"]["additionalProperties"] is False
        assert "$ref" not in json.dumps(tool["inputSchema"])
        assert tool["outputSchema"]["type"] == "object"
        assert tool["annotations"] == {
            "readOnlyHint": True,
            "destructiveHint": False,
            "idempotentHint": True,
            "openWorldHint": False,
        }
    assert [tool["name"] for tool in tools] == list(TOOLS)


def test_discovery_without_a_session_names_every_era(address: str, site: Site) -> None:
    status, answer = asked(address, site, stateless("server/discover"), **routed("server/discover"))

    assert status == 200
    assert ERA in answer["result"]["supportedVersions"]
    assert "tools" in answer["result"]["capabilities"]


def test_a_list_says_how_long_it_may_be_kept_and_by_whom(address: str, site: Site) -> None:
    _, answer = asked(address, site, stateless("tools/list"), **routed("tools/list"))

    assert isinstance(answer["result"]["ttlMs"], int)
    assert answer["result"]["ttlMs"] >= 0
    assert answer["result"]["cacheScope"] == "private", "which tools there are depends on the key"


@pytest.mark.parametrize("method", ["initialize", "ping", "logging/setLevel", "no/such"])
def test_a_method_that_is_not_of_the_era_is_not_found(address: str, site: Site, method: str) -> None:
    status, answer = asked(address, site, stateless(method), **routed(method))

    assert (status, answer["error"]["code"], answer["id"]) == (404, -32601, 1)


def test_a_version_that_is_not_served_is_refused_with_those_that_are(address: str, site: Site) -> None:
    body = stateless("tools/list")
    body["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"] = "v999.0.0"
    headers = routed("tools/list") | {"MCP-Protocol-Version": "v999.0.0"}

    status, answer = asked(address, site, body, **headers)

    assert (status, answer["error"]["data"]["requested"]) == (400, "v999.0.0")
    assert ERA in answer["error"]["data"]["supported"]


def test_a_version_that_has_not_the_form_of_one_does_not_come_back(address: str, site: Site) -> None:
    body = stateless("tools/list")
    body["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"] = "123-45-6789"

    status, text = post(address, site.secret, body, **(routed("tools/list") | {"MCP-Protocol-Version": "123-45-6789"}))

    assert (status, "123-45" in text) == (400, False)


HEADERS: dict[str, tuple[dict[str, str | None], bool]] = {
    "as they should be": ({}, True),
    "lower case name": ({"Mcp-Method": None, "mcp-method": "tools/call"}, True),
    "blanks around a value": ({"Mcp-Name": "  get_claim  "}, True),
    "no method": ({"Mcp-Method": None}, False),
    "another method": ({"Mcp-Method": "tools/list"}, False),
    "upper case method": ({"Mcp-Method": "TOOLS/CALL"}, False),
    "no name": ({"Mcp-Name": None}, False),
    "another name": ({"Mcp-Name": "get_claim_notes"}, False),
    "no version": ({"MCP-Protocol-Version": None}, False),
    "another version": ({"MCP-Protocol-Version": "2025-06-18"}, False),
}


@pytest.mark.parametrize("case", HEADERS)
def test_headers_that_say_another_thing_than_the_body_are_refused(address: str, site: Site, case: str) -> None:
    changed, answered = HEADERS[case]
    wanted: dict[str, str | None] = {**routed("tools/call", **{"Mcp-Name": "get_claim"}), **changed}
    headers = {name: value for name, value in wanted.items() if value is not None}
    body = stateless("tools/call", {"name": "get_claim", "arguments": TOOLS["get_claim"]})

    status, text = post(address, site.secret, body, **headers)

    assert (status == 200, "CLM-00000001" in text) == (answered, answered), text


@pytest.mark.parametrize("name", ["evil.example", "127.0.0.1.evil.example", "localhost@evil.example", "[::1].evil"])
def test_a_host_that_is_not_ours_is_refused_before_the_protocol(address: str, site: Site, name: str) -> None:
    body = stateless("tools/list")

    assert post(address, site.secret, body, **routed("tools/list"), Host=name)[0] == 421
    assert post(address, site.secret, body, **routed("tools/list"), Origin=f"http://{name}")[0] == 403


def test_our_own_names_and_origins_are_answered(address: str, site: Site) -> None:
    port = urlsplit(address).port
    for host in ("localhost", "127.0.0.1", "[::1]"):
        named = {"Host": f"{host}:{port}", "Origin": f"http://{host}:{port}"}
        assert post(address, site.secret, stateless("tools/list"), **routed("tools/list"), **named)[0] == 200


def test_the_runner_is_expected_to_fail_only_where_a_fixture_is_wanted() -> None:
    groups = yaml.safe_load(BASELINE.read_text(encoding="utf-8"))
    scenarios = {scenario: checks for group in groups.values() for scenario, checks in group.items()}

    for generic in ("server-initialize", "ping", "tools-list", "http-header-validation", "dns-rebinding-protection"):
        assert generic not in scenarios
    assert "caching" not in scenarios
    assert len(scenarios["server-stateless"]) == 2, "both want a tool that asks the client for a model"
