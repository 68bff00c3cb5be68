"""The journal of a run: one record a line, appended as cases are answered, so that a killed run goes on where it was.

Its folder is named by a digest of everything an answer depends on: the cases, the corpus, the settings and the code. A
run that changes any of them starts anew; a finished run is never read back as answers.
"""

import json
import os
import shutil
from collections.abc import Iterable, Mapping
from hashlib import sha256
from pathlib import Path

from cda.settings import Settings
from evals.provenance import code_digest
from evals.record import Record

KEPT = 8  # folders of earlier runs, with their traces
_PLACES = frozenset({"home", "store", "trace_dir"})  # where things lie changes no answer


class Journal:
    """Appends records to `HOME/evals/runs/KEY/records.jsonl`; `finish` puts them aside as `finished.jsonl`."""

    def __init__(self, settings: Settings, case_digest: str, corpus_digests: Mapping[str, str]) -> None:
        held = settings.model_dump(mode="json", exclude=set(_PLACES))
        parts = [case_digest, dict(corpus_digests), code_digest(), held]
        key = sha256(json.dumps(parts, sort_keys=True).encode("utf-8")).hexdigest()[:16]
        self.folder = settings.home / "evals" / "runs" / key
        self._file = self.folder / "records.jsonl"

    @property
    def traces(self) -> Path:
        """Where the runs' traces go."""
        return self.folder / "traces"

    def resume(self, wanted: Iterable[str]) -> dict[str, Record]:
        """The records that an earlier, killed run left, by case id; a torn last line is cut off."""
        if not self._file.exists():
            self._start()
            return {}
        ids = set(wanted)
        kept: dict[str, Record] = {}
        whole = 0
        for line in self._file.read_bytes().splitlines(keepends=True):
            try:
                record = Record.from_json(line.decode("utf-8"))
            except (ValueError, TypeError, KeyError):
                break
            if not line.endswith(b"\n"):
                break
            whole += len(line)
            if record.case_id in ids:
                kept[record.case_id] = record
        os.truncate(self._file, whole)
        return kept

    def _start(self) -> None:
        """An empty folder for a new run; those of the oldest runs go."""
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)
        older = sorted(self.folder.parent.iterdir(), key=lambda folder: folder.stat().st_mtime_ns, reverse=True)
        for folder in older[KEPT:]:
            shutil.rmtree(folder, ignore_errors=True)

    def append(self, lines: Iterable[str]) -> None:
        """Write records by one write, whole."""
        data = "".join(f"{line}\n" for line in lines).encode("utf-8")
        descriptor = os.open(self._file, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            os.write(descriptor, data)
        finally:
            os.close(descriptor)

    def finish(self) -> None:
        """Put the records aside; the next run answers everything again."""
        if self._file.exists():
            self._file.replace(self.folder / "finished.jsonl")
