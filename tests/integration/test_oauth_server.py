"""The claims server with an authorisation server beside it: real processes, a real client, both transports."""

import asyncio
import http.client
import json
import socket
import ssl
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx2
import pytest
from integration.claims_servers import COMMAND, TOOLS, Site, call, message, post, routed, stateless, stdio
from integration.oauth_issuer import CLIENTS, Issuer, authorisation_server, private_key
from mcp.client.auth import TokenStorage
from mcp.client.auth.extensions.client_credentials import ClientCredentialsOAuthProvider
from mcp.client.session import ClientSession
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import OAuthClientInformationFull, OAuthToken

from cda.ledger.keys import argument_hasher
from cda.serving.oauth_resource import WELL_KNOWN, principal_name

METADATA = f"https://claims.example{WELL_KNOWN}/mcp"
CALLED: Any = {"name": "get_claim", "arguments": TOOLS["get_claim"]}


@pytest.fixture(scope="module")
def key() -> Any:
    return private_key("RS256")


@pytest.fixture
def issuer(key: Any) -> Iterator[Issuer]:
    with authorisation_server(key) as found:
        yield found


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site.at(tmp_path / "home")


def asked(address: str, secret: str | None, tool: str = "get_claim", path: str = "/mcp", **headers: str) -> Any:
    """Status, headers and body of one call, whole in itself."""
    place = urlsplit(address)
    connection = http.client.HTTPConnection(place.hostname or "", place.port, timeout=30)
    sent = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
    sent |= routed("tools/call", **{"Mcp-Name": tool}) | headers
    if secret is not None:
        sent["Authorization"] = f"Bearer {secret}"
    body = json.dumps(stateless("tools/call", {"name": tool, "arguments": TOOLS.get(tool, {})}))
    connection.request("POST", path, body, sent)
    answer = connection.getresponse()
    text = answer.read().decode()
    connection.close()
    return answer.status, answer.headers, text


class Memory(TokenStorage):
    """What a client keeps of its tokens."""

    def __init__(self) -> None:
        self.tokens: OAuthToken | None = None

    async def get_tokens(self) -> OAuthToken | None:
        return self.tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self.tokens = tokens

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return None

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        """Nothing to keep."""


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.mark.promise("oauth.session")
def test_the_sdks_client_finds_the_issuer_gets_a_token_and_calls_every_tool(site: Site, issuer: Issuer) -> None:
    port = free_port()
    issuer.resource = f"http://127.0.0.1:{port}/mcp"

    async def session(address: str) -> tuple[list[str], list[Any]]:
        provider = ClientCredentialsOAuthProvider(
            address, Memory(), client_id="robot", client_secret=CLIENTS["robot"], issuer=issuer.address
        )
        async with (
            httpx2.AsyncClient(auth=provider, timeout=60) as client,
            streamable_http_client(address, http_client=client) as streams,
            ClientSession(streams[0], streams[1]) as session,
        ):
            await session.initialize()
            listed = [tool.name for tool in (await session.list_tools()).tools]
            return listed, [await session.call_tool(tool, arguments) for tool, arguments in TOOLS.items()]

    with site.http("--port", str(port), **issuer.variables) as address:
        listed, answers = asyncio.run(session(address))

    assert set(listed) == set(TOOLS)
    assert [answer.is_error for answer in answers] == [False] * 5
    (form,) = issuer.asked
    assert form["resource"] == [issuer.resource], "the client asked for a token for this server alone"
    assert set(form["scope"][0].split()) == {"claims:read", "rules:read", "claims:notes", "claims:all"}
    named = principal_name(issuer.address, "robot", argument_hasher(site.home / "ledger-keys"))
    assert {record["principal"] for record in site.records()} == {named}
    assert site.verdict().sound


@pytest.mark.promise("oauth.session")
def test_keys_and_tokens_work_beside_each_other_in_both_eras(site: Site, issuer: Issuer) -> None:
    first = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
    begin = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": first}
    with site.http(**issuer.variables) as address:
        for secret in (site.secret, issuer.token()):
            status, text = call(address, secret, "get_claim", TOOLS["get_claim"])
            assert (status, "CLM-00000001" in text) == (200, True)
            assert post(address, secret, begin)[0] == 200
        assert post(address, issuer.token(aud="https://other.example"), begin)[0] == 401
        assert post(address, "cda_wrong", begin)[0] == 401


@pytest.mark.promise("oauth.session")
def test_without_a_key_file_tokens_alone_open_the_door(site: Site, issuer: Issuer) -> None:
    (site.home / "keys.json").unlink()
    with site.http(**issuer.variables) as address:
        assert call(address, issuer.token(), "get_claim", TOOLS["get_claim"])[0] == 200
        assert call(address, site.secret, "get_claim", TOOLS["get_claim"])[0] == 401


