"""From an imported policy over a draft and its review to an answer, with a model that answers what it is told to."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner
from pydantic import BaseModel
from scripted_model import ScriptedModel

from cda.agents.drafter import INSTRUCTIONS, Draft, DraftedClause, DraftedException, DraftedFact
from cda.contracts.model_client import FailureKind, ModelFailure, ModelRequest, UnlimitedMeter
from cda.errors import UsageError
from cda.settings import Settings
from cda.systems.coverage.authored_corpus import build_corpus
from cda.systems.coverage.draft_accept import NotReviewed, accept
from cda.systems.coverage.drafting import Drafting, draft_all, read_source, undrafted
from cda.systems.coverage.import_command import import_policies
from cda.systems.coverage.system import CoverageSystem

RULE = (
    "A widget monitor is covered for a member with type 1 diabetes who performs 4 or more fingerstick tests per day, "
    "unless the member has hypoglycemia unawareness, in which case the testing requirement is waived."
)
LOST = "A monitor that was lost more than 2 times is excluded."
TALK = "Widgets are described in the plan's brochure."
POLICY = f"""---
policy_id: ACME-MP-7
title: Widget monitors
payer_id: ACME
version: v1
effective_start: 2024-01-01
codes: [A9276]
---

## Coverage criteria

{RULE} {TALK} {LOST}
"""
PAYER = {"payer": {"payer_id": "ACME", "name": "Acme Health", "plans": [{"plan_id": "ACME-PPO"}]}}
COVERS = {
    "covers_if": {
        "all": [
            {"fact": "diabetes_type", "op": "=", "value": "type_1"},
            {"fact": "fingersticks_per_day", "op": ">=", "value": 4},
        ]
    },
    "unless": {
        "meaning": "waives",
        "when": {"fact": "hypoglycemia_unawareness", "op": "=", "value": True},
        "waived": ["fingersticks_per_day"],
    },
}
EXCLUDES = {"excludes_if": {"fact": "monitors_lost", "op": ">", "value": 2}}


def drafted(**changes: Any) -> Draft:
    first = DraftedClause(
        block="C1",
        quote=RULE,
        section="Coverage",
        codes=["A9276"],
        criterion=json.dumps(COVERS),
        exceptions=[DraftedException(words="unless the member has", node="unless")],
    )
    second = DraftedClause(
        block="C1", quote=LOST, section="Exclusions", codes=["A9276"], criterion=json.dumps(EXCLUDES), exceptions=[]
    )
    lost = DraftedFact(name="monitors_lost", type="count", label="monitors lost before", unit="", values=[])
    return Draft(clauses=[first.model_copy(update=changes), second], facts=[lost])


@pytest.fixture
def imported(tmp_path: Path) -> Path:
    source = tmp_path / "policy.md"
    source.write_text(POLICY, encoding="utf-8")
    out = tmp_path / "imported"
    result = CliRunner().invoke(import_policies, [str(source), "--format", "markdown", "--out", str(out)])
    assert result.exit_code == 0, result.output
    (tmp_path / "payer.yaml").write_text(yaml.safe_dump(PAYER), encoding="utf-8")
    return out


def draft_with(
    imported: Path, answer: Callable[[ModelRequest], BaseModel | ModelFailure]
) -> tuple[Drafting, ScriptedModel]:
    model, source = ScriptedModel(answer), read_source(imported)
    out = imported.parent / "drafts"
    done = draft_all(undrafted(source, ()), source.definitions, model, UnlimitedMeter(), out, lambda _: None)
    return done, model


def review_of(imported: Path, answer: Draft | None = None) -> Path:
    done, _ = draft_with(imported, lambda _: answer or drafted())
    return Path(done.written[0])


def change(review: Path, edit: Callable[[dict[str, Any]], object]) -> None:
    held = yaml.safe_load(review.read_text(encoding="utf-8"))
    edit(held["review"])
    review.write_text(yaml.safe_dump(held, sort_keys=False, allow_unicode=True), encoding="utf-8")


def accept_all(held: dict[str, Any]) -> None:
    held["reviewed_by"] = "R. Viewer"
    for part in (*held["clauses"], *held["facts"]):
        part["decision"] = "accept"


def compiled(imported: Path, review: Path) -> Path:
    out = imported.parent / "reviewed"
    accept(imported, [review], out, ["builtin", str(imported.parent / "payer.yaml")])
    return out


def gate_over(tmp_path: Path, source: Path, **facts: Any) -> tuple[str, str, str]:
    """Outcome, gate and first reason of a request under a corpus with this source."""
    store = tmp_path / f"{source.name}.sqlite"
    build_corpus(["builtin", tmp_path / "payer.yaml", source], store)
    system = CoverageSystem.open(
        Settings(_env_file=None, CDA_HOME=tmp_path, CDA_STORE=store, CDA_EMBEDDER="tfidf")  # type: ignore[call-arg]
    )
    result = system.ask(
        {
            "payer_id": "ACME",
            "plan_id": "ACME-PPO",
            "procedure_codes": ["A9276"],
            "diagnosis_codes": ["E10.9"],
            "as_of_date": "2024-03-15",
            "narrative": "See the structured facts.",
            "question": "Is it covered?",
            "facts": facts,
        }
    )
    assert result.determination is not None
    return result.determination.outcome.value, result.gate.state.value, "; ".join(result.gate.reasons)


KNOWN = {"diabetes_type": "type_1", "fingersticks_per_day": 5, "hypoglycemia_unawareness": False}


@pytest.mark.promise("draft.unreviewed")
def test_imported_and_drafted_refuses_until_a_person_has_accepted(imported: Path, tmp_path: Path) -> None:
    review = review_of(imported)
    outcome, gate, reason = gate_over(tmp_path, imported, **KNOWN)
    assert (outcome, gate) == ("INSUFFICIENT_EVIDENCE", "REFUSE")
    assert "criteria_not_authored" in reason
    pending = compiled(imported, review)
    assert gate_over(tmp_path, pending, **KNOWN)[:2] == ("INSUFFICIENT_EVIDENCE", "REFUSE")
    pending.rename(tmp_path / "pending")
    change(review, accept_all)
    reviewed = compiled(imported, review)
    assert gate_over(tmp_path, reviewed, **KNOWN, monitors_lost=0)[:2] == ("COVERED", "DETERMINE")
    (tmp_path / "reviewed.sqlite").unlink()
    assert gate_over(tmp_path, reviewed, **KNOWN, monitors_lost=3)[:2] == ("NOT_COVERED", "DETERMINE")


@pytest.mark.promise("draft.unreviewed")
def test_a_review_file_is_no_authored_file(imported: Path) -> None:
    from cda.systems.coverage.authored_corpus import check_corpus

    contents, faults = check_corpus(["builtin", str(review_of(imported))])
    assert contents is None
    assert "unknown key 'review'" in str(faults[0])


@pytest.mark.promise("draft.accept")
def test_accepted_clauses_replace_what_they_quote_and_the_rest_keeps_its_text(imported: Path) -> None:
    review = review_of(imported)
    change(review, accept_all)
    document = next(yaml.safe_load_all((compiled(imported, review) / "ACME-MP-7.yaml").read_text(encoding="utf-8")))
    clauses = document["policy"]["versions"][0]["clauses"]
    assert [(clause["id"], clause["text"], clause["criterion"]) for clause in clauses] == [
        ("C1-1", RULE, COVERS),
        ("C1-rest1", TALK, None),
        ("C1-2", LOST, EXCLUDES),
    ]


@pytest.mark.promise("draft.accept")
def test_what_is_rejected_or_pending_is_left_as_it_was_imported(imported: Path) -> None:
    review = review_of(imported)

    def first_alone(held: dict[str, Any]) -> None:
        accept_all(held)
        held["clauses"][1]["decision"] = "reject"
        held["facts"][0]["decision"] = "pending"

    change(review, first_alone)
    out = compiled(imported, review)
    clauses = next(yaml.safe_load_all((out / "ACME-MP-7.yaml").read_text(encoding="utf-8")))["policy"]["versions"][0][
        "clauses"
    ]
    assert [(clause["id"], clause["criterion"] is None) for clause in clauses] == [("C1-1", False), ("C1-rest1", True)]
    assert clauses[1]["text"] == f"{TALK} {LOST}"
    assert not (out / "reviewed-facts-and-codes.yaml").exists()


@pytest.mark.promise("draft.accept")
@pytest.mark.parametrize(
    ("edit", "fault"),
    [
        (lambda held: held.update(reviewed_by=""), "reviewed_by is empty"),
        (lambda held: held["clauses"][0].update(section="Other"), "C1-1: differs from what was drafted"),
        (
            lambda held: held["clauses"][0].update(quote=RULE[:40], decision="edit"),
            "C1-1: quote: begins or ends inside",
        ),
        (lambda held: held["clauses"][1].update(id="C1-1"), "C1-1: the id stands twice"),
        (lambda held: held["facts"][0].update(decision="pending"), "'monitors_lost' is not defined"),
        (lambda held: held["blocks"].update(C1="0" * 64), "the text of C1 has changed since it was drafted"),
        (lambda held: held.update(version="v9"), "SOURCE has no version ACME-MP-7.v9"),
    ],
)
def test_a_review_that_does_not_hold_is_refused_whole(
    imported: Path, edit: Callable[[dict[str, Any]], object], fault: str
) -> None:
    review = review_of(imported)
    change(review, lambda held: (accept_all(held), edit(held)))
    with pytest.raises(NotReviewed) as refused:
        compiled(imported, review)
    assert any(fault in said for said in refused.value.faults), refused.value.faults
    assert not (imported.parent / "reviewed").exists()


@pytest.mark.promise("draft.accept")
def test_an_edit_is_checked_again_and_compiles_when_it_holds(imported: Path) -> None:
    broken = json.dumps({"covers_if": COVERS["covers_if"]})
    review = review_of(imported, drafted(criterion=broken))
    held = yaml.safe_load(review.read_text(encoding="utf-8"))["review"]
    assert any("unless is no path" in fault for fault in held["clauses"][0]["faults"])
    change(review, accept_all)
    with pytest.raises(NotReviewed, match="unless is no path"):
        compiled(imported, review)
    change(review, lambda held: held["clauses"][0].update(decision="edit", criterion=COVERS))
    assert compiled(imported, review).is_dir()


@pytest.mark.promise("draft.accept")
def test_a_fact_that_two_reviews_define_in_two_ways_is_refused(imported: Path) -> None:
    review = review_of(imported)
    change(review, accept_all)
    other = review.with_name("other.review.yaml")
    other.write_text(review.read_text(encoding="utf-8"), encoding="utf-8")
    change(other, lambda held: held.update(version="v9"))
    change(other, lambda held: held["facts"][0].update(decision="edit", definition={"type": "bool", "label": "Other"}))
    with pytest.raises(NotReviewed, match="monitors_lost: is defined in two ways"):
        accept(imported, [review, other], imported.parent / "reviewed")


@pytest.mark.promise("draft.accept")
def test_a_corpus_that_would_not_build_is_not_written(imported: Path) -> None:
    review = review_of(imported)
    change(review, accept_all)
    with pytest.raises(NotReviewed, match="unknown payer ACME"):
        accept(imported, [review], imported.parent / "reviewed", ["builtin"])
    assert not (imported.parent / "reviewed").exists()
    assert not list(imported.parent.glob(".reviewed*"))


@pytest.mark.promise("draft.accept")
def test_the_file_of_a_review_says_what_is_wrong_with_its_form(imported: Path, tmp_path: Path) -> None:
    review = review_of(imported)
    change(review, lambda held: held["clauses"][0].update(decision="maybe"))
    with pytest.raises(UsageError, match=r"review\.yaml: clauses\.0\.decision: "):
        compiled(imported, review)
    with pytest.raises(UsageError, match="is no review file"):
        compiled(imported, imported / "ACME-MP-7.yaml")


@pytest.mark.promise("draft.call")
def test_one_version_is_one_call_with_the_text_as_data_and_the_same_static_text(imported: Path) -> None:
    _, model = draft_with(imported, lambda _: drafted())
    (request,) = model.requests
    assert request.static == INSTRUCTIONS
    assert RULE not in request.static
    shown = json.loads(request.turns[0].content)  # type: ignore[union-attr]
    assert shown["blocks"][0]["text"].startswith(RULE)
    assert {"name", "type", "unit", "values", "label"} == set(shown["facts"][0])


@pytest.mark.promise("draft.call")
def test_an_answer_that_is_there_is_not_paid_for_again_and_a_failure_leaves_none(imported: Path) -> None:
    failed, _ = draft_with(imported, lambda request: ModelFailure(FailureKind.REFUSED, request.role))
    assert failed.written == []
    assert "model_refused" in failed.failed[0]
    first, _ = draft_with(imported, lambda _: drafted())
    assert len(first.written) == 1
    second, model = draft_with(imported, lambda _: drafted())
    assert (second.written, len(second.there), model.requests) == ([], 1, [])


@pytest.mark.promise("draft.call")
@pytest.mark.parametrize("criterion", ["{covers", '{"covers_if": "\\ud800"}', "[" * 5000])
def test_a_criterion_that_is_no_json_never_passes_for_a_clause_that_decides_nothing(
    imported: Path, criterion: str
) -> None:
    review = review_of(imported, drafted(criterion=criterion))
    held = yaml.safe_load(review.read_text(encoding="utf-8"))["review"]["clauses"][0]
    assert held["criterion"] is not None
    assert "criterion: is not the JSON text of one criterion" in held["faults"]


@pytest.mark.promise("draft.call")
def test_a_name_that_no_policy_has_and_a_source_with_nothing_to_draft_are_wrong_usage(imported: Path) -> None:
    with pytest.raises(UsageError, match="--policy NOPE"):
        undrafted(read_source(imported), ["NOPE"])
    with pytest.raises(UsageError, match="no such folder or file"):
        read_source(imported / "nowhere")
    with pytest.raises(UsageError, match="nothing to draft"):
        undrafted(read_source(Path("corpus/data/synthetic/policies/MHP-MP-0142.yaml")), ())
