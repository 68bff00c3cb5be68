import json
from pathlib import Path
from typing import Any

import pytest
from eval_world import case
from pydantic import ValidationError

from cda.errors import UsageError
from evals.case_files import COVERAGE_SETS, case_digest, load_coverage, load_file, load_retrieval, load_verifier
from evals.case_model import MetamorphicPair, VerifierCase

pytestmark = pytest.mark.promise("evals.cases")
GOOD: dict[str, Any] = {
    "case_id": "A-1",
    "trap": "T1",
    "payer_id": "MHP",
    "plan_id": None,
    "procedure_codes": ["A9276"],
    "diagnosis_codes": [],
    "as_of_date": "2024-03-15",
    "narrative": "T1DM.",
    "question": "Covered?",
    "expected_outcome": "COVERED",
    "expected_gate": "DETERMINE",
    "gold_clause_ids": ["MHP-MP-0142.v1.C2"],
    "rationale": "Because.",
}


def written(folder: Path, content: object, name: str = "floor.json") -> Path:
    file = folder / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    return file


@pytest.mark.parametrize("content", [[GOOD], {"cases": [GOOD]}])
def test_a_list_and_an_object_with_cases_are_the_same_file(tmp_path: Path, content: object) -> None:
    assert [held.case_id for held in load_file(written(tmp_path, content)).cases] == ["A-1"]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("{", r"not a JSON document \(line 1, column 2\)"),
        ('{"case": []}', "a list of objects"),
        ([{**GOOD, "expected_gate": "MAYBE"}], "case A-1: expected_gate: Input should be 'DETERMINE'"),
        ([{**GOOD, "colour": 1}], "case A-1: colour: Extra inputs are not permitted"),
        ([{"trap": "x"}], "case entry 0: case_id: Field required"),
        ([GOOD, GOOD], "the id A-1 is there twice"),
    ],
)
def test_a_broken_file_is_refused_with_file_case_and_field(tmp_path: Path, content: object, words: str) -> None:
    file = written(tmp_path, content)
    with pytest.raises(UsageError, match=words) as refused:
        load_file(file)
    assert str(file) in str(refused.value)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be read"):
        load_file(tmp_path / "none.json")


def test_an_unknown_set_is_refused_with_those_there_are(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="there are floor, expanded"):
        load_coverage(["flor"], tmp_path)
    with pytest.raises(UsageError, match="does not exist"):
        load_coverage(["floor"], tmp_path)


def test_an_id_may_not_be_in_two_sets(tmp_path: Path) -> None:
    written(tmp_path, [GOOD])
    written(tmp_path, [GOOD], "adversarial.json")
    with pytest.raises(UsageError, match="there twice"):
        load_coverage((), tmp_path)


def test_a_set_may_be_a_folder(tmp_path: Path) -> None:
    written(tmp_path, [GOOD], "adversarial/one.json")
    written(tmp_path, [{**GOOD, "case_id": "A-2"}], "adversarial/two.json")
    written(tmp_path, {"summary": {}}, "adversarial/two.first.json")
    assert [held.case_id for held in load_coverage((), tmp_path)[0].cases] == ["A-1", "A-2"]


@pytest.mark.promise("evals.rounds")
def test_a_rounds_facts_are_labels_and_are_not_asked(tmp_path: Path) -> None:
    written(tmp_path, [{**GOOD, "facts": {"diabetes_type": "type_1"}}], "rounds/one.json")
    held = load_coverage(["rounds"], tmp_path)[0].cases[0]
    assert held.labelled_facts == {"diabetes_type": "type_1"}
    assert "facts" not in held.request()


@pytest.mark.promise("evals.digest")
def test_the_digest_sees_every_word_and_no_order() -> None:
    one, two = case("A-1"), case("A-2")
    assert case_digest([one, two]) == case_digest([two, one])
    assert case_digest([one]) != case_digest([case("A-1", rationale="Another reason.")])


def test_a_pairs_expectations_follow_its_law() -> None:
    pair = {"pair_id": "M-1", "law": "reorder_sentences", "base": case("A-1"), "twin": case("A-2")}
    assert MetamorphicPair.model_validate(pair).unchanged
    with pytest.raises(ValidationError, match="do not fit the law cross_boundary"):
        MetamorphicPair.model_validate({**pair, "law": "cross_boundary"})


def test_only_a_halt_needs_no_planted_answer() -> None:
    raw = {"case_id": "V-1", "fault": "x", "caught_by": "halt.payer_id", "request": {}, "expected_gate": "HALT"}
    VerifierCase.model_validate(raw)
    with pytest.raises(ValidationError, match="only a halt"):
        VerifierCase.model_validate({**raw, "caught_by": "verifier.exists"})
    with pytest.raises(ValidationError, match="none of the verifier's steps"):
        VerifierCase.model_validate({**raw, "caught_by": "verifier.melts", "answer": {"outcome": "COVERED"}})


def test_every_shipped_set_loads() -> None:
    assert {held.name for held in load_coverage()} == set(COVERAGE_SETS)
    assert len(load_verifier()) >= 40
    assert len(load_retrieval()) >= 120
