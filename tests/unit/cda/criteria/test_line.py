"""How a line is decided: effect, order of decision, codes, riders, missing facts, flips."""

from datetime import date
from typing import Any

import pytest
from criteria_world import clause, decide, define, state

from cda.contracts.decision import Outcome
from cda.contracts.facts import Fact, FactState, Interval
from cda.criteria.evaluate import Presumption
from cda.criteria.line import facts_needed, line_outcome
from cda.criteria.verdict import Reason
from cda.errors import CriterionError

COVERED, NOT_COVERED, OPEN = Outcome.COVERED, Outcome.NOT_COVERED, Outcome.INSUFFICIENT_EVIDENCE
FACTS = {
    "a": define("a", type="bool"),
    "b": define("b", type="bool"),
    "n": define("n", type="count"),
    "age": define("age", type="measure", unit="year"),
    "kind": define(
        "kind",
        type="class",
        values=("one", "two", "three"),
        dx={"one": ["E10.*"], "two": ["E11.*"], "three": ["O24.*"]},
    ),
    "requester_relied_on_faq": define("requester_relied_on_faq", type="bool"),
}
A = {"fact": "a", "op": "=", "value": True}
B = {"fact": "b", "op": "=", "value": True}
FEW = {"fact": "n", "op": "<=", "value": 3}
MANY = {"fact": "n", "op": ">=", "value": 3}


def kind(value: str, *more: dict[str, Any]) -> dict[str, Any]:
    return {"all": [{"fact": "kind", "op": "=", "value": value}, *more]}


def covers(when: Any, clause_id: str = "P.v1.C1", **fields: Any) -> Any:
    unless = {"unless": fields.pop("unless")} if "unless" in fields else {}
    return clause(clause_id, {"covers_if": when, **unless}, **fields)


def rider(patch: dict[str, Any], clause_id: str = "R.C1", **fields: Any) -> Any:
    return clause(clause_id, {"patch": {"of": "P", **patch}}, doc_type="plan_rider", **fields)


def shown(line: Any) -> list[tuple[str, str]]:
    return [(entry.clause_id, entry.role.value) for entry in line.deciding]


governing = pytest.mark.promise("criteria.governing")
decision = pytest.mark.promise("criteria.decision")
codes = pytest.mark.promise("criteria.codes")
riders = pytest.mark.promise("criteria.riders")


@governing
@pytest.mark.parametrize(
    "fields",
    [
        {"payer_id": "OTHER"},
        {"codes": ("X2",)},
        {"codes": ()},
        {"effective_start": date(2024, 6, 2)},
        {"effective_end": date(2024, 5, 31)},
        {"effective_start": None, "date_state": "UNDATED"},
        {"date_state": "AMBIGUOUS"},
        {"doc_type": "provider_faq"},
        {"doc_type": "billing_article"},
    ],
)
def test_a_clause_that_does_not_govern_decides_nothing(fields: dict[str, Any]) -> None:
    line = decide([covers(A, **fields)], FACTS, a=True)
    assert (line.outcome, line.reason, line.deciding) == (OPEN, Reason.NO_GOVERNING_POLICY, ())


@governing
@pytest.mark.parametrize("as_of", ["2024-06-01", "2024-06-30"])
def test_both_ends_of_a_window_are_in_effect(as_of: str) -> None:
    window = {"effective_start": date(2024, 6, 1), "effective_end": date(2024, 6, 30)}
    assert decide([covers(A, **window)], FACTS, as_of=as_of, a=True).outcome is COVERED


@governing
def test_a_clause_without_a_criterion_is_shown_and_never_decides() -> None:
    line = decide([clause("P.v1.C1", None)], FACTS, a=True)
    assert (line.outcome, line.reason, shown(line)) == (
        OPEN,
        Reason.CRITERIA_NOT_AUTHORED,
        [("P.v1.C1", "not_authored")],
    )


@governing
def test_an_unknown_kind_of_document_is_an_error() -> None:
    with pytest.raises(ValueError, match="leaflet"):
        decide([covers(A, doc_type="leaflet")], FACTS, a=True)


@governing
def test_a_faulty_criterion_of_a_governing_clause_is_an_error_that_names_it() -> None:
    with pytest.raises(CriterionError, match=r"P\.v1\.C1"):
        decide([covers({"fact": "zz", "op": "=", "value": True})], FACTS)


