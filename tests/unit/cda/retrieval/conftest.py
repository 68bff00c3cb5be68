"""The small corpus as a fixture, and the way to the builders beside this file."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from retrieval_world import FakeStore, small_corpus


@pytest.fixture
def store() -> FakeStore:
    return FakeStore(small_corpus())
