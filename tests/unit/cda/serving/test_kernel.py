"""The kernel: what it lets through, what it refuses, and what it writes down."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from kernel_world import CANARY, World

from cda.ledger import LedgerUnavailable
from cda.serving.kernel import GATES, Call, Denied, Kernel
from cda.serving.key_store import make_key, revoke_key
from cda.serving.rate_limit import LimiterUnavailable


@pytest.mark.promise("kernel.order")
def test_a_good_call_is_answered_cleaned_and_recorded_twice(tmp_path: Path) -> None:
    world = World(tmp_path)

    assert world.call(world.one) == {"text": "xend"}
    assert world.told() == [("intent", "one", "get_thing", ""), ("outcome", "one", "get_thing", "ok")]
    first, second = world.records()
    assert (first["call"], first["arguments"]) == (second["call"], second["arguments"])
    assert (first["rows"], second["rows"]) == (None, 1)
    assert world.sound()


@pytest.mark.promise("kernel.order")
@pytest.mark.parametrize(
    ("what", "code"),
    [
        (lambda w: w.call(None), "unauthenticated"),
        (lambda w: w.call("cda_wrong"), "unauthenticated"),
        (lambda w: w.call(w.none), "unknown_tool"),
        (lambda w: w.call(w.one, "get_other"), "unknown_tool"),
        (lambda w: w.call(w.all, CANARY), "unknown_tool"),
        (lambda w: w.call(w.all, name=7), "invalid_argument"),
        (lambda w: w.call(w.all, name="x", other=CANARY), "invalid_argument"),
        (lambda w: w.call(w.all, name="missing"), "thing_not_found"),
    ],
)
def test_each_refusal_has_its_code_and_is_recorded(tmp_path: Path, what: Callable[[World], object], code: str) -> None:
    world = World(tmp_path)

    assert what(world) == code
    assert world.told()[-1][3] == code
    assert CANARY not in "".join([*map(str, world.records()), *world.texts])


@pytest.mark.promise("kernel.quiet")
def test_a_crash_is_an_error_without_its_message_and_has_an_outcome(tmp_path: Path) -> None:
    world = World(tmp_path)
    call = Call(peer="p", secret=world.all, tool="get_thing", arguments={"name": "crash"})
    world.kernel.admit(call)

    with pytest.raises(RuntimeError):
        world.kernel.answer(call)

    assert world.told()[-1] == ("outcome", "everything", "get_thing", "internal_error")


PROBES: dict[str, tuple[Callable[[World], object], Callable[[object, World], bool]]] = {
    "authenticate": (lambda w: w.call(w.one), lambda answer, _w: answer == {"text": "xend"}),
    "limit": (lambda w: [w.call(w.all) for _ in range(4)][-1], lambda answer, _w: answer == "rate_limited"),
    "authorise": (lambda w: w.call(w.one, "get_other"), lambda answer, _w: answer == "unknown_tool"),
    "validate": (lambda w: w.call(w.all, name="x", more="y"), lambda answer, _w: answer == "invalid_argument"),
    "intent": (lambda w: w.call(w.all), lambda _answer, w: [t[0] for t in w.told()] == ["intent", "outcome"]),
    "sanitise": (lambda w: w.call(w.all), lambda answer, _w: answer == {"text": "xend"}),
    "outcome": (lambda w: w.call(w.all), lambda _answer, w: [t[0] for t in w.told()] == ["intent", "outcome"]),
}


@pytest.mark.promise("kernel.gates")
def test_every_gate_has_a_probe() -> None:
    assert set(PROBES) == set(GATES)
    assert all(callable(getattr(Kernel, gate)) for gate in GATES)


@pytest.mark.promise("kernel.gates")
@pytest.mark.parametrize("gate", GATES)
def test_a_gate_that_is_taken_away_is_missed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, gate: str) -> None:
    probe, holds = PROBES[gate]
    whole = World(tmp_path / "whole", rate="3/60")
    assert holds(probe(whole), whole), "the probe must pass with every gate in place"

    def absent(_self: Kernel, *arguments: object) -> object:
        if gate == "validate":
            call, tool = arguments
            return tool.arguments.model_construct(**call.arguments)  # type: ignore[attr-defined]
        return arguments[0] if gate == "sanitise" else None

    monkeypatch.setattr(Kernel, gate, absent)
    robbed = World(tmp_path / "robbed", rate="3/60")
    assert not holds(probe(robbed), robbed)


@pytest.mark.promise("kernel.gates")
def test_without_authentication_nobody_is_let_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Kernel, "authenticate", lambda _self, _call: None)
    world = World(tmp_path)

    assert world.call(world.all) == "unauthenticated"
    assert world.runs == 0


@pytest.mark.promise("kernel.rights")
def test_only_what_a_caller_may_use_is_visible(tmp_path: Path) -> None:
    world = World(tmp_path)
    seen = {}
    for secret in (world.all, world.one, world.none):
        call = Call(peer="p", secret=secret)
        world.kernel.admit(call)
        seen[secret] = world.kernel.visible(call.principal)

    assert list(seen.values()) == [["get_thing", "get_other"], ["get_thing"], []]
    assert world.kernel.visible(None) == []


@pytest.mark.promise("kernel.rights")
def test_a_forbidden_tool_looks_like_one_that_there_is_not(tmp_path: Path) -> None:
    world, texts = World(tmp_path), []
    for tool in ("get_other", "no_such_tool"):
        with pytest.raises(Denied) as denied:
            world.kernel.admit(Call(peer="p", secret=world.one, tool=tool))
        texts.append(str(denied.value))

    assert texts[0] == texts[1]


@pytest.mark.promise("kernel.keys")
def test_keys_are_made_and_revoked_without_a_restart(tmp_path: Path) -> None:
    world = World(tmp_path)
    fresh = make_key(world.key_file, key_id="late", tools=["all"])
    assert world.call(fresh) == {"text": "xend"}

    revoke_key(world.key_file, "late")

    assert world.call(fresh) == "unauthenticated"


def no_file(world: World) -> None:
    world.key_file.unlink()


def writable_by_others(world: World) -> None:
    world.key_file.chmod(0o666)


def damaged(world: World) -> None:
    world.key_file.write_text("{", encoding="ascii")


def empty(world: World) -> None:
    world.key_file.write_text("", encoding="ascii")


@pytest.mark.promise("kernel.keys")
@pytest.mark.parametrize("fault", [no_file, writable_by_others, damaged, empty])
def test_a_key_file_that_cannot_be_trusted_lets_nobody_in(tmp_path: Path, fault: Callable[[World], None]) -> None:
    world = World(tmp_path)
    fault(world)

    assert world.call(world.all) == "internal_error"
    assert world.runs == 0


@pytest.mark.promise("kernel.limits")
def test_an_address_with_many_failures_is_not_looked_at_any_more(tmp_path: Path) -> None:
    world = World(tmp_path)

    answers = [world.call("cda_guess") for _ in range(11)]

    assert answers == ["unauthenticated"] * 10 + ["too_many_failures"]
    assert world.call(world.all) == "too_many_failures"
    assert len(world.records()) == 10, "a flood of guesses does not fill the ledger"


@pytest.mark.promise("kernel.limits")
def test_a_limiter_that_cannot_count_lets_nothing_pass(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(tmp_path)

    def broken(*_arguments: object) -> bool:
        raise LimiterUnavailable("OperationalError")

    monkeypatch.setattr(world.limiter, "take", broken)

    assert world.call(world.all) == "internal_error"
    assert world.runs == 0


@pytest.mark.promise("kernel.closed")
@pytest.mark.parametrize("mode", [0o500, 0o000])
def test_a_ledger_that_cannot_be_written_means_no_data(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: int
) -> None:
    world = World(tmp_path)

    def refused(*_arguments: object, **_more: object) -> int:
        raise PermissionError(13, f"Permission denied {mode:o}")

    monkeypatch.setattr(os, "open", refused)

    assert world.call(world.all) == "internal_error"
    assert world.runs == 0


@pytest.mark.promise("kernel.closed")
def test_an_outcome_that_cannot_be_recorded_withholds_the_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World(tmp_path)
    whole = world.ledger.append

    def second_fails(entry: object) -> None:
        if entry.kind == "outcome":  # type: ignore[attr-defined]
            raise LedgerUnavailable("the disk is full")
        whole(entry)  # type: ignore[arg-type]

    monkeypatch.setattr(world.ledger, "append", second_fails)

    assert world.call(world.all) == "internal_error"
    assert world.runs == 1


@pytest.mark.promise("kernel.closed")
def test_a_refusal_that_cannot_be_recorded_is_still_a_refusal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(tmp_path)

    def full(_entry: object) -> None:
        raise LedgerUnavailable("the disk is full")

    monkeypatch.setattr(world.ledger, "append", full)

    assert world.call(world.one, "get_other") == "unknown_tool"
    assert world.call("cda_wrong") == "unauthenticated"


@pytest.mark.promise("kernel.quiet")
def test_what_went_wrong_inside_is_told_to_the_log_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(tmp_path)

    def full(_entry: object) -> None:
        raise LedgerUnavailable(f"the disk {CANARY} is full")

    monkeypatch.setattr(world.ledger, "append", full)
    call = Call(peer="p", secret=world.all, tool="get_thing", arguments={"name": "x"})
    world.kernel.admit(call)

    with pytest.raises(Denied, match="its log names the part") as denied:
        world.kernel.answer(call)
    assert CANARY not in str(denied.value)


@pytest.mark.promise("kernel.limits")
def test_a_guesser_on_a_shared_address_does_not_shut_out_whoever_was_there_before(tmp_path: Path) -> None:
    world = World(tmp_path)
    assert world.call(world.all) == {"text": "xend"}

    assert [world.call("cda_guess") for _ in range(11)][-1] == "too_many_failures"

    assert world.call(world.all) == {"text": "xend"}
    assert world.call(world.one) == "too_many_failures", "a key that was not seen yet waits"
    revoke_key(world.key_file, "everything")
    assert world.call(world.all) == "unauthenticated", "who is known must still hold a key that works"


@pytest.mark.promise("kernel.limits")
def test_a_revoked_key_that_is_shown_again_and_again_shuts_out_itself_alone(tmp_path: Path) -> None:
    world = World(tmp_path)
    revoke_key(world.key_file, "one")

    told = [world.call(world.one) for _ in range(12)]

    assert told == ["unauthenticated"] * 10 + ["too_many_failures"] * 2
    assert world.call(world.all) == {"text": "xend"}
    assert [kind for kind, *_ in world.told()].count("refusal") == 10


@pytest.mark.promise("kernel.limits")
def test_who_shows_nothing_guesses_nothing(tmp_path: Path) -> None:
    world = World(tmp_path)

    assert {world.call(None) for _ in range(20)} == {"unauthenticated"}
    assert world.call(world.all) == {"text": "xend"}
