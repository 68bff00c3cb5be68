"""What this server is to an authorisation server: whose tokens it takes, what it is called in them, and which scopes
open which tools.

RFC 9728 names the metadata that a client finds the authorisation server by, RFC 6750 the challenges of a refusal.
"""

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from cda.errors import UsageError
from cda.serving.addresses import safe_address
from cda.serving.principal import ALL
from cda.settings import Settings

WELL_KNOWN = "/.well-known/oauth-protected-resource"
_SCOPE = re.compile(r"[\x21\x23-\x5b\x5d-\x7e]+\Z")  # RFC 6749, 3.3


@dataclass(frozen=True, slots=True)
class OAuthResource:
    """`issuer` is the one authorisation server, `address` this server as its clients call it and the audience of every
    token, `jwks` where the issuer's keys are. Of `scopes` each opens its tools; None stands for all of them."""

    issuer: str
    address: str
    jwks: str
    scopes: Mapping[str, frozenset[str] | None]

    @classmethod
    def of(cls, settings: Settings) -> "OAuthResource | None":
        """As the settings say; None when none of the four is set. UsageError for a part of them, or a wrong one."""
        given = {
            "CDA_OAUTH_ISSUER": settings.oauth_issuer,
            "CDA_OAUTH_RESOURCE": settings.oauth_resource,
            "CDA_OAUTH_JWKS": settings.oauth_jwks,
            "CDA_OAUTH_SCOPES": settings.oauth_scopes,
        }
        missing = [name for name, value in given.items() if value is None]
        if len(missing) == len(given):
            return None
        if missing:
            raise UsageError(f"access tokens need {', '.join(given)}, all of them: {', '.join(missing)} not set")
        issuer, address, jwks, scopes = (value or "" for value in given.values())
        safe_address("CDA_OAUTH_ISSUER", issuer)
        safe_address("CDA_OAUTH_RESOURCE", address)
        safe_address("CDA_OAUTH_JWKS", jwks, query=True)
        return cls(issuer, address, jwks, _scopes(scopes))

    def require(self, tools: Collection[str]) -> None:
        """UsageError when a scope names a tool that the server does not have: it would open nothing, silently."""
        if any(opened is not None and not opened <= set(tools) for opened in self.scopes.values()):
            raise UsageError(f"CDA_OAUTH_SCOPES names a tool that this server does not have; it has {', '.join(tools)}")

    def tools(self, granted: Collection[str]) -> frozenset[str] | None:
        """The tools that the scopes of a token open together; None for all of them."""
        opened = [self.scopes[scope] for scope in granted if scope in self.scopes]
        if None in opened:
            return None
        return frozenset().union(*(tools for tools in opened if tools is not None))

    def wider(self, granted: Collection[str], tool: str) -> str | None:
        """The scopes to ask for so that a token opens the tool too: the ones it has, and of those that open the tool
        the one that opens least. None when none does."""
        opening = [(len(tools), scope) for scope, tools in self.scopes.items() if tools is not None and tool in tools]
        opening = opening or [(0, scope) for scope, tools in self.scopes.items() if tools is None]
        if not opening:
            return None
        return " ".join([*(scope for scope in granted if scope in self.scopes), min(opening)[1]])

    @property
    def metadata(self) -> dict[str, Any]:
        """The document of RFC 9728, section 2."""
        return {
            "resource": self.address,
            "authorization_servers": [self.issuer],
            "scopes_supported": list(self.scopes),
            "bearer_methods_supported": ["header"],
        }

    @property
    def metadata_path(self) -> str:
        """Where this server answers with it: the well-known path goes before the address's own (section 3.1)."""
        return WELL_KNOWN + urlsplit(self.address).path.rstrip("/")

    @property
    def metadata_address(self) -> str:
        """Where clients find it."""
        parts = urlsplit(self.address)
        return f"{parts.scheme}://{parts.netloc}{self.metadata_path}"

    def challenge(self, error: str | None = None, scope: str | None = None) -> str:
        """The value of a WWW-Authenticate header."""
        named = {"error": error, "scope": scope, "resource_metadata": self.metadata_address}
        return "Bearer " + ", ".join(f'{name}="{value}"' for name, value in named.items() if value is not None)


def principal_name(issuer: str, subject: str, hasher: Callable[[bytes], str]) -> str:
    """What the ledger calls a subject of an issuer: often a person's address, so only its keyed hash."""
    return "oauth:" + hasher(f"subject\0{issuer}\0{subject}".encode("utf-8", "surrogatepass"))


def _scopes(text: str) -> dict[str, frozenset[str] | None]:
    """SCOPE=TOOL,TOOL for each scope, a blank between two; the word all for every tool."""
    found: dict[str, frozenset[str] | None] = {}
    for entry in text.split():
        scope, _, names = entry.rpartition("=")
        tools = frozenset(names.split(","))
        if not _SCOPE.match(scope) or "" in tools or scope in found or (ALL in tools and len(tools) > 1):
            raise UsageError(
                "CDA_OAUTH_SCOPES is written SCOPE=TOOL,TOOL SCOPE=all: a blank between two scopes, each of them once"
            )
        found[scope] = None if tools == {ALL} else tools
    if not found:
        raise UsageError("CDA_OAUTH_SCOPES names no scope, so that no token would open anything")
    return found
