"""A command group that installed packages extend: each of its commands is an entry point, loaded only when needed."""

from functools import cached_property
from importlib.metadata import EntryPoint, entry_points

import click


class EntryPointGroup(click.Group):
    """A click group whose subcommands are its own and the entry points of the group that `points` names."""

    def __init__(self, *, points: str, **settings: object) -> None:
        super().__init__(**settings)  # type: ignore[arg-type]
        self._group = points

    @cached_property
    def _points(self) -> dict[str, EntryPoint]:
        return {point.name: point for point in entry_points(group=self._group)}

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Names of all commands, sorted."""
        return sorted({*super().list_commands(ctx), *self._points})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of that name, loaded now."""
        point = self._points.get(cmd_name)
        if point is None:
            return super().get_command(ctx, cmd_name)
        command: click.Command = point.load()
        return command
