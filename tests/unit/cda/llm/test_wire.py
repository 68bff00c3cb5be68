"""What goes over the wire: the cacheable part first, use as settings say, and turns sent back as they came."""

import json
from typing import Annotated, Literal

import pytest
from conformance.model_client import GOOD, LOOK, STATIC, Facts, asked
from doubles.messages_actor import Body, Said, results_of
from doubles.messages_server import Fault, ModelDouble
from model_world import ANTHROPIC, OPENAI, Open
from pydantic import BaseModel, ConfigDict, Field

from cda.contracts.model_client import ResultsTurn, ToolResult, UnlimitedMeter, UserTurn
from cda.errors import UnavailableError

LONG = STATIC + " Rules." * 1000


@pytest.mark.promise("clients.cached")
def test_what_is_static_is_written_to_the_cache_once_and_read_after_that(open_client: Open) -> None:
    client = open_client()
    first = client.ask(asked(static=LONG), UnlimitedMeter()).call
    second = client.ask(asked(static=LONG, turns=(UserTurn('{"note": "another"}'),)), UnlimitedMeter()).call
    assert first.usage.cache_write == second.usage.cache_read > 1500
    assert second.usage.cache_write == 0
    assert second.usd < first.usd
    assert first.static_sha256 == second.static_sha256


@pytest.mark.promise("clients.cached")
def test_a_tool_loop_reads_from_the_cache_what_the_model_has_seen(double: ModelDouble, open_client: Open) -> None:
    double.actor = lambda body: GOOD if results_of(body) else Said(calls=(("look", {"id": "C1"}),))
    client, meter = open_client(), UnlimitedMeter()
    request = asked(static=LONG, tools=(LOOK,))
    turn = client.ask(request, meter).turn
    results = ResultsTurn((ToolResult(turn.calls[0].call_id, "a clause " * 20),))
    client.ask(asked(static=LONG, tools=(LOOK,), turns=(*request.turns, turn, results)), meter)
    first, second = (call.usage for call in meter.calls)
    assert second.cache_read >= first.cache_write > 0
    assert second.input < 100


@pytest.mark.promise("clients.tools")
def test_signed_thinking_goes_back_as_it_came(double: ModelDouble, open_client: Open) -> None:
    heard: list[Body] = []

    def actor(body: Body) -> Said:
        heard.append(body)
        return GOOD if results_of(body) else Said(thinking="look first", calls=(("look", {"id": "C1"}),))

    double.actor = actor
    client, meter = open_client(f"{ANTHROPIC},thinking=adaptive"), UnlimitedMeter()
    turn = client.ask(asked(tools=(LOOK,)), meter).turn
    assert "look first" not in repr(turn)
    results = ResultsTurn((ToolResult(turn.calls[0].call_id, "{}"),))
    client.ask(asked(tools=(LOOK,), turns=(*asked().turns, turn, results)), meter)
    sent = heard[1]["messages"][1]["content"]
    assert sent[0] == {"type": "thinking", "thinking": "look first", "signature": "c2lnbmVk"}
    assert [block["type"] for block in sent] == ["thinking", "tool_use"]


@pytest.mark.promise("clients.choice")
def test_the_use_of_a_model_is_what_settings_say(double: ModelDouble, open_client: Open) -> None:
    open_client(f"{ANTHROPIC},effort=low,tokens=700,thinking=disabled").ask(asked(), UnlimitedMeter())
    open_client(f"{OPENAI},effort=low,tokens=700").ask(asked(), UnlimitedMeter())
    messages, chat = double.bodies[-2:]
    assert messages["output_config"]["effort"] == "low"
    assert (messages["max_tokens"], messages["thinking"]) == (700, {"type": "disabled"})
    assert (chat["reasoning_effort"], chat["max_tokens"]) == ("low", 700)


@pytest.mark.promise("clients.wire")
@pytest.mark.parametrize("model", [ANTHROPIC, OPENAI])
def test_the_same_question_is_the_same_bytes(double: ModelDouble, open_client: Open, model: str) -> None:
    client = open_client(model)
    for _ in range(2):
        client.ask(asked(tools=(LOOK,)), UnlimitedMeter())
    assert double.questions[0].body == double.questions[1].body
    assert not {"temperature", "top_p", "thread", "metadata", "user"} & set(json.loads(double.questions[0].body))


@pytest.mark.promise("clients.wire")
def test_a_tool_s_error_is_told_as_one(double: ModelDouble, open_client: Open) -> None:
    double.actor = lambda body: GOOD if results_of(body) else Said(calls=(("look", {"id": "C1"}),))
    client, meter = open_client(), UnlimitedMeter()
    turn = client.ask(asked(tools=(LOOK,)), meter).turn
    results = ResultsTurn((ToolResult(turn.calls[0].call_id, '{"error": "clause_not_found"}', is_error=True),))
    reply = client.ask(asked(tools=(LOOK,), turns=(*asked().turns, turn, results)), meter)
    assert isinstance(reply.answer, Facts)
    assert double.bodies[-1]["messages"][2]["content"][0]["is_error"] is True


class Dog(BaseModel):
    kind: Literal["dog"]
    weight: float = Field(default=1.0, gt=0)


class Cat(BaseModel):
    kind: Literal["cat"]
    lives: int = Field(default=9, le=9)


class Owner(BaseModel):
    model_config = ConfigDict(extra="forbid")

    pets: list[Annotated[Dog | Cat, Field(discriminator="kind")]] = Field(default_factory=list, max_length=4)
    default: Literal["a", "b"] | None = None


@pytest.mark.promise("clients.answer")
@pytest.mark.parametrize("model", [ANTHROPIC, OPENAI])
def test_contracts_with_choices_defaults_and_bounds_are_taken_as_schemas(
    double: ModelDouble, open_client: Open, model: str
) -> None:
    double.actor = lambda _: Said(answer={"pets": [{"kind": "cat", "lives": 3}], "default": "b"})
    reply = open_client(model).ask(asked(answer=Owner), UnlimitedMeter())
    assert reply.answer == Owner(pets=[Cat(kind="cat", lives=3)], default="b")
    assert [one.status for one in double.questions] == [200]


@pytest.mark.promise("clients.counted")
def test_a_request_is_counted_without_being_asked(double: ModelDouble, open_client: Open) -> None:
    client = open_client()
    counted = client.count(asked())
    assert double.questions == []
    usage = client.ask(asked(), UnlimitedMeter()).call.usage
    assert counted == usage.input + usage.cache_write
    with pytest.raises(UnavailableError, match="counts nothing"):
        open_client(OPENAI).count(asked())
    double.faults = [Fault("status", 1, "/count_tokens", 401)]
    with pytest.raises(UnavailableError, match="correct ANTHROPIC_API_KEY"):
        client.count(asked())
