"""Days of an answer, and authored files that are broken."""

from datetime import date
from pathlib import Path

import pytest
from click.testing import CliRunner

from cda.errors import UsageError
from evals.corpus_view import is_diagnosis, shipped
from evals.expand import OPEN_DAY, Answer, days_of, expand_command, read_patterns
from evals.laws import read_seeds

pytestmark = pytest.mark.promise("cases.expanded")


def answer(**more: object) -> Answer:
    return Answer.model_validate({"outcome": "COVERED", "gate": "DETERMINE", "gold": [], **more})


@pytest.mark.parametrize(
    ("window", "days"),
    [
        ({"under": ["MHP-MP-0142.v1"]}, (date(2023, 1, 1), date(2024, 6, 30))),
        ({"under": ["MHP-MP-0142.v2"]}, (date(2024, 7, 1), OPEN_DAY)),
        ({"before": "MHP-MP-0142.v1"}, (date(2022, 12, 31),)),
        ({"under": ["MHP-MP-0210.v3"], "before": "MHP-FAQ-0210.v1"}, (date(2024, 1, 1), date(2024, 1, 31))),
        ({"under": ["MHP-MP-0210.v3", "MHP-FAQ-0210.v1"]}, (date(2024, 2, 1), OPEN_DAY)),
        ({"under": ["CSM-MP-0331.v1", "CSM-RID-SLEEP-NARROW.v1"]}, (date(2024, 1, 1), date(2025, 2, 28))),
        ({"under": ["NBA-MP-0640.v1"], "days": ["2023-10-02"]}, (date(2023, 10, 2),)),
    ],
)
def test_an_answer_is_asked_on_the_edges_of_its_window(window: dict[str, object], days: tuple[date, ...]) -> None:
    assert days_of(answer(**window), shipped(), named="p") == days


@pytest.mark.parametrize(
    ("window", "words"),
    [
        ({"under": ["MHP-MP-0142.v9"]}, "no version of the corpus"),
        ({"under": ["CMS-NCD-280.8.v2"]}, "no version of the corpus with a first day"),
        ({"under": ["MHP-MP-0142.v1", "MHP-MP-0142.v2"]}, "never in effect together"),
    ],
)
def test_a_window_that_the_corpus_does_not_have_is_an_error(window: dict[str, object], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        days_of(answer(**window), shipped(), named="p")


def test_a_broken_pattern_names_file_pattern_and_field(tmp_path: Path) -> None:
    (tmp_path / "broken.yaml").write_text("- {pattern: lonely, trap: T1}\n", encoding="utf-8")
    with pytest.raises(UsageError, match=r"broken\.yaml: lonely: payer_id"):
        read_patterns(tmp_path)


def test_a_seed_may_only_reword_its_own_statements(tmp_path: Path) -> None:
    seed = (
        "- {seed: s, payer_id: MHP, plan_id: P, code: A, dx: [], as_of: 2024-01-01, statements: [One.],"
        " answer: {outcome: COVERED, gate: DETERMINE, gold: []}, synonyms: [{of: Two., says: Three.}]}\n"
    )
    (tmp_path / "seeds.yaml").write_text(seed, encoding="utf-8")
    with pytest.raises(UsageError, match="none of the seed's statements"):
        read_seeds(tmp_path)


def test_expand_writes_once_and_check_tells_a_difference(tmp_path: Path) -> None:
    runner = CliRunner()
    assert runner.invoke(expand_command, ["--out", str(tmp_path), "--check"]).exit_code == 1
    assert not list(tmp_path.iterdir())
    assert runner.invoke(expand_command, ["--out", str(tmp_path)]).exit_code == 0
    again = runner.invoke(expand_command, ["--out", str(tmp_path), "--json"])
    assert '"expanded.json": false' in again.output
    (tmp_path / "expanded.json").write_text("{}", encoding="utf-8")
    told = runner.invoke(expand_command, ["--out", str(tmp_path), "--check"])
    assert told.exit_code == 1
    assert "expanded.json: differs" in told.output


@pytest.mark.parametrize(("code", "sound"), [("E10.9", True), ("O24.414", True), ("E10.99", False), ("A9276", False)])
def test_a_diagnosis_is_known_by_the_table(code: str, sound: bool) -> None:
    assert is_diagnosis(code) is sound
