"""The adversary: words charts that are hard to read. What a chart means, and the answer, are its author's and not the
model's: it is shown the facts alone."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict

from cda.contracts.model_client import ModelClient, ModelRequest, RunMeter, UserTurn

ROLE = "adversary"
INSTRUCTIONS = (Path(__file__).parent / "instructions" / "case-writing.md").read_text(encoding="utf-8")


class _Answer(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class ToldFact(_Answer):
    """The note's own words that state a fact."""

    fact: str
    words: str


class Chart(_Answer):
    """One note, one question, and where the note states each fact."""

    narrative: str
    question: str
    told: list[ToldFact]


def write_chart(
    client: ModelClient,
    meter: RunMeter,
    *,
    stated: Sequence[Mapping[str, Any]],
    left_open: Sequence[Mapping[str, Any]],
    codes: Sequence[str],
    as_of: str,
    difficulty: str,
    language: str,
    key: str,
) -> Chart:
    """A chart that states exactly these facts. Raises ModelFailure."""
    shown = {
        "stated": list(stated),
        "open": list(left_open),
        "codes": list(codes),
        "as_of": as_of,
        "difficulty": difficulty,
        "language": language,
    }
    request = ModelRequest(
        role=ROLE,
        static=INSTRUCTIONS,
        turns=(UserTurn(json.dumps(shown, ensure_ascii=False)),),
        answer=Chart,
        key=key,
    )
    answer = client.ask(request, meter).answer
    assert isinstance(answer, Chart)  # noqa: S101 - the client's contract
    return answer
