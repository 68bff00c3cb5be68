"""Settings and clients on the double of the model services."""

from collections.abc import Callable
from typing import Any

from doubles.messages_server import ModelDouble

from cda.llm.calling import ProviderClient
from cda.settings import Settings

ANTHROPIC, OPENAI = "anthropic:claude-sonnet-5", "openai:gpt-double"
Open = Callable[..., ProviderClient]


def settings_for(double: ModelDouble, model: str, **more: Any) -> Settings:
    """Settings that name the double as both services."""
    given = {
        "CDA_MODEL": model,
        "CDA_MODEL_PRICES": "gpt-double=1/2",
        "ANTHROPIC_API_KEY": double.key,
        "ANTHROPIC_BASE_URL": double.url,
        "OPENAI_API_KEY": double.key,
        "OPENAI_BASE_URL": double.openai_url,
    }
    return Settings(**{**given, **more})
