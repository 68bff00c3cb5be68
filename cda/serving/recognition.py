"""Who shows a secret, and who may show another one: strangers who guess are counted by their address, holders of a
secret that was good once by their own name, and neither shuts out a caller who was recognised before."""

from collections import OrderedDict
from hashlib import sha256
from threading import Lock
from typing import Protocol

from cda.serving.principal import Lapsed, Principal, Rate
from cda.serving.rate_limit import RateLimiter

FAILED_PEERS = Rate(10, 60)  # failures of one address, or with one secret that was good once
ACQUAINTED = 4096  # secrets remembered, as hashes; whoever is remembered is still asked for a secret that works


class Identities(Protocol):
    """Whoever recognises the bearer of a secret."""

    def principal(self, secret: str) -> Principal | None:
        """The caller, or None. Raises Lapsed for a secret that was good once, UnavailableError when it cannot tell."""
        ...


class TooManyFailures(Exception):
    """This caller failed too often to be looked at."""


class Recognition:
    """Recognises callers by `identities`, and counts failures with `limiter`."""

    def __init__(self, identities: Identities, limiter: RateLimiter | None) -> None:
        self._identities, self._limiter = identities, limiter
        self._acquainted: OrderedDict[bytes, None] = OrderedDict()
        self._lock = Lock()

    def caller(self, peer: str, secret: str | None) -> Principal | None:
        """The caller at an address; None for nobody. Raises TooManyFailures, and what the identities and the limiter
        raise when they cannot tell."""
        if not secret:
            return None  # whoever shows nothing guesses nothing
        seen, failures = sha256(secret.encode("utf-8", "surrogatepass")).digest(), f"peer:{peer}"
        if seen not in self._acquainted and self._limiter and self._limiter.full(failures, FAILED_PEERS):
            raise TooManyFailures
        try:
            principal = self._identities.principal(secret)
        except Lapsed as lapsed:
            principal, failures = None, f"lapsed:{lapsed.name}"
        self._remember(seen, good=principal is not None)
        if principal is None and self._limiter and not self._limiter.take(failures, FAILED_PEERS):
            raise TooManyFailures
        return principal

    def _remember(self, seen: bytes, *, good: bool) -> None:
        with self._lock:
            if not good:
                self._acquainted.pop(seen, None)
                return
            self._acquainted[seen] = None
            self._acquainted.move_to_end(seen)
            if len(self._acquainted) > ACQUAINTED:
                self._acquainted.popitem(last=False)
