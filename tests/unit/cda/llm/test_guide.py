"""The guide to models names every variable of theirs and every reason that a call can end with."""

from pathlib import Path

import pytest

from cda.contracts.model_client import FailureKind
from cda.llm.choice import ROLES
from cda.settings import Settings

GUIDE = (Path(__file__).parents[4] / "docs/reference/models.md").read_text(encoding="utf-8")
pytestmark = pytest.mark.promise("clients.guide")


def test_every_failure_is_in_the_guide() -> None:
    assert [kind for kind in FailureKind if f"`{kind}`" not in GUIDE] == []


def test_every_variable_of_models_is_in_the_guide() -> None:
    fields = ("model", "anthropic", "openai", "run_max")
    names = [name for name in Settings.model_fields if name.startswith(fields) and name[6:] not in ROLES]
    aliases = [Settings.model_fields[name].validation_alias.choices[0] for name in names]  # type: ignore[union-attr]
    assert len(aliases) >= 10
    assert [alias for alias in aliases if f"`{alias}`" not in GUIDE] == []
    assert [role for role in ROLES if f"_{role.upper()}`" not in GUIDE] == []
