"""The retriever: a loop of tool calls over the policies, capped in turns, in time and in bytes of results.

What it finds is only ever added to what the harness fetches by itself, so that a poor search loses nothing. Tools are
those of a box that the system binds to one request: payer, plan and day are not the model's to choose.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import Any, Protocol

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from cda.agents.answers import MAX_CLAUSES, Name
from cda.agents.role import as_json
from cda.agents.skills import Skill
from cda.contracts.model_client import (
    ModelClient,
    ModelRequest,
    ResultsTurn,
    RunMeter,
    ToolCall,
    ToolResult,
    ToolSpec,
    Turn,
    UserTurn,
)
from cda.errors import ToolRefusal

FINISH = "finish"


class Finish(BaseModel):
    """The arguments of the call that ends the loop."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    clause_ids: list[Name] = Field(max_length=MAX_CLAUSES)


_FINISH_SPEC = ToolSpec(
    FINISH,
    "End the search with the ids of the clauses that bear on the request.",
    {
        "type": "object",
        "properties": {"clause_ids": {"type": "array", "items": {"type": "string"}}},
        "required": ["clause_ids"],
        "additionalProperties": False,
    },
)


class ToolBox(Protocol):
    """The tools of one request."""

    specs: Sequence[ToolSpec]

    def call(self, name: str, arguments: Mapping[str, Any]) -> str:
        """The result as JSON text. Raises ToolRefusal for a call that cannot be answered."""
        ...


@dataclass(frozen=True, slots=True)
class Caps:
    """The ends of the loop. A result that would pass `result_bytes`, counted over the whole loop, is not shown."""

    turns: int = 3
    seconds: float = 120.0
    result_bytes: int = 3_000


@dataclass(frozen=True, slots=True)
class Found:
    """The ids that the model named; `ended` says what ended the loop: finish, silence, turns or seconds."""

    clause_ids: tuple[str, ...]
    ended: str
    turns: int
    result_bytes: int


class RetrieverRole:
    """Asks the model for tool calls until it is finished or a cap is reached."""

    name = "retriever"

    def __init__(self, skills: tuple[Skill, ...] = (), caps: Caps | None = None) -> None:
        self._caps = caps or Caps()
        instruction = (Path(__file__).parent / "instructions" / "retriever.md").read_text(encoding="utf-8").strip()
        told = [f"# Role: {self.name}", instruction]
        told += [f"# Skill: {skill.name}, version {skill.version}\n\n{skill.text}" for skill in skills]
        self.static = "\n\n".join(told)

    def retrieve(
        self,
        client: ModelClient,
        meter: RunMeter,
        shown: Mapping[str, Any],
        box: ToolBox,
        *,
        clock: Callable[[], float] = monotonic,
    ) -> Found:
        """What the model finds. Raises ModelFailure, and what the meter raises."""
        started, used = clock(), 0
        turns: list[Turn] = [UserTurn(as_json(shown))]
        tools = (*box.specs, _FINISH_SPEC)
        for turn in range(1, self._caps.turns + 1):
            if clock() - started > self._caps.seconds:
                return Found((), "seconds", turn - 1, used)
            request = ModelRequest(self.name, self.static, tuple(turns), tools=tools, key=str(turn))
            said = client.ask(request, meter).turn
            finish = _finished(said.calls)
            if finish is not None or not said.calls:
                ids = tuple(finish.clause_ids) if finish else ()
                return Found(ids, "finish" if finish else "silence", turn, used)
            results = []
            for call in said.calls:
                result = self._result(call, box, used)
                used += 0 if result.is_error else len(result.content.encode("utf-8"))
                results.append(result)
            turns += [said, ResultsTurn(tuple(results))]
        return Found((), "turns", self._caps.turns, used)

    def _result(self, call: ToolCall, box: ToolBox, used: int) -> ToolResult:
        try:
            content = box.call(call.name, call.arguments)
        except ToolRefusal as refusal:
            return ToolResult(call.call_id, json.dumps({"error": refusal.code}), is_error=True)
        if used + len(content.encode("utf-8")) > self._caps.result_bytes:
            return ToolResult(call.call_id, json.dumps({"error": "no more results are shown; finish"}), is_error=True)
        return ToolResult(call.call_id, content)


def _finished(calls: Sequence[ToolCall]) -> Finish | None:
    """The end, when it was called in a form that can be read."""
    for call in calls:
        if call.name == FINISH:
            try:
                return Finish.model_validate(dict(call.arguments))
            except ValidationError:
                return Finish(clause_ids=[])
    return None
