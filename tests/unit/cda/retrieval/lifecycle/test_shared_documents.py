"""The shared documents, in a folder and in a database: of two writers one wins, and the other is told."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from embedded_server import TestServer

from backends.pgdocuments import PgDocuments
from backends.postgres import Database
from cda.retrieval.lifecycle.database_files import DatabaseFiles
from cda.retrieval.lifecycle.shared_files import FolderFiles, Moved, SharedFiles

pytestmark = pytest.mark.promise("lifecycle.shared_documents")


@pytest.fixture(params=["folder", "database"])
def files(request: pytest.FixtureRequest, tmp_path: Path, postgres_server: TestServer) -> Iterator[SharedFiles]:
    if request.param == "folder":
        yield FolderFiles(tmp_path)
        return
    url = postgres_server.database()
    database = Database(url)
    yield DatabaseFiles(PgDocuments(database))
    database.close()
    postgres_server.give_back(url)


def test_what_was_written_is_read_and_listed(files: SharedFiles) -> None:
    assert files.read("pointer/p.json") is None
    assert files.names("pointer") == []
    for name in ("pointer/p.json", "pointer/a.json", "pointers/other.json"):
        files.write(name, b"\x00 one", expect=None)
    assert files.read("pointer/p.json") == b"\x00 one"
    assert files.names("pointer") == ["pointer/a.json", "pointer/p.json"]


def test_who_does_not_know_what_is_there_changes_nothing(files: SharedFiles) -> None:
    with pytest.raises(Moved):
        files.write("pointer/p.json", b"new", expect=b"old")
    files.write("pointer/p.json", b"old", expect=None)
    for expected in (None, b"older"):
        with pytest.raises(Moved):
            files.write("pointer/p.json", b"new", expect=expected)
    with pytest.raises(Moved):
        files.remove("pointer/p.json", expect=b"older")
    assert files.read("pointer/p.json") == b"old"
    files.write("pointer/p.json", b"new", expect=b"old")
    files.remove("pointer/p.json", expect=b"new")
    assert files.read("pointer/p.json") is None
    with pytest.raises(Moved):
        files.remove("pointer/p.json", expect=b"new")


@pytest.mark.parametrize("first", [None, b"first"])
def test_of_many_who_replace_the_same_one_wins(files: SharedFiles, first: bytes | None) -> None:
    if first is not None:
        files.write("pointer/p.json", first, expect=None)

    def replace(number: int) -> bool:
        try:
            files.write("pointer/p.json", b"by %d" % number, expect=first)
        except Moved:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        won = list(pool.map(replace, range(8)))
    assert won.count(True) == 1
    assert files.read("pointer/p.json") == b"by %d" % won.index(True)
