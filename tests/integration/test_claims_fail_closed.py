"""The ways in which a claims server has been known to fail open, asked of the real one: it closes.

Faults that need a broken part are put into a server in this process, which a client of the SDK talks to; those that
need a process are put into one.
"""

import asyncio
import errno
import hmac
import json
import os
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from integration.claims_servers import TOOLS, Site, call, stdio
from mcp import Client
from mcp.shared.exceptions import MCPError

from cda.errors import UnavailableError
from cda.serving.key_store import KeyStore, make_key, revoke_key
from cda.serving.tool_server import ToolServer
from cda.settings import load_settings
from cda.systems.claims.server import claims_server

pytestmark = pytest.mark.promise("claims.closed")
CLOSED = "internal_error: the server cannot answer now; its log names the part"


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Site:
    site = Site.at(tmp_path / "home")
    for name, value in site.environment().items():
        monkeypatch.setenv(name, value)
    return site


def ask_all(server: ToolServer) -> list[Any]:
    """Every tool once, by a client of the SDK."""

    async def asked() -> list[Any]:
        async with Client(server, raise_exceptions=True) as client:
            return [await client.call_tool(tool, arguments) for tool, arguments in TOOLS.items()]

    return asyncio.run(asked())


def told_after(server: ToolServer, fault: Callable[[], Any]) -> set[str]:
    """What a client hears, in the middle of a session, of every tool once a part is broken."""
    told = set()

    async def asked() -> None:
        async with Client(server) as client:
            assert not (await client.call_tool("get_claim", TOOLS["get_claim"])).is_error
            fault()
            for tool, arguments in TOOLS.items():
                try:
                    told.update(texts([await client.call_tool(tool, arguments)]))
                except MCPError as error:
                    told.add(str(error))

    asyncio.run(asked())
    return told


def texts(answers: list[Any]) -> set[str]:
    assert all(answer.structured_content is None for answer in answers)
    return {answer.content[0].text for answer in answers}


