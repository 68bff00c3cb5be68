"""The shipped corpora: what they hold, and that each text says what its criterion says."""

import re
from datetime import date
from typing import Any

import pytest

from corpus.model import Clause, DateState
from corpus.store import CorpusStore

SYNTHETIC = {"MHP", "CSM", "NBA"}

# policy or rider -> version -> (start, end, clauses that govern a code, by code)
WINDOWS = {
    "MHP-MP-0142": {"v1": ("2023-01-01", "2024-06-30", 5), "v2": ("2024-07-01", None, 5)},
    "MHP-MP-0143": {"v1": ("2022-06-01", None, 3)},
    "MHP-MP-0210": {"v3": ("2024-01-01", None, 4)},
    "MHP-FAQ-0210": {"v1": ("2024-02-01", None, 2)},
    "CSM-MP-0331": {"v1": ("2023-03-01", "2025-02-28", 4), "v2": ("2025-03-01", None, 3)},
    "CSM-MP-0405": {"v2": ("2024-04-01", None, 3)},
    "NBA-MP-0512": {"v1": ("2023-09-01", None, 3)},
    "NBA-MP-0640": {"v1": ("2022-01-01", None, 2)},
    "CSM-MP-0702": {"v4": ("2024-01-01", None, 2)},
    "MHP-RID-STEP-WAIVE": {"v1": ("2024-01-01", None, 2)},
    "MHP-RID-DME-EXPAND": {"v1": ("2023-01-01", None, 1)},
    "CSM-RID-SLEEP-NARROW": {"v1": ("2024-01-01", None, 1)},
}


def numbers(value: Any) -> set[float]:
    """Every figure in a text or anywhere in a criterion; letters and underscores around one do not hide it."""
    if isinstance(value, dict):
        return set().union(*(numbers(key) | numbers(inner) for key, inner in value.items()), set())
    if isinstance(value, list):
        return set().union(*map(numbers, value), set())
    if isinstance(value, bool) or value is None:
        return set()
    if isinstance(value, int | float):
        return {float(value)}
    return {float(figure) for figure in re.findall(r"\d+(?:\.\d+)?", value)}


def synthetic(store: CorpusStore) -> list[Clause]:
    return [clause for clause in store.clauses() if clause.payer_id in SYNTHETIC]


@pytest.mark.promise("corpus.synthetic")
def test_it_has_its_fixed_counts(shipped: CorpusStore) -> None:
    figures = dict(shipped.meta["corpora"]["synthetic"])
    states = figures.pop("date_states")
    assert figures == {
        "payers": 3, "plans": 5, "policies": 9, "versions": 11, "riders": 3, "clauses": 40, "codes": 26,
    }  # fmt: skip
    assert states == {"DATED": 40, "UNDATED": 0, "AMBIGUOUS": 0}


@pytest.mark.promise("corpus.synthetic")
def test_its_versions_have_their_fixed_windows(shipped: CorpusStore) -> None:
    found: dict[str, dict[str, tuple[str | None, str | None, int]]] = {}
    for version in shipped.versions():
        if version.payer_id in SYNTHETIC:
            start, end = (day and day.isoformat() for day in (version.effective_start, version.effective_end))
            found.setdefault(version.policy_id, {})[version.version] = (start, end, len(version.clause_ids))
    assert found == WINDOWS


@pytest.mark.promise("corpus.synthetic")
def test_each_text_names_only_figures_of_its_criterion_and_all_it_compares_with(shipped: CorpusStore) -> None:
    names = re.compile(r"[A-Z]{3}-(?:MP|RID|NCD)-\d{4}")
    for clause in synthetic(shipped):
        text = names.sub("", clause.text)
        criterion = dict(clause.criterion or {})
        months = {"July": 7.0}
        stated = numbers(text) | {value for month, value in months.items() if month in text}
        known = (
            numbers(criterion) | {float(code) for code in clause.codes if code.isdigit()} | numbers(list(clause.codes))
        )
        assert stated <= known, (clause.clause_id, stated - known)
        compared = {
            node["value"] for node in comparisons(criterion) if not isinstance(node["value"], bool | str | list)
        }
        # "No session in the prior 12 months" says the figure 0 in words.
        assert {float(value) for value in compared} - {0.0} <= stated, clause.clause_id


def comparisons(node: Any) -> list[dict[str, Any]]:
    if isinstance(node, dict):
        own = [node] if "fact" in node and "value" in node else []
        return own + [found for inner in node.values() for found in comparisons(inner)]
    if isinstance(node, list):
        return [found for inner in node for found in comparisons(inner)]
    return []


