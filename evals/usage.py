"""What runs used, read from their traces: tokens by role and model. No trace is changed, and no text is in one.

A call to a model stands in a trace as
{"event": "model_call", "role", "model", "input_tokens", "output_tokens", "cache_read_tokens"?, "cache_write_tokens"?,
"static_tokens"?}: input_tokens are those billed in full, static_tokens the length of the prefix that is the same in
every call of the role.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cda.harness.trace import list_traces, read_trace

EVENT = "model_call"


@dataclass(frozen=True, slots=True)
class RoleUse:
    """What one role used with one model, summed over runs. `input` counts cached tokens too; `static` is the sum of
    the unchanging prefixes."""

    role: str
    model: str
    calls: int
    input: int
    output: int
    static: int


@dataclass(frozen=True, slots=True)
class Usage:
    """What a number of finished runs used. Where some called a model, the others are `idle` and not counted: a mean
    over both would price neither."""

    runs: int
    idle: int
    roles: tuple[RoleUse, ...]

    @property
    def tokens(self) -> int:
        """All tokens, in and out."""
        return sum(role.input + role.output for role in self.roles)


def measured(folders: Sequence[Path]) -> Usage:
    """The usage of every finished run that left a trace in one of the folders, by role and model."""
    calling = idle = 0
    found: dict[tuple[str, str], list[int]] = {}
    for folder in folders:
        for summary in list_traces(folder):
            if summary.gate is None:
                continue
            calls = [event for event in read_trace(folder, summary.run_id) if event.get("event") == EVENT]
            calling += bool(calls)
            idle += not calls
            for call in calls:
                key = str(call.get("role", "unnamed")), str(call.get("model", "unnamed"))
                _add(found.setdefault(key, [0, 0, 0, 0]), call)
    roles = tuple(RoleUse(role, model, *held) for (role, model), held in sorted(found.items()))
    return Usage(calling, idle, roles) if calling else Usage(idle, 0, ())


def _add(held: list[int], event: Mapping[str, Any]) -> None:
    inputs = ("input_tokens", "cache_read_tokens", "cache_write_tokens")
    held[0] += 1
    held[1] += sum(int(event.get(name, 0)) for name in inputs)
    held[2] += int(event.get("output_tokens", 0))
    held[3] += int(event.get("static_tokens", 0))
