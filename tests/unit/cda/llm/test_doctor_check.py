"""The doctor says which models are chosen and what they lack, sends nothing and shows no key."""

import pytest
from doubles.messages_server import ModelDouble
from model_world import ANTHROPIC, OPENAI, settings_for

from cda.doctor import examine as examine_all
from cda.llm.doctor_check import examine
from cda.settings import Settings

pytestmark = pytest.mark.promise("clients.doctor")


def test_without_a_model_all_is_well_and_nothing_is_sent() -> None:
    (found,) = examine(Settings())
    assert (found.state, found.remedy) == ("ok", "")
    assert "nothing is sent" in found.detail


def test_a_chosen_model_is_named_with_its_roles_key_and_price(double: ModelDouble) -> None:
    settings = settings_for(double, ANTHROPIC, CDA_MODEL_JUDGE=OPENAI, ANTHROPIC_API_KEY="canary-key-17")
    anthropic, openai = examine(settings)
    assert (anthropic.name, anthropic.state) == (f"model ({ANTHROPIC})", "ok")
    assert "key present" in anthropic.detail
    assert "3 in and 15 out" in anthropic.detail
    assert openai.detail.startswith("for judge;")
    assert "canary-key-17" not in repr((anthropic, openai))
    assert double.seen == []


def test_what_is_missing_has_its_remedy(double: ModelDouble) -> None:
    (no_key,) = examine(settings_for(double, ANTHROPIC, ANTHROPIC_API_KEY=None))
    assert (no_key.state, no_key.remedy) == ("warn", "set ANTHROPIC_API_KEY")
    (no_price,) = examine(settings_for(double, "openai:gpt-odd"))
    assert no_price.state == "warn"
    assert no_price.remedy.startswith("set CDA_MODEL_PRICES=gpt-odd=IN/OUT")


def test_the_doctor_asks_this_check() -> None:
    assert "model" in {finding.name for finding in examine_all(Settings())}
