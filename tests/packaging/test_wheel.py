"""What the wheel holds, and that the repository speaks of the product alone."""

import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def names(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    out = tmp_path_factory.mktemp("wheel")
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(out)],
        cwd=ROOT,
        check=True,
        capture_output=True,
        timeout=120,
    )
    with zipfile.ZipFile(next(out.glob("*.whl"))) as wheel:
        return wheel.namelist()


@pytest.mark.promise("packaging.owner")
def test_the_wheel_owns_exactly_its_four_trees(names: list[str]) -> None:
    tops = {name.split("/")[0] for name in names if ".dist-info" not in name}
    assert tops == {"cda", "backends", "corpus", "evals"}


@pytest.mark.promise("packaging.data")
def test_the_wheel_carries_types_data_and_licences(names: list[str]) -> None:
    assert {f"{tree}/py.typed" for tree in ("cda", "backends", "corpus", "evals")} <= set(names)
    assert any(name.startswith("corpus/data/synthetic/") and name.endswith(".yaml") for name in names)
    assert any(name.startswith("corpus/data/medicare/") for name in names)
    assert any(name.startswith("corpus/data/facts/") for name in names)
    assert "cda/retrieval/data/wordpiece-vocab.txt" in names
    assert "backends/migrations/0001_targets.sql" in names
    assert any(name.endswith("licenses/LICENSE") for name in names)


@pytest.mark.promise("packaging.owner")
def test_no_secret_file_or_test_is_shipped(names: list[str]) -> None:
    assert not [name for name in names if re.search(r"(^|/)(\.env|tests/|.*\.sqlite$)", name)]


@pytest.mark.promise("packaging.product_alone")
def test_the_repository_names_no_registry_host_and_no_machine_path() -> None:
    files = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split("\n")
    said = re.compile("|".join([r"\bpypi" + r"\.org", r"npmjs" + r"\.(?:com|org)", "/" + "work/", "/" + "root/"]))
    found = []
    for name in filter(None, files):
        path = ROOT / name
        if path.suffix in {".py", ".md", ".toml", ".yaml", ".yml", ".json", ".txt", ".cfg", ""} and path.is_file():
            found += [
                name for line in path.read_text(encoding="utf-8", errors="replace").splitlines() if said.search(line)
            ]
    assert found == []
