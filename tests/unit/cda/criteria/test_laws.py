"""Laws over generated policies: monotonicity, independence of order, true flips, needed facts."""

import random
from collections.abc import Sequence
from datetime import date
from typing import Any

import pytest
from criteria_world import clause, decide, define
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from cda.contracts.decision import Outcome
from cda.contracts.facts import Interval
from cda.criteria.line import LineEvaluation
from cda.criteria.truth import Truth

BOOLS, NUMBERS = ("a", "b", "c"), ("n", "m")
FACTS = {
    **{name: define(name, type="bool") for name in BOOLS},
    **{name: define(name, type="count") for name in NUMBERS},
    "disease": define("disease", type="status"),
    "day": define("day", type="date"),
    "kind": define("kind", type="class", values=("one", "two"), dx={"one": ["E10.*"], "two": ["E11.*"]}),
}
SELECTOR = "kind"
DX = ((), ("E10.9",), ("E11.9",), ("R51.9",))

leaves = st.one_of(
    st.builds(lambda f, v: {"fact": f, "op": "=", "value": v}, st.sampled_from(BOOLS), st.booleans()),
    st.builds(
        lambda f, op, v: {"fact": f, "op": op, "value": v},
        st.sampled_from(NUMBERS),
        st.sampled_from((">=", ">", "<=", "<", "=", "!=")),
        st.integers(0, 4),
    ),
    st.builds(
        lambda op, v: {"fact": "disease", "op": op, "value": v},
        st.sampled_from(("=", "!=")),
        st.sampled_from(("confirmed", "suspected", "absent")),
    ),
    st.builds(
        lambda op, v: {"elapsed_since": "day", "op": op, "value": v, "unit": "month"},
        st.sampled_from((">=", "<=", ">", "<")),
        st.integers(0, 3),
    ),
    st.builds(lambda v: {"fact": "kind", "op": "=", "value": v}, st.sampled_from(("one", "two"))),
)
expressions = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.builds(lambda parts: {"all": parts}, st.lists(inner, min_size=1, max_size=3)),
        st.builds(lambda parts: {"any": parts}, st.lists(inner, min_size=1, max_size=3)),
        st.builds(lambda parts: {"at_least": 2, "of": parts}, st.lists(inner, min_size=2, max_size=3)),
        st.builds(lambda part: {"not": part}, inner),
    ),
    max_leaves=5,
)


@st.composite
def policies(draw: st.DrawFn) -> list[Any]:
    """A policy of one to three alternatives with and without UNLESS, exclusions, a duty, and now and then a rider.

    No limits and no populations: those rest on presumptions, which the law of monotonicity leaves out.
    """
    criteria: list[dict[str, Any]] = []
    for _ in range(draw(st.integers(1, 3))):
        criterion: dict[str, Any] = {
            "covers_if": {"all": [draw(expressions), {"named": "step", "any": [draw(expressions)]}]}
        }
        match draw(st.sampled_from(("plain", "waives", "routes"))):
            case "waives":
                criterion["unless"] = {"meaning": "waives", "when": draw(expressions), "waived": ["step"]}
            case "routes":
                criterion["unless"] = {"meaning": "routes", "when": draw(expressions), "to": "X9"}
        criteria.append(criterion)
    criteria += [{"excludes_if": draw(expressions)} for _ in range(draw(st.integers(0, 1)))]
    criteria += [{"if": draw(expressions), "requires": draw(expressions)} for _ in range(draw(st.integers(0, 1)))]
    clauses = [clause(f"P.v1.C{place}", criterion) for place, criterion in enumerate(criteria, 1)]
    patch = draw(st.sampled_from((None, {"waive": "step"}, {"add_node": {"fact": "c", "op": "=", "value": True}})))
    if patch is not None:
        clauses.append(clause("R.C1", {"patch": {"of": "P", **patch}}, doc_type="plan_rider"))
    return clauses


VALUES: dict[str, st.SearchStrategy[Any]] = {
    **dict.fromkeys(BOOLS, st.booleans()),
    **dict.fromkeys(NUMBERS, st.integers(0, 5).map(Interval.exactly)),
    "disease": st.sampled_from(("confirmed", "suspected", "absent")),
    "day": st.dates(date(2024, 1, 1), date(2024, 6, 1)),
    "kind": st.sampled_from(("one", "two")),
}
charts = st.builds(
    lambda whole, silent: {name: value for name, value in whole.items() if name not in silent},
    st.fixed_dictionaries(VALUES),
    st.sets(st.sampled_from(sorted(VALUES)), max_size=5),
)
law = settings(
    deadline=None, max_examples=80, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much]
)
Chart = dict[str, Any]


def outcome(clauses: Sequence[Any], chart: Chart, dx: Sequence[str]) -> LineEvaluation:
    return decide(clauses, FACTS, dx=dx, **chart)


