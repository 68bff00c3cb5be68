from collections.abc import Iterator
from datetime import date

import pytest
from conformance.policy_tools import PolicyToolsConformance
from conformance.tiny_corpus import CONTENTS, WordSearch

from backends.errors import BackendError
from cda.contracts.policy_tools import Directory, PolicyTools
from cda.errors import PolicyToolError
from cda.systems.coverage.tools import InProcessPolicyTools, StoreDirectory
from corpus.errors import CorpusError
from corpus.store import CorpusStore
from corpus.store_writer import write_store


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CorpusStore]:
    path = tmp_path_factory.mktemp("tiny") / "corpus.sqlite"
    write_store(CONTENTS, path)
    with CorpusStore.open(path) as opened:
        yield opened


@pytest.fixture
def tools(store: CorpusStore) -> InProcessPolicyTools:
    return InProcessPolicyTools(store, WordSearch())


class TestInProcess(PolicyToolsConformance):
    @pytest.fixture
    def tools(self, store: CorpusStore) -> PolicyTools:
        return InProcessPolicyTools(store, WordSearch())

    @pytest.fixture
    def reference(self, tools: PolicyTools) -> PolicyTools:
        return tools


@pytest.mark.promise("tools.codes_normalised")
@pytest.mark.parametrize(
    ("written", "code", "system"),
    [
        ("95249", "95249", "CPT"),
        ("95249-59", "95249", "CPT"),
        ("95249-59-rt", "95249", "CPT"),
        (" a9276\n", "A9276", "HCPCS"),
        ("e10.65", "E10.65", "ICD10CM"),
        ("E10", "E10", "ICD10CM"),
        ("e11649", "E11.649", "ICD10CM"),
    ],
)
def test_a_code_is_found_however_it_is_written(tools: PolicyTools, written: str, code: str, system: str) -> None:
    view = tools.lookup_code(written)
    assert (view.code, view.system) == (code, system)


@pytest.mark.promise("tools.codes_normalised")
@pytest.mark.parametrize("written", ["E1065", "9524959", "95249.59", "95249-5", "E10.99", "A9276A9276", "٩٥٢٤٩"])
def test_a_code_that_is_not_sure_is_not_found(tools: PolicyTools, written: str) -> None:
    with pytest.raises(PolicyToolError, match="neither") as refused:
        tools.lookup_code(written)
    assert refused.value.code == "code_not_found"


@pytest.mark.promise("tools.codes_normalised")
def test_a_diagnosis_is_governed_by_no_policy(tools: PolicyTools) -> None:
    assert tools.lookup_code("E10.65").governed_by == ()


def _governing(tools: PolicyTools, **restricted: object) -> list[str]:
    return [f"{g.policy_id}.{g.version}" for g in tools.lookup_code("A9276", **restricted).governed_by]  # type: ignore[arg-type]


@pytest.mark.promise("tools.payer_and_date")
def test_lookup_code_lists_what_names_the_code_for_the_payer_on_the_day(tools: PolicyTools) -> None:
    undated, rider, zed = "ACM-MP-9.v1", "ACM-RID-STEP.v1", "ZED-MP-7.v1"
    assert _governing(tools) == ["ACM-MP-1.v1", "ACM-MP-1.v2", undated, rider, zed]
    assert _governing(tools, payer_id="ZED") == [zed]
    assert _governing(tools, payer_id="ACM", as_of=date(2024, 6, 30)) == ["ACM-MP-1.v1", undated, rider]
    assert _governing(tools, payer_id="ACM", as_of=date(2024, 7, 1)) == ["ACM-MP-1.v2", undated, rider]
    assert _governing(tools, payer_id="ACM", as_of=date(2025, 1, 1)) == ["ACM-MP-1.v2", undated]
    assert _governing(tools, as_of=date(2019, 1, 1)) == [undated]


@pytest.mark.promise("tools.payer_and_date")
def test_lookup_code_tells_clauses_that_name_the_code_from_the_rest_of_the_version(tools: PolicyTools) -> None:
    (first, *_rest) = tools.lookup_code("A9276", payer_id="ACM").governed_by
    assert first.clause_ids == ("ACM-MP-1.v1.C1",)
    assert first.version_clause_ids == ("ACM-MP-1.v1.C1", "ACM-MP-1.v1.C2")
    assert tools.lookup_code("E0607").governed_by == ()


@pytest.mark.promise("tools.payer_and_date")
def test_versions_come_oldest_first(tools: PolicyTools) -> None:
    assert [v.version for v in tools.list_policy_versions("ACM-MP-1")] == ["v1", "v2"]


@pytest.mark.promise("tools.riders_as_of")
@pytest.mark.parametrize(
    ("day", "found"),
    [("2023-12-31", 0), ("2024-01-01", 1), ("2024-12-31", 1), ("2025-01-01", 0)],
)
def test_a_rider_is_listed_on_the_first_and_last_day_of_its_window_only(
    tools: PolicyTools, day: str, found: int
) -> None:
    assert len(tools.get_plan_riders("ACM-GOLD", as_of=date.fromisoformat(day))) == found
    assert len(tools.get_plan_riders("ACM-GOLD")) == 1
    assert tools.get_plan_riders("ACM-BASE") == ()


@pytest.mark.promise("tools.plan_implies_payer")
def test_a_plan_implies_its_payer_and_brings_its_own_riders(tools: PolicyTools) -> None:
    (answer,) = tools.search_policies(["insulin"], plan_id="ACM-GOLD", k=25)
    assert {hit.clause.payer_id for hit in answer.hits} == {"ACM"}
    assert "ACM-RID-STEP.C1" in {hit.clause.clause_id for hit in answer.hits}
    (other,) = tools.search_policies(["insulin"], plan_id="ACM-BASE", k=25)
    assert "ACM-RID-STEP.C1" not in {hit.clause.clause_id for hit in other.hits}


@pytest.mark.promise("tools.directory")
def test_the_directory_says_what_exists(store: CorpusStore) -> None:
    directory: Directory = StoreDirectory(store)
    assert directory.payers() == {"ACM", "ZED"}
    plan = directory.plan("ZED-CARE")
    assert plan is not None
    assert (plan.payer_id, plan.line_of_business, plan.adverse_to_clinician_review) == ("ZED", "medicare", True)
    assert directory.plan("acm-gold") is None
    assert directory.code_known("A9276")
    assert not directory.code_known("E10.65")
    assert not directory.code_known("95249-59")
    assert directory.diagnosis_known("E10.65")
    assert not directory.diagnosis_known("E10.99")


class _Broken:
    def __init__(self, error: Exception) -> None:
        self._error = error

    def search(self, *_: object, **__: object) -> None:
        raise self._error

    def clause(self, _clause_id: str) -> None:
        raise self._error


@pytest.mark.promise("tools.closed_failures")
@pytest.mark.parametrize("error", [BackendError("the index is drifted"), CorpusError("the store is damaged")])
def test_a_failing_backend_or_store_is_a_named_refusal(error: Exception) -> None:
    broken = _Broken(error)
    tools: PolicyTools = InProcessPolicyTools(broken, broken)  # type: ignore[arg-type]
    for call in (lambda: tools.search_policies(["a"]), lambda: tools.get_clause_by_id("x")):
        with pytest.raises(PolicyToolError, match=str(error)) as refused:
            call()
        assert refused.value.code == "search_unavailable"
