"""Neither key nor narrative is in a repr, an error, a log or an environment of a request beyond the request itself."""

import logging
import traceback

import pytest
from conformance.model_client import NOTE, asked
from doubles.messages_actor import Said
from doubles.messages_server import Fault, ModelDouble
from model_world import ANTHROPIC, OPENAI, Open, settings_for

from cda.contracts.model_client import ModelFailure, UnlimitedMeter

pytestmark = pytest.mark.promise("clients.canary")
BOTH = pytest.mark.parametrize("model", [ANTHROPIC, OPENAI])
FAULTS = ("status", "page", "drop", "cut", "garbled", "empty", "truncated", "refusal", "broken", "prose", "hang")


@BOTH
@pytest.mark.parametrize("kind", ["none", *FAULTS])
def test_key_and_narrative_are_in_no_error_log_or_repr(
    double: ModelDouble, open_client: Open, caplog: pytest.LogCaptureFixture, model: str, kind: str
) -> None:
    caplog.set_level(logging.DEBUG)
    double.key = "canary-key-9151"
    if kind != "none":
        double.faults = [Fault(kind, 99, None, 429, {"retry-after-ms": "1"})]  # type: ignore[arg-type]
    double.actor = lambda _: Said(answer={"facts": [{"name": "canary-7291", "months": -5}]})
    client, meter = open_client(f"{model},seconds=2", CDA_MODEL_TRIES=2), UnlimitedMeter()
    with pytest.raises(ModelFailure) as caught:
        client.ask(asked(), meter)
    assert b"canary-7291" in double.questions[0].body  # it went where it should
    told = "".join(traceback.format_exception(caught.value)) + repr(caught.value) + repr(meter.calls) + caplog.text
    told += repr(client) + repr(vars(client)) + repr(settings_for(double, model)) + repr(caught.value.__context__)
    for word in ("canary-7291", "canary-key-9151", "insulin"):
        assert word not in told


@BOTH
def test_a_request_carries_the_key_once_and_nothing_of_this_machine(
    double: ModelDouble, open_client: Open, model: str
) -> None:
    open_client(model).ask(asked(), UnlimitedMeter())
    (seen,) = double.questions
    values = [value for name, value in seen.headers.items() if double.key in value]
    assert values == [f"Bearer {double.key}"]
    assert double.key.encode() not in seen.body
    assert seen.body.count(b"canary-7291") == 1
    assert NOTE.encode() not in seen.body.partition(b'"messages"')[0]
    assert not [name for name in seen.headers if "traceparent" in name.lower() or "organization" in name.lower()]
