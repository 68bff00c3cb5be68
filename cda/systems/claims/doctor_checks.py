"""What the doctor looks at for the claims server: its database, the keys, and the authorisation server's keys."""

from collections.abc import Callable

from cda.contracts.health import Finding
from cda.errors import UnavailableError
from cda.settings import Settings


def examine(settings: Settings) -> list[Finding]:
    """Findings on everything `cda mcp claims` needs; writes nothing."""
    from cda.serving.issuer_keys import IssuerKeys
    from cda.serving.key_store import KeyStore
    from cda.serving.oauth_resource import OAuthResource
    from cda.systems.claims.store import ClaimsStore

    findings = []
    if settings.claims_db_path.exists():
        findings.append(_tried("claims database", lambda: ClaimsStore(settings.claims_db_path), "cda claims seed"))
    else:
        findings.append(_absent("claims database", str(settings.claims_db_path), "cda claims seed --out FILE"))
    if settings.keys_path.exists():
        findings.append(_tried("API keys", lambda: KeyStore(settings.keys_path), "cda keys make"))
    else:
        findings.append(_absent("API keys", str(settings.keys_path), "cda keys make --id ID --tools all"))
    resource = OAuthResource.of(settings)
    if resource is not None:
        findings.append(
            _tried(
                "authorisation server",
                lambda: IssuerKeys(resource.jwks).key(""),
                "cda doctor",
            )
        )
    return findings


def _absent(name: str, place: str, command: str) -> Finding:
    remedy = f"only `cda mcp claims` needs it: `{command}`"
    return Finding(name=name, state="ok", detail=f"none at {place} ({remedy})")


def _tried(name: str, opening: Callable[[], object], command: str) -> Finding:
    try:
        opening()
    except UnavailableError as error:
        return Finding(name=name, state="fail", detail=str(error), remedy=f"run `{command}`")
    return Finding(name=name, state="ok", detail="can be read")
