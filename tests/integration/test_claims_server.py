"""The claims server as its clients meet it: real processes, a real client, both transports."""

import asyncio
import http.client
import json
import os
import signal
import ssl
import subprocess
import sys
import threading
import time
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from integration.claims_servers import COMMAND, TOOLS, Site, call, post, routed, session_calls, stateless, stdio

from cda.serving.key_store import make_key, revoke_key


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site.at(tmp_path / "home")


@pytest.mark.promise("claims.session")
def test_every_tool_answers_over_stdio_and_every_byte_is_protocol(site: Site) -> None:
    with stdio(site) as wire:
        assert wire.start()["result"]["serverInfo"]["name"] == "claims"
        listed = wire.ask("tools/list", {})["result"]["tools"]
        answers = {tool: wire.call(tool, arguments)["result"] for tool, arguments in TOOLS.items()}
    assert {tool["name"] for tool in listed} == set(TOOLS)
    assert all(tool["annotations"]["readOnlyHint"] and "outputSchema" in tool for tool in listed)
    assert all(not answer["isError"] and answer["structuredContent"] for answer in answers.values())
    assert [json.loads(line)["jsonrpc"] for line in wire.lines] == ["2.0"] * len(wire.lines)
    assert (wire.rest, wire.process.returncode) == ("", 0)
    assert (site.verdict().sound, site.verdict().records, site.verdict().checkpoints) == (True, 10, 1)


@pytest.mark.promise("claims.session")
def test_every_tool_answers_over_http_to_the_sdks_own_client(site: Site) -> None:
    with site.http() as address:
        results = asyncio.run(session_calls(address, site.secret, list(TOOLS.items())))

    assert [result.is_error for result in results] == [False] * 5
    assert results[0].structured_content["claim_id"] == "CLM-00000001"
    assert [record["outcome"] for record in site.records() if record["kind"] == "outcome"] == ["ok"] * 5
    assert site.verdict().checkpoints == 1, "the ledger is signed when the server stops"


@pytest.mark.promise("claims.session")
def test_both_eras_are_behind_the_same_gates(site: Site) -> None:
    with site.http() as address:
        good = call(address, site.secret, "get_claim", TOOLS["get_claim"])
        for secret in (None, "cda_wrong"):
            status, text = call(address, secret, "get_claim", TOOLS["get_claim"])
            assert (status, "CLM-" in text) == (401, False)
        old = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {}}
        assert post(address, None, old)[0] == 401

    assert (good[0], "CLM-00000001" in good[1]) == (200, True)


@pytest.mark.promise("claims.session")
def test_health_is_open_and_says_nothing_else(site: Site) -> None:
    with site.http() as address:
        with urllib.request.urlopen(address.replace("/mcp", "/health"), timeout=10) as answer:  # noqa: S310
            assert json.load(answer) == {"status": "ok"}
        assert post(address, site.secret, {}, Host="evil.example")[0] == 421
        assert post(address, site.secret, {}, Origin="http://evil.example")[0] == 403


@pytest.mark.promise("claims.session")
def test_a_revoked_key_stops_working_without_a_restart_on_both_transports(site: Site) -> None:
    with site.http() as address, stdio(site) as wire:
        wire.start()
        assert call(address, site.secret, "get_claim", TOOLS["get_claim"])[0] == 200
        assert "result" in wire.call("get_claim", TOOLS["get_claim"])

        revoke_key(site.home / "keys.json", "analyst")

        assert call(address, site.secret, "get_claim", TOOLS["get_claim"])[0] == 401
        assert wire.call("get_claim", TOOLS["get_claim"])["error"]["code"] == -32001


@pytest.mark.promise("claims.session")
def test_only_the_tools_of_a_key_are_listed_and_callable(site: Site) -> None:
    secret = make_key(site.home / "keys.json", key_id="rules-only", tools=["get_coverage_rule"])
    with stdio(site, CDA_API_KEY=secret) as wire:
        wire.start()
        listed = wire.ask("tools/list", {})["result"]["tools"]
        allowed = wire.call("get_coverage_rule", TOOLS["get_coverage_rule"])["result"]
        forbidden = wire.call("get_claim", TOOLS["get_claim"])["result"]
        unknown = wire.call("drop_everything", {})["result"]

    assert [tool["name"] for tool in listed] == ["get_coverage_rule"]
    assert (allowed["isError"], forbidden["isError"]) == (False, True)
    assert forbidden["content"] == unknown["content"]


