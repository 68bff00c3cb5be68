"""Which addresses may carry a secret: https everywhere, http on this machine alone."""

import ipaddress
from urllib.parse import SplitResult, urlsplit

from cda.errors import UsageError


def is_loopback(host: str) -> bool:
    """True for localhost and for addresses that only this machine can reach."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def safe_address(name: str, address: str, *, query: bool = False) -> SplitResult:
    """The parts of the address that the setting `name` holds. UsageError, without repeating it, unless it is https, or
    http on the loopback, with a host and without user, password and fragment; with a `query` only where one may be."""
    try:
        parts = urlsplit(address)
        host, _port = parts.hostname or "", parts.port
    except ValueError:
        parts, host = SplitResult("", "", "", "", ""), ""
    secure = parts.scheme == "https" or (parts.scheme == "http" and is_loopback(host))
    plain = address.isascii() and address.isprintable() and not any(sign in address for sign in ' "\\<>@#')
    if not (host and secure and plain and (query or "?" not in address)):
        raise UsageError(
            f"{name} must be an https address with a host and no user or fragment (a query only for keys); "
            "http only on the loopback"
        )
    return parts
