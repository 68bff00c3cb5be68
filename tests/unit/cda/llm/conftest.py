"""The double of the model services, and clients that settings open on it."""

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from conformance.model_client import GOOD
from doubles.messages_server import ModelDouble
from model_world import ANTHROPIC, Open, settings_for

from cda.llm.calling import ProviderClient
from cda.llm.opening import open_model_client


@pytest.fixture
def double() -> Iterator[ModelDouble]:
    with ModelDouble(lambda _: GOOD) as running:
        yield running


@pytest.fixture
def open_client(double: ModelDouble) -> Iterator[Open]:
    """Opens clients and closes them; what was asked before the test's own questions is forgotten."""
    with ExitStack() as stack:

        def opened(model: str = ANTHROPIC, *, look: bool = True, **more: Any) -> ProviderClient:
            client = open_model_client(settings_for(double, model, **more), look=look)
            stack.callback(client.close)
            double.seen.clear()
            return client

        yield opened
