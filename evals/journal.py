"""The journal of a run: one record a line, appended as samples are answered, so that a killed run goes on where it was.

Its folder is named by a digest of everything an answer depends on: the cases, the corpus, the settings and the code. A
run that changes any of them starts anew; a finished run is never read back as answers, unless its failed samples are
to be asked again. A sample is one repeat of a case: no repeat takes the answer of another. Answers of a model lie
beside the records (`evals.paid`), so that none is paid for twice.
"""

import json
import os
import shutil
from collections.abc import Iterable, Mapping
from hashlib import sha256
from pathlib import Path

from cda.errors import UsageError
from cda.settings import Settings
from evals.provenance import code_digest
from evals.record import Record, Sample

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
        self._finished = self.folder / "finished.jsonl"

    @property
    def traces(self) -> Path:
        """Where the runs' traces go."""
        return self.folder / "traces"

    @property
    def paid(self) -> Path:
        """Where a model's answers go while the run is on."""
        return self.folder / "paid.jsonl"

    @property
    def batches(self) -> Path:
        """Where the batches that were handed in go while the run is on."""
        return self.folder / "batches.jsonl"

    def reopen(self) -> None:
        """Take up the finished run, so that `resume` leaves out its failed samples. Raises UsageError when there is
        none of these cases, settings and code."""
        if self._file.exists():
            return
        if not self._finished.exists():
            raise UsageError("--retry-failed: no run of these cases with these settings and this code has finished")
        for file in (self.paid, self.batches):
            if (aside := _aside(file)).exists():
                aside.replace(file)
        self._finished.replace(self._file)

    def resume(self, wanted: Iterable[Sample]) -> dict[Sample, Record]:
        """The records that an earlier, killed run left, by sample; a torn last line is cut off, and a sample that a
        model's service failed is left out, to be asked again. A record supersedes an earlier one of its sample."""
        if not any(file.exists() for file in (self._file, self.paid, self.batches)):
            self._start()
            return {}
        if not self._file.exists():
            return {}
        ids = set(wanted)
        kept: dict[Sample, Record] = {}
        whole = 0
        for line in self._file.read_bytes().splitlines(keepends=True):
            try:
                record = Record.from_json(line.decode("utf-8"))
            except (ValueError, TypeError, KeyError):
                break
            if not line.endswith(b"\n"):
                break
            whole += len(line)
            if record.sample in ids:
                kept[record.sample] = record
        os.truncate(self._file, whole)
        return {sample: record for sample, record in kept.items() if not record.service_failed}

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
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def finish(self) -> None:
        """Put the records aside; the next run answers everything again."""
        for file in (self.paid, self.batches):
            if file.exists():
                file.replace(_aside(file))
        if self._file.exists():
            self._file.replace(self._finished)


def _aside(file: Path) -> Path:
    return file.with_suffix(".finished.jsonl")
