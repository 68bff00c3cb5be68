"""The life-cycle's shared documents in a database or a bucket, for machines that share no file system."""

from typing import Protocol

from cda.retrieval.lifecycle.shared_files import Moved


class Documents(Protocol):
    """What `backends.pgdocuments` and `backends.s3documents` are."""

    def read(self, name: str) -> bytes | None:
        """The content, or None."""
        ...

    def replace(self, name: str, content: bytes, *, expect: bytes | None) -> bool:
        """Whether `expect` was there and was replaced."""
        ...

    def remove(self, name: str, *, expect: bytes) -> bool:
        """Whether `expect` was there and was removed."""
        ...

    def names(self, folder: str) -> list[str]:
        """All names of a folder, sorted."""
        ...


class DocumentFiles:
    """`SharedFiles` over the documents of a database or a bucket."""

    def __init__(self, documents: Documents) -> None:
        self._documents = documents

    def read(self, name: str) -> bytes | None:
        """See `SharedFiles.read`."""
        return self._documents.read(name)

    def write(self, name: str, content: bytes, *, expect: bytes | None) -> None:
        """See `SharedFiles.write`."""
        if not self._documents.replace(name, content, expect=expect):
            raise Moved(name)

    def remove(self, name: str, *, expect: bytes) -> None:
        """See `SharedFiles.remove`."""
        if not self._documents.remove(name, expect=expect):
            raise Moved(name)

    def names(self, folder: str) -> list[str]:
        """See `SharedFiles.names`."""
        return self._documents.names(folder)