@decision
@pytest.mark.parametrize(
    ("facts", "outcome", "reason"),
    [
        ({"a": True, "b": False}, COVERED, Reason.CRITERIA_MET),
        ({"a": True}, OPEN, Reason.MISSING_FACTS),
        ({"a": False}, NOT_COVERED, Reason.CRITERIA_NOT_MET),
        ({"b": True}, NOT_COVERED, Reason.EXCLUDED),
        ({}, OPEN, Reason.MISSING_FACTS),
    ],
)
def test_an_open_exclusion_keeps_a_coverage_open_but_not_a_denial(
    facts: dict[str, Any], outcome: Outcome, reason: Reason
) -> None:
    line = decide([covers(A), clause("P.v1.C2", {"excludes_if": B})], FACTS, **facts)
    assert (line.outcome, line.reason) == (outcome, reason)


@decision
@pytest.mark.parametrize(
    ("beyond", "n", "outcome", "reason"),
    [
        ("documentation", 4, OPEN, Reason.NEEDS_DOCUMENTATION),
        ("not_covered", 4, NOT_COVERED, Reason.BEYOND_LIMIT),
        ("documentation", 3, COVERED, Reason.CRITERIA_MET),
        ("not_covered", None, COVERED, Reason.CRITERIA_MET),
        ("documentation", Interval(2, 6), OPEN, Reason.MISSING_FACTS),
        ("not_covered", Fact("n", FactState.CONFLICT), OPEN, Reason.MISSING_FACTS),
    ],
)
def test_a_limit_is_presumed_kept_when_silent_and_open_when_in_doubt(
    beyond: str, n: Any, outcome: Outcome, reason: Reason
) -> None:
    line = decide([covers(A), clause("P.v1.C2", {"limit": FEW, "beyond": beyond})], FACTS, a=True, n=n)
    assert (line.outcome, line.reason) == (outcome, reason)
    presumed = [(p.fact, p.clause_id, p.presumption) for p in line.presumed]
    assert presumed == ([("n", "P.v1.C2", Presumption.DECLARED)] if n is None else [])


@decision
def test_a_limit_on_documents_never_hides_that_the_criteria_fail() -> None:
    line = decide([covers(A), clause("P.v1.C2", {"limit": FEW, "beyond": "documentation"})], FACTS, a=False, n=9)
    assert (line.outcome, line.reason) == (NOT_COVERED, Reason.CRITERIA_NOT_MET)


@decision
@pytest.mark.parametrize(
    ("facts", "outcome"),
    [
        ({"b": True, "n": 3}, COVERED),
        ({"b": True, "n": 2}, NOT_COVERED),
        ({"b": True}, OPEN),
        ({"b": False}, COVERED),
        ({}, OPEN),
    ],
)
def test_a_duty_binds_only_under_its_condition(facts: dict[str, Any], outcome: Outcome) -> None:
    line = decide([covers(A), clause("P.v1.C2", {"if": B, "requires": MANY})], FACTS, a=True, **facts)
    assert line.outcome is outcome


@decision
def test_a_policy_that_does_not_reach_the_member_leaves_the_others_to_decide() -> None:
    adults = clause("P.v1.C1", {"scope": "x", "population": {"fact": "age", "op": ">=", "value": 18}})
    clauses = [adults, covers(A, "P.v1.C2"), covers(B, "Q.v1.C1")]
    assert decide(clauses, FACTS, age=17, a=False, b=True).outcome is COVERED
    assert decide(clauses[:2], FACTS, age=17, a=True).reason is Reason.OUT_OF_POPULATION
    silent = decide(clauses[:2], FACTS, a=True)
    assert (silent.outcome, [p.fact for p in silent.presumed]) == (COVERED, ["age"])


@decision
def test_a_waiver_lifts_what_it_names_and_leaves_open_what_it_might_lift() -> None:
    unless = {"meaning": "waives", "when": B, "waived": ["n"]}
    clauses = [covers({"all": [A, MANY]}, unless=unless)]
    assert decide(clauses, FACTS, a=True, n=1, b=True).outcome is COVERED
    assert decide(clauses, FACTS, a=True, n=1, b=False).outcome is NOT_COVERED
    assert decide(clauses, FACTS, a=True, n=1).outcome is OPEN
    assert decide(clauses, FACTS, a=False, b=True).outcome is NOT_COVERED


@decision
def test_a_route_denies_the_service_that_it_leads_away_from() -> None:
    clauses = [covers(A, unless={"meaning": "routes", "when": B, "to": "X2"})]
    assert decide(clauses, FACTS, a=True, b=True).outcome is NOT_COVERED
    assert decide(clauses, FACTS, a=True).outcome is OPEN
    assert decide(clauses, FACTS, a=True, b=False).outcome is COVERED


