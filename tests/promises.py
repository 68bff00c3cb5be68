"""The promises the tests keep: every promise has a test, every test names a promise.

Promises are data: `tests/promise_data/AREA.toml`, one `name = "sentence"` a line; the id is AREA.name. A test points
at one with `pytest.mark.promise("area.name")`, on itself or on its module.
"""

import tomllib
from pathlib import Path

DATA = Path(__file__).parent / "promise_data"


def load() -> dict[str, str]:
    """All promises, id to sentence."""
    found: dict[str, str] = {}
    for file in sorted(DATA.glob("*.toml")):
        for name, sentence in tomllib.loads(file.read_text(encoding="utf-8")).items():
            found[f"{file.stem}.{name}"] = sentence
    return found
