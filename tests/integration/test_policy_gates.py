"""The policy server stands on the same kernel as the claims server: with keys every gate is missed when it is taken
away in a real process on stdio, and without keys what is left of the kernel still decides."""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from conformance.tiny_corpus import CONTENTS
from integration.claims_servers import Site, Wire
from integration.policy_servers import COMMAND, environment
from integration.test_claims_gates import ABSENT

from cda.serving.kernel import GATES
from cda.serving.key_store import make_key, revoke_key
from corpus.store_writer import write_store

pytestmark = pytest.mark.promise("server.kernel")
ASKED = {"clause_id": "ACM-MP-1.v1.C1"}


@pytest.fixture
def site(tmp_path: Path) -> Site:
    write_store(CONTENTS, tmp_path / "corpus.sqlite")
    (tmp_path / "home").mkdir()
    return Site(tmp_path / "home", make_key(tmp_path / "home" / "keys.json", key_id="reader", tools=["all"]))


@contextmanager
def served(site: Site, *options: str, first: str = "", **more: str) -> Iterator[Wire]:
    program = f"{first}\nfrom cda.systems.coverage.mcp_command import mcp_group; mcp_group(prog_name='cda mcp')"
    process = subprocess.Popen(
        [sys.executable, "-c", program, "policy", *options],
        env=environment(site.home.parent) | {"CDA_API_KEY": site.secret} | more,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
    )
    wire = Wire(process)
    try:
        yield wire
    finally:
        wire.close()


def text_of(wire: Wire, **changed: Any) -> str:
    answer = wire.call("get_clause_by_id", ASKED | changed)
    return str(answer["result"]["content"][0]["text"] if "result" in answer else answer["error"]["message"])


def recorded(site: Site, wire: Wire) -> str:
    text_of(wire)
    return " ".join(record["kind"] for record in site.records())


# What a client hears with every gate in place; each is heard otherwise when its gate is gone.
PROBES: Mapping[str, tuple[Callable[[Site, Wire], str], str]] = {
    "authenticate": (lambda _, wire: text_of(wire), "unauthenticated"),
    "limit": (lambda _, wire: [text_of(wire) for _ in range(3)][-1], "rate_limited"),
    "authorise": (lambda _, wire: text_of(wire), "unknown_tool"),
    "validate": (lambda _, wire: text_of(wire, more="x"), "invalid_argument"),
    "intent": (recorded, "intent outcome"),
    "outcome": (recorded, "intent outcome"),
}


def variables(site: Site, gate: str) -> dict[str, str]:
    match gate:
        case "authenticate":
            make_key(site.home / "keys.json", key_id="other", tools=["all"])
            revoke_key(site.home / "keys.json", "reader")
        case "limit":
            return {"CDA_RATE_LIMIT": "2/600"}
        case "authorise":
            return {"CDA_API_KEY": make_key(site.home / "keys.json", key_id="codes", tools=["lookup_code"])}
    return {}


def test_every_gate_has_a_probe_but_cleaning_since_clauses_are_quoted_verbatim() -> None:
    assert set(PROBES) == set(GATES) - {"sanitise"}


@pytest.mark.parametrize("gate", PROBES)
def test_a_gate_that_is_taken_away_from_the_policy_server_on_stdio_is_missed(site: Site, gate: str) -> None:
    probe, words = PROBES[gate]
    more = variables(site, gate)
    with served(site, "--keys", **more) as wire:
        wire.start()
        assert probe(site, wire).startswith(words)

    for file in (
        *site.home.glob("rate-limit*"),
        *(site.home / "ledger").glob("*"),
        *(site.home / "ledger-head").glob("*"),
    ):
        file.unlink()
    taken = f"{ABSENT[gate]}\nfrom cda.serving.kernel import Kernel\nKernel.{gate} = absent"
    with served(site, "--keys", first=taken, **more) as wire:
        wire.start()
        assert words not in probe(site, wire)


def test_without_keys_the_kernel_still_validates_and_knows_its_tools(site: Site) -> None:
    with served(site) as wire:
        wire.start()
        assert text_of(wire).startswith('{"clause_id"')
        assert text_of(wire, more="x").startswith("invalid_argument")
        unknown = wire.call("drop_everything", {})["result"]
    assert unknown["content"][0]["text"].startswith("unknown_tool: this server has search_policies")
    assert (wire.rest, wire.process.returncode) == ("", 0)


def test_with_keys_and_without_one_on_stdio_nothing_starts(site: Site) -> None:
    started = subprocess.run(
        [*COMMAND, "--keys"], env=environment(site.home.parent), capture_output=True, text=True, timeout=60, check=False
    )

    assert (started.returncode, started.stdout) == (1, "")
    assert "CDA_API_KEY" in started.stderr


def test_a_call_is_on_the_record_with_its_rows(site: Site) -> None:
    with served(site, "--keys") as wire:
        wire.start()
        for tool, arguments in (
            ("list_policy_versions", {"policy_id": "ACM-MP-1"}),
            ("lookup_code", {"code": "95249"}),
        ):
            answer = wire.call(tool, arguments)["result"]
            assert not answer["isError"], json.dumps(answer)
    outcomes = [(record["tool"], record["rows"]) for record in site.records() if record["kind"] == "outcome"]

    assert [tool for tool, _ in outcomes] == ["list_policy_versions", "lookup_code"]
    assert all(rows >= 1 for _, rows in outcomes)
    assert site.verdict().sound
