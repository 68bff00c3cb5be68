"""The ICD-10-CM code list of `simple-icd-10-cm`, read without importing the package.

Importing it parses a 10 MB XML file (about 1.9 s and 190 MB); its plain list of codes is all that validity needs. A
code is valid when the list holds it: categories (E11), subcategories (E11.6) and full codes (E11.65) alike, with the
dot after the third character or without it, in upper case. The list's chapters (1 to 22) and blocks (A00-A09) are
headings and no codes, so they are not valid here although the package says that they exist.
"""

from collections import defaultdict
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path

from corpus.errors import CorpusError

PACKAGE = "simple_icd_10_cm"


def code_list() -> Path:
    """The package's list of codes. Raises CorpusError when the package or its one list is not there."""
    spec = find_spec(PACKAGE)
    folders = list(spec.submodule_search_locations or ()) if spec else []
    found = [file for folder in folders for file in sorted(Path(folder, "data").glob("code-list-*.txt"))]
    if len(found) != 1:
        raise CorpusError(
            f"the ICD-10-CM code list of {PACKAGE} was not found ({len(found)} candidates): "
            "install simple-icd-10-cm in the version that pyproject.toml names"
        )
    return found[0]


def table(source: Path) -> tuple[dict[str, str], str]:
    """The list as category -> suffixes of its codes, each followed by a space; and the hex sha256 of the table.

    "E11" -> " 0 00 01 ... 65 ..." : the category itself is the empty suffix, so that a look-up reads one short row.
    """
    grouped: defaultdict[str, set[str]] = defaultdict(set)
    for code in source.read_text(encoding="ascii").split():
        if len(code) >= 3 and code.isalnum():
            grouped[code[:3]].add(code[3:])
    rows = {category: " ".join(["", *sorted(suffixes - {""}), ""]) for category, suffixes in sorted(grouped.items())}
    return rows, sha256("".join(f"{key}{row}\n" for key, row in rows.items()).encode("ascii")).hexdigest()


def split(code: str) -> tuple[str, str] | None:
    """(category, suffix) of a code in either form, or None when it cannot be one: a dot stands after the third
    character or nowhere, and never last."""
    category, suffix = code[:3], code[3:]
    if suffix.startswith("."):
        suffix = suffix[1:]
        if not suffix:
            return None
    if len(category) != 3 or not (category + suffix).isalnum():
        return None
    return category, suffix