@pytest.mark.promise("corpus.synthetic")
def test_each_clause_is_whole_sentences_and_keeps_its_exception_with_what_it_qualifies(shipped: CorpusStore) -> None:
    for clause in shipped.clauses():
        assert re.match(r"[A-Z0-9]", clause.text), clause.clause_id
        assert clause.text.endswith("."), clause.clause_id
        assert "\n" not in clause.text
        sentences = re.split(r"(?<=[.?])\s+(?=[A-Z])", clause.text)
        if "unless" in (clause.criterion or {}):
            assert [", unless " in sentence for sentence in sentences] == [True], clause.clause_id
        covers = "covers_if" in (clause.criterion or {})
        assert not covers or "covered" in clause.text, clause.clause_id
        excludes = "excludes_if" in (clause.criterion or {})
        assert not excludes or re.search(r"excluded from coverage|not covered", clause.text), clause.clause_id


@pytest.mark.promise("corpus.synthetic")
def test_its_limits_and_riders_are_data(shipped: CorpusStore) -> None:
    def criterion(clause_id: str) -> Any:
        clause = shipped.clause(clause_id)
        assert clause is not None
        return clause.criterion

    assert criterion("MHP-MP-0142.v1.C4")["beyond"] == "documentation"
    assert criterion("MHP-MP-0143.v1.C3")["beyond"] == "not_covered"
    assert criterion("CSM-MP-0331.v1.C1")["population"] == {"fact": "member_age_years", "op": ">=", "value": 18}
    assert criterion("CSM-MP-0331.v2.C1")["population"] == {"fact": "member_age_years", "op": ">=", "value": 13}
    assert criterion("CSM-MP-0702.v4.C2")["decides"] == "refuse"
    assert criterion("MHP-RID-STEP-WAIVE.C1") == {
        "patch": {"waive": "csdmard_trial", "of": "MHP-MP-0210", "on": "confirmed diagnosis, first line"}
    }
    assert criterion("MHP-RID-STEP-WAIVE.C2")["keeps"] == ["rheumatoid_arthritis", "crohns_disease", "disease_severity"]
    duty = shipped.clause("CSM-RID-SLEEP-NARROW.C1")
    assert duty is not None
    assert duty.codes == ("95810",)


@pytest.mark.promise("corpus.medicare")
def test_acupuncture_changes_on_its_effective_date_and_not_when_it_is_implemented(shipped: CorpusStore) -> None:
    def governing(day: date) -> set[str]:
        uses = [use for use in shipped.code_in_policies("97810") if use.version.in_effect(day)]
        return {f"{use.version.policy_id}.{use.version.version}" for use in uses}

    assert governing(date(2020, 1, 20)) == {"CMS-NCD-30.3.v1", "CMS-NCD-30.3.1.v1"}
    after = {"CMS-NCD-30.3.v2", "CMS-NCD-30.3.1.v2", "CMS-NCD-30.3.3.v1"}
    assert governing(date(2020, 1, 21)) == governing(date(2020, 6, 23)) == governing(date(2020, 6, 24)) == after
    (covering,) = shipped.versions("CMS-NCD-30.3.3")
    assert covering.implementation_date == date(2020, 6, 24)
    first = shipped.clause("CMS-NCD-30.3.v1.C1")
    assert first is not None
    assert (first.window_provenance, first.criterion and first.criterion["excludes_if"]) == ("attested", True)
    assert governing(date(2004, 4, 15)) == set()


@pytest.mark.promise("corpus.medicare")
def test_an_undated_change_is_kept_and_in_effect_on_no_day(shipped: CorpusStore) -> None:
    undated = [clause for clause in shipped.clauses() if clause.date_state is DateState.UNDATED]
    assert [clause.clause_id for clause in undated] == ["CMS-NCD-280.8.v2.C1"]
    days = [date(1990, 7, 30), date(1992, 1, 15), date(2000, 11, 1), date(2026, 1, 1)]
    assert not any(clause.in_effect(day) for clause in undated for day in days)
    assert undated[0].effective_start is None


@pytest.mark.promise("corpus.medicare")
def test_its_codes_are_marked_as_our_linkage(shipped: CorpusStore) -> None:
    clauses = [clause for clause in shipped.clauses() if clause.payer_id == "CMS"]
    assert {clause.codes_linkage for clause in clauses} == {"ours"}
    assert {clause.codes_linkage for clause in synthetic(shipped)} == {"policy"}
    assert all(clause.source_ref for clause in clauses)
