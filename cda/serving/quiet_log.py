"""Logs of a server process: on stderr only, and no line carries what a caller sent."""

import logging
import sys


class PlacesOnly(logging.Formatter):
    """Our own records as written; of any other library only the level, the place and the kind of error.

    The SDK and the web server write method names, headers and whole messages into some of their lines.
    """

    def format(self, record: logging.LogRecord) -> str:
        """One line, never a traceback."""
        if record.name.split(".", 1)[0] == "cda":
            text = record.getMessage()
        else:
            kind = record.exc_info[0] if record.exc_info else None
            text = f"line {record.lineno}" + (f" ({kind.__name__})" if kind else "")
        return f"{record.levelname.lower()} {record.name}: {text}".replace("\n", " ")


def log_quietly(level: int = logging.WARNING) -> None:
    """Send this process's log records to stderr, formatted by `PlacesOnly`, in place of every handler set before."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(PlacesOnly())
    logging.basicConfig(level=level, handlers=[handler], force=True)
