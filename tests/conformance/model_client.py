"""What every model client must do: inherit `ModelClientConformance` and give it `client`.

`client(actor)` is a client whose model is that actor; `doubles.messages_actor` says what an actor is.
"""

import threading
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest
from doubles.messages_actor import Actor, Body, Said, data_of, results_of, static_of, text_of
from pydantic import BaseModel, ConfigDict, Field

from cda.contracts.model_client import (
    FailureKind,
    ModelClient,
    ModelFailure,
    ModelRequest,
    ResultsTurn,
    ToolResult,
    ToolSpec,
    UnlimitedMeter,
    UserTurn,
)
from cda.errors import CdaError

STATIC = "You read a chart and give facts."
NOTE = '{"note": "canary-7291 has used insulin for 8 months"}'
LOOK = ToolSpec(
    "look",
    "Look a clause up.",
    {"type": "object", "properties": {"id": {"type": "string"}}, "required": ["id"], "additionalProperties": False},
)


class Fact(BaseModel):
    """One fact; the model's schema cannot say that months are not negative, the contract does."""

    model_config = ConfigDict(extra="forbid")

    name: str
    months: int = Field(ge=0)


class Facts(BaseModel):
    model_config = ConfigDict(extra="forbid")

    facts: list[Fact] = Field(max_length=3)


class Stopped(CdaError):
    """A meter's own refusal."""


class FullMeter(UnlimitedMeter):
    """A meter that admits `calls` calls."""

    def __init__(self, admitted: int) -> None:
        super().__init__()
        self.admitted = admitted

    def admit(self) -> None:
        if len(self.calls) >= self.admitted:
            raise Stopped


def asked(**changes: Any) -> ModelRequest:
    """A question of the extractor."""
    given = {"role": "extractor", "static": STATIC, "turns": (UserTurn(NOTE),), "answer": Facts, **changes}
    return ModelRequest(**given)


GOOD = Said(answer={"facts": [{"name": "insulin", "months": 8}]})


