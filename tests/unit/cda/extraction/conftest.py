"""One extractor over the shipped definitions for all tests of this folder."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from chart_facts import shipped

from cda.contracts.definitions import definitions_from_data
from cda.extraction import RuleExtractor


@pytest.fixture(scope="session")
def extractor() -> RuleExtractor:
    return RuleExtractor(definitions_from_data(shipped()))
