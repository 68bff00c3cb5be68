import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from cda.errors import UnavailableError, UsageError
from cda.llm.prices import read_prices
from evals.cost import project
from evals.cost_command import cost
from evals.usage import Usage, measured

pytestmark = pytest.mark.promise("evals.cost")


def trace(folder: Path, name: str, *events: dict[str, object], finished: bool = True) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    lines = [{"event": "run"}, *events, *([{"event": "gate", "state": "REVIEW"}] if finished else [])]
    (folder / f"{name}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")


def call(role: str = "grader", **tokens: int) -> dict[str, object]:
    return {"event": "model_call", "role": role, "model": "anthropic:claude-opus-5", **tokens}


def test_usage_is_summed_by_role_over_finished_runs_that_called_a_model(tmp_path: Path) -> None:
    grader = call(input_tokens=100, cache_read_tokens=900, output_tokens=50, static_tokens=900)
    trace(tmp_path, "a", grader, grader)
    trace(tmp_path, "b", call("planner", input_tokens=10, output_tokens=1))
    trace(tmp_path, "idle")
    trace(tmp_path, "torn", grader, finished=False)
    usage = measured([tmp_path])
    assert (usage.runs, usage.idle) == (2, 1)
    assert [(role.role, role.calls, role.input, role.output, role.static) for role in usage.roles] == [
        ("grader", 2, 2000, 100, 1800),
        ("planner", 1, 10, 1, 0),
    ]


def test_a_run_is_priced_plain_cached_and_in_batches(tmp_path: Path) -> None:
    trace(tmp_path, "a", call(input_tokens=1000, output_tokens=100, static_tokens=800))
    found = project(measured([tmp_path]), 100, read_prices())
    # 100 calls, 1,000 in at 5 and 100 out at 25 a million; cached, 800 of them written once at 1.25.
    assert found["total"] == {"plain": "0.7500", "cached": "0.3946", "batch": "0.3750", "cached_batch": "0.1973"}


def test_a_prefix_too_short_for_the_model_is_not_counted_as_cached(tmp_path: Path) -> None:
    trace(tmp_path, "a", call(input_tokens=1000, output_tokens=100, static_tokens=800))
    usage = measured([tmp_path])
    for model in ("claude-haiku-4-5", "claude-sonnet-5-5"):
        total = project(usage, 100, read_prices(), model)["total"]
        assert total["cached"] == total["plain"]


def test_a_model_without_a_price_is_refused_with_those_that_have_one() -> None:
    with pytest.raises(UsageError, match="claude-opus-5"):
        read_prices().of("anthropic:unheard-of")


def test_runs_without_a_model_price_nothing_and_say_so(tmp_path: Path) -> None:
    trace(tmp_path, "a")
    assert measured([tmp_path]) == Usage(1, 0, ())
    shown = CliRunner().invoke(cost, ["--cases", "152", "--traces", str(tmp_path), "--json"])
    document = json.loads(shown.stdout)
    assert document["total"]["plain"] == "0.0000"
    assert "called no model" in document["note"]
    assert document["prices_as_of"] == "2026-11-30"


def test_without_a_trace_nothing_is_priced(tmp_path: Path) -> None:
    found = CliRunner().invoke(cost, ["--cases", "5", "--traces", str(tmp_path)])
    assert isinstance(found.exception, UnavailableError)
    assert "cda eval --limit 5" in str(found.exception)
