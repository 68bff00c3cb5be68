"""ICD-10-CM validity from the package's plain code list."""

import subprocess
import sys

import pytest

from corpus import icd10cm
from corpus.errors import CorpusError
from corpus.store import CorpusStore

pytestmark = pytest.mark.promise("corpus.icd10cm")


@pytest.mark.parametrize(
    "code", ["E11", "E11.6", "E11.65", "E1165", "M79.7", "S82.001A", "S82001A", "O24.410", "QA0.0101"]
)
def test_a_listed_code_is_valid_dotted_or_not(code: str, shipped: CorpusStore) -> None:
    assert shipped.icd10_valid(code)


@pytest.mark.parametrize(
    "code",
    ["", "E", "E1", "E11.", "E11.66", "E.1165", "E116.5", "E11.6.5", "e11.65", "E11 65", "E11.65 ", "E11. ", "1",
     "A00-A09", "95249", "E٠١", "ZZZ.9", "E11.%", "S82..001A"],
)  # fmt: skip
def test_what_the_list_does_not_have_is_not_valid(code: str, shipped: CorpusStore) -> None:
    assert not shipped.icd10_valid(code)


def test_the_table_says_what_the_package_says() -> None:
    rows, _ = icd10cm.table(icd10cm.code_list())
    words = icd10cm.code_list().read_text("ascii").split()
    codes = {word for word in words if len(word) >= 3 and "-" not in word}
    assert {category + suffix for category, row in rows.items() for suffix in ("", *row.split())} == codes
    assert len(codes) > 90_000


def test_the_package_is_never_imported() -> None:
    program = "import sys; from corpus.icd10cm import *; table(code_list()); print(PACKAGE in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.strip() == "False"


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(icd10cm, "PACKAGE", "no_such_package_anywhere")
    with pytest.raises(CorpusError, match="install simple-icd-10-cm"):
        icd10cm.code_list()
