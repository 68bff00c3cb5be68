"""`cda ledger`: verify what was recorded, rotate the signing key, remove old segments, set a torn end aside."""

import json
import sys
from dataclasses import asdict
from datetime import UTC, datetime, timedelta

import click


@click.group("ledger", no_args_is_help=True)
def ledger_group() -> None:
    """The record of every call of a server with keys."""


@ledger_group.command("verify")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def verify_ledger(as_json: bool) -> None:
    """Follow the whole chain; exit 1, naming the first bad record, when it is not what was written."""
    from cda.errors import UnavailableError
    from cda.ledger import verify
    from cda.ledger.keys import KeyFault, read_ring
    from cda.settings import load_settings

    settings = load_settings()
    try:
        ring = read_ring(settings.ledger_keys_path)
    except KeyFault as fault:
        raise UnavailableError(str(fault)) from None
    verdict = verify(settings.ledger_path, settings.ledger_head_path, ring)
    if as_json:
        click.echo(json.dumps({"sound": verdict.sound, **asdict(verdict)}))
    elif verdict.sound:
        removed = f", {verdict.first - 1} older ones removed by retention" if verdict.first > 1 else ""
        click.echo(f"sound: {verdict.records} records, {verdict.checkpoints} checkpoints{removed}")
        for call in verdict.open_intents:
            click.echo(f"begun and without an outcome: call {call}")
    else:
        where = ", ".join(
            f"{name} {value}"
            for name, value in (("record", verdict.seq), ("segment", verdict.segment), ("line", verdict.line))
            if value is not None
        )
        click.echo(f"NOT SOUND: {verdict.fault} ({where})" if where else f"NOT SOUND: {verdict.fault}")
    sys.exit(not verdict.sound)


@ledger_group.command("rotate-key")
def rotate_key() -> None:
    """Put a new signing key in place, signed by the one in use; running servers take it up when they restart."""
    from cda.errors import UnavailableError
    from cda.ledger.keys import KeyFault, rotate_signing_key
    from cda.settings import load_settings

    try:
        click.echo(rotate_signing_key(load_settings().ledger_keys_path))
    except KeyFault as fault:
        raise UnavailableError(str(fault)) from None


@ledger_group.command("retain")
@click.option("--days", type=click.IntRange(1), required=True, help="Keep whole segments at least so long.")
def retain_segments(days: int) -> None:
    """Remove segments that are older and that a signed checkpoint vouches for."""
    from cda.ledger.upkeep import retain
    from cda.settings import load_settings

    settings = load_settings()
    removed = retain(
        settings.ledger_path,
        settings.ledger_head_path,
        settings.ledger_keys_path,
        before=datetime.now(UTC) - timedelta(days=days),
    )
    click.echo("\n".join(removed) or "nothing to remove")


@ledger_group.command("mend")
def mend_ledger() -> None:
    """Move a torn last record to a file beside the ledger and record that; the ledger goes on from there."""
    from cda.ledger.upkeep import mend
    from cda.settings import load_settings

    settings = load_settings()
    moved = mend(settings.ledger_path, settings.ledger_head_path, settings.ledger_keys_path)
    click.echo(f"{moved} bytes set aside" if moved else "the ledger does not end in a torn record")
