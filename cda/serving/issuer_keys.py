"""The public keys of an authorisation server: fetched when needed, kept a while, and never trusted beyond their kind.

What is fetched is small, comes in time, over https (or from the loopback), from the one address of the settings: no
redirect is followed and no address in a token is. While keys cannot be fetched and none are fresh, nobody is let in.
"""

import logging
import socket
import ssl
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from threading import Lock, Timer
from time import monotonic
from typing import Any

from jwt import PyJWK
from jwt.exceptions import PyJWTError

from cda.errors import UnavailableError
from cda.serving.addresses import safe_address
from cda.serving.strict_json import object_of

_log = logging.getLogger(__name__)

FRESH_S = 600.0  # how long fetched keys are used; a key that its issuer withdraws works no longer than that
AGAIN_S = 30.0  # between two fetches for keys that nobody knows: tokens can be made up at any rate
RETRY_S = 5.0  # after a fetch that failed
SOCKET_S = 3.0  # for one answer of the network
WHOLE_S = 5.0  # for the whole document
MAX_BYTES = 65_536
_RSA = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512")
_BY_CURVE = {"P-256": ("ES256",), "P-384": ("ES384",), "P-521": ("ES512",), "Ed25519": ("EdDSA",)}
_MIN_RSA_BITS = 2048
ALGORITHMS = frozenset(_RSA).union(*_BY_CURVE.values())  # asymmetric ones alone: neither `none` nor any HMAC


@dataclass(frozen=True, slots=True)
class IssuerKey:
    """One public key, and the algorithms that it may verify: those of its own kind, or the one that it names."""

    algorithms: tuple[str, ...]
    material: Any

    def verifies(self, algorithm: str) -> bool:
        """True when signatures under that algorithm may be checked with this key."""
        return algorithm in self.algorithms


class IssuerKeys:
    """The keys at one address by their ids. Threads share one fetch."""

    def __init__(self, address: str, *, clock: Callable[[], float] = monotonic) -> None:
        self._address, self._clock = address, clock
        self._lock = Lock()
        self._held: tuple[float, Mapping[str, IssuerKey]] | None = None
        self._failed: float | None = None

    def key(self, kid: str) -> IssuerKey | None:
        """The key of that id; None when the issuer has none. Raises UnavailableError when that cannot be known."""
        found = self._fresh()
        if found is not None and kid in found:
            return found[kid]
        with self._lock:
            now, found = self._clock(), self._fresh()
            if found is not None and (kid in found or self._waits(now)):
                return found.get(kid)
            if self._failed is not None and now - self._failed < RETRY_S:
                raise UnavailableError("the authorisation server's keys could not be fetched a moment ago")
            try:
                self._held, self._failed = (now, read_keys(fetched(self._address))), None
            except UnavailableError as fault:
                self._failed = self._clock()
                if found is None:
                    raise
                _log.error("a token names an unknown key and is refused: %s", fault)
                return None
            return self._held[1].get(kid)

    def _fresh(self) -> Mapping[str, IssuerKey] | None:
        held = self._held
        return held[1] if held is not None and self._clock() - held[0] < FRESH_S else None

    def _waits(self, now: float) -> bool:
        """True when an unknown key is no reason to fetch again yet."""
        fetched_at = self._held[0] if self._held else -AGAIN_S
        return now - fetched_at < AGAIN_S or (self._failed is not None and now - self._failed < RETRY_S)


def read_keys(content: bytes) -> dict[str, IssuerKey]:
    """The usable keys of a JWK set by id: public ones for signatures, of a kind and strength that we take. Raises
    UnavailableError when it is no key set, has none of them, or has one id twice."""
    document = object_of(content)
    listed = document.get("keys") if document else None
    if not isinstance(listed, list):
        raise UnavailableError("what the authorisation server's key address gives is no key set")
    usable = [(jwk["kid"], key) for jwk in listed if (key := _usable(jwk)) is not None]
    keys = dict(usable)
    if len(keys) != len(usable):
        raise UnavailableError("the authorisation server's key set has one key id twice")
    if not keys:
        raise UnavailableError("the authorisation server's key set has no key that can verify a token")
    return keys


def _usable(jwk: Any) -> IssuerKey | None:
    if not isinstance(jwk, dict) or "d" in jwk or jwk.get("use", "sig") != "sig":
        return None  # a private half in public has been read by others too
    kid, operations = jwk.get("kid"), jwk.get("key_ops", ["verify"])
    if not isinstance(kid, str) or not kid or not isinstance(operations, list) or "verify" not in operations:
        return None
    kind = jwk.get("kty")
    own = _RSA if kind == "RSA" else _BY_CURVE.get(str(jwk.get("crv")), ()) if kind in ("EC", "OKP") else ()
    algorithms = tuple(name for name in own if name == jwk.get("alg", name))
    if not algorithms:
        return None
    try:
        material = PyJWK(jwk, algorithm=algorithms[0]).key
    except (PyJWTError, ValueError, TypeError, KeyError):
        return None
    return None if kind == "RSA" and material.key_size < _MIN_RSA_BITS else IssuerKey(algorithms, material)


def fetched(address: str) -> bytes:
    """The document at an address. Raises UnavailableError for anything but a small answer 200 in time."""
    parts = safe_address("CDA_OAUTH_JWKS", address, query=True)
    host, port = parts.hostname or "", parts.port
    connection = (
        HTTPSConnection(host, port, timeout=SOCKET_S, context=ssl.create_default_context())
        if parts.scheme == "https"
        else HTTPConnection(host, port, timeout=SOCKET_S)
    )
    guard: Timer | None = None
    try:
        connection.connect()
        guard = Timer(WHOLE_S, _cut, [connection.sock])
        guard.daemon = True
        guard.start()
        target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        connection.request("GET", target, headers={"Accept": "application/jwk-set+json, application/json"})
        return _content(connection.getresponse())
    except (OSError, HTTPException) as fault:
        raise UnavailableError(
            f"the authorisation server's keys cannot be fetched ({type(fault).__name__}); see CDA_OAUTH_JWKS"
        ) from None
    finally:
        if guard is not None:
            guard.cancel()
        connection.close()


def _content(answer: HTTPResponse) -> bytes:
    with answer:
        if answer.status != 200:
            raise UnavailableError(f"the authorisation server's key address answers {answer.status}, not 200")
        content = answer.read(MAX_BYTES + 1)
    if len(content) > MAX_BYTES:
        raise UnavailableError(f"the authorisation server's key set is larger than {MAX_BYTES} bytes")
    return content


def _cut(opened: socket.socket) -> None:
    """End a connection whose answer drips in: each byte would be in time, and the whole never."""
    with suppress(OSError):
        opened.shutdown(socket.SHUT_RDWR)
