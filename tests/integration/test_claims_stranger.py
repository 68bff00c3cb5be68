"""A stranger at the door, a hostile caller inside: who takes connections, locks and time, and what is ambiguous."""

import fcntl
import http.client
import json
import socket
import sqlite3
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from integration.claims_servers import ERA, TOOLS, Site, call, post, routed, stateless, stdio

from cda.errors import UnavailableError
from cda.serving import key_store
from cda.serving.key_store import make_key, revoke_key

pytestmark = pytest.mark.promise("claims.stranger")
IMPATIENT = (
    "import cda.serving.impatient_http as h\nh.REQUEST_S, h.MAX_CONNECTIONS = 2.0, 40\n"
    "import cda.ledger.ledger as l\nl.LOCK_S = 1.0\nimport cda.serving.rate_limit as r\nr.LOCK_S = 1.0"
)
CLOSED = "internal_error: the server cannot answer now; its log names the part"


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site.at(tmp_path / "home")


@pytest.fixture
def address(site: Site) -> Iterator[str]:
    with site.http(first=IMPATIENT) as address:
        yield address


def connected(address: str) -> socket.socket:
    place = urlsplit(address)
    return socket.create_connection((place.hostname or "", place.port or 0), timeout=10)


def ended(connection: socket.socket) -> bool:
    """True when the other side has closed it, whatever it still said before."""
    try:
        while connection.recv(4096):
            pass
        return True
    except ConnectionError:
        return True
    except TimeoutError:
        return False


def answered(site: Site, address: str) -> bool:
    return '"isError":false' in call(address, site.secret, "get_claim", TOOLS["get_claim"])[1]


def test_who_opens_a_connection_and_does_not_finish_a_request_loses_it(site: Site, address: str) -> None:
    head = f"POST /mcp HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {site.secret}\r\n".encode()
    begun = time.monotonic()
    silent, half, body, again = (connected(address) for _ in range(4))
    half.sendall(head)
    body.sendall(head + b"Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{")
    again.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
    assert b"200 OK" in again.recv(4096)
    again.sendall(b"GET /hea")
    dripping = connected(address)
    closed = False
    for byte in head * 2:
        try:
            dripping.sendall(bytes([byte]))
        except ConnectionError:
            closed = True
            break
        time.sleep(0.05)

    assert closed, "a byte now and then does not buy time"
    assert all(ended(connection) for connection in (silent, half, body, again))
    assert time.monotonic() - begun < 20
    assert answered(site, address)
    for connection in (silent, half, body, again, dripping):
        connection.close()
    assert site.verdict().sound


def test_more_connections_than_it_holds_are_closed_and_the_door_opens_again(site: Site, address: str) -> None:
    crowd = [connected(address) for _ in range(80)]
    closed = sum(ended(connection) for connection in crowd[60:])
    for connection in crowd:
        connection.close()

    assert closed == 20
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        try:
            if answered(site, address):
                return
        except (OSError, http.client.HTTPException):
            time.sleep(0.1)
    pytest.fail("nobody was let in any more")


def test_a_name_twice_in_a_message_is_refused_on_both_transports(site: Site, address: str) -> None:
    good = json.dumps(stateless("tools/call", {"name": "get_claim", "arguments": TOOLS["get_claim"]}))
    twice = [
        good.replace('"method"', '"method": "ping", "method"', 1),
        good.replace('"claim_id"', '"claim_id": "CLM-00000009", "claim_id"', 1),
        good.replace('"name": "get_claim"', '"name": "get_coverage_rule", "name": "get_claim"', 1),
    ]
    with stdio(site) as wire:
        wire.start()
        for text in twice:
            assert text != good
            status, body = post(
                address, site.secret, text.encode(), **routed("tools/call", **{"Mcp-Name": "get_claim"})
            )
            assert (status, "CLM" in body) == (400, False)
            wire.send(text)
            told = wire.next()
            assert (told["id"], told["error"]["message"]) == (1, "the line is no valid message of the protocol")
        assert not wire.call("get_claim", TOOLS["get_claim"])["result"]["isError"]
    assert [record["outcome"] for record in site.records() if record["kind"] == "outcome"] == ["ok"]


