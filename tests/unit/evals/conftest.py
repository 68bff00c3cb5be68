"""A system over the shipped corpus, built once a session."""

from pathlib import Path

import pytest
from coverage_world import open_system

from cda.systems.coverage.system import CoverageSystem


@pytest.fixture(scope="session")
def built_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with store and fitted index."""
    home = tmp_path_factory.mktemp("evals-home")
    open_system(home)
    return home


@pytest.fixture(scope="session")
def system(built_home: Path) -> CoverageSystem:
    """A system over it; safe for any number of asks."""
    return open_system(built_home)
