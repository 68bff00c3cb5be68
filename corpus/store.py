"""The clause store: one read-only SQLite file, addressed by content.

Every clause text lies under the sha256 of its UTF-8 bytes and is hashed again whenever it is read, so that a changed
or mixed-up text is an error and never an answer. A store is replaced as a whole, by rename: an open store goes on
reading the file it was opened on, under one shared lock. Reads are safe from any thread.
"""

import json
import sqlite3
from collections.abc import Collection, Iterator, Mapping
from datetime import date
from functools import cached_property, lru_cache
from hashlib import sha256
from pathlib import Path
from threading import Lock
from types import TracebackType
from typing import Any

from corpus.contents import Contents
from corpus.errors import StoreDamaged, StoreMissing
from corpus.icd10cm import split
from corpus.model import Clause, Code, CodeUse, DateState, DocType, Payer, PlanRecord, VersionRecord

APPLICATION_ID = 0x63646163  # "cdac" in the file's header
SCHEMA_VERSION = 1
_BATCH = 1000
_KEPT_CLAUSES = 1024  # the clauses of some hundred policies: what the requests of a while are about
_KEPT_RECORDS = 4096

_CLAUSE = """
    SELECT c.clause_id, c.section, t.text, c.policy_id, c.version, c.codes, c.source_ref, c.criterion, c.text_sha256
    FROM clauses c JOIN texts t ON t.sha256 = c.text_sha256
"""
_CLAUSES = f"{_CLAUSE} WHERE c.clause_id IN (SELECT value FROM json_each(?))"  # noqa: S608 - our own text, one value
_VERSION = """
    SELECT v.policy_id, v.policy_title, v.doc_type, v.source, v.payer_id, v.plan_id, v.version, v.effective_start,
           v.effective_end, v.date_state, v.window_provenance, v.implementation_date, v.retirement_date,
           v.jurisdiction, v.codes, v.codes_linkage, v.overrides_policy_ids, v.source_ref, v.clause_ids
    FROM versions v
"""
# Oldest first; a version without a start stands last, since nothing says when it came.
_OLDEST_FIRST = "ORDER BY v.policy_id, v.effective_start IS NULL, v.effective_start, v.version"