def no_fsync(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(_descriptor: int) -> None:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(os, "fsync", fails)


def a_full_disk(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    write = os.write

    def half(descriptor: int, content: bytes) -> int:
        return write(descriptor, content[: len(content) // 2])

    monkeypatch.setattr(os, "write", half)


def no_folder(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.rmtree(site.home / "ledger")


def a_file_for_a_folder(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.rmtree(site.home / "ledger")
    (site.home / "ledger").write_bytes(b"")


def a_torn_end(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    for file in (site.home / "ledger").glob("*.jsonl"):
        file.write_bytes(file.read_bytes()[:-20])


def a_cut_tail(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    for file in (site.home / "ledger").glob("*.jsonl"):
        file.write_bytes(b"".join(file.read_bytes().splitlines(keepends=True)[:-1]))


def no_head(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.rmtree(site.home / "ledger-head")


def may_not(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    opening = os.open

    def denied(path: Any, flags: int, *more: Any, **named: Any) -> int:
        if str(path).startswith(str(site.home / "ledger")) and flags & (os.O_WRONLY | os.O_RDWR):
            raise PermissionError(errno.EACCES, "Permission denied")
        return opening(path, flags, *more, **named)

    monkeypatch.setattr(os, "open", denied)


BROKEN_LEDGERS = [no_fsync, a_full_disk, no_folder, a_file_for_a_folder, a_torn_end, a_cut_tail, no_head, may_not]


@pytest.mark.parametrize("fault", BROKEN_LEDGERS, ids=lambda fault: fault.__name__)
def test_a_ledger_that_breaks_means_one_plain_error_from_every_tool(
    site: Site, monkeypatch: pytest.MonkeyPatch, fault: Callable[[Site, pytest.MonkeyPatch], None]
) -> None:
    server = claims_server(load_settings())
    assert not any(answer.is_error for answer in ask_all(server))
    fault(site, monkeypatch)

    answers = ask_all(server)

    assert texts(answers) == {CLOSED}
    assert all(answer.is_error for answer in answers), "an error of the tool, not of the protocol"


def test_an_answer_whose_outcome_cannot_be_recorded_is_withheld(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    server = claims_server(load_settings())
    ran: list[str] = []
    whole = sqlite3.connect
    monkeypatch.setattr(
        sqlite3, "connect", lambda *a, **k: (ran.append("read"), no_fsync(site, monkeypatch), whole(*a, **k))[2]
    )

    answers = ask_all(server)

    assert ran, "the ledger broke only after the intent was recorded and the database opened"
    assert texts(answers) == {CLOSED}


def test_a_refusal_that_cannot_be_recorded_is_still_a_refusal(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    make_key(site.home / "keys.json", key_id="nothing", tools=[])
    monkeypatch.setenv("CDA_API_KEY", make_key(site.home / "keys.json", key_id="none", tools=[]))
    server = claims_server(load_settings())
    no_fsync(site, monkeypatch)

    assert texts(ask_all(server)) == {"unknown_tool: this key may use no tool"}


def twice(file: Path) -> None:
    document = json.loads(file.read_text())
    file.write_text(json.dumps(document | {"keys": document["keys"] * 2}))


def a_folder(file: Path) -> None:
    file.unlink()
    file.mkdir()


KEY_FILES: list[tuple[str, Callable[[Path], Any]]] = [
    ("missing", lambda file: file.unlink()),
    ("empty", lambda file: file.write_text("")),
    ("no keys in it", lambda file: file.write_text('{"format": 1, "keys": []}')),
    ("not JSON", lambda file: file.write_text("{")),
    ("another format", lambda file: file.write_text('{"format": 2, "keys": []}')),
    ("not text", lambda file: file.write_bytes(b"\xff\xfe\x00")),
    ("one id twice", twice),
    ("unreadable", a_folder),
    ("writable by its group", lambda file: file.chmod(0o620)),
    ("writable by all", lambda file: file.chmod(0o602)),
]


@pytest.mark.parametrize(("name", "fault"), KEY_FILES, ids=[name for name, _ in KEY_FILES])
def test_a_key_file_that_cannot_be_trusted_stops_the_start_and_a_server_that_runs(
    site: Site, name: str, fault: Callable[[Path], Any]
) -> None:
    running = claims_server(load_settings())

    told = told_after(running, lambda: fault(site.home / "keys.json"))

    assert told == {"internal error"}
    with pytest.raises(UnavailableError, match="the key file"):
        claims_server(load_settings())


def test_every_key_is_compared_whichever_matches(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    secrets = [site.secret, *(make_key(site.home / "keys.json", key_id=f"k{n}", tools=[]) for n in range(4))]
    store, compared = KeyStore(site.home / "keys.json"), []
    whole = hmac.compare_digest
    monkeypatch.setattr(hmac, "compare_digest", lambda a, b: (compared.append(a), whole(a, b))[1])

    for secret in (secrets[0], secrets[-1], "cda_nobody", ""):
        compared.clear()
        store.principal(secret)
        assert len(compared) == len(secrets)


def test_a_limiter_that_cannot_count_lets_nothing_pass(site: Site) -> None:
    def broken() -> None:
        breaking = sqlite3.connect(site.home / "rate-limit.sqlite")
        breaking.execute("DROP TABLE passed")
        breaking.close()

    assert told_after(claims_server(load_settings()), broken) == {CLOSED}


def swapped(file: Path) -> None:
    moved = file.rename(file.with_name("moved.sqlite"))
    file.symlink_to(moved)


DATABASES: list[tuple[str, Callable[[Path], Any]]] = [
    ("missing", lambda file: file.unlink()),
    ("another file", lambda file: shutil.copy(file, file.with_name("copy")) and file.with_name("copy").replace(file)),
    ("unfinished", lambda file: file.with_name("claims.sqlite-wal").write_bytes(b"x")),
    ("a link", swapped),
]


@pytest.mark.parametrize(("name", "fault"), DATABASES, ids=[name for name, _ in DATABASES])
def test_a_database_that_changes_under_the_server_is_not_answered_from(
    site: Site, name: str, fault: Callable[[Path], Any], capsys: pytest.CaptureFixture[str]
) -> None:
    server = claims_server(load_settings())
    assert not any(answer.is_error for answer in ask_all(server))
    fault(site.home / "claims.sqlite")

    answers = ask_all(server)

    assert {text.split(":")[0] for text in texts(answers)} == {"internal_error"}
    assert not any("sqlite" in text for text in texts(answers)), "no place and no reason"
    kinds = [(record["kind"], record["outcome"]) for record in site.records()[-2:]]
    assert kinds == [("intent", ""), ("outcome", "internal_error")]


@pytest.mark.parametrize("tools", [[], ["ALL"], ["All"], ["*"], ["get_"], ["get_claim "]])
def test_only_the_word_all_means_every_tool(site: Site, monkeypatch: pytest.MonkeyPatch, tools: list[str]) -> None:
    monkeypatch.setenv("CDA_API_KEY", make_key(site.home / "keys.json", key_id="odd", tools=tools))

    assert texts(ask_all(claims_server(load_settings()))) == {"unknown_tool: this key may use no tool"}


def test_a_key_that_is_revoked_stops_in_the_middle_of_a_session(site: Site) -> None:
    server = claims_server(load_settings())

    told = told_after(server, lambda: revoke_key(site.home / "keys.json", "analyst"))

    assert told == {"unauthenticated: a valid key is required"}


def test_a_server_killed_between_its_intent_and_its_answer_has_the_intent_on_the_record(site: Site) -> None:
    killing = (
        "import os, signal\nfrom cda.systems.claims.tools import ClaimsTools\n"
        "ClaimsTools.get_claim = lambda s, asked: os.kill(os.getpid(), signal.SIGKILL)"
    )
    with stdio(site, first=killing) as wire:
        wire.start()
        assert not wire.call("get_claim_notes", TOOLS["get_claim_notes"])["result"]["isError"]
        with pytest.raises(AssertionError):
            wire.call("get_claim", TOOLS["get_claim"])

    verdict = site.verdict()
    assert verdict.sound
    (unfinished,) = verdict.open_intents
    (intent,) = [record for record in site.records() if record["call"] == unfinished]
    assert (intent["kind"], intent["tool"]) == ("intent", "get_claim")
    with site.http() as address:
        assert call(address, site.secret, "get_claim", TOOLS["get_claim"])[0] == 200
    assert site.verdict().sound, "the next server goes on with the same chain"


def test_a_disk_that_fills_up_closes_a_real_process(site: Site) -> None:
    limited = (
        "import resource, signal\nsignal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (60_000, 60_000))"
    )
    with stdio(site, first=limited) as wire:
        wire.start()
        answers = [wire.call("get_claim", TOOLS["get_claim"])["result"] for _ in range(120)]

    closed = [answer["isError"] for answer in answers]
    first = closed.index(True)
    assert first > 0
    assert all(closed[first:])
    assert all("structuredContent" not in answer for answer in answers[first:])
    assert site.verdict().sound, "nothing half written is left"


NOISY = """
import os, sys, warnings
from importlib.abc import MetaPathFinder

class Banner(MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name in ("mcp", "uvicorn", "cda.systems.claims.server", "cda.systems.claims.queries"):
            print("banner of", name)

sys.meta_path.insert(0, Banner())
import cda.systems.claims.commands
def install():
    from cda.systems.claims.tools import ClaimsTools
    def noisy(self, asked):
        print("a tool prints"); os.write(1, b"a tool writes\\n"); os.system("echo a child prints")
        warnings.warn("a warning"); sys.stdout.flush()
        raise RuntimeError("a crash that holds " + asked.claim_id)
    ClaimsTools.get_claim = noisy
import cda.settings
loading = cda.settings.load_settings
cda.settings.load_settings = lambda: (install(), loading())[1]
"""


def test_every_byte_of_standard_output_is_protocol_whatever_prints(site: Site) -> None:
    with stdio(site, first=NOISY) as wire:
        wire.start()
        crashed = wire.call("get_claim", TOOLS["get_claim"])["result"]
        answered = wire.call("get_coverage_rule", TOOLS["get_coverage_rule"])["result"]

    assert crashed["content"][0]["text"] == "internal_error: get_claim failed on the server; its log names the place"
    assert not answered["isError"]
    assert all(json.loads(line)["jsonrpc"] == "2.0" for line in wire.lines)
    assert (wire.rest, wire.process.returncode) == ("", 0)
    for noise in ("banner of mcp", "banner of cda.systems.claims.server", "a tool prints", "a tool writes", "a child"):
        assert noise in wire.errors
    assert "CLM-00000001" not in wire.errors, "the crash is named by its place and not by its words"
    assert "RuntimeError at " in wire.errors
