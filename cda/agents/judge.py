"""The judge: says how well an answer is told, offline and beside the score. It never sees a label, a clause id or a
trace, and no gate hears it."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from cda.contracts.model_client import ModelClient, ModelRequest, RunMeter, UserTurn

ROLE = "judge"
INSTRUCTIONS = (Path(__file__).parent / "instructions" / "answer-judging.md").read_text(encoding="utf-8")
SCORES = ("reasoning", "clarity", "hedging")


class Opinion(BaseModel):
    """Three scores from 1 (poor) to 5 (good) and a sentence of reason."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    reasoning: int = Field(ge=1, le=5)
    clarity: int = Field(ge=1, le=5)
    hedging: int = Field(ge=1, le=5)
    reason: str


def judge(
    client: ModelClient, meter: RunMeter, *, question: str, determination: Mapping[str, Any], key: str
) -> Opinion:
    """The opinion on one determination (as JSON values). Raises ModelFailure."""
    text = json.dumps(_shown(question, determination), ensure_ascii=False)
    request = ModelRequest(
        role=ROLE,
        static=INSTRUCTIONS,
        turns=(UserTurn(text),),
        answer=Opinion,
        key=key,
    )
    answer = client.ask(request, meter).answer
    assert isinstance(answer, Opinion)  # noqa: S101 - the client's contract
    return answer


def _shown(question: str, determination: Mapping[str, Any]) -> dict[str, Any]:
    """What the judge sees: cited clauses are numbered, so that no id of the corpus is among it."""
    cited = dict.fromkeys(claim["citation"]["clause_id"] for claim in determination["claims"])
    numbers = {clause_id: f"clause {number}" for number, clause_id in enumerate(cited, 1)}

    def plain(text: str) -> str:
        for clause_id in sorted(numbers, key=len, reverse=True):
            text = text.replace(clause_id, numbers[clause_id])
        return text

    return {
        "question": question,
        "outcome": determination["outcome"],
        "summary": plain(determination["summary"]),
        "claims": [
            {
                "text": plain(claim["text"]),
                "clause": numbers[claim["citation"]["clause_id"]],
                "quote": claim["citation"]["quote"],
                "status": claim["status"],
                "chart": [item["quote"] for item in claim["evidence"] if item["quote"]],
            }
            for claim in determination["claims"]
        ],
        "gap": plain(determination.get("gap") or ""),
    }
