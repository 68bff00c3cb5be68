"""`cda keys`: make, list and revoke the API keys of this machine's servers, and name a subject as the ledger does."""

import json
from dataclasses import asdict
from datetime import UTC, datetime

import click


@click.group("keys", no_args_is_help=True)
def keys_group() -> None:
    """API keys of the servers: made once, kept as hashes, revoked at once."""


@keys_group.command("make")
@click.option("--id", "key_id", required=True, help="What the ledger will call the holder.")
@click.option("--tools", required=True, metavar="all|A,B", help="The word all, or the tools it may use; '' for none.")
@click.option("--rate", metavar="N/SECONDS", help="A rate of its own; default CDA_RATE_LIMIT.")
@click.option("--expires", type=click.DateTime(["%Y-%m-%d"]), help="The last day on which it works (UTC).")
@click.option("--replaces", metavar="ID", help="A key that this one follows; that one works for --overlap days more.")
@click.option("--overlap", type=click.IntRange(0, 365), default=7, show_default=True, metavar="DAYS")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def make(
    key_id: str,
    tools: str,
    rate: str | None,
    expires: datetime | None,
    replaces: str | None,
    overlap: int,
    as_json: bool,
) -> None:
    """Make a key and print its secret, which is shown this once and kept nowhere."""
    from cda.serving.key_store import make_key
    from cda.serving.principal import Rate
    from cda.settings import load_settings

    settings = load_settings()
    names = tuple(name.strip() for name in tools.split(",") if name.strip())
    secret = make_key(
        settings.keys_path,
        key_id=key_id,
        tools=names,
        rate=Rate.read(rate) if rate else None,
        expires=expires.date() if expires else None,
        replaces=replaces,
        overlap_days=overlap,
    )
    if as_json:
        click.echo(json.dumps({"id": key_id, "secret": secret, "tools": list(names), "file": str(settings.keys_path)}))
        return
    click.echo(secret)
    click.echo("Keep it now: it is shown only this once. Clients send it as: Authorization: Bearer KEY", err=True)


@keys_group.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def list_keys(as_json: bool) -> None:
    """List the keys, without their secrets, which nobody has."""
    from cda.serving.key_store import KeyStore
    from cda.settings import load_settings

    today = datetime.now(UTC).date()
    keys = [
        {name: value for name, value in asdict(key).items() if name != "sha256"} | {"works": key.works_on(today)}
        for key in KeyStore(load_settings().keys_path).all()
    ]
    if as_json:
        click.echo(json.dumps({"keys": keys}, indent=1))
        return
    for key in keys:
        state = "works" if key["works"] else "revoked" if key["revoked"] else "expired"
        until = f" until {key['expires']}" if key["expires"] else ""
        click.echo(f"{key['id']}: {state}{until}, tools {', '.join(key['tools']) or 'none'}, made {key['created']}")


@keys_group.command("revoke")
@click.argument("key_id", metavar="ID")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def revoke(key_id: str, as_json: bool) -> None:
    """Make a key useless from the next call on; no server needs a restart."""
    from cda.serving.key_store import revoke_key
    from cda.settings import load_settings

    revoke_key(load_settings().keys_path, key_id)
    click.echo(json.dumps({"id": key_id, "revoked": True}) if as_json else f"{key_id}: revoked")


@keys_group.command("subject")
@click.argument("subject", metavar="SUBJECT")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def subject_name(subject: str, as_json: bool) -> None:
    """Tell what the ledger calls a subject of the authorisation server: it keeps only a keyed hash of it."""
    from cda.errors import UnavailableError, UsageError
    from cda.ledger.keys import KeyFault, argument_hasher
    from cda.serving.oauth_resource import OAuthResource, principal_name
    from cda.settings import load_settings

    settings = load_settings()
    resource = OAuthResource.of(settings)
    if resource is None:
        raise UsageError("no authorisation server is set; see CDA_OAUTH_ISSUER")
    try:
        name = principal_name(resource.issuer, subject, argument_hasher(settings.ledger_keys_path))
    except KeyFault as fault:
        raise UnavailableError(str(fault)) from None
    click.echo(json.dumps({"principal": name}) if as_json else name)