@pytest.mark.promise("criteria.monotone")
@law
@given(policies(), charts, st.sampled_from(DX), st.data())
def test_learning_an_unknown_fact_never_flips_a_decided_outcome(
    clauses: list[Any], chart: Chart, dx: tuple[str, ...], data: st.DataObject
) -> None:
    before = outcome(clauses, chart, dx)
    assume(before.outcome is not Outcome.INSUFFICIENT_EVIDENCE)
    unknown = sorted(set(VALUES) - set(chart) - {SELECTOR})
    assume(unknown)
    learned = data.draw(st.sampled_from(unknown))
    after = outcome(clauses, {**chart, learned: data.draw(VALUES[learned])}, dx)
    assert after.outcome is before.outcome


@pytest.mark.promise("criteria.monotone")
@law
@given(policies(), charts, st.sampled_from(DX), st.tuples(st.integers(0, 5), st.integers(0, 5)), st.data())
def test_learning_more_of_a_quantity_known_in_part_never_flips_a_decided_outcome(
    clauses: list[Any], chart: Chart, dx: tuple[str, ...], ends: tuple[int, int], data: st.DataObject
) -> None:
    low, high = sorted(ends)
    before = outcome(clauses, {**chart, "n": Interval(low, high)}, dx)
    assume(before.outcome is not Outcome.INSUFFICIENT_EVIDENCE)
    exact = data.draw(st.integers(low, high))
    assert outcome(clauses, {**chart, "n": Interval.exactly(exact)}, dx).outcome is before.outcome


@pytest.mark.promise("criteria.monotone")
@law
@given(policies(), charts)
def test_confirming_a_suspicion_keeps_what_the_suspicion_decided(clauses: list[Any], chart: Chart) -> None:
    before = outcome(clauses, {**chart, "disease": "suspected"}, ())
    assume(before.outcome is not Outcome.INSUFFICIENT_EVIDENCE)
    assert outcome(clauses, {**chart, "disease": "confirmed"}, ()).outcome is before.outcome


@pytest.mark.promise("criteria.order")
@law
@given(policies(), charts, st.permutations(DX[1] + DX[2] + DX[3]), st.randoms(use_true_random=False))
def test_the_order_of_clauses_codes_and_facts_does_not_matter(
    clauses: list[Any], chart: Chart, dx: list[str], shuffler: random.Random
) -> None:
    expected = outcome(clauses, chart, sorted(dx))
    shuffled = list(clauses) + list(clauses[:1])
    shuffler.shuffle(shuffled)
    assert outcome(shuffled, dict(reversed(chart.items())), dx) == expected


@pytest.mark.promise("criteria.flips")
@law
@given(policies(), charts, st.sampled_from(DX))
def test_every_flip_that_is_named_flips_the_outcome_to_what_it_says(
    clauses: list[Any], chart: Chart, dx: tuple[str, ...]
) -> None:
    line = outcome(clauses, chart, dx)
    for flip in line.flips:
        changes = {name: date.fromisoformat(value) if name == "day" else value for name, value in flip.facts.items()}
        assert flip.outcome is not line.outcome
        assert outcome(clauses, {**chart, **changes}, dx).outcome is flip.outcome


@pytest.mark.promise("criteria.missing")
@law
@given(policies(), charts, st.sampled_from(DX))
def test_an_open_line_names_a_missing_fact_and_a_decided_line_names_none(
    clauses: list[Any], chart: Chart, dx: tuple[str, ...]
) -> None:
    line = outcome(clauses, chart, dx)
    open_line = line.outcome is Outcome.INSUFFICIENT_EVIDENCE
    assert bool(line.missing) is open_line
    known = {name for name in chart if name != "disease"}
    assert known.isdisjoint(fact.fact for fact in line.missing)
    assert {fact.clause_id for fact in line.missing} <= {c.clause_id for c in clauses}


@pytest.mark.promise("criteria.explanation")
@law
@given(policies(), charts, st.sampled_from(DX))
def test_a_decided_line_shows_a_clause_and_names_what_blocks_it(
    clauses: list[Any], chart: Chart, dx: tuple[str, ...]
) -> None:
    line = outcome(clauses, chart, dx)
    assert line.deciding
    assert (line.blocking is None) is (line.outcome is Outcome.COVERED)
    if line.outcome is Outcome.COVERED:
        assert any(entry.role == "covers" and entry.truth is Truth.MET for entry in line.deciding)


@pytest.mark.promise("criteria.riders")
@law
@given(policies(), charts, st.dates(date(2024, 6, 2), date(2030, 1, 1)))
def test_a_patch_that_is_not_yet_in_effect_never_applies(clauses: list[Any], chart: Chart, start: date) -> None:
    without = [c for c in clauses if c.source == "policy"]
    later = [c.model_copy(update={"effective_start": start}) if c.source == "rider" else c for c in clauses]
    assert outcome(later, chart, ()) == outcome(without, chart, ())
