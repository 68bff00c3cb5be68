"""What a person sees of a determination."""

import io
from datetime import date
from typing import Any

import pytest
from coverage_world import AUTHORIZED, GOLD, HMO, RA, T1, request
from rich.console import Console

from cda.errors import PolicyToolError
from cda.systems.coverage.render import plain_value, show, window
from cda.systems.coverage.system import CoverageSystem

pytestmark = pytest.mark.promise("coverage.render")


def shown(system: CoverageSystem, raw: dict[str, Any], **more: Any) -> str:
    out = io.StringIO()
    show(system.ask(raw, **more), Console(file=out, width=200), system.tools.get_clause_by_id)
    return out.getvalue()


def test_the_gate_comes_first_and_each_clause_once_with_its_window(system: CoverageSystem) -> None:
    text = shown(system, request(HMO, "A9276", "2024-03-15", {**T1, "fingersticks_per_day": 2}))
    lines = [line.strip(" │") for line in text.splitlines()]
    assert lines[1] == "DETERMINE  NOT_COVERED"
    assert text.count("MHP-MP-0142.v1.C2  in effect 2023-01-01 to 2024-06-30") == 1
    assert text.count(system.tools.get_clause_by_id("MHP-MP-0142.v1.C2").text[:60]) == 1
    assert "would be COVERED if fingersticks_per_day = 4" in text


def test_the_chart_line_stands_beside_its_criterion(system: CoverageSystem) -> None:
    asked = request(HMO, "A9276", "2024-03-15", {"hypoglycemia_unawareness": False})
    text = shown(system, asked | {"narrative": "Type 1 diabetes mellitus. Fingersticks 5 times a day."})
    row = next(line for line in text.splitlines() if "fingerstick glucose checks a day at least 4" in line)
    assert row.startswith("met ")
    assert "“" in row
    assert "5 times a day" in row
    silent = next(line for line in text.splitlines() if "hypoglycemia unawareness: yes" in line)
    assert "no  (structured)" in silent


def test_a_refusal_shows_what_is_missing_and_why(system: CoverageSystem) -> None:
    text = shown(system, request(HMO, "95250", "2024-10-01", {"diabetes_type": "type_2"}, dx="E11.9"))
    assert "REFUSE  INSUFFICIENT_EVIDENCE" in text
    assert "missing hemoglobin A1c (a1c_percent), needed by MHP-MP-0143.v1.C2" in text


def test_conflicts_authorizations_and_the_other_date_are_told(system: CoverageSystem) -> None:
    four = {**RA, "csdmard_trial_months": 4, "csdmard_response": "inadequate"}
    text = shown(system, request(HMO, "J1745", "2024-08-01", four, dx="M05.79"))
    assert "conflict MHP-FAQ-0210.v1.C1 contradicts MHP-MP-0210.v3.C2" in text
    assert "review source_conflict: MHP-FAQ-0210.v1.C1" in text
    ordered = shown(system, AUTHORIZED)
    assert "prior authorization for 95810 yes (CSM-RID-SLEEP-NARROW.C1)" in ordered
    differs = shown(
        system, request(HMO, "A9276", "2024-03-15", {**T1, "fingersticks_per_day": 2}), versus=date(2025, 1, 20)
    )
    assert "on 2025-01-20 DETERMINE COVERED" in differs
    assert "  version On 2024-03-15 MHP-MP-0142 v1 governs" in differs


def test_a_halt_shows_its_field(system: CoverageSystem) -> None:
    text = shown(system, request(GOLD, payer_id="ZZZ"))
    assert "HALT  no determination" in text
    assert "halt payer_id: not a payer of this corpus" in text


def test_words_of_the_chart_are_never_markup_nor_control(system: CoverageSystem) -> None:
    said = "Type 1 diabetes mellitus. [red]Fingersticks[/red] 5 times a day. \x1b[2J\x07[/nothing]"
    text = shown(system, request(HMO, "A9276", "2024-03-15", narrative=said))
    assert "\x1b" not in text
    assert "\x07" not in text


def test_a_clause_that_cannot_be_fetched_is_said_to_be_gone(system: CoverageSystem) -> None:
    def gone(_: str) -> Any:
        raise PolicyToolError("clause_not_found", "none")

    out = io.StringIO()
    show(system.ask(request(facts={**T1, "fingersticks_per_day": 5})), Console(file=out, width=200), gone)
    assert "MHP-MP-0142.v1.C2  not in the corpus" in out.getvalue()


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (True, "yes"),
        (False, "no"),
        (5, "5"),
        (8.6, "8.6"),
        (6.0, "6"),
        ("type_1", "type 1"),
        ({"lo": 0}, "at least 0"),
        ({"lo": 4, "lo_open": True}, "more than 4"),
        ({"hi": 0}, "at most 0"),
        ({"hi": 7, "hi_open": True}, "less than 7"),
        ({"lo": 4, "hi": 5}, "4 to 5"),
        ({}, "any"),
    ],
)
def test_a_value_is_told_in_words(value: object, words: str) -> None:
    assert plain_value(value) == words


def test_a_window_without_an_end_is_open_and_one_without_a_start_says_so(system: CoverageSystem) -> None:
    fetch = system.tools.get_clause_by_id
    assert window(fetch("MHP-MP-0142.v1.C2")) == "2023-01-01 to 2024-06-30"
    assert window(fetch("MHP-MP-0142.v2.C2")) == "2024-07-01 to open"
    assert window(fetch("CMS-NCD-280.8.v2.C1")) == "undated"
