"""Who calls: a name for the ledger, the tools it may use, and how often."""

import re
from dataclasses import dataclass

from cda.errors import UsageError

ALL = "all"
_RATE = re.compile(r"([1-9]\d{0,6})/([1-9]\d{0,4})\Z")


@dataclass(frozen=True, slots=True)
class Rate:
    """At most `count` calls in any `seconds` seconds."""

    count: int
    seconds: int

    @classmethod
    def read(cls, text: str) -> "Rate":
        """A rate written N/SECONDS. UsageError for any other form."""
        found = _RATE.match(text)
        if found is None:
            raise UsageError("a rate is written N/SECONDS, such as 60/60")
        return cls(int(found[1]), int(found[2]))

    def __str__(self) -> str:
        return f"{self.count}/{self.seconds}"


@dataclass(frozen=True, slots=True)
class Principal:
    """A caller that was recognised. `tools` None: every tool, said in so many words; empty: none. `scopes` are those of
    an access token, None for the holder of a key."""

    id: str
    tools: frozenset[str] | None
    rate: Rate | None = None
    scopes: tuple[str, ...] | None = None

    def may(self, tool: str) -> bool:
        """True when the caller may use the tool."""
        return self.tools is None or tool in self.tools


class Lapsed(Exception):
    """A secret that was good once and is no longer: its holder, `name`, guesses nothing."""

    def __init__(self, name: str) -> None:
        super().__init__("lapsed")
        self.name = name


ANYONE = Principal("anyone", None)  # of a server whose data is not personal, run without keys
