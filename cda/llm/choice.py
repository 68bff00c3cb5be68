"""Which model answers for a role, and how it is used: read from settings, once.

`CDA_MODEL=PROVIDER:ID,use,...` is for every role; `CDA_MODEL_<ROLE>` changes it for one.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal, cast

from cda.errors import UnavailableError
from cda.settings import Settings

ROLES = (
    "planner",
    "retriever",
    "grader",
    "synthesizer",
    "verifier",
    "extractor",
    "drafter",
    "adversary",
    "judge",
)
Provider = Literal["anthropic", "openai"]
Effort = Literal["low", "medium", "high", "xhigh", "max"]
Thinking = Literal["adaptive", "disabled"]


@dataclass(frozen=True, slots=True)
class Choice:
    """A model and its use. `max_tokens` caps one answer, `max_seconds` one call with all its tries, from its first turn
    on. `effort` and `thinking` are the provider's own default when None."""

    provider: Provider
    model: str
    effort: Effort | None = None
    thinking: Thinking | None = None
    max_tokens: int = 8192
    max_seconds: float = 120.0

    @property
    def name(self) -> str:
        """The model as "provider:id"."""
        return f"{self.provider}:{self.model}"


def choose(settings: Settings) -> Mapping[str, Choice]:
    """The choice of every role that has one. Raises UnavailableError when no model is named at all."""
    found: dict[str, Choice] = {}
    for role in ROLES:
        own: str | None = getattr(settings, f"model_{role}")
        choice = _read(settings.model, None)
        choice = _read(own, choice)
        if choice is not None:
            found[role] = choice
    if not found:
        raise UnavailableError("no model is chosen; set CDA_MODEL=anthropic:ID or CDA_MODEL=openai:ID")
    return found


def _read(text: str | None, base: Choice | None) -> Choice | None:
    """Settings have checked the form of `text`; a use without any model to apply it to chooses nothing."""
    if text is None:
        return base
    head, *uses = text.split(",")
    provider, named, model = head.partition(":")
    if named:
        choice = Choice(cast(Provider, provider), model)
    elif base is None:
        return None
    else:
        choice, uses = base, [head, *uses]
    for use in uses:
        choice = _used(choice, *use.split("="))
    return choice


def _used(choice: Choice, key: str, value: str) -> Choice:
    match key:
        case "effort":
            return replace(choice, effort=cast(Effort, value))
        case "thinking":
            return replace(choice, thinking=cast(Thinking, value))
        case "tokens":
            return replace(choice, max_tokens=int(value))
        case _:
            return replace(choice, max_seconds=float(value))
