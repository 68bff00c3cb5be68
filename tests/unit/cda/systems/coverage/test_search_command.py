"""`cda search`."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from cda.errors import PolicyToolError, UnavailableError, UsageError
from cda.systems.coverage import system as wiring
from cda.systems.coverage.search_command import search

pytestmark = pytest.mark.promise("cli.search")


@pytest.fixture
def run(built_home: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("CDA_HOME", str(built_home))
    monkeypatch.setenv("CDA_EMBEDDER", "tfidf")
    return lambda *arguments: CliRunner().invoke(search, arguments)


def told(result: Result) -> Any:
    assert (result.exit_code, result.exception) == (0, None), result.output
    return json.loads(result.stdout)


def test_hits_have_the_fields_of_the_contract(run: Any) -> None:
    document = told(
        run(
            "type 1 diabetes fingerstick checks a day hypoglycemia unawareness",
            "--payer",
            "MHP",
            "--as-of",
            "2024-03-15",
            "--json",
        )
    )
    assert set(document) == {"query", "collection", "hits", "dropped", "notes"}
    assert document["collection"] == "policy"
    assert len(document["hits"]) == 8
    hit = document["hits"][0]
    wanted = {"clause_id", "score", "legs", "text", "section", "effective_start", "effective_end"}
    assert wanted <= set(hit)
    assert set(hit["legs"]) == {"dense_rank", "lexical_rank", "code_rank"}
    assert (hit["clause_id"], hit["effective_start"], hit["effective_end"]) == (
        "MHP-MP-0142.v1.C2",
        "2023-01-01",
        "2024-06-30",
    )
    assert [row["score"] for row in document["hits"]] == sorted((r["score"] for r in document["hits"]), reverse=True)


@pytest.mark.parametrize(("day", "version"), [("2024-06-30", "v1"), ("2024-07-01", "v2")])
def test_no_hit_is_outside_its_window(run: Any, day: str, version: str) -> None:
    rows = told(run("glucose monitoring sensor", "--payer", "MHP", "--as-of", day, "--k", "25", "--json"))["hits"]
    assert {row["clause_id"].split(".")[1] for row in rows if "MP-0142" in row["clause_id"]} == {version}
    assert all(row["effective_start"] <= day <= (row["effective_end"] or "9999-12-31") for row in rows)
    assert {row["payer_id"] for row in rows} == {"MHP"}


def test_superseded_and_undated_clauses_are_found_when_they_are_asked_for(run: Any) -> None:
    options = ("air-fluidized bed wet soaks", "--payer", "CMS", "--k", "25", "--json")
    undated = [row for row in told(run(*options))["hits"] if row["date_state"] == "UNDATED"]
    assert [(row["clause_id"], row["effective_start"]) for row in undated] == [("CMS-NCD-280.8.v2.C1", None)]
    dated = told(run(*options, "--as-of", "2024-01-01"))["hits"]
    assert not [row for row in dated if row["date_state"] == "UNDATED"]
    both = told(run(*options, "--as-of", "2024-01-01", "--include-superseded"))["hits"]
    assert {"CMS-NCD-280.8.v1.C1", "CMS-NCD-280.8.v3.C1"} <= {row["clause_id"] for row in both}


def test_a_rider_is_found_for_its_own_plan_only(run: Any) -> None:
    def riders(*options: str) -> set[str]:
        rows = told(run("step therapy waiver rider", "--k", "25", "--json", *options))["hits"]
        return {row["clause_id"] for row in rows if "-RID-" in row["clause_id"]}

    assert riders("--plan", "MHP-PPO-GOLD") == {
        "MHP-RID-STEP-WAIVE.C1",
        "MHP-RID-STEP-WAIVE.C2",
        "MHP-RID-DME-EXPAND.C1",
    }
    assert riders("--plan", "MHP-HMO-BASE") == riders("--payer", "MHP") == riders() == set()


def test_a_code_brings_the_clauses_that_name_it_first(run: Any) -> None:
    rows = told(run("coverage", "--payer", "CSM", "--code", "22551", "--k", "2", "--json"))["hits"]
    assert {row["clause_id"] for row in rows} == {"CSM-MP-0405.v2.C1", "CSM-MP-0405.v2.C3"}
    assert all(row["legs"]["code_rank"] is not None for row in rows)


def test_people_read_the_window_beside_the_clause(run: Any) -> None:
    result = run("air-fluidized bed wet soaks", "--payer", "CMS")
    assert result.exit_code == 0
    assert "CMS-NCD-280.8.v2.C1  [Nationally Non-Covered Indications]  undated to open" in result.stdout


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (("x", "--payer", "ZZZ"), "known payers: CMS, CSM, MHP, NBA"),
        (("x", "--plan", "NOPE"), "no plan of this corpus has this id"),
        (("x", "--payer", "CSM", "--plan", "MHP-PPO-GOLD"), "is not a plan of payer_id"),
        (("?!",), "no word to search for"),
        (("word " * 2000,), "at most 8000 characters"),
        (("lone \udce9 surrogate",), "queries"),
    ],
)
def test_a_search_that_cannot_be_is_wrong_usage(run: Any, arguments: tuple[str, ...], why: str) -> None:
    result = run(*arguments)
    assert isinstance(result.exception, UsageError), result.exception
    assert why in str(result.exception)
    assert result.stdout == ""


@pytest.mark.parametrize("option", [("--as-of", "20240315"), ("--k", "0"), ("--k", "26"), ("--collection", "claims")])
def test_an_option_of_another_form_is_wrong_usage(run: Any, option: tuple[str, str]) -> None:
    assert run("x", *option).exit_code == 2


def test_a_search_that_fails_is_a_missing_service(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    class Dead:
        def search_policies(self, *_: Any, **__: Any) -> Any:
            raise PolicyToolError("search_unavailable", "the policy server is gone")

    monkeypatch.setattr(wiring, "open_tools", lambda _: Dead())
    result = run("x")
    assert isinstance(result.exception, UnavailableError)
    assert str(result.exception) == "the policy server is gone"
