"""Shared test set-up: the promise marker and its two-way check."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

import promises


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "promise(*ids): the promises (tests/promise_data) that this test keeps")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    known = promises.load()
    kept: set[str] = set()
    faults: list[str] = []
    for item in items:
        ids = [name for mark in item.iter_markers("promise") for name in mark.args]
        kept.update(ids)
        if not ids:
            faults.append(f"{item.nodeid}: names no promise")
        faults += [f"{item.nodeid}: no promise {name!r} in tests/promise_data" for name in ids if name not in known]
    whole = not config.option.keyword and not config.option.markexpr and config.args == [str(Path("tests"))]
    if whole:
        faults += [f"promise {name!r} has no test" for name in sorted(set(known) - kept)]
    if faults:
        raise pytest.UsageError("\n".join(faults))


@pytest.fixture(autouse=True)
def _own_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No test reads or writes this machine's own state, and none sees its keys."""
    for name in ("CDA_STORE", "CDA_TRACE_DIR", "CDA_FAULT", "CDA_EMBEDDER", "CDA_RERANKER", "CDA_VECTOR_BACKEND"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("CDA_HOME", str(tmp_path / "cda-home"))
