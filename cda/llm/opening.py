"""From settings to a client. Only here is it decided which library is imported."""

from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

from pydantic import SecretStr

from cda.errors import UnavailableError, UsageError
from cda.llm.batches import BatchClient
from cda.llm.calling import ProviderClient
from cda.llm.choice import Choice, choose
from cda.llm.prices import read_prices
from cda.llm.provider import ModelProvider
from cda.settings import Settings


def open_model_client(settings: Settings, *, look: bool = True) -> ProviderClient:
    """A client for the models that settings choose; nothing is sent but, with `look`, a free question whether they are
    there.

    Raises UnavailableError, one line, for no model, no key, a wrong key, an unknown model, a service that is down or a
    library that is not installed; UsageError for a model without a price.
    """
    choices = choose(settings)
    prices = read_prices().priced(settings.model_prices)
    for choice in choices.values():
        prices.of(choice.name)
    client = ProviderClient(
        choices, _providers(settings, choices), prices, most=settings.model_concurrency, tries=settings.model_tries
    )
    if look:
        try:
            client.look()
        except BaseException:
            client.close()
            raise
    return client


def open_batches(settings: Settings, journal: Path) -> BatchClient:
    """A client whose answers come from batches, going on with what the journal says. Raises as `open_model_client`."""
    client = open_model_client(settings)
    try:
        return BatchClient(client, journal)
    except BaseException:
        client.close()
        raise


def _providers(settings: Settings, choices: Mapping[str, Choice]) -> dict[str, ModelProvider]:
    used = sorted({choice.provider for choice in choices.values()})
    return {name: _anthropic(settings) if name == "anthropic" else _openai(settings) for name in used}


def _anthropic(settings: Settings) -> ModelProvider:
    if settings.anthropic_api_key is None:
        raise UnavailableError("ANTHROPIC_API_KEY is not set, and a model of anthropic is chosen")
    try:
        from cda.llm.anthropic_provider import AnthropicProvider
    except ImportError:
        raise UnavailableError("Anthropic's library is not installed; install the extra `anthropic`") from None
    key = _key("ANTHROPIC_API_KEY", settings.anthropic_api_key)
    return AnthropicProvider(key, _address("ANTHROPIC_BASE_URL", settings.anthropic_base_url))


def _openai(settings: Settings) -> ModelProvider:
    if settings.openai_api_key is None and settings.openai_base_url is None:
        raise UnavailableError("OPENAI_API_KEY is not set, and a model of openai is chosen")
    try:
        from cda.llm.openai_provider import OpenAIProvider
    except ImportError:
        raise UnavailableError("OpenAI's library is not installed; install the extra `openai`") from None
    key = _key("OPENAI_API_KEY", settings.openai_api_key) if settings.openai_api_key else ""
    return OpenAIProvider(key, _address("OPENAI_BASE_URL", settings.openai_base_url))


def _key(variable: str, key: SecretStr) -> str:
    text = key.get_secret_value()
    if not text.isascii() or not text.isprintable() or " " in text:
        raise UsageError(f"{variable} holds a character that no key has")
    return text


def _address(variable: str, url: str | None) -> str | None:
    try:
        good = url is None or (urlsplit(url).hostname is not None and urlsplit(url).port != 0)
    except ValueError:
        good = False
    if not good:
        raise UsageError(f"{variable} is no address: http(s)://HOST[:PORT][/PATH]")
    return url
