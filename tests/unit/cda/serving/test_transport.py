import socket
from typing import Any

import pytest

from cda.errors import UnavailableError, UsageError
from cda.serving.addresses import is_loopback
from cda.serving.tool_server import ToolServer
from cda.serving.transport import Http, host_rules, serve_http

pytestmark = pytest.mark.promise("server.loopback")


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "::1", "127.9.9.9"])
def test_the_loopback_needs_no_allow_list(host: str) -> None:
    assert is_loopback(host)
    assert "localhost:*" in host_rules(host, ()).allowed_hosts


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "10.0.0.4", "policy.example", "127.0.0.1.evil.example", ""])  # noqa: S104
def test_any_other_host_is_refused_without_one(host: str) -> None:
    assert not is_loopback(host)
    with pytest.raises(UsageError, match="--allow-host"):
        host_rules(host, ())


def test_an_allow_list_replaces_the_loopback_names_on_another_host() -> None:
    rules = host_rules("10.0.0.4", ["policy.example", "[fd00::1]"])
    assert rules.enable_dns_rebinding_protection
    assert rules.allowed_hosts == ["policy.example", "policy.example:*", "[fd00::1]", "[fd00::1]:*"]
    assert "https://policy.example" in rules.allowed_origins
    assert not any("localhost" in origin for origin in rules.allowed_origins)


@pytest.mark.parametrize("name", ["*", "*.example", "https://policy.example", "policy.example:443", "a b", "-x", ""])
def test_an_allowed_host_is_a_bare_name(name: str) -> None:
    with pytest.raises(UsageError, match="bare host name"):
        host_rules("127.0.0.1", [name])


def test_a_taken_port_is_unavailable_and_says_what_to_do() -> None:
    tools: list[Any] = []
    server = ToolServer("empty", title="Empty", version="1", instructions="", tools=tools)
    with socket.create_server(("127.0.0.1", 0)) as taken, pytest.raises(UnavailableError, match="--port"):
        serve_http(server, Http(port=taken.getsockname()[1]))


@pytest.mark.promise("kernel.options")
@pytest.mark.parametrize(
    ("at", "keyed", "words"),
    [
        (Http(host="192.0.2.1"), False, "--allow-host"),
        (Http(host="192.0.2.1", allow_hosts=("a.example",)), False, "--keys"),
        (Http(host="192.0.2.1", allow_hosts=("a.example",), tls=("c", "k")), False, "--keys"),
        (Http(host="192.0.2.1", allow_hosts=("a.example",)), True, "--tls-cert"),
        (Http(allow_hosts=("https://a.example",)), False, "bare host name"),
    ],
)
def test_a_place_to_listen_is_refused_before_anything_is_opened(at: Http, keyed: bool, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        at.check(keyed=keyed)


@pytest.mark.promise("kernel.options")
def test_keys_may_travel_on_the_loopback_under_tls_or_behind_a_proxy() -> None:
    names = ("a.example",)
    for at in (
        Http(),
        Http(host="192.0.2.1", allow_hosts=names, tls=("cert.pem", "key.pem")),
        Http(host="192.0.2.1", allow_hosts=names, behind_proxy=True),
    ):
        assert at.check(keyed=True).allowed_hosts
