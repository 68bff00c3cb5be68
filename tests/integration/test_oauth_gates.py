"""Every gate that a token passes taken away in turn: each is missed by a token that it alone refuses.

The gates are read from the code: what `AccessTokens.principal` calls, and what it asks of the JWT library. The kernel's
own gates are taken away in `test_claims_gates.py`, and here once more for a caller with a token.
"""

import ast
import asyncio
import inspect
import textwrap
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import jwt
import pytest
from integration.claims_servers import TOOLS, Site, stdio
from integration.oauth_issuer import Issuer, authorisation_server, encoded, private_key
from mcp import Client
from mcp.shared.exceptions import MCPError

import cda.serving.access_tokens as module
from cda.serving.access_tokens import AccessTokens
from cda.serving.issuer_keys import IssuerKey, IssuerKeys
from cda.serving.oauth_resource import OAuthResource
from cda.settings import load_settings
from cda.systems.claims.server import claims_server

pytestmark = pytest.mark.promise("oauth.gates")
UNKNOWN_KEY = IssuerKey(("RS256",), None)


@pytest.fixture(scope="module")
def key() -> Any:
    return private_key("RS256")


@pytest.fixture
def issuer(key: Any) -> Iterator[Issuer]:
    with authorisation_server(key) as found:
        yield found


@pytest.fixture
def site(tmp_path: Path, issuer: Issuer, monkeypatch: pytest.MonkeyPatch) -> Site:
    site = Site.at(tmp_path / "home")
    for name, value in site.environment(**issuer.variables).items():
        monkeypatch.setenv(name, value)
    return site


def decoding(**changed: Any) -> Callable[[pytest.MonkeyPatch], None]:
    """The JWT library's check without one of its parts."""

    def robbed(monkeypatch: pytest.MonkeyPatch) -> None:
        whole = jwt.decode

        def absent(token: str, key: Any, **asked: Any) -> Any:
            options = {"verify_exp": True, "verify_nbf": True, "verify_aud": True, "verify_iss": True} | asked[
                "options"
            ]
            merged = {**asked, "options": options}
            merged |= {name: value for name, value in changed.items() if name != "options"}
            merged["options"] = options | changed.get("options", {})
            return whole(token, key, **merged)

        monkeypatch.setattr(jwt, "decode", absent)

    return robbed


def replaced(holder: object, name: str, absent: Any) -> Callable[[pytest.MonkeyPatch], None]:
    return lambda monkeypatch: monkeypatch.setattr(holder, name, absent)


def any_key(issuer: Issuer) -> Callable[[pytest.MonkeyPatch], None]:
    """The one published key, whichever a token names."""

    def robbed(monkeypatch: pytest.MonkeyPatch) -> None:
        whole = IssuerKeys.key
        monkeypatch.setattr(IssuerKeys, "key", lambda self, _kid: whole(self, "first"))

    return robbed


def tampered(issuer: Issuer) -> str:
    header, _, signature = issuer.token().split(".")
    return f"{header}.{encoded(str(issuer.claims(sub='root')).replace(chr(39), chr(34)).encode())}.{signature}"


def signed_by_a_key_for_pss(issuer: Issuer) -> str:
    issuer.add("pss", "PS256")
    issuer.keys["pss"] = ("RS256", issuer.keys["pss"][1])
    return issuer.token("pss")


def of_an_unknown_key(issuer: Issuer) -> str:
    return issuer.token(header={"kid": "nobody"})


Robbery = Callable[[Issuer], Callable[[pytest.MonkeyPatch], None]]
# A gate, a token that it alone refuses, and the server without it.
GATES: Mapping[str, tuple[Callable[[Issuer], str], Robbery]] = {
    "_header_holds": (
        lambda i: i.token(header={"typ": "logout+jwt"}),
        lambda _: replaced(module, "_header_holds", lambda _header: True),
    ),
    "_claims_hold": (
        lambda i: i.token(cnf={"jkt": "x"}),
        lambda _: replaced(module, "_claims_hold", lambda _claims: True),
    ),
    "key": (of_an_unknown_key, any_key),
    "verifies": (signed_by_a_key_for_pss, lambda _: replaced(IssuerKey, "verifies", lambda _self, _alg: True)),
    "decode": (tampered, lambda _: decoding(options={"verify_signature": False})),
    "decode.issuer": (lambda i: i.token(iss="https://evil.example"), lambda _: decoding(options={"verify_iss": False})),
    "decode.audience": (
        lambda i: i.token(aud="https://other.example/mcp"),
        lambda _: decoding(options={"verify_aud": False}),
    ),
    "decode.leeway": (lambda i: i.token(exp=int(time.time()) - 90), lambda _: decoding(leeway=3600)),
    "decode.options": (lambda i: i.token(aud=None), lambda _: decoding(options={"require": [], "verify_aud": False})),
    "tools": (
        lambda i: i.token(scope="rules:read"),
        lambda _: replaced(OAuthResource, "tools", lambda _self, _granted: None),
    ),
}
# What else is called or handed on there: it refuses nothing by itself, or only what could not be read further.
NO_GATES = {"match", "len", "object_of", "_decoded", "principal_name", "Lapsed", "Principal", "_scopes"}
NO_GATE_OF_THE_LIBRARY = {"algorithms"}  # always the header's, which `_header_holds` and `verifies` have asked about


