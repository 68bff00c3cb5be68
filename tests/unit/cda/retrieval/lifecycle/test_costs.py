"""The runs' costs are added up."""

from decimal import Decimal
from pathlib import Path

import pytest
from lifecycle_world import World, corpus

from backends.base import Usage
from cda.retrieval.lifecycle.costs import Costs, add_costs, costs_name
from cda.retrieval.lifecycle.manifest import held
from cda.retrieval.lifecycle.shared_files import FolderFiles, Moved

pytestmark = pytest.mark.promise("lifecycle.costs")

NAME = costs_name("policy", "pinecone")


def test_each_run_is_added_to_those_before(tmp_path: Path) -> None:
    World(tmp_path, corpus(12)).cycle().index()
    World(tmp_path, corpus(10)).cycle().index(prune=True)
    costs, _ = held(FolderFiles(tmp_path / "shared"), costs_name("policy", "local"), Costs)
    assert costs is not None
    assert (costs.runs, costs.embedded, costs.upserted, costs.deleted, costs.usd) == (2, 12, 13, 2, "0")


def test_a_service_is_priced_by_its_units_and_tokens(tmp_path: Path) -> None:
    files = FolderFiles(tmp_path)
    used = Usage(requests=3, bytes_sent=2_000_000, read_units=500)
    for _ in range(2):
        add_costs(
            files,
            NAME,
            Usage(),
            used,
            backend="pinecone",
            embedder="llama-text-embed-v2",
            now=5,
            tokens=1_000_000,
            embedded=7,
        )
    costs, _ = held(files, NAME, Costs)
    assert costs is not None
    # two times 2,000 write units at 4, 500 read units at 16 and a million tokens at 0.16 dollars a million
    assert Decimal(costs.usd) == 2 * (Decimal("0.008") + Decimal("0.008") + Decimal("0.16"))
    assert (costs.since, costs.runs, costs.requests, costs.read_units, costs.tokens) == (5, 2, 6, 1000, 2_000_000)


def test_a_run_that_meets_another_at_the_document_is_added_too(tmp_path: Path) -> None:
    class Contended(FolderFiles):
        lost = 2

        def write(self, name: str, content: bytes, *, expect: bytes | None) -> None:
            if self.lost:
                self.lost -= 1
                raise Moved(name)
            super().write(name, content, expect=expect)

    files = Contended(tmp_path)
    add_costs(files, NAME, Usage(requests=1), Usage(requests=4), backend="pinecone", embedder="any", now=5)
    costs, _ = held(files, NAME, Costs)
    assert costs is not None
    assert costs.requests == 3