def test_a_call_without_an_id_is_let_through_the_same_gates_and_gives_nothing(site: Site) -> None:
    with stdio(site) as wire:
        wire.start()
        for _ in range(50):
            wire.send(json.dumps({"jsonrpc": "2.0", "method": "tools/call", "params": {"name": "get_claim"}}))
            wire.send(json.dumps({"jsonrpc": "2.0", "method": "notifications/progress", "params": {"x": "y" * 1000}}))
            wire.send(json.dumps({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 77}}))
        answer = wire.call("get_claim", TOOLS["get_claim"])
    assert not answer["result"]["isError"]
    assert all("claim_id" not in line for line in wire.lines[:-1])
    assert site.verdict().sound


def test_a_call_that_is_cancelled_has_its_outcome_on_the_record(site: Site) -> None:
    slow = (
        "import time\nfrom cda.systems.claims.tools import ClaimsTools\nwhole = ClaimsTools.get_claim\n"
        "ClaimsTools.get_claim = lambda s, asked: (time.sleep(1.0), whole(s, asked))[1]"
    )
    with stdio(site, first=slow) as wire:
        wire.start()
        called = {"name": "get_claim", "arguments": TOOLS["get_claim"]}
        wire.send(json.dumps({"jsonrpc": "2.0", "id": 900, "method": "tools/call", "params": called}))
        cancelled = {"requestId": 900, "reason": "x"}
        wire.send(json.dumps({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": cancelled}))
        assert not wire.call("get_coverage_rule", TOOLS["get_coverage_rule"])["result"]["isError"]
        while len([r for r in site.records() if r["kind"] == "outcome"]) < len(
            [r for r in site.records() if r["kind"] == "intent"]
        ):
            time.sleep(0.1)

    verdict = site.verdict()
    assert (verdict.sound, verdict.open_intents) == (True, ())


def test_from_the_moment_a_key_is_revoked_no_call_that_begins_is_answered(site: Site, address: str) -> None:
    revoked = threading.Event()
    late: list[int] = []

    def ask() -> None:
        for _ in range(40):
            began_after = revoked.is_set()
            status = call(address, site.secret, "get_coverage_rule", TOOLS["get_coverage_rule"])[0]
            if began_after:
                late.append(status)
                return

    with ThreadPoolExecutor(8) as pool:
        asking = [pool.submit(ask) for _ in range(8)]
        time.sleep(0.5)
        make_key(site.home / "keys.json", key_id="other", tools=[])
        revoke_key(site.home / "keys.json", "analyst")
        revoked.set()
        for each in asking:
            each.result()

    assert late, "somebody asked afterwards"
    assert set(late) <= {401, 429}
    assert site.verdict().sound


def test_a_lock_that_somebody_holds_closes_the_server_and_it_opens_again(site: Site, address: str) -> None:
    assert answered(site, address)
    begun = time.monotonic()
    with (site.home / "ledger" / ".lock").open("rb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        told = call(address, site.secret, "get_claim", TOOLS["get_claim"])[1]
    assert CLOSED in told
    assert time.monotonic() - begun < 15
    assert answered(site, address)

    holding = sqlite3.connect(site.home / "rate-limit.sqlite", isolation_level=None)
    holding.execute("BEGIN IMMEDIATE")
    assert CLOSED in call(address, site.secret, "get_claim", TOOLS["get_claim"])[1]
    holding.execute("ROLLBACK")
    holding.close()
    assert answered(site, address)
    assert site.verdict().sound


def test_keys_that_somebody_is_changing_are_not_waited_for_without_end(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(key_store, "LOCK_S", 0.3)
    with (site.home / ".keys.json.lock").open("rb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with pytest.raises(UnavailableError, match="does not let go"):
            revoke_key(site.home / "keys.json", "analyst")

    revoke_key(site.home / "keys.json", "analyst")


def test_junk_opens_no_sessions(site: Site, address: str) -> None:
    for _ in range(30):
        status, _ = post(address, site.secret, b'{"jsonrpc":"2.0","id":1,"method":"tools/list"}')
        assert status == 400
    status, text = post(address, site.secret, b"[" + json.dumps(stateless("ping")).encode() + b"]", **routed("ping"))
    assert (status, ERA in text) == (400, False)
    assert answered(site, address)
