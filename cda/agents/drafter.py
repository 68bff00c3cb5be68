"""The drafter: reads one version of a policy and proposes its clauses as data, for a person to review.

What it answers is a proposal with its quotes; `cda.systems.coverage.draft_checks` finds what is wrong with it.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from cda.contracts.facts import FactDefinition
from cda.contracts.model_client import ModelClient, ModelRequest, RunMeter, UserTurn

ROLE = "drafter"
INSTRUCTIONS = (Path(__file__).parent / "instructions" / "criteria-drafting.md").read_text(encoding="utf-8")


class Answer(BaseModel):
    """Base of the answer's forms: unknown keys are refused, every key is required."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class DraftedException(Answer):
    """One exception word of the quote: the quote's words from there on, and the path of the node that holds it."""

    words: str
    node: str


class DraftedClause(Answer):
    """One clause. criterion: JSON text, since a criterion nests; empty for a clause that decides nothing."""

    block: str
    quote: str
    section: str
    codes: list[str]
    criterion: str
    exceptions: list[DraftedException]


class DraftedFact(Answer):
    """A new fact that the clauses need; unit and values are empty where the type has none."""

    name: str
    type: Literal["bool", "class", "status", "rate", "duration", "measure", "count", "date"]
    label: str
    unit: str
    values: list[str]


class Draft(Answer):
    """All clauses of one version, and the facts they need beside the defined ones."""

    clauses: list[DraftedClause]
    facts: list[DraftedFact]


def draft(
    client: ModelClient,
    meter: RunMeter,
    *,
    policy: Mapping[str, Any],
    blocks: Sequence[Mapping[str, str]],
    definitions: Mapping[str, FactDefinition],
) -> Draft:
    """The model's draft of one version. policy: {policy_id, version, codes}; blocks: {id, section, text} each. Raises
    ModelFailure."""
    facts = [
        {"name": d.name, "type": d.type.value, "unit": d.unit or "", "values": list(d.values), "label": d.label}
        for d in definitions.values()
    ]
    shown = {"facts": facts, "policy": policy, "blocks": list(blocks)}
    request = ModelRequest(
        role=ROLE,
        static=INSTRUCTIONS,
        turns=(UserTurn(json.dumps(shown, ensure_ascii=False)),),
        answer=Draft,
        key=f"{policy['policy_id']}.{policy['version']}",
    )
    answer = client.ask(request, meter).answer
    assert isinstance(answer, Draft)  # noqa: S101 - the client's contract
    return answer
