"""Writes a store file: whole, durable, and the same bytes for the same contents."""

import json
import os
import sqlite3
from collections.abc import Iterable, Sequence
from datetime import date
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from corpus import icd10cm
from corpus.contents import Contents, canonical, digest
from corpus.errors import CorpusError
from corpus.model import Clause, VersionRecord
from corpus.store import APPLICATION_ID, SCHEMA_VERSION

_SCHEMA = f"""
    PRAGMA page_size = 4096;
    PRAGMA journal_mode = OFF;
    PRAGMA synchronous = OFF;
    PRAGMA application_id = {APPLICATION_ID};
    PRAGMA user_version = {SCHEMA_VERSION};
    CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
    CREATE TABLE payers (payer_id TEXT PRIMARY KEY, name TEXT NOT NULL) WITHOUT ROWID;
    CREATE TABLE plans (
        plan_id TEXT PRIMARY KEY, payer_id TEXT NOT NULL, line_of_business TEXT NOT NULL,
        adverse_to_clinician_review INTEGER NOT NULL
    ) WITHOUT ROWID;
    CREATE TABLE codes (code TEXT PRIMARY KEY, system TEXT NOT NULL) WITHOUT ROWID;
    CREATE TABLE facts (name TEXT PRIMARY KEY, definition TEXT NOT NULL) WITHOUT ROWID;
    CREATE TABLE icd10cm (category TEXT PRIMARY KEY, suffixes TEXT NOT NULL) WITHOUT ROWID;
    CREATE TABLE texts (sha256 BLOB PRIMARY KEY, text TEXT NOT NULL) WITHOUT ROWID;
    CREATE TABLE versions (
        policy_id TEXT NOT NULL, version TEXT NOT NULL, policy_title TEXT NOT NULL, doc_type TEXT NOT NULL,
        source TEXT NOT NULL, payer_id TEXT NOT NULL, plan_id TEXT, effective_start TEXT, effective_end TEXT,
        date_state TEXT NOT NULL, window_provenance TEXT NOT NULL, implementation_date TEXT, retirement_date TEXT,
        jurisdiction TEXT NOT NULL, codes TEXT NOT NULL, codes_linkage TEXT NOT NULL,
        overrides_policy_ids TEXT NOT NULL, source_ref TEXT, clause_ids TEXT NOT NULL,
        PRIMARY KEY (policy_id, version)
    ) WITHOUT ROWID;
    CREATE TABLE clauses (
        clause_id TEXT PRIMARY KEY, policy_id TEXT NOT NULL, version TEXT NOT NULL, section TEXT NOT NULL,
        text_sha256 BLOB NOT NULL, codes TEXT NOT NULL, source_ref TEXT, criterion TEXT
    ) WITHOUT ROWID;
    CREATE TABLE version_codes (
        code TEXT NOT NULL, policy_id TEXT NOT NULL, version TEXT NOT NULL, PRIMARY KEY (code, policy_id, version)
    ) WITHOUT ROWID;
    CREATE TABLE clause_codes (
        code TEXT NOT NULL, clause_id TEXT NOT NULL, PRIMARY KEY (code, clause_id)
    ) WITHOUT ROWID;
"""
_PLAN_INDEX = "CREATE INDEX versions_by_plan ON versions (plan_id) WHERE plan_id IS NOT NULL"


def write_store(contents: Contents, out: Path) -> str:
    """Write `contents` as a store at `out`, replacing what is there in one step, and return its digest.

    Raises OSError when the folder cannot be written and CorpusError when the file cannot be filled (a full disk); `out`
    is then as it was.
    """
    out.parent.mkdir(parents=True, exist_ok=True)
    rows, icd10cm_sha256 = icd10cm.table(icd10cm.code_list())
    found = digest(contents, icd10cm_sha256)
    meta = {
        "digest": found,
        "icd10cm_sha256": icd10cm_sha256,
        "clauses": len(contents.clauses),
        "corpora": contents.corpora,
    }
    # A folder of its own beside `out`: the same file system for the rename, and the file gets the umask's own mode.
    with TemporaryDirectory(dir=out.parent, prefix=f".{out.name}-") as folder:
        building = Path(folder, out.name)
        connection = sqlite3.connect(building, isolation_level=None)
        try:
            connection.executescript(_SCHEMA)
            connection.execute("BEGIN")
            _fill(connection, contents)
            _insert(connection, "icd10cm", rows.items())
            _insert(connection, "meta", [(key, canonical(value)) for key, value in sorted(meta.items())])
            connection.execute("COMMIT")
            connection.execute(_PLAN_INDEX)
        except sqlite3.OperationalError as error:
            raise CorpusError(f"{out} cannot be written ({error}); free some space or choose another place") from error
        finally:
            connection.close()
        _sync(building)
        os.replace(building, out)
    _sync(out.parent)
    return found


def _fill(connection: sqlite3.Connection, contents: Contents) -> None:
    """Every table in the order of its key, so that pages fill up one after another and equal contents give equal
    bytes."""
    versions = sorted(contents.versions, key=lambda v: (v.policy_id, v.version))
    clauses = sorted(contents.clauses, key=lambda c: c.clause_id)
    _insert(connection, "payers", sorted((p.payer_id, p.name) for p in contents.payers))
    _insert(
        connection,
        "plans",
        sorted((p.plan_id, p.payer_id, p.line_of_business, p.adverse_to_clinician_review) for p in contents.plans),
    )
    _insert(connection, "codes", sorted((c.code, c.system) for c in contents.codes))
    facts = [(name, json.dumps(contents.facts[name], ensure_ascii=False)) for name in sorted(contents.facts)]
    _insert(connection, "facts", facts)
    texts = {sha256(c.text.encode("utf-8")).digest(): c.text for c in clauses}
    _insert(connection, "texts", sorted(texts.items()))
    _insert(connection, "versions", map(_version_row, versions))
    _insert(connection, "clauses", map(_clause_row, clauses))
    named = {(code, v.policy_id, v.version) for v in versions for code in v.codes}
    _insert(connection, "version_codes", sorted(named))
    _insert(connection, "clause_codes", sorted({(code, c.clause_id) for c in clauses for code in c.codes}))


def _version_row(version: VersionRecord) -> Sequence[Any]:
    return (
        version.policy_id,
        version.version,
        version.policy_title,
        version.doc_type.value,
        version.source,
        version.payer_id,
        version.plan_id,
        _day(version.effective_start),
        _day(version.effective_end),
        version.date_state.value,
        version.window_provenance,
        _day(version.implementation_date),
        _day(version.retirement_date),
        "\n".join(version.jurisdiction),
        "\n".join(version.codes),
        version.codes_linkage,
        "\n".join(version.overrides_policy_ids),
        version.source_ref,
        "\n".join(version.clause_ids),
    )


def _clause_row(clause: Clause) -> Sequence[Any]:
    return (
        clause.clause_id,
        clause.policy_id,
        clause.version,
        clause.section,
        sha256(clause.text.encode("utf-8")).digest(),
        "\n".join(clause.codes),
        clause.source_ref,
        None if clause.criterion is None else json.dumps(clause.criterion, ensure_ascii=False),
    )


def _insert(connection: sqlite3.Connection, table: str, rows: Iterable[Sequence[Any]]) -> None:
    rows = iter(rows)
    if (first := next(rows, None)) is None:
        return
    statement = f"INSERT INTO {table} VALUES ({','.join('?' * len(first))})"  # noqa: S608 -- names of this module
    connection.execute(statement, first)
    connection.executemany(statement, rows)


def _day(day: date | None) -> str | None:
    return None if day is None else day.isoformat()


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
