import pytest

from cda.harness.verifier import CHECKS, STEPS
from cda.systems.coverage.system import CoverageSystem
from evals.case_files import load_verifier
from evals.case_model import VerifierCase
from evals.catching import judge
from evals.mutation import REDUNDANT, TABLES, killers, likely, mutations
from evals.planted import answer_planted

CASES = load_verifier()
# One mutant of each table and the judge's word; the whole is `python -m evals.mutation`.
SAMPLE = (
    "verifier.quote_whole",
    "verifier.governs_request",
    "supports.evidence",
    "supports.outcome",
    "gate.confidence",
    "gate.no_claims",
    "line.adverse",
    "halt.plan_of_another",
    "halt.mean",
)


@pytest.mark.promise("evals.verifier-suite")
@pytest.mark.parametrize("case", CASES, ids=[case.case_id for case in CASES])
def test_the_owner_catches_the_fault_and_a_sound_answer_passes(case: VerifierCase, system: CoverageSystem) -> None:
    found = judge(case, answer_planted(case, system.parts))
    assert found.right, f"{found.fault}: {found.expected or 'sound'}; gate {found.gate}, {found.by}"


@pytest.mark.promise("evals.verifier-suite")
def test_a_fault_that_another_step_catches_is_not_caught_by_its_owner(system: CoverageSystem) -> None:
    case = next(case for case in CASES if case.caught_by == "verifier.exists")
    elsewhere = case.model_copy(update={"caught_by": "verifier.quote_whole"})
    assert not judge(elsewhere, answer_planted(elsewhere, system.parts)).right


@pytest.mark.promise("evals.mutation")
@pytest.mark.parametrize("name", SAMPLE)
def test_a_mutant_of_the_sample_turns_a_named_case_red(name: str, system: CoverageSystem) -> None:
    assert killers(mutations()[name], likely(name, CASES), system.parts, enough=1) != []


@pytest.mark.promise("evals.mutation")
def test_every_table_entry_is_a_mutant_and_is_put_back(system: CoverageSystem) -> None:
    before = {table: list(held) for table, held in TABLES.items()}
    assert list(CHECKS) == list(STEPS)
    for mutation in mutations().values():
        with mutation(system.parts):
            pass
    assert {table: list(held) for table, held in TABLES.items()} == before
    assert REDUNDANT.keys() < mutations().keys()


@pytest.mark.promise("evals.mutation")
@pytest.mark.parametrize("name", REDUNDANT)
def test_a_mutant_that_is_called_redundant_is_so(name: str, system: CoverageSystem) -> None:
    near = [case for case in CASES if case.caught_by.startswith(("verifier.quote", "verifier.exists", "gate."))]
    assert killers(mutations()[name], near, system.parts, enough=1) == []
