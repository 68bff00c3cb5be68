"""The ledger's secrets: the Ed25519 key that signs its checkpoints, and the key under which arguments are hashed.

They lie in a folder of their own, readable by the owner alone, and never inside the folders they vouch for. Old public
keys are kept beside them: a checkpoint is checked with the key that was in use when it was signed, and a new key is
only believed because the old one signed it.
"""

import base64
import hmac
import json
import os
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

SIGNING, ARGUMENTS, RING = "ledger-signing.pem", "ledger-arguments.key", "ledger-public.json"


class KeyFault(Exception):
    """The key folder cannot be used; the message says why."""


def make_keys(folder: Path) -> None:
    """Make both keys where there are none. KeyFault when the folder cannot be written."""
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        if not (folder / ARGUMENTS).exists():
            _write(folder / ARGUMENTS, secrets.token_bytes(32))
        if not (folder / SIGNING).exists():
            fresh = _fresh_key()
            _write(folder / RING, _encoded([_public(fresh, "")]))
            _write(folder / SIGNING, _pem(fresh))
    except OSError as error:
        raise KeyFault(f"the ledger's key folder {folder} cannot be written ({error.strerror})") from None


def rotate_signing_key(folder: Path) -> str:
    """Put a new signing key in place, signed by the old one; gives its id. KeyFault without an old one."""
    old = SigningKey(folder)
    ring = read_ring(folder)
    fresh = _fresh_key()
    public = _public(fresh, "")
    public["handover"] = old.sign(public["public"].encode("ascii"))
    _write(folder / RING, _encoded([*ring.entries, public]))
    _write(folder / SIGNING, _pem(fresh))
    return str(public["id"])


class SigningKey:
    """The key in use. KeyFault when it is missing, or when others than its owner may read it."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / SIGNING

    @cached_property
    def _key(self) -> "Ed25519PrivateKey":
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
        from cryptography.hazmat.primitives.serialization import load_pem_private_key

        try:
            key = load_pem_private_key(_secret(self._file), password=None)
        except ValueError:
            raise KeyFault(f"{self._file} is no signing key") from None
        if not isinstance(key, Ed25519PrivateKey):
            raise KeyFault(f"{self._file} is no Ed25519 key")
        return key

    @cached_property
    def id(self) -> str:
        """What names the key in a signature: the first 16 hex digits of the sha256 of its public half."""
        return str(_public(self._key, "")["id"])

    def sign(self, content: bytes) -> str:
        """The signature, base64."""
        return base64.b64encode(self._key.sign(content)).decode("ascii")


@dataclass(frozen=True, slots=True)
class Ring:
    """The public keys, oldest first. Each but the first was signed by the one before."""

    entries: tuple[Mapping[str, Any], ...]

    def check(self, key_id: str, content: bytes, signature: str) -> bool:
        """True when the key of that id, itself believed, signed the content."""
        from cryptography.exceptions import InvalidSignature
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

        before = None
        for entry in self.entries:
            key = Ed25519PublicKey.from_public_bytes(base64.b64decode(entry["public"]))
            try:
                if before is not None:
                    before.verify(base64.b64decode(entry["handover"]), str(entry["public"]).encode("ascii"))
                if entry["id"] == key_id:
                    key.verify(base64.b64decode(signature), content)
                    return True
            except (InvalidSignature, ValueError):
                return False
            before = key
        return False


def read_ring(folder: Path) -> Ring:
    """The public keys of a key folder. KeyFault when there are none."""
    try:
        return Ring(tuple(json.loads((folder / RING).read_text(encoding="ascii"))))
    except (OSError, ValueError):
        raise KeyFault(f"{folder / RING}, the ledger's public keys, is missing or damaged") from None


def argument_hasher(folder: Path) -> Callable[[bytes], str]:
    """HMAC-SHA256 under the secret of the folder, 32 hex digits: a short id cannot be guessed from its hash."""
    secret = _secret(folder / ARGUMENTS)
    return lambda content: hmac.new(secret, content, sha256).hexdigest()[:32]


def _secret(file: Path) -> bytes:
    try:
        if file.stat().st_mode & 0o077:
            raise KeyFault(f"{file} can be read by others than its owner; set its mode to 600")
        return file.read_bytes()
    except OSError as error:
        raise KeyFault(f"{file} cannot be read ({error.strerror})") from None


def _write(file: Path, content: bytes) -> None:
    draft = file.with_name(f".{file.name}.{os.getpid()}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "wb") as out:
        out.write(content)
        out.flush()
        os.fsync(out.fileno())
    draft.replace(file)


def _encoded(entries: list[Any]) -> bytes:
    return json.dumps(entries, indent=1).encode("ascii")


def _fresh_key() -> "Ed25519PrivateKey":
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    return Ed25519PrivateKey.generate()


def _pem(key: "Ed25519PrivateKey") -> bytes:
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


def _public(key: "Ed25519PrivateKey", handover: str) -> dict[str, Any]:
    raw = key.public_key().public_bytes_raw()
    return {"id": sha256(raw).hexdigest()[:16], "public": base64.b64encode(raw).decode("ascii"), "handover": handover}
