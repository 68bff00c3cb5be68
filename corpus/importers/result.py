"""What an import returns: authored documents, what was skipped and why, what landed but deserves a look."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from corpus.errors import CorpusError, Fault

DATE_STATES = ("DATED", "UNDATED", "AMBIGUOUS")


class ImportRefused(CorpusError):
    """The source as a whole cannot be imported (unreadable, empty, another format); nothing was done."""


@dataclass(frozen=True, slots=True)
class ImportResult:
    """The outcome of one import, in source order.

    documents: authored documents (`{"policy": {...}}`, `{"rider": {...}}`) ready to be dumped as YAML.
    faults: records that did not land; `line` is the 1-based line where the record starts (a page for a PDF).
    warnings: records that landed and that a person should look at, above all every AMBIGUOUS window.
    counts: records, landed, skipped, warnings, policies, versions, clauses, and versions by date state.
    """

    documents: tuple[Mapping[str, Any], ...]
    faults: tuple[Fault, ...]
    warnings: tuple[Fault, ...]
    counts: Mapping[str, int]


@dataclass(slots=True)
class Collector:
    """Gathers one file's faults and warnings while it is read. `records` counts what the source holds."""

    file: str
    records: int = 0
    faults: list[Fault] = field(default_factory=list)
    warnings: list[Fault] = field(default_factory=list)

    def fault(self, line: int | None, record_id: str, message: str) -> None:
        """List a record, or a part of one, that does not land."""
        self.faults.append(Fault(self.file, line, record_id, message))

    def warn(self, line: int | None, record_id: str, message: str) -> None:
        """List a record that lands and that somebody should look at."""
        self.warnings.append(Fault(self.file, line, record_id, message))

    def result(self, documents: list[dict[str, Any]], landed: int) -> ImportResult:
        """Close the import; `landed` counts source records (not policies) among the documents."""
        return ImportResult(
            tuple(documents),
            tuple(self.faults),
            tuple(self.warnings),
            count(documents, records=self.records, landed=landed, warnings=len(self.warnings)),
        )


def count(documents: list[dict[str, Any]], *, records: int, landed: int, warnings: int) -> dict[str, int]:
    """The counts of a result; keys in a fixed order, every date state present even when it is zero."""
    versions = [version for document in documents for version in _versions(document)]
    states = Counter(str(version.get("date_state", "DATED")) for version in versions)
    return {
        "records": records,
        "landed": landed,
        "skipped": records - landed,
        "warnings": warnings,
        "policies": len(documents),
        "versions": len(versions),
        "clauses": sum(len(version["clauses"]) for version in versions),
        **{state: states[state] for state in DATE_STATES},
    }


def _versions(document: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    if "rider" in document:  # a rider is its own only version
        yield document["rider"]
    else:
        yield from document["policy"]["versions"]
