"""What one leg of a search brings: ranked hits, or the reason why it brings none."""

from dataclasses import dataclass, field
from typing import Literal

from backends.base import Hit

DEPTH = 50  # candidates a leg, the same on every backend, so that changing one changes nothing else


@dataclass(frozen=True, slots=True)
class Leg:
    """Hits best first. Ranks are 1-based; hits that a leg cannot tell apart may share one (the code leg does)."""

    status: Literal["ok", "empty_query", "unavailable"] = "ok"
    hits: tuple[Hit, ...] = ()


@dataclass(frozen=True, slots=True)
class Legs:
    """The legs of one query. A leg that is not ok contributes nothing and is named in the answer's notes."""

    dense: Leg = field(default_factory=Leg)
    lexical: Leg = field(default_factory=Leg)
    codes: Leg = field(default_factory=Leg)

    @property
    def all(self) -> tuple[Leg, Leg, Leg]:
        """Dense, lexical, codes."""
        return self.dense, self.lexical, self.codes
