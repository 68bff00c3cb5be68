"""Every gate of the claims server taken away in turn, in a real process on stdio: each is missed by its own probe.

The gates are read from the code: the kernel's steps as `admit` and `answer` take them, and the layers of the store. The
layers are taken away one by one in the store's own tests, against the open connection.
"""

import ast
import inspect
import sqlite3
import textwrap
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from integration.claims_servers import TOOLS, Site, Wire, stdio

from cda.serving.kernel import GATES, Kernel
from cda.serving.key_store import make_key, revoke_key

pytestmark = pytest.mark.promise("claims.gates")

# A kernel without one gate: everyone is let in as anyone, nothing is counted, every tool may be used, and so on.
ABSENT: Mapping[str, str] = {
    "authenticate": "import cda.serving.principal as p\nabsent = lambda s, c: setattr(c, 'principal', p.ANYONE)",
    "limit": "absent = lambda s, call: None",
    "authorise": "absent = lambda s, call: None",
    "validate": "absent = lambda s, call, tool: tool.arguments.model_construct(**call.arguments)",
    "intent": "absent = lambda s, call: None",
    "sanitise": "absent = lambda s, content: content",
    "outcome": "absent = lambda s, call, outcome, rows: None",
}


def text_of(wire: Wire, tool: str, **changed: Any) -> str:
    answer = wire.call(tool, TOOLS[tool] | changed)
    return str(answer["result"]["content"][0]["text"] if "result" in answer else answer["error"]["message"])


def nobody_is_let_in_without_a_key_that_works(_site: Site, wire: Wire) -> None:
    assert text_of(wire, "get_claim").startswith("unauthenticated")


def the_third_call_of_two_is_refused(_site: Site, wire: Wire) -> None:
    assert [text_of(wire, "get_claim")[:12] for _ in range(3)] == ['{"claim_id":', '{"claim_id":', "rate_limited"]


def a_tool_that_is_not_the_keys_is_refused(_site: Site, wire: Wire) -> None:
    assert text_of(wire, "get_claim").startswith("unknown_tool")


def an_argument_that_nobody_knows_is_refused(_site: Site, wire: Wire) -> None:
    assert text_of(wire, "get_claim", more="x").startswith("invalid_argument")


def a_call_is_on_the_record_before_and_after(site: Site, wire: Wire) -> None:
    text_of(wire, "get_claim")
    assert [record["kind"] for record in site.records()] == ["intent", "outcome"]


def what_is_not_shown_does_not_pass(_site: Site, wire: Wire) -> None:
    text = text_of(wire, "get_coverage_rule")
    assert "hidden" in text
    assert "\u202e" not in text


PROBES: Mapping[str, Callable[[Site, Wire], None]] = {
    "authenticate": nobody_is_let_in_without_a_key_that_works,
    "limit": the_third_call_of_two_is_refused,
    "authorise": a_tool_that_is_not_the_keys_is_refused,
    "validate": an_argument_that_nobody_knows_is_refused,
    "intent": a_call_is_on_the_record_before_and_after,
    "sanitise": what_is_not_shown_does_not_pass,
    "outcome": a_call_is_on_the_record_before_and_after,
}


def site_for(gate: str, home: Path) -> tuple[Site, dict[str, str]]:
    """A machine on which the probe of a gate can be asked, and the variables of its server."""
    site = Site.at(home)
    match gate:
        case "authenticate":
            make_key(home / "keys.json", key_id="other", tools=["all"])
            revoke_key(home / "keys.json", "analyst")
        case "limit":
            return site, {"CDA_RATE_LIMIT": "2/600"}
        case "authorise":
            return site, {"CDA_API_KEY": make_key(home / "keys.json", key_id="rules", tools=["get_coverage_rule"])}
        case "sanitise":
            writer = sqlite3.connect(home / "claims.sqlite")
            writer.execute("UPDATE coverage_rules SET rule_text = 'hid\u202eden hidden'")
            writer.commit()
            writer.close()
    return site, {}


def steps(method: str) -> list[str]:
    """The kernel's own public methods that one of its methods calls, in the order of the source."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(getattr(Kernel, method))))
    called = [
        (node.lineno, node.func.attr)
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and isinstance(node.func.value, ast.Name)
        and node.func.value.id == "self"
        and not node.func.attr.startswith("_")
    ]
    return [name for _, name in sorted(called)]


def test_the_gates_are_those_of_the_code_and_each_has_a_probe() -> None:
    assert (*steps("admit"), *steps("answer")) == GATES
    assert set(PROBES) == set(ABSENT) == set(GATES)


@pytest.mark.parametrize("gate", GATES)
def test_a_gate_that_is_taken_away_on_stdio_is_missed(tmp_path: Path, gate: str) -> None:
    probe = PROBES[gate]
    whole, variables = site_for(gate, tmp_path / "whole")
    with stdio(whole, **variables) as wire:
        started = wire.start()
        assert ("error" in started) == (gate == "authenticate")
        probe(whole, wire)

    robbed, variables = site_for(gate, tmp_path / "robbed")
    taken = f"{ABSENT[gate]}\nfrom cda.serving.kernel import Kernel\nKernel.{gate} = absent"
    with stdio(robbed, first=taken, **variables) as wire:
        wire.start()
        with pytest.raises(AssertionError):
            probe(robbed, wire)