@pytest.mark.promise("oauth.session")
def test_a_client_without_a_token_is_told_where_to_get_one(site: Site, issuer: Issuer) -> None:
    with site.http(**issuer.variables) as address:
        status, headers, _ = asked(address, None)
        assert (status, headers["WWW-Authenticate"]) == (401, f'Bearer resource_metadata="{METADATA}"')
        status, headers, _ = asked(address, issuer.token(iss="https://evil.example"))
        assert (status, headers["WWW-Authenticate"]) == (
            401,
            f'Bearer error="invalid_token", resource_metadata="{METADATA}"',
        )
        for path in (WELL_KNOWN, f"{WELL_KNOWN}/mcp"):
            with urllib.request.urlopen(address.replace("/mcp", path), timeout=10) as answer:  # noqa: S310
                told = json.load(answer)
            assert told == {
                "resource": "https://claims.example/mcp",
                "authorization_servers": [issuer.address],
                "scopes_supported": ["claims:read", "rules:read", "claims:notes", "claims:all"],
                "bearer_methods_supported": ["header"],
            }
    with site.http() as address:
        status, headers, _ = asked(address, None)
        assert (status, headers["WWW-Authenticate"]) == (401, "Bearer")
        assert post(address.replace("/mcp", WELL_KNOWN), None, {})[0] == 401, "a server of keys alone has no metadata"


@pytest.mark.promise("oauth.scopes")
def test_a_tool_beyond_the_scopes_is_neither_listed_nor_callable_and_the_scope_to_ask_for_is_named(
    site: Site, issuer: Issuer
) -> None:
    token = issuer.token(scope="openid rules:read")
    with site.http(**issuer.variables) as address:
        listed = message(post(address, token, stateless("tools/list"), **routed("tools/list"))[1])["result"]["tools"]
        assert [tool["name"] for tool in listed] == ["get_coverage_rule"]
        assert asked(address, token, "get_coverage_rule")[0] == 200
        before = len(site.records())
        status, headers, text = asked(address, token, "get_claim_notes")
        assert (status, "CLM" in text) == (403, False)
        assert headers["WWW-Authenticate"] == (
            f'Bearer error="insufficient_scope", scope="rules:read claims:notes", resource_metadata="{METADATA}"'
        )
        (record,) = site.records()[before:]
        assert (record["kind"], record["tool"], record["outcome"]) == ("refusal", "get_claim_notes", "unknown_tool")
        assert "unknown_tool" in asked(address, token, "drop_everything")[2]
        legacy = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": CALLED}
        assert post(address, token, legacy)[0] == 403, "without the headers of the newer era too"
        nothing = issuer.token(scope=None)
        assert asked(address, nothing, "get_claim")[0] == 403
        listed = message(post(address, nothing, stateless("tools/list"), **routed("tools/list"))[1])["result"]["tools"]
        assert listed == []


@pytest.mark.promise("oauth.refused")
def test_a_token_in_the_address_or_in_two_headers_is_refused(site: Site, issuer: Issuer) -> None:
    token = issuer.token()
    with site.http(**issuer.variables) as address:
        for query in (f"access_token={token}", "ACCESS_TOKEN=x", f"a=1&access%5Ftoken={token}", "token=x"):
            status, headers, text = asked(address, token, path=f"/mcp?{query}")
            assert (status, token in text) == (400, False)
            assert 'error="invalid_request"' in headers["WWW-Authenticate"]
        assert asked(address, None, path=f"/mcp?access_token={token}")[0] == 400
        place = urlsplit(address)
        connection = http.client.HTTPConnection(place.hostname or "", place.port, timeout=30)
        connection.putrequest("POST", "/mcp")
        for secret in (token, site.secret):
            connection.putheader("Authorization", f"Bearer {secret}")
        connection.putheader("Content-Length", "2")
        connection.endheaders(b"{}")
        assert connection.getresponse().status == 401
        connection.close()


@pytest.mark.promise("oauth.down")
def test_while_the_issuers_keys_cannot_be_had_tokens_are_refused_and_keys_go_on(site: Site, issuer: Issuer) -> None:
    short = "import cda.serving.issuer_keys as k\nk.FRESH_S = 0.2\nk.RETRY_S = 0.2"
    with site.http(first=short, **issuer.variables) as address:
        assert asked(address, issuer.token())[0] == 200
        issuer.fault = "hangs up"
        time.sleep(0.3)
        status, headers, text = asked(address, issuer.token())
        assert (status, headers["WWW-Authenticate"], "CLM" in text, "jwks" in text) == (503, None, False, False)
        assert asked(address, site.secret)[0] == 200
        issuer.fault = None
        time.sleep(0.3)
        assert asked(address, issuer.token())[0] == 200


