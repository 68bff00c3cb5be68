"""API keys: shown once, kept as hashes, looked up in constant time, changed without a restart.

A key is 256 random bits, so one SHA-256 of it is a safe form to keep: there is nothing to guess, and a slow hash would
only slow every call.
"""

import hmac
import json
import os
import secrets
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from datetime import UTC, date, datetime, timedelta
from hashlib import sha256
from pathlib import Path
from threading import Lock
from typing import Any

from cda.errors import UnavailableError, UsageError
from cda.ledger.locks import lock
from cda.serving.principal import ALL, Lapsed, Principal, Rate

PREFIX = "cda_"
FORMAT = 1
LOCK_S = 10.0  # for another process that changes the keys


@dataclass(frozen=True, slots=True)
class StoredKey:
    """What is kept of a key. `expires` is the last day on which it works (UTC)."""

    id: str
    sha256: str
    tools: tuple[str, ...]
    rate: str | None = None
    expires: str | None = None
    created: str = ""
    revoked: bool = False

    def works_on(self, day: date) -> bool:
        """True when the key is neither revoked nor past its last day."""
        return not self.revoked and (self.expires is None or day <= date.fromisoformat(self.expires))

    def principal(self) -> Principal:
        """The caller who holds the key."""
        tools = None if self.tools == (ALL,) else frozenset(self.tools)
        return Principal(self.id, tools, Rate.read(self.rate) if self.rate else None)


class KeyStore:
    """The keys of one file. Raises UnavailableError, at opening and at any look-up, when the file cannot be trusted."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._lock = Lock()
        self._seen: tuple[int, int, int] | None = None
        self._keys: tuple[StoredKey, ...] = ()
        self.all()

    def principal(self, secret: str, *, today: date | None = None) -> Principal | None:
        """Who holds this key; None for nobody. Every key is compared, whichever matches, so that time tells nothing.
        Raises Lapsed for a key that was revoked or has expired."""
        digest = sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()
        day = today or datetime.now(UTC).date()
        found: StoredKey | None = None
        for key in self.all():
            if hmac.compare_digest(key.sha256, digest):
                found = key
        if found is not None and not found.works_on(day):
            raise Lapsed(found.id)
        return found.principal() if found is not None else None

    def all(self) -> tuple[StoredKey, ...]:
        """The keys as the file has them now."""
        with self._lock:
            state = _state(self._file)
            if state != self._seen:
                self._keys, self._seen = _read(self._file), state
            return self._keys


def make_key(
    file: Path,
    *,
    key_id: str,
    tools: Sequence[str],
    rate: Rate | None = None,
    expires: date | None = None,
    replaces: str | None = None,
    overlap_days: int = 7,
) -> str:
    """Add a key and give its secret, which is kept nowhere. The key it replaces works for `overlap_days` more."""
    if not key_id or len(key_id) > 64 or not all(c.isascii() and (c.isalnum() or c in "-_.") for c in key_id):
        raise UsageError("a key's id is up to 64 ASCII letters, digits, '-', '_' and '.'")
    if ALL in tools and tuple(tools) != (ALL,):
        raise UsageError("--tools is either the word all or a list of tools")
    secret = PREFIX + secrets.token_urlsafe(32)
    now = datetime.now(UTC)
    fresh = StoredKey(
        id=key_id,
        sha256=sha256(secret.encode("ascii")).hexdigest(),
        tools=tuple(tools),
        rate=str(rate) if rate else None,
        expires=expires.isoformat() if expires else None,
        created=now.isoformat(timespec="seconds"),
    )
    with _changing(file) as keys:
        if key_id in keys:
            raise UsageError(f"there is a key {key_id} already; ids are never used twice")
        if replaces is not None:
            old = _known(keys, replaces)
            last = now.date() + timedelta(days=overlap_days)
            earlier = date.fromisoformat(old.expires) if old.expires else last
            keys[replaces] = replace(old, expires=min(last, earlier).isoformat())
        keys[key_id] = fresh
    return secret


def revoke_key(file: Path, key_id: str) -> None:
    """Make a key useless from the next call on. UsageError when there is none of that id."""
    with _changing(file) as keys:
        keys[key_id] = replace(_known(keys, key_id), revoked=True)


def _known(keys: Mapping[str, StoredKey], key_id: str) -> StoredKey:
    if key_id not in keys:
        raise UsageError("there is no key of this id; `cda keys list` names them")
    return keys[key_id]


@contextmanager
def _changing(file: Path) -> Iterator[dict[str, StoredKey]]:
    """The keys by id; what the caller makes of them is written when it ends well, whole and for the owner alone."""
    descriptor = None
    try:
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        descriptor = os.open(file.with_name(f".{file.name}.lock"), os.O_CREAT | os.O_RDWR, 0o600)
        lock(descriptor, LOCK_S)
        keys = {key.id: key for key in _read(file)} if file.exists() else {}
        yield keys
        document = {"format": FORMAT, "keys": [asdict(key) for key in keys.values()]}
        draft = file.with_name(f".{file.name}.{os.getpid()}")
        with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="ascii") as out:
            json.dump(document, out, indent=1)
            out.flush()
            os.fsync(out.fileno())
        draft.replace(file)
    except OSError as error:
        raise UnavailableError(
            f"the key file {file} cannot be written ({error.strerror}); nothing was changed"
        ) from None
    finally:
        if descriptor is not None:
            os.close(descriptor)


def _state(file: Path) -> tuple[int, int, int]:
    try:
        found = file.stat()
    except OSError as error:
        raise UnavailableError(
            f"the key file {file} cannot be read ({error.strerror}); make a key with `cda keys make`"
        ) from None
    if found.st_mode & 0o022:
        raise UnavailableError(f"the key file {file} can be written by others than its owner; set its mode to 600")
    return found.st_ino, found.st_mtime_ns, found.st_size


def _read(file: Path) -> tuple[StoredKey, ...]:
    try:
        document: Any = json.loads(file.read_text(encoding="ascii"))
        if document["format"] != FORMAT:
            raise ValueError
        keys = tuple(StoredKey(**{**held, "tools": tuple(held["tools"])}) for held in document["keys"])
        for key in keys:
            key.works_on(date.min)
            key.principal()
            if len(key.sha256) != 64 or not all(isinstance(tool, str) for tool in key.tools):
                raise ValueError
    except (OSError, ValueError, KeyError, TypeError, AttributeError, UsageError):
        raise UnavailableError(f"the key file {file} is damaged; restore it or make keys anew") from None
    if len({key.id for key in keys}) != len(keys):
        raise UnavailableError(f"the key file {file} has one id twice; remove one of them")
    if not keys:
        raise UnavailableError(f"the key file {file} has no key; make one with `cda keys make`")
    return keys
