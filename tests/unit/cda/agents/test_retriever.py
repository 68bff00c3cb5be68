import json
from collections.abc import Mapping
from typing import Any

import pytest
from doubles.messages_actor import Body, Said, results_of

from cda.agents.retriever import Caps, RetrieverRole
from cda.contracts.model_client import ToolSpec, UnlimitedMeter
from cda.errors import ToolRefusal
from cda.llm.scripted import ScriptedClient

pytestmark = pytest.mark.promise("models.retriever")


class Box:
    """One tool that says a text of a length, and refuses anything else."""

    specs = (ToolSpec("say", "Say.", {"type": "object"}),)

    def __init__(self) -> None:
        self.called: list[str] = []

    def call(self, name: str, arguments: Mapping[str, Any]) -> str:
        self.called.append(name)
        if name != "say":
            raise ToolRefusal("invalid_argument", "no such tool")
        return json.dumps("x" * int(arguments["length"]))


def found(script: Any, **caps: Any) -> tuple[Any, Box, list[Body]]:
    bodies: list[Body] = []

    def actor(body: Body) -> Said:
        bodies.append(body)
        return script(body)  # type: ignore[no-any-return]

    box = Box()
    role = RetrieverRole(caps=Caps(**caps))
    return role.retrieve(ScriptedClient(actor), UnlimitedMeter(), {"queries": []}, box), box, bodies


def test_a_loop_without_an_end_ends_at_its_turns() -> None:
    result, box, _ = found(lambda _: Said(calls=(("say", {"length": 1}),)), turns=3)
    assert (result.ended, result.clause_ids, box.called) == ("turns", (), ["say"] * 3)


def test_results_beyond_the_bytes_are_not_shown() -> None:
    result, _, bodies = found(lambda _: Said(calls=(("say", {"length": 80}),)), turns=4, result_bytes=170)
    shown = [str(block["content"]) for block in results_of(bodies[-1])]
    assert [len(text) > 80 for text in shown] == [True, True, False]
    assert result.result_bytes <= 170


def test_time_ends_the_loop_before_another_call() -> None:
    now = iter([0.0, 1.0, 99.0])
    client = ScriptedClient(lambda _: Said(calls=(("say", {"length": 1}),)))
    role = RetrieverRole(caps=Caps(seconds=10))
    result = role.retrieve(client, UnlimitedMeter(), {}, Box(), clock=lambda: next(now))
    assert (result.ended, result.turns) == ("seconds", 1)


def test_a_tool_that_is_none_is_an_error_to_the_model_and_to_nobody_else() -> None:
    def script(body: Body) -> Said:
        if not results_of(body):
            return Said(calls=(("delete_everything", {}),))
        return Said(calls=(("finish", {"clause_ids": ["A.v1.C1"]}),))

    result, _, bodies = found(script)
    assert (result.ended, result.clause_ids) == ("finish", ("A.v1.C1",))
    assert "invalid_argument" in json.dumps(results_of(bodies[-1]))


def test_an_end_out_of_form_names_no_clause() -> None:
    result, _, _ = found(lambda _: Said(calls=(("finish", {"clause_ids": 7}),)))
    assert (result.ended, result.clause_ids) == ("finish", ())


def test_words_without_a_call_end_the_search() -> None:
    result, _, _ = found(lambda _: Said(text="I am done."))
    assert result.ended == "silence"
