"""Traces: one JSONL file a run, without anything personal.

A line says what happened, by names, ids, offsets, counts, states and hashes; never with words of the narrative, of the
question or of a reason. Lines are appended whole, by one write each. A trace that cannot be written is `dead`, and the
loop does not determine a run that was not recorded.
"""

import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cda.errors import UnavailableError, UsageError

_JSON = json.JSONEncoder(ensure_ascii=True, sort_keys=True, default=str)
_RUN_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}\Z")
_CLAUSE_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]{0,119}\Z")


@dataclass(frozen=True, slots=True)
class TraceSummary:
    """One recorded run: its gate (None: the run ended before the gate) and how many lines it has."""

    run_id: str
    gate: str | None
    events: int


class Trace:
    """Appends events of one run; `Trace(None, ...)` records nothing, by choice. Never raises: it goes `dead`."""

    def __init__(self, folder: Path | None, run_id: str) -> None:
        self.dead = False
        self._descriptor: int | None = None
        if folder is None:
            return
        try:
            folder.mkdir(parents=True, exist_ok=True)
            flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_EXCL
            self._descriptor = os.open(_file(folder, run_id), flags, 0o600)
        except (OSError, UsageError):
            self.dead = True

    def event(self, name: str, **data: Any) -> None:
        """Append one event. The caller passes names, ids, numbers and states only."""
        if self._descriptor is None:
            return
        line = _JSON.encode({"event": name, **data}) + "\n"
        try:
            encoded = line.encode("ascii")
            if os.write(self._descriptor, encoded) != len(encoded):
                self.dead = True
        except OSError:
            self.dead = True

    def close(self) -> None:
        """Close the file; a failure here, too, makes the trace dead."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            try:
                os.close(descriptor)
            except OSError:
                self.dead = True


def safe_id(text: str) -> str:
    """A clause id as it may be written: one that has not the shape of an id could hold anything."""
    return text if _CLAUSE_ID.match(text) else "(not an id)"


def kinds(reasons: Sequence[str]) -> list[str]:
    """The kinds of reasons, without their words."""
    return [reason.split(":", 1)[0] if ":" in reason else "(reason)" for reason in reasons]


def read_trace(folder: Path, run_id: str) -> list[Mapping[str, Any]]:
    """The events of one run, in order; a torn last line is shown as such. Raises UsageError, UnavailableError."""
    file = _file(folder, run_id)
    try:
        text = file.read_text(encoding="ascii", errors="replace")
    except FileNotFoundError:
        raise UsageError(f"no trace of run {run_id} in the trace folder; `cda trace list` names them") from None
    except OSError as error:
        raise UnavailableError(f"the trace of run {run_id} cannot be read: {error.strerror}") from None
    return [_event(line) for line in text.splitlines() if line]


def list_traces(folder: Path) -> list[TraceSummary]:
    """All recorded runs, newest first, ties by id. An absent folder holds none."""
    files = [(file.stat().st_mtime_ns, file) for file in folder.glob("*.jsonl")] if folder.is_dir() else []
    newest = sorted(files, key=lambda pair: (-pair[0], pair[1].stem))
    return [_summary(folder, file.stem) for _, file in newest if _RUN_ID.match(file.stem)]


def _summary(folder: Path, run_id: str) -> TraceSummary:
    events = read_trace(folder, run_id)
    gates = [str(event["state"]) for event in events if event.get("event") == "gate" and "state" in event]
    return TraceSummary(run_id, gates[-1] if gates else None, len(events))


def _event(line: str) -> Mapping[str, Any]:
    try:
        event = json.loads(line)
    except json.JSONDecodeError:
        return {"event": "torn"}
    return event if isinstance(event, dict) else {"event": "torn"}


def _file(folder: Path, run_id: str) -> Path:
    if not _RUN_ID.match(run_id):
        raise UsageError("a run id is letters, digits, hyphens and underscores")
    return folder / f"{run_id}.jsonl"
