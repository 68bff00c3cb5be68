"""Errors of the clause corpus."""

from dataclasses import dataclass


class CorpusError(Exception):
    """The corpus or its store cannot be used; the message says which file or id and what to do."""


class StoreMissing(CorpusError):
    """The store file is absent, is not a store, or was written by another schema version."""


class StoreDamaged(CorpusError):
    """The file is damaged, or a clause's text does not have the hash it is stored under; it must be built again."""


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault of an authored corpus: where it stands and what to change."""

    file: str
    line: int | None
    id: str
    message: str

    def __str__(self) -> str:
        where = self.file if self.line is None else f"{self.file}:{self.line}"
        return f"{where}: {self.id}: {self.message}"


class CorpusFaults(CorpusError):
    """An authored corpus has faults; `faults` holds every one of them, not only the first."""

    def __init__(self, faults: tuple[Fault, ...]) -> None:
        self.faults = faults
        super().__init__(f"{len(faults)} fault(s) in the authored corpus:\n" + "\n".join(map(str, faults)))
