"""Real processes of the claims server, over a database, keys and a ledger of their own."""

import json
import os
import re
import signal
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mcp.client.session import ClientSession
from mcp.client.streamable_http import streamable_http_client

from cda.ledger import Verdict, verify
from cda.ledger.keys import read_ring
from cda.ledger.record import read_line
from cda.serving.key_store import make_key
from cda.systems.claims.seed import seed_database


def command(first: str = "") -> list[str]:
    """The server's command line; `first` is run before it."""
    return [sys.executable, "-c", f"{first}\nfrom cda.cli import main; main()", "mcp", "claims"]


COMMAND = command()
ERA = "2026-07-28"
TOOLS: dict[str, dict[str, Any]] = {
    "get_claim": {"claim_id": "CLM-00000001"},
    "list_member_claims": {"member_id": "MBR-000001"},
    "get_coverage_rule": {"plan_id": "PLN-GOLD", "procedure_code": "A9276"},
    "get_member_ytd_summary": {"member_id": "MBR-000001", "year": 2025},
    "get_claim_notes": {"claim_id": "CLM-00000001"},
}


@dataclass
class Site:
    """A machine that serves claims."""

    home: Path
    secret: str
    left: int | None = None  # the exit code of the last HTTP server

    @classmethod
    def at(cls, home: Path) -> "Site":
        home.mkdir()
        seed_database(home / "claims.sqlite", days=1, seed=1)
        return cls(home, make_key(home / "keys.json", key_id="analyst", tools=["all"]))

    def environment(self, **more: str) -> dict[str, str]:
        plain = {"CDA_HOME": str(self.home), "PATH": "/usr/bin:/bin", "CDA_RATE_LIMIT": "100000/60"}
        return plain | {"CDA_API_KEY": self.secret} | more

    @contextmanager
    def http(self, *options: str, stop: int = signal.SIGTERM, first: str = "", **more: str) -> Iterator[str]:
        log = self.home / f"stderr-{os.urandom(4).hex()}"
        with log.open("wb") as err:
            process = subprocess.Popen(
                [*command(first), "--transport", "http", "--port", "0", *options],
                env=self.environment(**more),
                stdout=subprocess.DEVNULL,
                stderr=err,
            )
        try:
            yield _address(process, log)
        finally:
            process.send_signal(stop)
            self.left = process.wait(timeout=30)

    def verdict(self) -> Verdict:
        return verify(self.home / "ledger", self.home / "ledger-head", read_ring(self.home / "ledger-keys"))

    def records(self) -> list[Any]:
        files = sorted((self.home / "ledger").glob("*.jsonl"))
        return [read_line(line) for file in files for line in file.read_bytes().splitlines(keepends=True)]


def _address(process: subprocess.Popen[bytes], log: Path) -> str:
    for _ in range(600):
        if found := re.search(r"serving (http\S+)\n", log.read_text(encoding="utf-8")):
            return found[1]
        try:
            process.wait(timeout=0.05)
        except subprocess.TimeoutExpired:
            continue
        break
    raise AssertionError(f"no server: {log.read_text(encoding='utf-8')}")


@contextmanager
def stdio(site: Site, *, first: str = "", **more: str) -> Iterator["Wire"]:
    """A server on stdio; `first` is what its interpreter runs before the command: how a test takes a gate away."""
    process = subprocess.Popen(
        command(first),
        env=site.environment(**more),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
    )
    wire = Wire(process)
    try:
        yield wire
    finally:
        wire.close()


class Wire:
    """A client on stdio that keeps every byte that comes back; a server that falls silent is ended, and fails."""

    def __init__(self, process: subprocess.Popen[str], patience_s: float = 60.0) -> None:
        self._patience_s = patience_s
        self.process, self._id = process, 0
        self.lines: list[str] = []
        self.rest = self.errors = ""
        self.first: Any = None

    def ask(self, method: str, params: Any) -> Any:
        self._id += 1
        self.send(json.dumps({"jsonrpc": "2.0", "id": self._id, "method": method, "params": params}))
        while True:
            message = self.next()
            if message.get("id") == self._id:
                return message

    def next(self) -> Any:
        """The next message that comes."""
        assert self.process.stdout is not None
        watchdog = threading.Timer(self._patience_s, self.process.kill)
        watchdog.start()
        line = self.process.stdout.readline()
        watchdog.cancel()
        assert line, self.process.stderr.read() if self.process.stderr else ""
        self.lines.append(line)
        return json.loads(line)

    def send(self, line: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def start(self) -> Any:
        first = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
        answer = self.ask("initialize", first)
        self.send(json.dumps({"jsonrpc": "2.0", "method": "notifications/initialized"}))
        return answer

    def call(self, tool: str, arguments: Any) -> Any:
        return self.ask("tools/call", {"name": tool, "arguments": arguments})

    def close(self) -> None:
        if self.process.stdin and not self.process.stdin.closed:
            self.process.stdin.close()
            self.process.wait(timeout=30)
            assert self.process.stdout is not None
            self.rest = self.process.stdout.read()
            self.process.stdout.close()
            assert self.process.stderr is not None
            self.errors = self.process.stderr.read()
            self.process.stderr.close()


def post(address: str, secret: str | None, body: Any, **headers: str) -> tuple[int, str]:
    """The status and the body of one POST."""
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    request = urllib.request.Request(address, data=content, method="POST")  # noqa: S310 - a loopback address
    request.add_header("Content-Type", "application/json")
    request.add_header("Accept", "application/json, text/event-stream")
    if secret is not None:
        request.add_header("Authorization", f"Bearer {secret}")
    for name, value in headers.items():
        request.add_header(name, value)
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:  # noqa: S310
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def stateless(method: str, params: Any = None) -> dict[str, Any]:
    """A request of the 2026 era: whole in itself."""
    meta = {
        "io.modelcontextprotocol/protocolVersion": ERA,
        "io.modelcontextprotocol/clientInfo": {"name": "t", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**(params or {}), "_meta": meta}}


def routed(method: str, **more: str) -> dict[str, str]:
    """The headers that the 2026 era repeats a request's method in."""
    return {"MCP-Protocol-Version": ERA, "Mcp-Method": method, **more}


def call(address: str, secret: str | None, tool: str, arguments: Any) -> tuple[int, str]:
    """One call of a tool, whole in itself."""
    headers = routed("tools/call", **{"Mcp-Name": tool})
    return post(address, secret, stateless("tools/call", {"name": tool, "arguments": arguments}), **headers)


def message(body: str) -> Any:
    """The one message of an answer, plain or as an event."""
    lines = [line.removeprefix("data: ") for line in body.splitlines() if line.startswith(("{", "data: {"))]
    assert len(lines) == 1, body
    return json.loads(lines[0])


async def session_calls(address: str, secret: str, calls: list[tuple[str, Any]]) -> list[Any]:
    """The results of calls over one streamable HTTP session of the SDK's own client."""
    import httpx2

    headers = {"Authorization": f"Bearer {secret}"}
    async with (
        httpx2.AsyncClient(headers=headers, timeout=60) as client,
        streamable_http_client(address, http_client=client) as streams,
        ClientSession(streams[0], streams[1]) as session,
    ):
        await session.initialize()
        return [await session.call_tool(tool, arguments) for tool, arguments in calls]
