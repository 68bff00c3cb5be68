from datetime import date
from typing import Any

import pytest
from harness_doubles import MemoryDirectory, request

from cda.contracts.decision import CoverageRequest
from cda.harness.preflight import Checked, check

halts = pytest.mark.promise("harness.halts")
codes = pytest.mark.promise("harness.codes")
confidence = pytest.mark.promise("harness.field-confidence")


def fact_check(name: str, value: Any) -> str | None:
    if name != "sticks":
        return "unknown fact name"
    return None if isinstance(value, int) else "is a number per day"


def checked(**changes: Any) -> Checked:
    return check(
        CoverageRequest(**request(**changes)),
        directory=MemoryDirectory(),
        fact_check=fact_check,
        today=date(2026, 1, 1),
    )


def halt(**changes: Any) -> str | None:
    return checked(**changes).preflight.halt_reason


@halts
@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"payer_id": ""}, "payer_id: empty"),
        ({"payer_id": "  "}, "payer_id: empty"),
        ({"payer_id": "ZZZ"}, "payer_id: not a payer"),
        ({"plan_id": "NOPE"}, "plan_id: not a plan"),
        ({"plan_id": "ELSE"}, "plan_id: the plan is another payer's"),
        ({"as_of_date": ""}, "as_of_date: empty"),
        ({"as_of_date": "20240315"}, "as_of_date: a date is written YYYY-MM-DD"),
        ({"as_of_date": "2024-W11-5"}, "as_of_date: a date is written YYYY-MM-DD"),
        ({"as_of_date": "2024-02-30"}, "as_of_date: a date is a day of the calendar"),
        ({"as_of_date": "03/15/2024"}, "as_of_date: a date is written"),
        ({"as_of_date": "2024-03-15T00:00"}, "as_of_date: a date is written"),
        ({"as_of_date": "1899-01-01"}, "as_of_date: before 1965"),
        ({"as_of_date": "2037-01-01"}, "as_of_date: more than 10 years ahead"),
        ({"procedure_codes": []}, "procedure_codes: empty"),
        ({"procedure_codes": ["Z9999"]}, "procedure_codes: none is a known code: Z9999"),
        ({"procedure_codes": ["Rosa Alvarez"]}, "procedure_codes: none is a known code: procedure_codes[0]"),
        ({"field_confidence": {"payer_id": 1.2}}, "field_confidence: the value for payer_id is not between"),
        ({"field_confidence": {"payer_id": -0.1}}, "field_confidence: the value for payer_id"),
        ({"field_confidence": {"payer_id": float("nan")}}, "field_confidence: the value for payer_id"),
        ({"field_confidence": {"Rosa": 0.9}}, "field_confidence: names a field that a request does not have"),
        ({"field_confidence": {"as_of_date": 0.5}}, "as_of_date: was read with confidence 0.50"),
        ({"field_confidence": {"narrative": 0.2}}, "narrative: was read with confidence 0.20"),
        ({"facts": {"stix": 5}}, "facts: stix: unknown fact name"),
        ({"facts": {"Rosa Alvarez": 5}}, "facts: entry 1: unknown fact name"),
        ({"facts": {"sticks": "Rosa"}}, "facts: sticks: is a number per day"),
    ],
)
def test_a_bad_request_halts_by_its_field(changes: dict[str, Any], reason: str) -> None:
    found = halt(**changes)
    assert found is not None
    assert found.startswith(reason)
    assert "Rosa" not in found


@halts
def test_the_first_fault_in_order_is_the_one_named() -> None:
    assert (halt(payer_id="", as_of_date="", procedure_codes=[]) or "").startswith("payer_id")
    assert (halt(as_of_date="", procedure_codes=[]) or "").startswith("as_of_date")


@halts
def test_a_good_request_a_future_day_and_no_plan_do_not_halt() -> None:
    assert halt() is None
    assert halt(as_of_date="2027-06-01") is None
    assert halt(plan_id=None) is None


@halts
def test_many_weak_fields_halt_by_their_mean() -> None:
    weak = dict.fromkeys(("payer_id", "procedure_codes", "as_of_date"), 0.56)
    found = halt(plan_id=None, question="", field_confidence=weak)
    assert found == "field_confidence: the mean of the fields is 0.34, below 0.55"


@confidence
def test_fields_are_scored_and_a_given_confidence_only_lowers() -> None:
    assert checked().preflight.field_confidence == {
        "payer_id": 1.0,
        "plan_id": 1.0,
        "procedure_codes": 1.0,
        "as_of_date": 1.0,
        "question": 0.85,
    }
    given = checked(field_confidence={"question": 0.9, "payer_id": 0.7, "narrative": 0.8}).preflight.field_confidence
    assert (given["question"], given["payer_id"], given["narrative"]) == (0.85, 0.7, 0.8)
    assert checked(payer_id="ZZZ").preflight.field_confidence["payer_id"] == 0.60
    assert checked(question="").preflight.field_confidence["question"] == 0.0


@codes
def test_codes_take_one_form_once_each_and_modifiers_are_noted() -> None:
    found = checked(procedure_codes=["a9276-NU", "95249 59", "A9276"])
    assert found.codes == ("A9276", "95249")
    assert "note: procedure_codes: modifiers of 95249 were set aside" in found.notes


@codes
def test_unknown_codes_are_named_one_by_one_and_shapeless_ones_by_place() -> None:
    found = checked(procedure_codes=["A9276", "Z9999", "Rosa"])
    assert found.preflight.halt_reason is None
    assert found.order == ("A9276", "Z9999", "procedure_codes[2]")
    assert [label for label, _ in found.unknown_codes] == ["Z9999", "procedure_codes[2]"]
    assert "Rosa" not in str(found.unknown_codes) + str(found.request)


@codes
def test_a_bad_diagnosis_code_is_noted_and_chooses_nothing() -> None:
    found = checked(diagnosis_codes=["e109", "E99.99", "Rosa"])
    assert found.request.diagnosis_codes == ("E10.9",)
    assert found.preflight.halt_reason is None
    assert found.notes == (
        "note: diagnosis_codes: E99.99 is not a valid ICD-10-CM code and was not used",
        "note: diagnosis_codes: entry 3 is not a valid ICD-10-CM code and was not used",
    )


@codes
def test_ids_are_upper_case_and_texts_are_clean() -> None:
    found = checked(payer_id="pay", plan_id="gold", narrative="Patient: Rosa Alvarez tests\u200b daily.")
    assert (found.request.payer_id, found.request.plan_id) == ("PAY", "GOLD")
    assert found.request.narrative == "Patient: [NAME] tests daily."
    assert [flag.kind for flag in found.preflight.injection_flags] == ["hidden_characters"]
