import logging
import sys

import pytest

from cda.serving.quiet_log import PlacesOnly

pytestmark = pytest.mark.promise("server.quiet_log")


def _line(name: str, message: str, *args: object, error: Exception | None = None) -> str:
    info = None
    if error is not None:
        try:
            raise error
        except Exception:
            info = sys.exc_info()
    return PlacesOnly().format(logging.LogRecord(name, logging.WARNING, "file.py", 7, message, args, info))


def test_a_record_of_another_library_keeps_its_place_and_kind_only() -> None:
    line = _line("mcp.server.runner", "dropped %r: 123456789", "123456789", error=ValueError("123456789"))
    assert line == "warning mcp.server.runner: line 7 (ValueError)"


def test_a_record_of_ours_is_one_line_without_its_traceback() -> None:
    line = _line("cda.serving", "tool %s\ncrashed", "x", error=ValueError("123456789"))
    assert line == "warning cda.serving: tool x crashed"
