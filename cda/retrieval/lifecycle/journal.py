"""What a run's service has answered, on disk before the next batch: a run that was cut short goes on from here."""

import json
import os
from pathlib import Path

from backends.base import WriteReport


class Journal:
    """One file a target, a line a batch: the ids that the service took, and the position to wait for."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def last_token(self) -> str | None:
        """The position after the last batch that was answered; None when nothing is open. A torn last line is the
        batch that was being written down: it is sent again."""
        token = None
        for line in self._lines():
            try:
                token = json.loads(line)["token"]
            except (ValueError, KeyError, TypeError):
                continue
        return token

    def note(self, report: WriteReport) -> None:
        """Append a batch; it is on the disk when this returns."""
        self._file.parent.mkdir(parents=True, exist_ok=True)
        line = json.dumps({"token": report.token, "ids": report.accepted}) + "\n"
        with self._file.open("a", encoding="utf-8") as out:
            out.write(line)
            out.flush()
            os.fsync(out.fileno())

    def close(self) -> None:
        """Forget the run: what it wrote was verified."""
        self._file.unlink(missing_ok=True)

    def _lines(self) -> list[str]:
        try:
            return self._file.read_text(encoding="utf-8").splitlines()
        except FileNotFoundError:
            return []
