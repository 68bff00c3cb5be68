"""A role: what a model is told once and for all, and the contract that its answer must satisfy.

Nothing that varies stands in the prefix, so that it can be cached; and nothing of a chart or a policy does, so that no
word of either can pass for an instruction. Both travel as JSON in a turn.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, TypeVar

from pydantic import BaseModel, ConfigDict

from cda.agents.skills import Skill
from cda.contracts.model_client import FailureKind, ModelClient, ModelFailure, ModelRequest, RunMeter, UserTurn

_INSTRUCTIONS = Path(__file__).parent / "instructions"


class Answer(BaseModel):
    """Base of the answers' forms: unknown keys are refused, every key is required, lengths are bounded."""

    model_config = ConfigDict(extra="forbid", frozen=True)


AnswerT = TypeVar("AnswerT", bound=Answer)


@dataclass(frozen=True)
class Role(Generic[AnswerT]):
    """A role by its name; the instruction is the file of that name, the skills follow it in the order given."""

    name: str
    answer: type[AnswerT]
    skills: tuple[Skill, ...] = ()
    static: str = field(init=False)

    def __post_init__(self) -> None:
        instruction = (_INSTRUCTIONS / f"{self.name}.md").read_text(encoding="utf-8").strip()
        told = [f"# Role: {self.name}", instruction]
        told += [f"# Skill: {skill.name}, version {skill.version}\n\n{skill.text}" for skill in self.skills]
        object.__setattr__(self, "static", "\n\n".join(told))

    def ask(self, client: ModelClient, meter: RunMeter, shown: Mapping[str, Any], *, key: str = "") -> AnswerT:
        """One question, answered by contract. Raises ModelFailure, and what the meter raises."""
        turns = (UserTurn(as_json(shown)),)
        reply = client.ask(ModelRequest(self.name, self.static, turns, answer=self.answer, key=key), meter)
        if not isinstance(reply.answer, self.answer):
            raise ModelFailure(FailureKind.BAD_ANSWER, self.name)
        return reply.answer


def as_json(shown: Mapping[str, Any] | Sequence[Any]) -> str:
    """JSON as a turn carries it: compact, in the order given, letters as they are."""
    return json.dumps(shown, ensure_ascii=False, separators=(",", ":"))