def told(server: Any) -> str:
    """What a client hears of one call, whether by the tool or by the protocol."""

    async def asked() -> str:
        async with Client(server) as client:
            answer = await client.call_tool("get_claim", TOOLS["get_claim"])
            return str(answer.content[0].text)  # type: ignore[union-attr]

    heard: list[BaseException] = []
    try:
        return asyncio.run(asked())
    except* MCPError as errors:
        heard = list(errors.exceptions)
    while isinstance(heard[0], BaseExceptionGroup):
        heard = list(heard[0].exceptions)
    return str(heard[0])


def test_the_gates_are_those_of_the_code_and_each_has_a_probe() -> None:
    tree = ast.parse(textwrap.dedent(inspect.getsource(AccessTokens.principal)))
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    names = {node.func.attr if isinstance(node.func, ast.Attribute) else node.func.id for node in calls}  # type: ignore[attr-defined]
    (decode,) = [node for node in calls if isinstance(node.func, ast.Attribute) and node.func.attr == "decode"]
    asked = {f"decode.{keyword.arg}" for keyword in decode.keywords if keyword.arg not in NO_GATE_OF_THE_LIBRARY}

    assert (names - NO_GATES) | asked == set(GATES)


@pytest.mark.parametrize("gate", GATES)
def test_a_gate_of_tokens_that_is_taken_away_is_missed(
    site: Site, issuer: Issuer, monkeypatch: pytest.MonkeyPatch, gate: str
) -> None:
    make, robbery = GATES[gate]
    monkeypatch.setenv("CDA_API_KEY", make(issuer))

    whole = told(claims_server(load_settings()))
    robbery(issuer)(monkeypatch)
    robbed = told(claims_server(load_settings()))

    assert whole.startswith(("unauthenticated", "unknown_tool")), whole
    assert robbed.startswith('{"claim_id"'), robbed


ABSENT: Mapping[str, str] = {
    "authenticate": "import cda.serving.principal as p\nabsent = lambda s, c: setattr(c, 'principal', p.ANYONE)",
    "limit": "absent = lambda s, call: None",
    "authorise": "absent = lambda s, call: None",
}
TOKENS: Mapping[str, Callable[[Issuer], str]] = {
    "authenticate": lambda i: i.token(aud="https://other.example"),
    "limit": lambda i: i.token(),
    "authorise": lambda i: i.token(scope="rules:read"),
}
WORDS = {"authenticate": "unauthenticated", "limit": "rate_limited", "authorise": "unknown_tool"}


@pytest.mark.parametrize("gate", ABSENT)
def test_a_gate_of_the_kernel_that_is_taken_away_on_stdio_is_missed_by_a_token(
    site: Site, issuer: Issuer, gate: str
) -> None:
    answers = []
    for first in ("", f"{ABSENT[gate]}\nfrom cda.serving.kernel import Kernel\nKernel.{gate} = absent"):
        variables = issuer.variables | {
            "CDA_API_KEY": TOKENS[gate](issuer),
            "CDA_RATE_LIMIT": "2/600" if gate == "limit" else "9/600",
        }
        for file in site.home.glob("rate-limit.sqlite*"):
            file.unlink()
        with stdio(site, first=first, **variables) as wire:
            wire.start()
            answer = [wire.call("get_claim", TOOLS["get_claim"]) for _ in range(3)][-1]
        answers.append(answer["result"]["content"][0]["text"] if "result" in answer else answer["error"]["message"])

    assert answers[0].startswith(WORDS[gate])
    assert answers[1].startswith('{"claim_id"')
