"""Small documents that several machines share, each replaced as a whole by whoever knows what it replaces.

Everything that the life-cycle must agree on (manifests, the pointer, who is building) is kept this way, so a place to
keep it needs four verbs and nothing else.
"""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

from cda.errors import UnavailableError


class Moved(Exception):
    """The document is no longer what the writer thought it was: somebody else was first."""


class IndexBusy(UnavailableError):
    """Somebody else is working on the same target, or was faster."""


def overtaken(what: str) -> IndexBusy:
    """The error for a document or a target that another run has changed since it was read."""
    return IndexBusy(f"another run has changed {what} in the meantime; look at its outcome and run this again")


class SharedFiles(Protocol):
    """Named documents with compare-and-set. Names are `folder/name`, a folder may be in another, of
    ASCII letters, digits, '-', '_' and '.'."""

    def read(self, name: str) -> bytes | None:
        """The content, or None when there is no such document."""
        ...

    def write(self, name: str, content: bytes, *, expect: bytes | None) -> None:
        """Replace `expect` (None: nothing is there yet). Raises Moved, and writes nothing, when it is not so."""
        ...

    def remove(self, name: str, *, expect: bytes) -> None:
        """Remove the document. Raises Moved, and removes nothing, when it is not `expect`."""
        ...

    def names(self, folder: str) -> list[str]:
        """The names of all documents of a folder, sorted."""
        ...


class FolderFiles:
    """Documents as files under one folder, for machines that share a file system (or are one machine)."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def read(self, name: str) -> bytes | None:
        """See `SharedFiles.read`."""
        try:
            return (self._root / name).read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise self._unusable(error) from None

    def write(self, name: str, content: bytes, *, expect: bytes | None) -> None:
        """See `SharedFiles.write`. The new content is on the disk before it has the name."""
        with self._alone():
            if self.read(name) != expect:
                raise Moved(name)
            place = self._root / name
            draft = place.with_name(f".{place.name}.{os.getpid()}.draft")
            try:
                place.parent.mkdir(parents=True, exist_ok=True)
                with draft.open("wb") as out:
                    out.write(content)
                    out.flush()
                    os.fsync(out.fileno())
                draft.replace(place)
            except OSError as error:
                draft.unlink(missing_ok=True)
                raise self._unusable(error) from None

    def remove(self, name: str, *, expect: bytes) -> None:
        """See `SharedFiles.remove`."""
        with self._alone():
            if self.read(name) != expect:
                raise Moved(name)
            try:
                (self._root / name).unlink()
            except OSError as error:
                raise self._unusable(error) from None

    def names(self, folder: str) -> list[str]:
        """See `SharedFiles.names`."""
        place = self._root / folder
        found = place.iterdir() if place.is_dir() else ()
        return sorted(f"{folder}/{file.name}" for file in found if not file.name.startswith("."))

    @contextmanager
    def _alone(self) -> Iterator[None]:
        try:
            self._root.mkdir(parents=True, exist_ok=True)
            lock = os.open(self._root / ".lock", os.O_CREAT | os.O_RDWR, 0o600)
        except OSError as error:
            raise self._unusable(error) from None
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield
        finally:
            os.close(lock)

    def _unusable(self, error: OSError) -> UnavailableError:
        return UnavailableError(
            f"the folder of index manifests {self._root} cannot be used ({error.strerror}); set CDA_MANIFESTS"
        )
