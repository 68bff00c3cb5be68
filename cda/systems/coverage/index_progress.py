"""How far an index run is, on stderr: a bar for a person, a line a step for a log."""

import sys
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

_SAID = {
    "plan": "planned",
    "ensure": "the target is there",
    "visible": "searches show what was written",
    "verify": "verified",
    "release": "the manifest is written",
    "promote": "queries go there now",
    "prune": "orphans are removed",
}


class IndexProgress:
    """A context manager. Without one of its steps nothing is shown; a bar is drawn only on a terminal."""

    def __init__(self) -> None:
        self._bars: Progress | None = None
        self._tasks: dict[str, TaskID] = {}
        self._tenths: dict[str, int] = {}

    def __enter__(self) -> Self:
        if sys.stderr.isatty():
            from rich.console import Console
            from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

            self._bars = Progress(
                TextColumn("{task.description}"),
                BarColumn(),
                MofNCompleteColumn(),
                TimeRemainingColumn(),
                console=Console(stderr=True),
            )
            self._bars.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._bars is not None:
            self._bars.stop()

    def step(self, step: str, done: int, of: int) -> None:
        """A step of the life-cycle: `done` of `of`."""
        if step == "upsert":
            self._count("records written", done, of)
        elif step in _SAID:
            self._say(_SAID[step])

    def embedded(self, done: int, of: int) -> None:
        """`done` of `of` texts of the search beside the service are embedded."""
        self._count("texts embedded", done, of)

    def _count(self, what: str, done: int, of: int) -> None:
        if self._bars is not None:
            if what not in self._tasks:
                self._tasks[what] = self._bars.add_task(what, total=of)
            self._bars.update(self._tasks[what], completed=done, total=of)
            return
        tenth = 10 * done // max(of, 1)
        if tenth > self._tenths.get(what, -1):
            self._tenths[what] = tenth
            self._say(f"{done} of {of} {what}")

    def _say(self, words: str) -> None:
        if self._bars is not None:
            self._bars.console.print(words, markup=False, highlight=False)
        else:
            print(words, file=sys.stderr)
