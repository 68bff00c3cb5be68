"""The two-way check: every test names a promise that exists, and in a whole run every promise has a test."""

from pathlib import Path

import pytest
from promises import load

TREES = {"unit", "conformance", "integration", "packaging", "test_promises.py"}


def named(items: list[pytest.Item]) -> dict[str, list[str]]:
    """Promise id to the tests that name it; tests without one stand under the empty id."""
    found: dict[str, list[str]] = {}
    for item in items:
        for name in [name for mark in item.iter_markers("promise") for name in mark.args] or [""]:
            found.setdefault(name, []).append(item.nodeid)
    return found


@pytest.mark.promise("promises.named")
def test_every_test_names_a_promise_that_exists(request: pytest.FixtureRequest) -> None:
    found = named(request.session.items)
    assert found.pop("", []) == []
    assert sorted(set(found) - set(load())) == []


@pytest.mark.promise("promises.kept")
def test_every_promise_has_a_test(request: pytest.FixtureRequest) -> None:
    collected = {Path(item.nodeid.split("::")[0]).parts[1] for item in request.session.items}
    whole = {entry.name for entry in Path(__file__).parent.iterdir() if entry.name in TREES - {"conformance"}}
    if not whole <= collected:
        return  # a part of the suite was asked for; the whole run checks
    assert sorted(set(load()) - set(named(request.session.items))) == []
