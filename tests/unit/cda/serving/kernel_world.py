"""A server of two tools in memory, with real keys, limiter and ledger under a folder."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from cda.errors import ToolRefusal
from cda.ledger import Ledger, verify
from cda.ledger.keys import argument_hasher, make_keys, read_ring
from cda.ledger.record import read_line
from cda.serving.arguments import Arguments
from cda.serving.kernel import Call, Denied, Kernel
from cda.serving.key_store import KeyStore, make_key
from cda.serving.principal import Rate
from cda.serving.rate_limit import RateLimiter
from cda.serving.tool_server import ServedTool
from cda.serving.untrusted import clean_all

CANARY = "canary-4711"


class Which(Arguments):
    name: str


class Thing(BaseModel):
    text: str


class World:
    def __init__(self, root: Path, rate: str = "100/60") -> None:
        self.root, self.runs = root, 0
        self.texts: list[str] = []
        self.folder, self.head, self.keys = root / "ledger", root / "head", root / "ledger-keys"
        make_keys(self.keys)
        self.key_file = root / "keys.json"
        self.all = make_key(self.key_file, key_id="everything", tools=["all"])
        self.one = make_key(self.key_file, key_id="one", tools=["get_thing"])
        self.none = make_key(self.key_file, key_id="nothing", tools=[])
        self.ledger = Ledger(self.folder, self.head, self.keys)
        self.limiter = RateLimiter(root / "rate.sqlite")
        self.tools: Mapping[str, ServedTool[Any]] = {
            name: ServedTool(name, name, name, Which, Thing, self._run) for name in ("get_thing", "get_other")
        }
        self.kernel = Kernel(
            self.tools,
            identities=KeyStore(self.key_file),
            limiter=self.limiter,
            ledger=self.ledger,
            rate=Rate.read(rate),
            hasher=argument_hasher(self.keys),
            cleaner=clean_all,
        )

    def call(self, secret: str | None, tool: str = "get_thing", **arguments: Any) -> Any:
        """The answer, or the code of the refusal."""
        call = Call(peer="10.0.0.9", secret=secret, tool=tool, arguments=arguments or {"name": "x"})
        try:
            self.kernel.admit(call)
            return self.kernel.answer(call)
        except Denied as denied:
            self.texts.append(str(denied))
            return denied.code

    def records(self) -> list[Mapping[str, Any]]:
        lines = (line for file in sorted(self.folder.glob("*.jsonl")) for line in file.read_bytes().splitlines(True))
        return [read_line(line) for line in lines]

    def told(self) -> list[tuple[str, str, str, str]]:
        return [(r["kind"], r["principal"], r["tool"], r["outcome"]) for r in self.records()]

    def sound(self) -> bool:
        return verify(self.folder, self.head, read_ring(self.keys)).sound

    def _run(self, asked: Which) -> Thing:
        self.runs += 1
        if asked.name == "missing":
            raise ToolRefusal("thing_not_found", "there is no such thing")
        if asked.name == "crash":
            raise RuntimeError(CANARY)
        return Thing(text=f"{asked.name}\u202e\u200bend\x07")