BY_KIND = [covers(kind("one", A), "P.v1.C1"), covers(kind("two", B), "P.v1.C2")]
EXCLUDING_THREE = [*BY_KIND, clause("P.v1.C3", {"excludes_if": {"fact": "kind", "op": "=", "value": "three"}})]


@codes
def test_codes_set_aside_the_alternatives_they_do_not_name_and_are_no_evidence() -> None:
    line = decide(BY_KIND, FACTS, dx=["E10.9"])
    assert (line.outcome, shown(line)) == (OPEN, [("P.v1.C1", "covers")])
    assert [m.fact for m in line.missing] == ["a", "kind"]
    failing = decide(BY_KIND, FACTS, dx=["E10.9"], a=False)
    assert (failing.outcome, shown(failing)) == (NOT_COVERED, [("P.v1.C1", "covers")])


@codes
def test_without_a_code_that_names_a_condition_every_alternative_stays_open() -> None:
    assert decide(BY_KIND, FACTS, dx=["R51.9"], a=False).outcome is OPEN
    assert decide(BY_KIND, FACTS, a=False, b=False).outcome is NOT_COVERED


@codes
def test_what_the_chart_states_decides_over_the_codes() -> None:
    line = decide(BY_KIND, FACTS, dx=["E10.9"], kind="two", b=True)
    assert (line.outcome, shown(line)) == (COVERED, [("P.v1.C2", "covers")])


@codes
@pytest.mark.parametrize("facts", [{}, {"a": False}, {"a": False, "b": True}])
def test_codes_alone_never_deny(facts: dict[str, Any]) -> None:
    line = decide(EXCLUDING_THREE, FACTS, dx=["O24.410"], **facts)
    assert line.outcome is OPEN
    assert [m.fact for m in line.missing] == ["kind"]


@codes
def test_a_fact_in_conflict_is_never_set_aside_by_codes() -> None:
    line = decide(BY_KIND, FACTS, dx=["E10.9"], kind=Fact("kind", FactState.CONFLICT, why="two notes"), a=False)
    assert line.outcome is OPEN


@codes
def test_an_undotted_code_chooses_as_its_dotted_form_does() -> None:
    assert shown(decide(BY_KIND, FACTS, dx=["E119"])) == [("P.v1.C2", "covers")]


STEP = {"all": [A, {"named": "step", "all": [MANY]}]}
WAIVE = {"waive": "step"}


@riders
def test_a_waiver_of_a_rider_decides_and_comes_first() -> None:
    line = decide([covers(STEP), rider(WAIVE)], FACTS, a=True, n=0)
    assert (line.outcome, shown(line)) == (COVERED, [("R.C1", "waives"), ("P.v1.C1", "covers")])
    assert line.deciding[0].tree.waived_by == "R.C1"


@riders
def test_a_rider_that_changes_nothing_for_this_member_comes_last() -> None:
    line = decide([covers(STEP), rider(WAIVE)], FACTS, a=True, n=5)
    assert shown(line) == [("P.v1.C1", "covers"), ("R.C1", "waives")]


@riders
@pytest.mark.parametrize(
    "fields",
    [
        {"plan_id": "ANOTHER"},
        {"plan_id": None},
        {"effective_start": None},
        {"effective_start": None, "date_state": "UNDATED"},
        {"effective_start": date(2024, 6, 2)},
        {"effective_end": date(2024, 5, 31)},
        {"overrides_policy_ids": ("Q",)},
        {"overrides_policy_ids": ()},
        {"codes": ("X2",)},
        {"payer_id": "OTHER"},
    ],
)
def test_a_rider_of_another_plan_date_policy_or_code_never_applies(fields: dict[str, Any]) -> None:
    line = decide([covers(STEP), rider(WAIVE, **fields)], FACTS, a=True, n=0)
    assert (line.outcome, line.riders) == (NOT_COVERED, ())


@riders
def test_a_request_without_a_plan_has_no_riders() -> None:
    assert decide([covers(STEP), rider(WAIVE)], FACTS, plan=None, a=True, n=0).outcome is NOT_COVERED


@riders
def test_a_waiver_never_touches_an_exclusion() -> None:
    excludes = clause("P.v1.C2", {"excludes_if": {"named": "step", "all": [B]}})
    assert decide([covers(A), excludes, rider(WAIVE)], FACTS, a=True, b=False).outcome is COVERED
    assert decide([covers(A), excludes, rider(WAIVE)], FACTS, a=True, b=True).outcome is NOT_COVERED


