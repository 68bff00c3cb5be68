"""Every client keeps the same promises; Anthropic's and OpenAI's over their own libraries and a loopback connection."""

from collections.abc import Callable, Iterator

import pytest
from conformance.model_client import ModelClientConformance
from doubles.messages_actor import Actor
from doubles.messages_server import ModelDouble

from cda.contracts.model_client import ModelClient
from cda.llm.opening import open_model_client
from cda.llm.scripted import ScriptedClient
from cda.settings import Settings


@pytest.fixture
def double() -> Iterator[ModelDouble]:
    with ModelDouble() as running:
        yield running


class TestAnthropic(ModelClientConformance):
    @pytest.fixture
    def client(self, double: ModelDouble, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[Actor], ModelClient]]:
        monkeypatch.setenv("CDA_MODEL", "anthropic:claude-sonnet-5")
        monkeypatch.setenv("ANTHROPIC_API_KEY", double.key)
        monkeypatch.setenv("ANTHROPIC_BASE_URL", double.url)
        yield from opened(double)


class TestOpenAI(ModelClientConformance):
    schemas = True

    @pytest.fixture
    def client(self, double: ModelDouble, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[Actor], ModelClient]]:
        double.schemas = self.schemas
        monkeypatch.setenv("CDA_MODEL", "openai:gpt-double")
        monkeypatch.setenv("CDA_MODEL_PRICES", "gpt-double=1/2")
        monkeypatch.setenv("OPENAI_API_KEY", double.key)
        monkeypatch.setenv("OPENAI_BASE_URL", double.openai_url)
        yield from opened(double)


class TestOpenAIWithoutSchemas(TestOpenAI):
    schemas = False


class TestScripted(ModelClientConformance):
    @pytest.fixture
    def client(self) -> Callable[[Actor], ModelClient]:
        return ScriptedClient


def opened(double: ModelDouble) -> Iterator[Callable[[Actor], ModelClient]]:
    made: list[ModelClient] = []

    def open_with(actor: Actor) -> ModelClient:
        double.actor = actor
        made.append(open_model_client(Settings()))
        return made[-1]

    yield open_with
    for client in made:
        client.close()
