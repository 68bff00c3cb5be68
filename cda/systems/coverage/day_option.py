"""A day on the command line, in the one form that a request may have too."""

from datetime import date

import click

from cda.contracts.dates import parse_day


def as_day(_ctx: click.Context, _param: click.Parameter, value: str | None) -> date | None:
    """Callback of an option: the day that YYYY-MM-DD names, None when not given; anything else is wrong usage."""
    try:
        return parse_day(value) if value is not None else None
    except ValueError as error:
        raise click.BadParameter(str(error)) from None
