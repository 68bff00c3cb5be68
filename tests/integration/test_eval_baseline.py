"""The committed baseline, held against the suites run again: an edited figure cannot stand."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from evals.baseline import FILE, digest_of, read_baseline

CDA = str(Path(sys.executable).parent / "cda")
SUITES = ("coverage", "retrieval", "verifier")
pytestmark = pytest.mark.promise("evals.baseline-held")


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("baseline")


def test_the_baseline_has_the_digest_of_its_content_and_every_suite() -> None:
    document = json.loads(FILE.read_text(encoding="utf-8"))
    assert document["digest"] == digest_of(document)
    assert sorted(document["suites"]) == sorted(SUITES)


@pytest.mark.parametrize("suite", SUITES)
def test_a_suite_run_again_gives_what_the_baseline_says(suite: str, home: Path) -> None:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("CDA_")}
    found = subprocess.run(
        [CDA, "eval", "--suite", suite, "--diff", "--json"],
        env={**environment, "CDA_HOME": str(home)},
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )
    entry = read_baseline(suite)
    assert entry is not None
    assert found.returncode == (1 if entry["failures"] else 0), found.stderr
    card = json.loads(found.stdout)
    comparison = card["comparison"]
    assert comparison["flips"] == []
    assert comparison["regressions"] == []
    assert {name: pair["after"] for name, pair in comparison["figures"].items()} == entry["figures"]
    assert {name: card["intervals"].get(name) for name in entry["intervals"]} == entry["intervals"]
    assert card["failures"] == entry["failures"]
    # Vectors of another processor may make another index; nothing else may have moved unsaid.
    assert comparison["moved"].keys() <= {"index_manifest"}