class CorpusStore:
    """Read access to one store file, as it was when it was opened. Clauses are read from the file every time."""

    def __init__(self, connection: sqlite3.Connection, path: Path) -> None:
        self._connection, self._lock = connection, Lock()
        # The file never changes under an open store, and every request asks for the same few plans, codes and versions.
        self._version = lru_cache(maxsize=_KEPT_RECORDS)(self._read_version)
        self._plan = lru_cache(maxsize=_KEPT_RECORDS)(self._read_plan)
        self._riders = lru_cache(maxsize=_KEPT_RECORDS)(self._read_riders)
        self._code = lru_cache(maxsize=_KEPT_RECORDS)(self._read_code)
        self._uses = lru_cache(maxsize=_KEPT_RECORDS)(self._read_uses)
        self._suffixes = lru_cache(maxsize=_KEPT_RECORDS)(self._read_suffixes)
        # Rows are read and their texts hashed every time; only the clause made of equal bytes is made once.
        self._made = lru_cache(maxsize=_KEPT_CLAUSES)(self._make)
        self.path = path

    @classmethod
    def open(cls, path: str | Path) -> "CorpusStore":
        """Open the store at `path` for reading. Raises StoreMissing when it is absent, no store, or of another schema
        version."""
        path = Path(path)
        hint = "build it with: cda corpus build"
        if not path.is_file():
            raise StoreMissing(f"no corpus store at {path}: {hint}")
        connection = sqlite3.connect(
            f"{path.resolve().as_uri()}?mode=ro", uri=True, check_same_thread=False, isolation_level=None
        )
        try:
            # One read transaction for the life of the store: a look-up then costs no file lock of its own.
            connection.execute("BEGIN")
            (application,) = connection.execute("PRAGMA application_id").fetchone()
            (schema,) = connection.execute("PRAGMA user_version").fetchone()
        except sqlite3.DatabaseError:
            application, schema = 0, 0
        if (application, schema) != (APPLICATION_ID, SCHEMA_VERSION):
            connection.close()
            found = (
                f"has schema version {schema}, not {SCHEMA_VERSION}" if application == APPLICATION_ID else "is no store"
            )
            raise StoreMissing(f"{path} {found}: {hint}")
        return cls(connection, path)

    def close(self) -> None:
        """Release the file; the store cannot be read afterwards."""
        self._connection.close()

    def __enter__(self) -> "CorpusStore":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"CorpusStore({self.path})"

    @cached_property
    def meta(self) -> Mapping[str, Any]:
        """What the builder noted: digest, icd10cm_sha256, counts, corpora."""
        return {key: json.loads(value) for key, value in self._rows("SELECT key, value FROM meta ORDER BY key")}

    @property
    def digest(self) -> str:
        """Hex sha256 that stands for the whole content (see `corpus.contents.digest`)."""
        return str(self.meta["digest"])

    def clause(self, clause_id: str) -> Clause | None:
        """The clause, whole, or None. Raises StoreDamaged when its text does not have its hash."""
        rows = self._rows(f"{_CLAUSE} WHERE c.clause_id = ?", clause_id)
        return self._clause(rows[0]) if rows else None

    def clauses_of(self, clause_ids: Collection[str]) -> dict[str, Clause]:
        """The clauses that have one of these ids, by id, in one read. Raises StoreDamaged as `clause` does."""
        rows = self._rows(_CLAUSES, json.dumps(sorted(clause_ids)))
        return {row[0]: self._clause(row) for row in rows}

    def clauses(self) -> Iterator[Clause]:
        """Every clause, sorted by id. Raises StoreDamaged as `clause` does."""
        last = ""
        while rows := self._rows(f"{_CLAUSE} WHERE c.clause_id > ? ORDER BY c.clause_id LIMIT {_BATCH}", last):
            yield from map(self._clause, rows)
            last = rows[-1][0]

    def versions(self, policy_id: str | None = None) -> tuple[VersionRecord, ...]:
        """The versions of a policy or rider, oldest first, or of all of them; empty when there is no such id."""
        if policy_id is None:
            return tuple(map(_version_record, self._rows(f"{_VERSION} {_OLDEST_FIRST}")))
        return tuple(map(_version_record, self._rows(f"{_VERSION} WHERE v.policy_id = ? {_OLDEST_FIRST}", policy_id)))

    def payers(self) -> frozenset[str]:
        """All payer ids."""
        return self._payers

    @cached_property
    def _payers(self) -> frozenset[str]:
        return frozenset(row[0] for row in self._rows("SELECT payer_id FROM payers"))

    def payer_records(self) -> tuple[Payer, ...]:
        """All payers, by id."""
        return tuple(Payer(*row) for row in self._rows("SELECT payer_id, name FROM payers ORDER BY payer_id"))

    def plan(self, plan_id: str) -> PlanRecord | None:
        """The plan, or None."""
        return self._plan(plan_id)

    def plans(self) -> tuple[PlanRecord, ...]:
        """All plans, by id."""
        return tuple(map(_plan, self._rows("SELECT * FROM plans ORDER BY plan_id")))

    def riders(self, plan_id: str) -> tuple[VersionRecord, ...]:
        """The riders of a plan, by id, whatever their dates."""
        return self._riders(plan_id)

    def code(self, code: str) -> Code | None:
        """The code when it is on the corpus's list (exact form), or None."""
        return self._code(code)

    def codes(self) -> tuple[Code, ...]:
        """All listed codes, sorted."""
        return tuple(Code(*row) for row in self._rows("SELECT code, system FROM codes ORDER BY code"))

    def code_in_policies(self, code: str) -> tuple[CodeUse, ...]:
        """Every version, of any payer and date, that names `code`, with those of its clauses that govern it."""
        return self._uses(code)

    def icd10_valid(self, code: str) -> bool:
        """True when the ICD-10-CM list holds the code, dotted or not, category or full code, upper case."""
        parts = split(code)
        if parts is None:
            return False
        suffixes = self._suffixes(parts[0])
        return suffixes is not None and (not parts[1] or f" {parts[1]} " in suffixes)

    def fact_definitions(self) -> Mapping[str, Mapping[str, Any]]:
        """The fact definitions as authored, by name."""
        return {name: json.loads(data) for name, data in self._rows("SELECT name, definition FROM facts ORDER BY name")}

    def contents(self) -> Contents:
        """The whole store in memory."""
        return Contents(
            payers=self.payer_records(),
            plans=self.plans(),
            codes=self.codes(),
            versions=self.versions(),
            clauses=tuple(self.clauses()),
            facts=self.fact_definitions(),
            corpora=self.meta["corpora"],
        )

    def _clause(self, row: Any) -> Clause:
        clause_id, text, expected = row[0], row[2], row[8]
        if sha256(text.encode("utf-8")).digest() != expected:
            raise StoreDamaged(
                f"the text of clause {clause_id} does not have the hash it is stored under; build the store again"
            )
        return self._made(row)

    def _make(self, row: Any) -> Clause:
        clause_id, section, text, policy_id, version, codes, source_ref, criterion, _ = row
        of = self._version(policy_id, version)
        return Clause(
            clause_id=clause_id,
            section=section,
            text=text,
            policy_id=policy_id,
            policy_title=of.policy_title,
            doc_type=of.doc_type,
            source=of.source,
            payer_id=of.payer_id,
            plan_id=of.plan_id,
            version=version,
            effective_start=of.effective_start,
            effective_end=of.effective_end,
            date_state=of.date_state,
            window_provenance=of.window_provenance,
            implementation_date=of.implementation_date,
            retirement_date=of.retirement_date,
            jurisdiction=of.jurisdiction,
            codes=_items(codes),
            codes_linkage=of.codes_linkage,
            overrides_policy_ids=of.overrides_policy_ids,
            source_ref=source_ref,
            criterion=None if criterion is None else json.loads(criterion),
        )

    def _read_version(self, policy_id: str, version: str) -> VersionRecord:
        rows = self._rows(f"{_VERSION} WHERE v.policy_id = ? AND v.version = ?", policy_id, version)
        return _version_record(rows[0])

    def _read_plan(self, plan_id: str) -> PlanRecord | None:
        rows = self._rows("SELECT * FROM plans WHERE plan_id = ?", plan_id)
        return _plan(rows[0]) if rows else None

    def _read_riders(self, plan_id: str) -> tuple[VersionRecord, ...]:
        return tuple(map(_version_record, self._rows(f"{_VERSION} WHERE v.plan_id = ? {_OLDEST_FIRST}", plan_id)))

    def _read_code(self, code: str) -> Code | None:
        rows = self._rows("SELECT code, system FROM codes WHERE code = ?", code)
        return Code(*rows[0]) if rows else None

    def _read_uses(self, code: str) -> tuple[CodeUse, ...]:
        named = self._rows(
            f"{_VERSION} JOIN version_codes n ON n.policy_id = v.policy_id AND n.version = v.version "
            f"WHERE n.code = ? {_OLDEST_FIRST}",
            code,
        )
        governing = {row[0] for row in self._rows("SELECT clause_id FROM clause_codes WHERE code = ?", code)}
        versions = map(_version_record, named)
        return tuple(CodeUse(v, tuple(id_ for id_ in v.clause_ids if id_ in governing)) for v in versions)

    def _read_suffixes(self, category: str) -> str | None:
        """The rests of the valid codes of an ICD-10-CM category, parted by blanks; None when it is not one."""
        rows = self._rows("SELECT suffixes FROM icd10cm WHERE category = ?", category)
        return str(rows[0][0]) if rows else None

    def _rows(self, sql: str, *values: str) -> list[Any]:
        try:
            with self._lock:
                return self._connection.execute(sql, values).fetchall()
        except sqlite3.ProgrammingError:
            raise  # the store was closed: a fault of the caller
        except sqlite3.DatabaseError:
            raise StoreDamaged(f"{self.path} is damaged; build it again with: cda corpus build") from None


def _version_record(row: Any) -> VersionRecord:
    fields = list(row)
    fields[2] = DocType(fields[2])
    fields[9] = DateState(fields[9])
    for index in (7, 8, 11, 12):
        fields[index] = _day(fields[index])
    for index in (13, 14, 16, 18):
        fields[index] = _items(fields[index])
    return VersionRecord(*fields)


def _plan(row: Any) -> PlanRecord:
    plan_id, payer_id, line_of_business, reviewed = row
    return PlanRecord(plan_id, payer_id, line_of_business, bool(reviewed))


def _day(text: str | None) -> date | None:
    return None if text is None else date.fromisoformat(text)


def _items(text: str) -> tuple[str, ...]:
    return tuple(text.split("\n")) if text else ()
