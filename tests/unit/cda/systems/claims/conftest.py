"""A small synthetic database, made once."""

from pathlib import Path

import pytest

from cda.systems.claims.seed import seed_database
from cda.systems.claims.store import ClaimsStore
from cda.systems.claims.tools import ClaimsTools


@pytest.fixture(scope="session")
def database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("claims") / "claims.sqlite"
    seed_database(file, days=2, seed=7)
    return file


@pytest.fixture
def tools(database: Path) -> ClaimsTools:
    return ClaimsTools(ClaimsStore(database))
