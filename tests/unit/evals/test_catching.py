from collections.abc import Mapping

import pytest

from cda.harness.loop import Parts
from cda.harness.verifier import CHECKS, STEPS
from cda.settings import Settings
from evals.case_files import load_verifier
from evals.case_model import VerifierCase
from evals.catching import judge
from evals.mutation import REDUNDANT, TABLES, killers, likely, mutations
from evals.planted import answer_planted, planted_parts

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

# one case for each rule of a step that has several
RULES = {
    "V-whole-08": "the quote stops before the sentence that qualifies it",
    "V-whole-09": "the quote begins with a sentence that leans on the one before it",
    "V-governs-08": "no policy that the rider overrides governs a requested code on that date",
}


@pytest.fixture(scope="module")
def parts(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Parts]:
    """The parts of a system over each corpus that a case names."""
    settings = Settings(home=tmp_path_factory.mktemp("planted"), embedder="tfidf")
    return planted_parts(CASES, settings, lambda _: None)


@pytest.mark.promise("evals.verifier-suite")
@pytest.mark.parametrize("case", CASES, ids=[case.case_id for case in CASES])
def test_the_owner_catches_the_fault_and_a_sound_answer_passes(case: VerifierCase, parts: Mapping[str, Parts]) -> None:
    found = judge(case, answer_planted(case, parts[case.corpus]))
    assert found.right, f"{found.fault}: {found.expected or 'sound'}; gate {found.gate}, {found.by}"


@pytest.mark.promise("evals.verifier-suite")
def test_a_fault_that_another_step_catches_is_not_caught_by_its_owner(parts: Mapping[str, Parts]) -> None:
    case = next(case for case in CASES if case.caught_by == "verifier.exists")
    elsewhere = case.model_copy(update={"caught_by": "verifier.quote_whole"})
    assert not judge(elsewhere, answer_planted(elsewhere, parts[elsewhere.corpus])).right


@pytest.mark.promise("evals.verifier-suite")
@pytest.mark.parametrize("case_id", RULES)
def test_a_fault_of_each_rule_is_told_in_the_rule_s_own_words(case_id: str, parts: Mapping[str, Parts]) -> None:
    case = next(case for case in CASES if case.case_id == case_id)
    checks = answer_planted(case, parts[case.corpus]).verification.checks
    assert [check.reason.partition(": ")[2] for check in checks if check.reason] == [RULES[case_id]]


@pytest.mark.promise("evals.mutation")
@pytest.mark.parametrize("name", SAMPLE)
def test_a_mutant_of_the_sample_turns_a_named_case_red(name: str, parts: Mapping[str, Parts]) -> None:
    assert killers(mutations()[name], likely(name, CASES), parts, enough=1) != []


@pytest.mark.promise("evals.mutation")
def test_every_table_entry_is_a_mutant_and_is_put_back(parts: Mapping[str, Parts]) -> None:
    before = {table: list(held) for table, held in TABLES.items()}
    assert list(CHECKS) == list(STEPS)
    for mutation in mutations().values():
        with mutation(parts[""]):
            pass
    assert {table: list(held) for table, held in TABLES.items()} == before
    assert REDUNDANT.keys() < mutations().keys()


@pytest.mark.promise("evals.mutation")
@pytest.mark.parametrize("name", REDUNDANT)
def test_a_mutant_that_is_called_redundant_is_so(name: str, parts: Mapping[str, Parts]) -> None:
    near = [case for case in CASES if case.caught_by.startswith(("verifier.quote", "verifier.exists", "gate."))]
    assert killers(mutations()[name], near, parts, enough=1) == []
