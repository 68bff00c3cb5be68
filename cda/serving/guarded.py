"""A kernel as the settings say: keys, limits and ledger of this machine."""

from collections.abc import Callable, Mapping
from typing import Any

from cda.errors import UnavailableError
from cda.ledger import Ledger, LedgerUnavailable
from cda.ledger.keys import KeyFault, argument_hasher, make_keys
from cda.serving.kernel import Kernel, Served
from cda.serving.key_store import KeyStore
from cda.serving.principal import Rate
from cda.serving.rate_limit import LimiterUnavailable, RateLimiter
from cda.serving.untrusted import clean_all
from cda.settings import Settings


def guarded(settings: Settings, *, clean: bool = True) -> Callable[[Mapping[str, Served]], Kernel]:
    """What makes the kernel of a server with keys, limits and a ledger. `clean`: strings of answers are cleaned.

    Opens all three now. Raises UnavailableError, before anything is served, when one of them cannot be trusted.
    """
    try:
        make_keys(settings.ledger_keys_path)
        ledger = Ledger(settings.ledger_path, settings.ledger_head_path, settings.ledger_keys_path)
        hasher = argument_hasher(settings.ledger_keys_path)
        limiter = RateLimiter(settings.home / "rate-limit.sqlite")
    except (LedgerUnavailable, LimiterUnavailable, KeyFault) as fault:
        raise UnavailableError(str(fault)) from None
    identities, rate = KeyStore(settings.keys_path), Rate.read(settings.rate_limit)
    cleaner: Callable[[Any], Any] | None = clean_all if clean else None

    def kernel(tools: Mapping[str, Served]) -> Kernel:
        return Kernel(
            tools,
            identities=identities,
            limiter=limiter,
            ledger=ledger,
            rate=rate,
            hasher=hasher,
            cleaner=cleaner,
        )

    return kernel
