"""Real server processes over the tiny corpus, and the words of the protocol that a hostile client may send."""

import json
import re
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

COMMAND = (sys.executable, "-m", "cda.systems.coverage.mcp_command", "policy")
INITIALIZE = {
    "protocolVersion": "2025-06-18",
    "capabilities": {},
    "clientInfo": {"name": "test", "version": "1"},
}


def environment(folder: Path) -> dict[str, str]:
    """Variables under which a server reads the tiny corpus in `folder`; tfidf, since it opens in no time."""
    return {
        "CDA_HOME": str(folder / "home"),
        "CDA_STORE": str(folder / "corpus.sqlite"),
        "CDA_EMBEDDER": "tfidf",
        "PATH": "/usr/bin:/bin",
    }


@contextmanager
def http_server(folder: Path, *options: str) -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    """A server on a free port of the loopback: its address and its process. What it wrote lies in `folder`."""
    with (folder / "http-stdout").open("wb") as out, (folder / "http-stderr").open("wb") as err:
        process = subprocess.Popen(
            [*COMMAND, "--transport", "http", "--port", "0", *options], env=environment(folder), stdout=out, stderr=err
        )
    try:
        yield _address(process, folder / "http-stderr"), process
    finally:
        process.terminate()
        process.wait(timeout=20)


def _address(process: subprocess.Popen[bytes], log: Path) -> str:
    for _ in range(600):
        found = re.search(r"serving (http\S+)\n", log.read_text(encoding="utf-8"))
        if found:
            return found[1]
        try:
            process.wait(timeout=0.05)
        except subprocess.TimeoutExpired:
            continue
        break
    raise AssertionError(f"no server: {log.read_text(encoding='utf-8')}")


class RawStdio:
    """A client that writes lines as they are and keeps every byte that comes back."""

    def __init__(self, folder: Path) -> None:
        self.lines: list[str] = []
        self.stderr = ""
        self._answers: dict[int, dict[str, Any]] = {}
        self._arrived = threading.Condition()
        self._process = subprocess.Popen(
            COMMAND,
            env=environment(folder),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            encoding="utf-8",
            bufsize=1,
        )
        self._readers = [threading.Thread(target=self._read), threading.Thread(target=self._read_errors)]
        for reader in self._readers:
            reader.start()
        self._id = 0

    def send(self, line: str) -> None:
        """One line, whatever it is."""
        assert self._process.stdin is not None
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()

    def notify(self, method: str, params: Any) -> None:
        self.send(json.dumps({"jsonrpc": "2.0", "method": method, "params": params}))

    def ask(self, method: str, params: Any) -> dict[str, Any]:
        """The whole answer to one request."""
        self._id += 1
        mine = self._id
        self.send(json.dumps({"jsonrpc": "2.0", "id": mine, "method": method, "params": params}))
        with self._arrived:
            assert self._arrived.wait_for(lambda: mine in self._answers, timeout=30), (method, self.lines[-1:])
            return self._answers[mine]

    def call(self, tool: Any, arguments: Any) -> dict[str, Any]:
        return self.ask("tools/call", {"name": tool, "arguments": arguments})

    def close(self) -> int:
        """End of input; the exit code."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        code = self._process.wait(timeout=20)
        for reader in self._readers:
            reader.join(timeout=20)
        for stream in (self._process.stdout, self._process.stderr):
            assert stream is not None
            stream.close()
        return code

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self.lines.append(line)
            message: Mapping[str, Any] = json.loads(line) if line.startswith("{") else {}
            with self._arrived:
                if "id" in message:
                    self._answers[message["id"]] = dict(message)
                self._arrived.notify_all()

    def _read_errors(self) -> None:
        assert self._process.stderr is not None
        self.stderr = self._process.stderr.read()