@pytest.mark.promise("claims.closed")
@pytest.mark.parametrize(
    ("break_it", "words"),
    [
        (lambda home: (home / "keys.json").unlink(), "key"),
        (lambda home: (home / "keys.json").write_text("{"), "damaged"),
        (lambda home: (home / "keys.json").chmod(0o666), "mode to 600"),
        (lambda home: (home / "claims.sqlite").unlink(), "cannot be read"),
        (lambda home: (home / "claims.sqlite").write_text("x" * 5000), "no claims database"),
        (lambda home: (home / "claims.sqlite-wal").write_text("x"), "unfinished"),
        (lambda home: (home / "ledger").write_text("no folder"), "File exists"),
        (lambda home: (home / "rate-limit.sqlite").write_bytes(b"x" * 5000), "rate limiter"),
    ],
    ids=["no keys", "bad keys", "loose keys", "no database", "other file", "unfinished", "no ledger", "no limiter"],
)
def test_a_server_that_cannot_keep_its_promises_does_not_start(site: Site, break_it: Any, words: str) -> None:
    break_it(site.home)

    started = subprocess.run(
        [*COMMAND, "--transport", "http", "--port", "0"],
        env=site.environment(),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert started.returncode == 3, started.stderr
    assert words in started.stderr
    assert "Traceback" not in started.stderr
    assert started.stdout == ""


@pytest.mark.promise("claims.closed")
def test_a_ledger_that_fails_while_serving_means_one_plain_error_and_no_row(site: Site) -> None:
    with stdio(site) as wire:
        wire.start()
        assert not wire.call("get_claim", TOOLS["get_claim"])["result"]["isError"]
        for file in (site.home / "ledger").glob("*.jsonl"):
            file.write_bytes(file.read_bytes()[:-20])
        answers = [wire.call(tool, arguments)["result"] for tool, arguments in TOOLS.items()]

    texts = {answer["content"][0]["text"] for answer in answers}
    assert texts == {"internal_error: the server cannot answer now; its log names the part"}


@pytest.mark.promise("claims.closed")
def test_keys_do_not_cross_a_network_in_the_clear(site: Site) -> None:
    options = ["--transport", "http", "--host", "192.0.2.1", "--port", "0", "--allow-host", "claims.example"]

    refused = subprocess.run(
        [*COMMAND, *options], env=site.environment(), capture_output=True, text=True, timeout=60, check=False
    )

    assert (refused.returncode, "--tls-cert" in refused.stderr) == (2, True)


@pytest.mark.promise("claims.counts")
def test_two_servers_of_fifty_threads_count_exactly_and_record_every_call_once(site: Site) -> None:
    limit, each = 1500, 1000

    def ask(address: str) -> str:
        status, text = call(address, site.secret, "get_claim", TOOLS["get_claim"])
        return "ok" if "CLM-00000001" in text else "limited" if "rate_limited" in text else f"{status} {text}"

    rate = {"CDA_RATE_LIMIT": f"{limit}/600"}
    with site.http(**rate) as first, site.http(**rate) as second, ThreadPoolExecutor(100) as pool:
        answers = list(pool.map(ask, [first, second] * each))

    assert (answers.count("ok"), answers.count("limited")) == (limit, 2 * each - limit), set(answers)
    verdict, records = site.verdict(), site.records()
    assert verdict.sound, verdict
    assert verdict.open_intents == ()
    kinds = [record["kind"] for record in records]
    assert (kinds.count("intent"), kinds.count("outcome"), kinds.count("refusal")) == (limit, limit, 500)
    assert len({record["call"] for record in records}) == 2 * each


@pytest.mark.promise("claims.killed")
def test_a_killed_server_leaves_a_sound_ledger(site: Site) -> None:
    stop = threading.Event()

    def ask(address: str) -> None:
        while not stop.is_set():
            try:
                call(address, site.secret, "get_claim", TOOLS["get_claim"])
            except OSError:
                return

    with ThreadPoolExecutor(8) as pool:
        with site.http(stop=signal.SIGKILL) as address:
            asked = [pool.submit(ask, address) for _ in range(8)]
            time.sleep(1.0)
        stop.set()
        for future in asked:
            future.exception()

    verdict = site.verdict()
    assert verdict.sound, verdict
    assert verdict.records > 10
    with site.http() as address:
        assert call(address, site.secret, "get_claim", TOOLS["get_claim"])[0] == 200
    assert site.verdict().sound


@pytest.mark.promise("kernel.limits")
def test_failures_are_counted_by_the_address_of_the_connection_whatever_a_header_says(site: Site) -> None:
    with site.http() as address:
        headers = [{"X-Forwarded-For": f"10.0.0.{n}", "Forwarded": f"for=10.0.0.{n}"} for n in range(12)]
        told = [
            post(address, "cda_wrong", stateless("tools/list"), **routed("tools/list"), **more)[0] for more in headers
        ]

    assert told == [401] * 10 + [429] * 2


@pytest.mark.promise("kernel.limits")
def test_a_client_on_stdio_with_a_wrong_key_shuts_out_itself_alone(site: Site) -> None:
    with stdio(site, CDA_API_KEY="cda_wrong") as wrong, stdio(site) as right:
        told = [wrong.call("get_claim", TOOLS["get_claim"])["error"]["code"] for _ in range(12)]
        right.start()
        assert not right.call("get_claim", TOOLS["get_claim"])["result"]["isError"]

    assert told == [-32001] * 10 + [-32029] * 2


@pytest.mark.promise("claims.session")
def test_a_server_that_is_asked_to_stop_answers_what_it_has_begun(site: Site) -> None:
    slow = (
        "import time\nfrom cda.systems.claims.tools import ClaimsTools\nwhole = ClaimsTools.get_claim\n"
        "ClaimsTools.get_claim = lambda s, asked: (open('begun', 'w').close(), time.sleep(1.5), whole(s, asked))[2]"
    )
    begun = site.home / "begun"
    with ThreadPoolExecutor(1) as pool:
        with site.http(first=f"import os\nos.chdir({str(site.home)!r})\n{slow}") as address:
            answer = pool.submit(call, address, site.secret, "get_claim", TOOLS["get_claim"])
            while not begun.exists():
                answer.exception(timeout=0) if answer.done() else time.sleep(0.01)
        status, text = answer.result(timeout=30)

    assert (status, "CLM-00000001" in text, site.left) == (200, True, 0)
    verdict = site.verdict()
    assert (verdict.sound, verdict.records, verdict.open_intents, verdict.checkpoints) == (True, 2, (), 1)


@pytest.mark.promise("claims.session")
def test_beyond_the_loopback_it_is_called_by_its_names_over_tls(site: Site) -> None:
    certificate, key = self_signed(site.home)
    options = ("--host", "0.0.0.0", "--allow-host", "localhost", "--tls-cert", certificate, "--tls-key", key)  # noqa: S104
    trusted = ssl.create_default_context(cafile=certificate)
    with site.http(*options) as address:
        assert address.startswith("https://0.0.0.0:")
        port = urlsplit(address).port
        told = []
        for named in (f"localhost:{port}", "claims.evil"):
            connection = http.client.HTTPSConnection("localhost", port, context=trusted, timeout=30)
            headers = {"Authorization": f"Bearer {site.secret}", "Host": named, **routed("tools/list")}
            headers |= {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
            connection.request("POST", "/mcp", json.dumps(stateless("tools/list")), headers)
            told.append(connection.getresponse().status)
            connection.close()

    assert told == [200, 421]


def self_signed(folder: Path) -> tuple[str, str]:
    """A certificate for localhost and its key, as files."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    now = datetime.now(UTC)
    built = x509.CertificateBuilder(name, name, key.public_key(), 1, now - timedelta(days=1), now + timedelta(days=1))
    built = built.add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
    form = serialization.Encoding.PEM
    secret = key.private_bytes(form, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    (folder / "cert.pem").write_bytes(built.sign(key, hashes.SHA256()).public_bytes(form))
    (folder / "key.pem").write_bytes(secret)
    return str(folder / "cert.pem"), str(folder / "key.pem")


@pytest.mark.promise("claims.session")
def test_over_stdio_the_key_is_a_variable_and_without_it_nothing_starts(site: Site) -> None:
    environment = site.environment()
    del environment["CDA_API_KEY"]

    started = subprocess.run(COMMAND, env=environment, capture_output=True, text=True, timeout=60, check=False)

    assert (started.returncode, "CDA_API_KEY" in started.stderr, started.stdout) == (3, True, "")


@pytest.mark.promise("ledger.tamper")
def test_the_command_names_the_first_bad_record_and_exits_1(site: Site) -> None:
    with stdio(site) as wire:
        wire.start()
        for _ in range(3):
            wire.call("get_claim", TOOLS["get_claim"])
    run = [sys.executable, "-c", "from cda.cli import main; main()", "ledger", "verify"]
    sound = subprocess.run(run, env=site.environment(), capture_output=True, text=True, timeout=60, check=False)
    (file,) = (site.home / "ledger").glob("*.jsonl")
    lines = file.read_bytes().splitlines(keepends=True)
    file.write_bytes(b"".join(lines[:2] + lines[3:]))

    broken = subprocess.run(
        [*run, "--json"], env=site.environment(), capture_output=True, text=True, timeout=60, check=False
    )

    assert (sound.returncode, sound.stdout.split(":")[0]) == (0, "sound")
    verdict = json.loads(broken.stdout)
    assert (broken.returncode, verdict["sound"], verdict["seq"]) == (1, False, 3)
    assert os.path.exists(site.home / "ledger-head" / "head.json")
