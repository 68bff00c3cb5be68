"""The synthetic corpus and the floor cases as structured facts."""

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))

import criteria_world as world

from cda.contracts.facts import FactDefinition
from cda.contracts.policy_tools import ClauseView
from cda.criteria.line import LineEvaluation


@pytest.fixture(scope="session")
def definitions() -> dict[str, FactDefinition]:
    return {name: world.define(name, **data) for name, data in world.DATA["facts"].items()}


@pytest.fixture(scope="session")
def clauses() -> list[ClauseView]:
    return world.synthetic_clauses()


@pytest.fixture(scope="session")
def decide(definitions: dict[str, FactDefinition], clauses: list[ClauseView]) -> Callable[..., LineEvaluation]:
    """Decide a line of the synthetic corpus: decide(code, plan, as_of, dx, **facts)."""

    def decided(code: str, plan: str, as_of: str, dx: Sequence[str] = (), **facts: Any) -> LineEvaluation:
        payer = facts.pop("payer", plan.split("-", maxsplit=1)[0])
        return world.decide(clauses, definitions, code=code, plan=plan, as_of=as_of, dx=dx, payer=payer, **facts)

    return decided