@riders
def test_a_rider_can_add_a_requirement_and_is_cited_where_it_blocks() -> None:
    line = decide([covers(A), rider({"add_node": B})], FACTS, a=True, b=False)
    assert (line.outcome, shown(line)) == (NOT_COVERED, [("R.C1", "adds"), ("P.v1.C1", "covers")])
    assert line.blocking is not None
    assert (line.blocking.path, line.blocking.fact) == ("patch.add_node", "b")
    missing = decide([covers(A), rider({"add_node": B})], FACTS, a=True)
    assert [(m.fact, m.clause_id) for m in missing.missing] == [("b", "R.C1")]


@riders
def test_the_newest_of_several_replacements_of_a_limit_stands() -> None:
    limit = clause("P.v1.C2", {"limit": FEW, "beyond": "not_covered"})
    older = rider({"replace_limit": "n", "with": 9}, "R.C2", effective_start=date(2021, 1, 1))
    newer = rider({"replace_limit": "n", "with": 5}, "R.C1", effective_start=date(2022, 1, 1))
    clauses = [covers(A), limit, older, newer]
    assert decide(clauses, FACTS, a=True, n=5).outcome is COVERED
    assert decide(clauses, FACTS, a=True, n=6).outcome is NOT_COVERED


@riders
def test_a_rider_clause_that_keeps_a_requirement_is_cited_where_it_is_missing_or_fails() -> None:
    keeps = clause("R.C2", {"states": "a stays", "keeps": ["a"]}, doc_type="plan_rider")
    clauses = [covers(STEP), rider(WAIVE), keeps]
    assert shown(decide(clauses, FACTS, n=0))[0] == ("R.C2", "keeps")
    assert shown(decide(clauses, FACTS, a=False, n=0))[0] == ("R.C2", "keeps")
    assert ("R.C2", "keeps") not in shown(decide(clauses, FACTS, a=True, n=0))


@riders
def test_a_rider_clause_that_neither_patches_nor_states_is_an_error() -> None:
    with pytest.raises(CriterionError, match=r"R\.C1: a rider clause patches or states"):
        decide([covers(A), clause("R.C1", {"excludes_if": True}, doc_type="plan_rider")], FACTS, a=True)


def faq(states: Any, *contradicts: str) -> Any:
    data = {"states": states, "contradicts": list(contradicts)}
    return clause("F.v1.C1", data, doc_type="provider_faq")


@pytest.mark.promise("criteria.lower_sources")
@pytest.mark.parametrize(
    ("states", "facts", "changes", "review"),
    [
        ({"fact": "n", "op": ">=", "value": 6}, {"n": 4}, True, True),
        ({"fact": "n", "op": ">=", "value": 6}, {"n": 8}, False, False),
        ({"fact": "n", "op": ">=", "value": 6}, {"n": 8, "requester_relied_on_faq": True}, False, True),
        ({"fact": "n", "op": ">=", "value": 6}, {"n": 8, "requester_relied_on_faq": None}, False, False),
        ("steps never matter", {"n": 8}, True, True),
        ({"fact": "b", "op": "=", "value": True}, {"n": 8}, True, True),
    ],
)
def test_a_lower_source_is_tried_against_the_line(
    states: Any, facts: dict[str, Any], changes: bool, review: bool
) -> None:
    line = decide([covers(STEP), faq(states, "P.v1.C1")], FACTS, a=True, **facts)
    assert line.outcome is COVERED
    assert [(c.clause_id, c.would_change, c.needs_review) for c in line.source_conflicts] == [
        ("F.v1.C1", changes, review)
    ]


@pytest.mark.promise("criteria.lower_sources")
def test_a_rider_in_effect_settles_the_point_it_speaks_to() -> None:
    clauses = [covers(STEP), rider(WAIVE), faq("riders change nothing", "R.C1")]
    (conflict,) = decide(clauses, FACTS, a=True, n=0).source_conflicts
    assert (conflict.would_change, conflict.settled_by_rider, conflict.needs_review) == (True, True, False)
    relied = decide(clauses, FACTS, a=True, n=0, requester_relied_on_faq=True)
    assert relied.source_conflicts[0].needs_review