@pytest.mark.promise("oauth.down")
@pytest.mark.parametrize(
    ("changed", "code", "words"),
    [
        ({"CDA_OAUTH_JWKS": "http://127.0.0.1:9/jwks"}, 3, "keys cannot be fetched"),
        ({"CDA_OAUTH_JWKS": "http://issuer.example/jwks"}, 2, "CDA_OAUTH_JWKS must be an https address"),
        ({"CDA_OAUTH_SCOPES": "a=get_clam"}, 2, "names a tool that this server does not have"),
        ({"CDA_OAUTH_RESOURCE": ""}, 2, "CDA_OAUTH_RESOURCE not set"),
    ],
)
def test_a_server_whose_tokens_could_not_be_checked_does_not_start(
    site: Site, issuer: Issuer, changed: dict[str, str], code: int, words: str
) -> None:
    started = subprocess.run(
        [*COMMAND, "--transport", "http", "--port", "0"],
        env=site.environment(**(issuer.variables | changed)),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert (started.returncode, started.stdout) == (code, ""), started.stderr
    assert words in started.stderr
    assert "Traceback" not in started.stderr


@pytest.mark.promise("oauth.keys")
def test_keys_that_rotate_are_taken_up_by_a_server_that_runs(site: Site, issuer: Issuer) -> None:
    with site.http(first="import cda.serving.issuer_keys as k\nk.AGAIN_S = 0.2", **issuer.variables) as address:
        assert asked(address, issuer.token())[0] == 200
        issuer.add("second", "ES256")
        del issuer.published["first"]
        time.sleep(0.3)
        assert asked(address, issuer.token("second"))[0] == 200
        assert asked(address, issuer.token("first"))[0] == 401


@pytest.mark.promise("oauth.keys")
def test_keys_come_over_tls_from_whom_the_machine_trusts_and_from_nobody_else(site: Site, issuer: Issuer) -> None:
    from integration.test_claims_server import self_signed

    certificate, private = self_signed(site.home)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, private)
    with authorisation_server(issuer.keys["first"][1], tls=context) as secure:
        place = urlsplit(secure.address)
        assert place.scheme == "https"
        with site.http(**secure.variables, SSL_CERT_FILE=certificate) as address:
            assert asked(address, secure.token())[0] == 200
        untrusted = subprocess.run(
            [*COMMAND, "--transport", "http", "--port", "0"],
            env=site.environment(**secure.variables),
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    assert (untrusted.returncode, "SSLCertVerificationError" in untrusted.stderr) == (3, True)


@pytest.mark.promise("oauth.gates")
def test_the_limit_is_counted_by_subject_whatever_token_it_shows(site: Site, issuer: Issuer) -> None:
    with site.http(**issuer.variables, CDA_RATE_LIMIT="3/600") as address:
        janes = [asked(address, issuer.token(jti=str(number)))[2] for number in range(4)]
        other = asked(address, issuer.token(sub="joe"))[2]
        beyond = issuer.token(scope="rules:read", sub="ann")
        told = [asked(address, beyond, "get_claim")[0] for _ in range(5)]

    assert ["rate_limited" in text for text in janes] == [False, False, False, True]
    assert "rate_limited" not in other
    assert told == [403, 403, 403, 429, 429], "a refusal for want of a scope counts as a call"


@pytest.mark.promise("oauth.gates")
def test_over_stdio_the_one_caller_may_show_a_token_and_it_is_asked_for_at_every_call(
    site: Site, issuer: Issuer
) -> None:
    from cda.serving.access_tokens import LEEWAY_S

    token = issuer.token(scope="rules:read", exp=int(time.time()) - LEEWAY_S + 8)
    with stdio(site, CDA_API_KEY=token, **issuer.variables) as wire:
        wire.start()
        listed = wire.ask("tools/list", {})["result"]["tools"]
        allowed = wire.call("get_coverage_rule", TOOLS["get_coverage_rule"])["result"]
        forbidden = wire.call("get_claim", TOOLS["get_claim"])["result"]
        while "result" in (late := wire.call("get_coverage_rule", TOOLS["get_coverage_rule"])):
            time.sleep(0.5)

    assert [tool["name"] for tool in listed] == ["get_coverage_rule"]
    assert (allowed["isError"], forbidden["isError"]) == (False, True)
    assert forbidden["content"][0]["text"].startswith("unknown_tool")
    assert late["error"]["code"] == -32001, "the token expired in the middle of the session"


@pytest.mark.promise("oauth.gates")
def test_expired_tokens_of_one_caller_shut_out_nobody_else(site: Site, issuer: Issuer) -> None:
    expired = issuer.token(exp=int(time.time()) - 100)
    with site.http(**issuer.variables) as address:
        told = [asked(address, expired)[0] for _ in range(12)]
        fresh = [asked(address, issuer.token())[0], asked(address, issuer.token(sub="joe"))[0]]
        refusals = [record for record in site.records() if record["kind"] == "refusal"]

    assert told == [401] * 10 + [429] * 2
    assert fresh == [200, 200], "the same subject too, once it has a token that holds"
    assert len(refusals) == 10, "failed authentications are on the record, and a flood of them is not"


@pytest.mark.promise("oauth.quiet")
def test_no_token_and_no_subject_is_written_anywhere(site: Site, issuer: Issuer) -> None:
    subject = "jane.canary-4711@example.org"
    tokens = [
        issuer.token(sub=subject),
        issuer.token(sub=subject, scope="rules:read"),
        issuer.token(sub=subject, aud="https://other.example/canary-4711"),
        issuer.token(sub=subject, exp=int(time.time()) - 100),
        issuer.token(sub=subject, header={"kid": "canary-4711"}),
        issuer.with_hmac(b"canary-4711"),
        issuer.signed('{"canary-4711'),
        "canary-4711",
    ]
    texts = []
    with site.http(**issuer.variables) as address:
        for token in tokens:
            status, headers, text = asked(address, token)
            texts += [str(status), str(headers), text]
        texts.append(asked(address, tokens[0], path=f"/mcp?access_token={tokens[0]}&canary-4711")[2])

    said = "".join(texts) + "".join(
        file.read_text(encoding="utf-8", errors="replace")
        for file in site.home.rglob("*")
        if (file.is_file() and file.suffix in (".jsonl", ".json", "")) or file.name.startswith("stderr")
    )
    assert "canary-4711" not in said
    assert not any(token in said for token in tokens)
    assert any(record["principal"].startswith("oauth:") for record in site.records())


@pytest.mark.promise("oauth.session")
def test_a_session_belongs_to_whoever_began_it(site: Site, issuer: Issuer) -> None:
    first = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
    jane, joe = issuer.token(sub="jane"), issuer.token(sub="joe")
    with site.http(**issuer.variables) as address:
        place = urlsplit(address)
        connection = http.client.HTTPConnection(place.hostname or "", place.port, timeout=30)
        headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}

        def sent(secret: str, method: str, body: Any, **more: str) -> Any:
            text = json.dumps(body) if body is not None else None
            connection.request(method, "/mcp", text, headers | {"Authorization": f"Bearer {secret}"} | more)
            answer = connection.getresponse()
            answer.read()
            return answer

        begun = sent(jane, "POST", {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": first})
        mine = {"Mcp-Session-Id": begun.headers["Mcp-Session-Id"], "MCP-Protocol-Version": "2025-06-18"}
        listing = {"jsonrpc": "2.0", "id": 2, "method": "tools/list", "params": {}}
        sent(jane, "POST", {"jsonrpc": "2.0", "method": "notifications/initialized"}, **mine)
        told = [
            sent(joe, "POST", listing, **mine).status,
            sent(site.secret, "DELETE", None, **mine).status,
            sent(issuer.token(sub="jane", jti="another"), "POST", listing, **mine).status,
            sent(jane, "POST", listing, **mine).status,
        ]
        connection.close()

    assert told == [404, 404, 200, 200]


@pytest.mark.promise("oauth.quiet")
def test_the_command_names_a_subject_as_the_ledger_does_and_the_doctor_looks_at_the_issuer(
    site: Site, issuer: Issuer, monkeypatch: pytest.MonkeyPatch
) -> None:
    from click.testing import CliRunner

    from cda.serving.keys_command import keys_group
    from cda.settings import load_settings
    from cda.systems.claims.doctor_checks import examine

    with stdio(site, CDA_API_KEY=issuer.token(sub="joe"), **issuer.variables) as wire:
        wire.start()
        wire.call("get_claim", TOOLS["get_claim"])
    for name, value in site.environment(**issuer.variables).items():
        monkeypatch.setenv(name, value)

    told = CliRunner().invoke(keys_group, ["subject", "joe"])

    assert told.exit_code == 0
    assert {record["principal"] for record in site.records()} == {told.output.strip()}
    assert [finding.state for finding in examine(load_settings())] == ["ok"] * 3
    issuer.fault = "hangs up"
    states = {finding.name: finding.state for finding in examine(load_settings())}
    assert states["authorisation server"] == "fail"
