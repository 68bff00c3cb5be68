"""A kernel as the settings say: keys, limits and ledger of this machine."""

from collections.abc import Callable, Mapping
from typing import Any

from cda.errors import UnavailableError
from cda.ledger import Ledger, LedgerUnavailable
from cda.ledger.keys import KeyFault, argument_hasher, make_keys
from cda.serving.kernel import Kernel, Served
from cda.serving.key_store import PREFIX, KeyStore
from cda.serving.oauth_resource import OAuthResource
from cda.serving.principal import Principal, Rate
from cda.serving.rate_limit import LimiterUnavailable, RateLimiter
from cda.serving.recognition import Identities
from cda.serving.untrusted import clean_all
from cda.settings import Settings


def guarded(settings: Settings, *, clean: bool = True) -> Callable[[Mapping[str, Served]], Kernel]:
    """What makes the kernel of a server with keys, limits and a ledger. `clean`: strings of answers are cleaned.

    Opens all three now. Raises UnavailableError, before anything is served, when one of them cannot be trusted.
    """
    resource = OAuthResource.of(settings)  # wrong settings are found before anything is made
    try:
        make_keys(settings.ledger_keys_path)
        ledger = Ledger(settings.ledger_path, settings.ledger_head_path, settings.ledger_keys_path)
        hasher = argument_hasher(settings.ledger_keys_path)
        limiter = RateLimiter(settings.home / "rate-limit.sqlite")
    except (LedgerUnavailable, LimiterUnavailable, KeyFault) as fault:
        raise UnavailableError(str(fault)) from None
    identities, rate = _identities(settings, resource, hasher), Rate.read(settings.rate_limit)
    cleaner: Callable[[Any], Any] | None = clean_all if clean else None

    def kernel(tools: Mapping[str, Served]) -> Kernel:
        if resource is not None:
            resource.require(tools)
        return Kernel(
            tools,
            identities=identities,
            limiter=limiter,
            ledger=ledger,
            rate=rate,
            hasher=hasher,
            cleaner=cleaner,
            resource=resource,
        )

    return kernel


def stdio_key(settings: Settings) -> str:
    """The key or token of the one caller on stdio. UnavailableError when there is none: nobody could call."""
    if settings.api_key is None:
        raise UnavailableError("over stdio the caller's key is CDA_API_KEY; make one with `cda keys make`")
    return settings.api_key.get_secret_value()


def _identities(settings: Settings, resource: OAuthResource | None, hasher: Callable[[bytes], str]) -> Identities:
    """Keys, or keys and access tokens: two doors, neither of which opens the other. Tokens may come without keys."""
    if resource is None:
        return KeyStore(settings.keys_path)
    from cda.serving.access_tokens import AccessTokens  # a server that takes keys alone does not wait for its import
    from cda.serving.issuer_keys import IssuerKeys

    issuer_keys = IssuerKeys(resource.jwks)
    issuer_keys.key("")  # an address that gives no keys is found out now
    keys = KeyStore(settings.keys_path) if settings.keys_path.exists() else None
    return KeysAndTokens(keys, AccessTokens(resource, issuer_keys, hasher))


class KeysAndTokens:
    """What begins as our keys do is a key; everything else can only be a token."""

    def __init__(self, keys: Identities | None, tokens: Identities) -> None:
        self._keys, self._tokens = keys, tokens

    def principal(self, secret: str) -> Principal | None:
        """The caller, by the one door that the secret fits."""
        if secret.startswith(PREFIX):
            return self._keys.principal(secret) if self._keys is not None else None
        return self._tokens.principal(secret)