@pytest.mark.promise("criteria.lower_sources")
def test_a_lower_source_against_a_clause_that_is_not_in_force_is_no_conflict() -> None:
    assert decide([covers(STEP), faq("x", "P.v0.C1")], FACTS, a=True, n=8).source_conflicts == ()


@pytest.mark.promise("criteria.missing")
def test_missing_facts_come_first_that_decide_most_often_and_then_by_name() -> None:
    line = decide([covers({"all": [{"any": [A, B]}, MANY]})], FACTS, a=False)
    assert [(m.fact, m.clause_id, m.why) for m in line.missing] == [
        ("b", "P.v1.C1", "nothing stated"),
        ("n", "P.v1.C1", "nothing stated"),
    ]
    either = decide([covers({"any": [{"all": [A, B]}, MANY]})], FACTS, a=True)
    assert [m.fact for m in either.missing] == ["b", "n"]
    partly = decide([covers({"any": [{"all": [A, B]}, MANY]})], FACTS)
    assert [m.fact for m in partly.missing] == ["n", "a", "b"]


@pytest.mark.promise("criteria.missing")
def test_a_missing_diagnosis_code_is_named_too() -> None:
    line = decide([covers({"all": [A, {"diagnosis": ["E10.*"]}]})], FACTS, a=True)
    assert [(m.fact, m.why) for m in line.missing] == [("diagnosis_codes", "the request has no diagnosis code")]


@pytest.mark.promise("criteria.missing")
def test_a_fact_known_in_part_is_missing_with_what_the_chart_gives() -> None:
    line = decide([covers(MANY)], FACTS, n=Interval(2, 6))
    assert [(m.fact, m.why) for m in line.missing] == [("n", "the chart gives 2 to 6")]
    assert line.blocking is not None
    assert line.blocking.path == "covers_if"


@pytest.mark.promise("criteria.flips")
@pytest.mark.parametrize(
    ("when", "facts", "flips"),
    [
        (MANY, {"n": 5}, [({"n": 2}, NOT_COVERED)]),
        (MANY, {"n": 1}, [({"n": 3}, COVERED)]),
        (MANY, {}, [({"n": 3}, COVERED), ({"n": 2}, NOT_COVERED)]),
        ({"fact": "n", "op": ">", "value": 3}, {"n": 1}, [({"n": 4}, COVERED)]),
        ({"all": [A, B]}, {"a": False, "b": False}, [({"a": True, "b": True}, COVERED)]),
        ({"any": [A, B]}, {}, [({"a": True}, COVERED), ({"b": True}, COVERED)]),
    ],
)
def test_the_smallest_sets_of_facts_that_would_flip_the_outcome_are_named(
    when: Any, facts: dict[str, Any], flips: list[tuple[dict[str, Any], Outcome]]
) -> None:
    line = decide([covers(when)], FACTS, **facts)
    assert [(flip.facts, flip.outcome) for flip in line.flips] == flips


@pytest.mark.promise("criteria.governing")
def test_the_facts_that_can_bear_on_a_line_are_known_before_any_is_read() -> None:
    clauses = [
        covers(STEP, unless={"meaning": "waives", "when": B, "waived": ["step"]}),
        covers(kind("one"), "Q.v1.C1", codes=("X2",), unless={"meaning": "routes", "when": MANY, "to": "X1"}),
        faq("x", "P.v1.C1"),
    ]
    names = facts_needed(
        procedure_code="X1", clauses=clauses, definitions=FACTS, as_of=date(2024, 6, 1), plan_id=None, payer_id="PAY"
    )
    assert names == ("a", "b", "n", "requester_relied_on_faq")
    assert state(FACTS, {"a": None})["a"].state is FactState.UNKNOWN


@decision
@pytest.mark.parametrize("facts", [{}, {"a": True}, {"a": False}, {"a": True, "n": 5}])
def test_the_outcome_alone_is_that_of_the_explained_line(facts: dict[str, Any]) -> None:
    clauses = [covers(A), clause("P.v1.C2", {"excludes_if": MANY})]
    alone = line_outcome(
        procedure_code="X1",
        clauses=clauses,
        definitions=FACTS,
        facts=state(FACTS, facts),
        diagnosis_codes=(),
        as_of=date(2024, 6, 1),
        plan_id=None,
        payer_id="PAY",
    )
    assert alone is decide(clauses, FACTS, **facts).outcome


@governing
def test_a_clause_that_changed_under_its_id_is_read_anew() -> None:
    assert decide([covers(A)], FACTS, a=True).outcome is COVERED
    assert decide([covers(B)], FACTS, a=True).outcome is OPEN
