"""Access tokens of an authorisation server (JWT, RFC 9068): who the bearer is, and what its scopes open here.

A token is taken only when this server's one issuer signed it, for this server, for now, with an asymmetric algorithm of
the key's own kind. Nothing in it is followed: no address of keys, no embedded key. It is kept and shown nowhere.
"""

import re
from base64 import urlsafe_b64decode
from collections.abc import Callable, Mapping
from math import isfinite
from typing import Any

import jwt

from cda.serving.issuer_keys import ALGORITHMS, IssuerKeys
from cda.serving.oauth_resource import OAuthResource, principal_name
from cda.serving.principal import Lapsed, Principal
from cda.serving.strict_json import object_of

LEEWAY_S = 30  # between the issuer's clock and ours
MAX_TOKEN = 8192  # characters
MAX_SUBJECT = 255
_FORM = re.compile(r"([A-Za-z0-9_-]+)\.([A-Za-z0-9_-]+)\.[A-Za-z0-9_-]+\Z")
_TYPES = frozenset({"at+jwt", "application/at+jwt", "jwt"})  # RFC 9068, and what many issuers still write
REQUIRED = ["exp", "iss", "aud", "sub"]


class AccessTokens:
    """The bearers of one issuer's tokens. `hasher` is the keyed hash under which the ledger knows a subject."""

    def __init__(self, resource: OAuthResource, keys: IssuerKeys, hasher: Callable[[bytes], str]) -> None:
        self._resource, self._keys, self._hasher = resource, keys, hasher

    def principal(self, secret: str) -> Principal | None:
        """The subject of a valid token; None for any other. Raises Lapsed for one that was valid and has expired, and
        UnavailableError when the issuer's keys cannot be fetched."""
        found = _FORM.match(secret) if len(secret) <= MAX_TOKEN else None
        if found is None:
            return None
        header, claims = object_of(_decoded(found[1])), object_of(_decoded(found[2]))
        if header is None or claims is None or not (_header_holds(header) and _claims_hold(claims)):
            return None
        key = self._keys.key(header["kid"])
        if key is None or not key.verifies(header["alg"]):
            return None
        name = principal_name(self._resource.issuer, claims["sub"], self._hasher)
        try:
            jwt.decode(
                secret,
                key.material,
                algorithms=[header["alg"]],
                issuer=self._resource.issuer,
                audience=self._resource.address,
                leeway=LEEWAY_S,
                options={"require": REQUIRED},
            )
        except jwt.ExpiredSignatureError:  # the signature held
            raise Lapsed(name) from None
        except (jwt.PyJWTError, ValueError, TypeError, OverflowError):
            return None
        granted = _scopes(claims)
        return Principal(name, self._resource.tools(granted), scopes=granted)


def _decoded(part: str) -> bytes:
    try:
        return urlsafe_b64decode(part + "=" * (-len(part) % 4))
    except ValueError:
        return b""


def _header_holds(header: Mapping[str, Any]) -> bool:
    """True when the token says how to verify it in a way that we take; what it wants understood, we do not."""
    kind = header.get("typ", "jwt")
    return (
        isinstance(header.get("alg"), str)
        and header["alg"] in ALGORITHMS
        and isinstance(header.get("kid"), str)
        and isinstance(kind, str)
        and kind.lower() in _TYPES
        and not {"crit", "b64", "zip", "enc"} & set(header)
    )


def _claims_hold(claims: Mapping[str, Any]) -> bool:
    """True when the claims that we read have their types. A token that is bound to a key of its holder (`cnf`) is no
    bearer token, and nothing here could check the binding."""
    times = [claims.get("exp"), *(claims[name] for name in ("nbf", "iat") if name in claims)]
    subject = claims.get("sub")
    return (
        all(isinstance(at, int | float) and not isinstance(at, bool) and isfinite(at) for at in times)
        and isinstance(subject, str)
        and 0 < len(subject) <= MAX_SUBJECT
        and isinstance(claims.get("scope", ""), str)
        and "cnf" not in claims
    )


def _scopes(claims: Mapping[str, Any]) -> tuple[str, ...]:
    """The scopes granted: `scope` (RFC 9068), or `scp` where an issuer writes that, as one text or as a list."""
    written = claims.get("scope", claims.get("scp", ""))
    listed = written.split(" ") if isinstance(written, str) else written if isinstance(written, list) else []
    return tuple(dict.fromkeys(scope for scope in listed if isinstance(scope, str) and scope))
