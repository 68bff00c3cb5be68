"""Compiled regular expressions that outlive the process.

Compiling one phrase of a lexicon takes some 3 ms, and the shipped lexicons have 1,700: about six seconds of every
process that reads all of them, and a quarter of a second of a single question. What compiling makes is a list of
numbers for the matching engine, the same ones every time under the same Python; they are kept in a file and handed to
the engine, which checks them as it checks its own (0.1 ms). A test holds every kept pattern equal to one compiled anew.

Python gives no public way to do this: the three names of `re` below are private. Where they are missing, and wherever
the file cannot be read or written, patterns are compiled as ever, so that the file may be deleted at any time.
"""

import json
import re
import sqlite3
import sys
from array import array
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from threading import Lock

try:
    from re import _compiler, _parser  # type: ignore[attr-defined]

    _ENGINE = _compiler._sre
    _MAGIC: int | None = _compiler.MAGIC
except (ImportError, AttributeError):  # another Python keeps its compiler elsewhere
    _MAGIC = None

_Key = tuple[str, int]


class PatternFile:
    """One SQLite file of compiled patterns; safe for several threads and processes, since a row never changes."""

    def __init__(self, folder: Path) -> None:
        """Open the file of this very Python under `folder`, made when there is none. Raises OSError or sqlite3.Error
        when it cannot be."""
        version = sha256(f"{sys.version} {_MAGIC}".encode()).hexdigest()[:16]
        folder.mkdir(parents=True, exist_ok=True)
        self._lock = Lock()
        self._db = sqlite3.connect(folder / f"patterns-{version}.sqlite", check_same_thread=False, isolation_level=None)
        # A lost row is compiled again, so nothing waits for the disk; a torn one is told by its hash.
        self._db.execute("PRAGMA journal_mode=WAL")
        self._db.execute("PRAGMA synchronous=OFF")
        self._db.execute(
            "CREATE TABLE IF NOT EXISTS patterns (pattern TEXT, flags INTEGER, names TEXT, code BLOB, hash BLOB, "
            "PRIMARY KEY (pattern, flags)) WITHOUT ROWID"
        )

    def compile(self, pattern: str, flags: int) -> re.Pattern[str]:
        """The compiled pattern, from the file or else into it. Raises re.error as `re.compile` does."""
        return self._kept((pattern, flags)) or self._made((pattern, flags))

    def _kept(self, key: _Key) -> re.Pattern[str] | None:
        with suppress(sqlite3.Error, ValueError, RuntimeError):
            with self._lock:
                row = self._db.execute(
                    "SELECT names, code, hash FROM patterns WHERE pattern = ? AND flags = ?", key
                ).fetchone()
            if row is not None and row[2] == _hash(key, row[0], row[1]):
                code = array("I")
                code.frombytes(row[1])
                return _pattern(key[0], code.tolist(), *json.loads(row[0]))
        return None

    def _made(self, key: _Key) -> re.Pattern[str]:
        pattern, flags = key
        parsed = _parser.parse(pattern, flags)
        code = _compiler._code(parsed, flags)
        names = flags | parsed.state.flags, parsed.state.groups - 1, parsed.state.groupdict
        written = json.dumps(names), array("I", code).tobytes()
        with suppress(sqlite3.Error), self._lock:
            self._db.execute(
                "INSERT OR REPLACE INTO patterns VALUES (?,?,?,?,?)", (*key, *written, _hash(key, *written))
            )
        return _pattern(pattern, code, *names)


_open: dict[Path, PatternFile] = {}
_file: list[PatternFile] = []


def keep_in(folder: Path) -> None:
    """From now on keep compiled patterns in a file in this folder; do nothing where that cannot be."""
    if _MAGIC is None:
        return
    with suppress(OSError, sqlite3.Error):
        if folder not in _open:
            _open[folder] = PatternFile(folder)
        _file[:] = [_open[folder]]


def compiled(pattern: str, flags: int = 0) -> re.Pattern[str]:
    """`re.compile`, by way of the kept patterns when there are any."""
    return _file[0].compile(pattern, int(flags)) if _file else re.compile(pattern, flags)


def _pattern(pattern: str, code: list[int], flags: int, groups: int, index: dict[str, int]) -> re.Pattern[str]:
    """As the last lines of `re._compiler.compile` have it."""
    by_number: list[str | None] = [None] * (groups + 1)
    for name, number in index.items():
        by_number[number] = name
    made: re.Pattern[str] = _ENGINE.compile(pattern, flags, code, groups, index, tuple(by_number))
    return made


def _hash(key: _Key, names: str, code: bytes) -> bytes:
    return sha256(f"{key[1]}\0{names}\0{key[0]}\0".encode() + code).digest()
