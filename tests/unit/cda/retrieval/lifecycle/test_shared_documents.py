"""The shared documents, in a folder, a database and a bucket: of two writers one wins, and the other is told."""

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from pathlib import Path

import pytest
from embedded_server import TestServer
from s3_server import Bucket, running_bucket

from backends.errors import AccessRefused, BackendError, BackendUnavailable
from backends.pgdocuments import PgDocuments
from backends.postgres import Database
from backends.s3documents import S3Documents
from cda.retrieval.lifecycle.document_files import DocumentFiles
from cda.retrieval.lifecycle.shared_files import FolderFiles, Moved, SharedFiles

pytestmark = pytest.mark.promise("lifecycle.shared_documents")


PREFIXES = count(1)


@pytest.fixture(scope="module")
def bucket() -> Iterator[Bucket]:
    with running_bucket() as running:
        yield running


@pytest.fixture
def aws(bucket: Bucket, monkeypatch: pytest.MonkeyPatch) -> Bucket:
    for name, value in bucket.environment.items():
        monkeypatch.setenv(name, value)
    return bucket


@pytest.fixture(params=["folder", "database", "bucket"])
def files(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[SharedFiles]:
    if request.param == "folder":
        yield FolderFiles(tmp_path)
        return
    if request.param == "bucket":
        bucket: Bucket = request.getfixturevalue("aws")
        yield DocumentFiles(S3Documents(bucket.name, f"manifests/{next(PREFIXES)}"))
        return
    postgres_server: TestServer = request.getfixturevalue("postgres_server")
    url = postgres_server.database()
    database = Database(url)
    yield DocumentFiles(PgDocuments(database))
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


def test_what_was_removed_can_be_written_again_and_is_listed_only_then(files: SharedFiles) -> None:
    files.write("building/t.json", b"one", expect=None)
    files.remove("building/t.json", expect=b"one")
    assert files.names("building") == []
    with pytest.raises(Moved):
        files.write("building/t.json", b"two", expect=b"one")
    files.write("building/t.json", b"two", expect=None)
    assert files.names("building") == ["building/t.json"]


def test_two_prefixes_of_a_bucket_do_not_see_each_other(aws: Bucket) -> None:
    one, other = S3Documents(aws.name, "/of/one/"), S3Documents(aws.name, "of/other")
    assert one.replace("pointer/p.json", b"x", expect=None)
    assert other.read("pointer/p.json") is None
    assert other.names("pointer") == []
    assert S3Documents(aws.name).read("of/one/pointer/p.json") == b"x"


def test_a_lost_answer_to_a_write_is_no_lost_race(aws: Bucket) -> None:
    documents = S3Documents(aws.name, f"lost/{next(PREFIXES)}")
    written = documents._put

    def answered_late(name: str, content: bytes, tag: str | None) -> bool:
        written(name, content, tag)
        return written(name, content, tag)  # as the library asks again when it heard nothing

    documents._put = answered_late  # type: ignore[method-assign]
    assert documents.replace("pointer/p.json", b"mine", expect=None)
    assert documents.read("pointer/p.json") == b"mine"


def test_what_is_wrong_with_a_bucket_is_one_sentence_without_its_keys(
    aws: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(BackendError, match="does not exist"):
        S3Documents("never-made-4711").read("pointer/p.json")
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", "http://127.0.0.1:9")
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    with pytest.raises(BackendUnavailable, match="does not answer") as caught:
        S3Documents(aws.name).names("pointer")
    assert os.environ["AWS_SECRET_ACCESS_KEY"] not in str(caught.value)
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", os.devnull)
    monkeypatch.setenv("AWS_CONFIG_FILE", os.devnull)
    with pytest.raises(AccessRefused, match="no AWS credentials"):
        S3Documents(aws.name).read("pointer/p.json")
