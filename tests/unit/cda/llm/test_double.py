"""The double refuses what the service refuses and says what it says, to the real library, with no code of ours."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anthropic
import pytest
from conformance.model_client import asked
from doubles.messages_actor import Said
from doubles.messages_server import Fault, ModelDouble
from model_world import Open

from cda.contracts.model_client import UnlimitedMeter

TESTS = Path(__file__).parents[3]
ASK: dict[str, Any] = {
    "model": "claude-sonnet-5",
    "max_tokens": 100,
    "messages": [{"role": "user", "content": "Hello"}],
}


@pytest.fixture
def sdk(double: ModelDouble) -> Iterator[anthropic.Anthropic]:
    with anthropic.Anthropic(api_key=double.key, base_url=double.url, max_retries=0) as client:
        yield client


@pytest.mark.promise("clients.double")
def test_a_stream_says_what_a_whole_answer_says(double: ModelDouble, sdk: anthropic.Anthropic) -> None:
    double.actor = lambda _: Said(text="A sentence — with signs.", thinking="first", calls=(("look", {"id": "C1"}),))
    whole = sdk.messages.create(**ASK)
    with sdk.messages.stream(**ASK) as stream:
        streamed = stream.get_final_message()
    assert [block.to_dict() | {"id": 0} for block in streamed.content] == [
        block.to_dict() | {"id": 0} for block in whole.content
    ]
    assert (streamed.stop_reason, streamed.usage.output_tokens) == (whole.stop_reason, whole.usage.output_tokens)


@pytest.mark.promise("clients.double")
def test_a_stream_can_be_cut(double: ModelDouble, sdk: anthropic.Anthropic) -> None:
    double.actor, double.faults = lambda _: Said(text="word " * 50), [Fault("cut")]
    with pytest.raises(Exception, match=r"peer closed|incomplete"), sdk.messages.stream(**ASK) as stream:
        stream.get_final_message()


OPEN = {"type": "object", "properties": {}, "required": []}


@pytest.mark.promise("clients.double")
@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"extra_body": {"temperature": 0}}, "temperature"),
        ({"model": "claude-0"}, "claude-0"),
        ({"messages": [*ASK["messages"], {"role": "assistant", "content": "{"}]}, "prefilling"),
        ({"messages": [{"role": "user", "content": ""}]}, "non-empty"),
        ({"output_config": {"format": {"type": "json_schema", "schema": OPEN}}}, "additionalProperties"),
        (
            {
                "output_config": {
                    "format": {
                        "type": "json_schema",
                        "schema": {**OPEN, "additionalProperties": False, "properties": {"n": {"minimum": 0}}},
                    }
                }
            },
            "minimum",
        ),
        (
            {
                "messages": [
                    *ASK["messages"],
                    {"role": "assistant", "content": [{"type": "tool_use", "id": "t1", "name": "look", "input": {}}]},
                    {"role": "user", "content": "and?"},
                ]
            },
            "tool_result",
        ),
    ],
)
def test_what_the_service_refuses_is_refused(sdk: anthropic.Anthropic, change: dict[str, Any], says: str) -> None:
    with pytest.raises(anthropic.APIStatusError, match=says) as caught:
        sdk.messages.create(**{**ASK, **change})
    assert caught.value.status_code in (400, 404)


@pytest.mark.promise("clients.double")
def test_the_double_shares_no_code_with_the_product_and_runs_as_a_process() -> None:
    for file in sorted((TESTS / "doubles").glob("*.py")):
        if file.name.startswith(("messages_", "chat_")):
            assert not [
                line for line in file.read_text("utf-8").splitlines() if line.startswith(("from cda", "import cda"))
            ]
    process = subprocess.Popen(
        [sys.executable, "-m", "doubles.messages_server", "--port", "0", "--key", "k"],
        cwd=TESTS, env={**os.environ, "PYTHONPATH": str(TESTS)}, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        assert process.stdout is not None
        address = process.stdout.readline().split()[0].removeprefix("ANTHROPIC_BASE_URL=")
        with anthropic.Anthropic(api_key="k", base_url=address, max_retries=0) as client:
            assert client.messages.create(**ASK).content[0].to_dict()["text"] == "all right"
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=20)


@pytest.mark.promise("clients.closed")
def test_an_interrupt_cancels_what_is_in_flight(double: ModelDouble, open_client: Open) -> None:
    double.faults = [Fault("hang", 9)]
    client, main = open_client(), threading.main_thread().ident
    assert main is not None
    timer = threading.Timer(0.5, lambda: signal.pthread_kill(main, signal.SIGINT))
    timer.start()
    began = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        client.ask(asked(), UnlimitedMeter())
    timer.join()
    until = time.monotonic() + 5
    while client.pending() and time.monotonic() < until:
        time.sleep(0.01)
    assert client.pending() == 0
    assert time.monotonic() - began < 5
