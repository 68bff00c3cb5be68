"""Settings choose a model and its use for each role, and refuse what is none."""

import pytest

from cda.errors import UnavailableError, UsageError
from cda.llm.choice import ROLES, Choice, choose
from cda.settings import Settings, load_settings

pytestmark = pytest.mark.promise("clients.choice")


def chosen(**given: str) -> dict[str, Choice]:
    return dict(choose(Settings(**given)))  # type: ignore[arg-type]


def test_one_model_answers_for_every_role() -> None:
    found = chosen(CDA_MODEL="anthropic:claude-sonnet-5")
    assert set(found) == set(ROLES)
    assert set(found.values()) == {Choice("anthropic", "claude-sonnet-5")}


def test_a_role_s_own_model_and_its_own_use_of_the_shared_one() -> None:
    found = chosen(
        CDA_MODEL="anthropic:claude-sonnet-5,effort=low,tokens=4000",
        CDA_MODEL_VERIFIER="openai:meta-llama/llama-4:free,seconds=20",
        CDA_MODEL_JUDGE="effort=high,thinking=adaptive",
    )
    assert found["planner"] == Choice("anthropic", "claude-sonnet-5", effort="low", max_tokens=4000)
    assert found["verifier"] == Choice("openai", "meta-llama/llama-4:free", max_seconds=20.0)
    assert found["judge"] == Choice("anthropic", "claude-sonnet-5", effort="high", thinking="adaptive", max_tokens=4000)
    assert found["verifier"].name == "openai:meta-llama/llama-4:free"


def test_a_model_for_one_role_alone_chooses_for_no_other() -> None:
    assert set(chosen(CDA_MODEL_DRAFTER="anthropic:claude-opus-5", CDA_MODEL_JUDGE="effort=low")) == {"drafter"}


def test_no_model_at_all_is_one_line_that_names_the_variable() -> None:
    with pytest.raises(UnavailableError, match="no model is chosen; set CDA_MODEL="):
        chosen()


@pytest.mark.parametrize(
    "text",
    ["claude-sonnet-5", "mistral:large", "anthropic:", "anthropic:x,effort=huge", "anthropic:x,tokens=0",
     "anthropic:x,temperature=0", "anthropic:x y", "anthropic:x,", "openai:x,seconds=99999"],
)  # fmt: skip
def test_what_names_no_model_or_use_is_refused_by_its_variable(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv("CDA_MODEL", text)
    with pytest.raises(UsageError, match="CDA_MODEL"):
        load_settings()


def test_every_role_has_its_variable() -> None:
    assert {name for name in Settings.model_fields if name.startswith("model_")} == {
        *(f"model_{role}" for role in ROLES),
        "model_concurrency",
        "model_tries",
        "model_prices",
    }