class ModelClientConformance:
    @pytest.mark.promise("clients.answer")
    def test_an_answer_satisfies_its_contract_and_is_recorded_once(
        self, client: Callable[[Actor], ModelClient]
    ) -> None:
        meter = UnlimitedMeter()
        reply = client(lambda _: GOOD).ask(asked(), meter)
        assert reply.answer == Facts(facts=[Fact(name="insulin", months=8)])
        assert meter.calls == [reply.call]
        assert (reply.call.role, reply.call.outcome, reply.call.tries) == ("extractor", "ok", 1)
        assert reply.call.usage.input + reply.call.usage.cache_write > 0
        assert reply.call.usage.output > 0
        assert reply.call.usd > Decimal(0)
        assert not reply.call.estimated

    @pytest.mark.promise("clients.data_apart")
    def test_static_text_is_the_system_s_and_turns_are_the_user_s(self, client: Callable[[Actor], ModelClient]) -> None:
        heard: list[Body] = []

        def actor(body: Body) -> Said:
            heard.append(body)
            return GOOD

        client(actor).ask(asked(), UnlimitedMeter())
        assert static_of(heard[0]) == STATIC
        assert data_of(heard[0]) == {"note": "canary-7291 has used insulin for 8 months"}

    @pytest.mark.promise("clients.answer")
    def test_without_a_contract_the_text_comes_as_it_is(self, client: Callable[[Actor], ModelClient]) -> None:
        reply = client(lambda _: Said(text="ça va — 40°")).ask(asked(answer=None), UnlimitedMeter())
        assert (reply.turn.text, reply.turn.calls, reply.answer) == ("ça va — 40°", (), None)

    @pytest.mark.promise("clients.tools")
    def test_calls_of_tools_are_answered_within_one_conversation(self, client: Callable[[Actor], ModelClient]) -> None:
        def actor(body: Body) -> Said:
            got = results_of(body)
            if not got:
                return Said(text="Two look-ups.", calls=(("look", {"id": "C1"}), ("look", {"id": "C2"})))
            assert text_of(body["messages"][1]) == "Two look-ups."
            return Said(answer={"facts": [{"name": str(one["content"]), "months": 1} for one in got]})

        asking, meter = client(actor), UnlimitedMeter()
        request = asked(tools=(LOOK,))
        first = asking.ask(request, meter)
        assert first.answer is None
        assert [(call.name, dict(call.arguments)) for call in first.turn.calls] == [
            ("look", {"id": "C1"}),
            ("look", {"id": "C2"}),
        ]
        results = tuple(ToolResult(call.call_id, f"text {place}") for place, call in enumerate(first.turn.calls))
        last = asking.ask(asked(tools=(LOOK,), turns=(*request.turns, first.turn, ResultsTurn(results))), meter)
        assert isinstance(last.answer, Facts)
        assert [fact.name for fact in last.answer.facts] == ["text 0", "text 1"]
        assert len(meter.calls) == 2

    @pytest.mark.promise("clients.typed")
    @pytest.mark.parametrize(
        ("said", "kind"),
        [
            (Said(stop="refusal"), FailureKind.REFUSED),
            (Said(text='{"facts": [{"na', stop="max_tokens"), FailureKind.TRUNCATED),
            (Said(text="The member clearly qualifies."), FailureKind.BAD_ANSWER),
            (Said(answer={"facts": [{"name": "insulin", "months": -1}]}), FailureKind.BAD_ANSWER),
            (Said(answer={"facts": [], "verdict": "COVERED canary-7291"}), FailureKind.BAD_ANSWER),
            (Said(answer={"facts": [{"name": "x", "months": 1}] * 4}), FailureKind.BAD_ANSWER),
        ],
    )
    def test_what_is_no_answer_is_a_typed_failure_that_is_recorded_and_quotes_nothing(
        self, client: Callable[[Actor], ModelClient], said: Said, kind: FailureKind
    ) -> None:
        meter = UnlimitedMeter()
        with pytest.raises(ModelFailure) as caught:
            client(lambda _: said).ask(asked(), meter)
        assert (caught.value.kind, caught.value.role) == (kind, "extractor")
        assert str(caught.value).startswith(f"{kind}: ")
        assert {call.outcome for call in meter.calls} == {str(kind)}
        assert "canary" not in repr(caught.value) + repr(meter.calls)
        assert "qualifies" not in repr(caught.value)

    @pytest.mark.promise("clients.metered")
    def test_a_meter_that_admits_no_more_stops_the_next_question(self, client: Callable[[Actor], ModelClient]) -> None:
        heard: list[Body] = []

        def actor(body: Body) -> Said:
            heard.append(body)
            return GOOD

        asking, meter = client(actor), FullMeter(1)
        asking.ask(asked(), meter)
        with pytest.raises(Stopped):
            asking.ask(asked(), meter)
        assert len(heard) == 1

    @pytest.mark.promise("clients.threads")
    def test_threads_get_their_own_answers(self, client: Callable[[Actor], ModelClient]) -> None:
        def actor(body: Body) -> Said:
            return Said(answer={"facts": [{"name": data_of(body)["who"], "months": 1}]})

        asking, wrong, lock = client(actor), [], threading.Lock()

        def ask(who: str) -> None:
            reply = asking.ask(asked(turns=(UserTurn(f'{{"who": "{who}"}}'),)), UnlimitedMeter())
            if not isinstance(reply.answer, Facts) or reply.answer.facts[0].name != who:
                with lock:
                    wrong.append(who)

        threads = [threading.Thread(target=ask, args=(f"member {number}",)) for number in range(12)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)
        assert not any(thread.is_alive() for thread in threads)
        assert wrong == []

    @pytest.mark.promise("clients.describe")
    def test_a_client_says_which_model_answers(self, client: Callable[[Actor], ModelClient]) -> None:
        asking = client(lambda _: GOOD)
        reply = asking.ask(asked(), UnlimitedMeter())
        assert asking.describe("extractor") == reply.call.model
        assert ":" in reply.call.model

    @pytest.mark.promise("clients.closed")
    def test_a_closed_client_asks_nothing_and_closes_twice(self, client: Callable[[Actor], ModelClient]) -> None:
        asking = client(lambda _: GOOD)
        asking.close()
        asking.close()
        with pytest.raises(ModelFailure) as caught:
            asking.ask(asked(), UnlimitedMeter())
        assert caught.value.kind is FailureKind.UNREACHABLE
