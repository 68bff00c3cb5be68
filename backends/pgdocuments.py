"""Small named documents in Postgres, with compare-and-set: what machines that share an index must agree on."""

from backends.migrations import require_current
from backends.postgres import Database


class PgDocuments:
    """Documents of one migrated database. Each verb is one statement, so of two writers one wins."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._current = False

    def read(self, name: str) -> bytes | None:
        """The content, or None when there is no such document."""
        with self._ready().reading() as look:
            rows = look.rows("SELECT content FROM cda.documents WHERE name = %s", name)
        return bytes(rows[0][0]) if rows else None

    def replace(self, name: str, content: bytes, *, expect: bytes | None) -> bool:
        """Put `content` in place of `expect` (None: of nothing); False, and nothing is done, when it is not so."""
        with self._ready().transaction() as change:
            if expect is None:
                made = "INSERT INTO cda.documents (name, content) VALUES (%s, %s) ON CONFLICT (name) DO NOTHING"
                return change.run(made, name, content) == 1
            changed = "UPDATE cda.documents SET content = %s WHERE name = %s AND content = %s"
            return change.run(changed, content, name, expect) == 1

    def remove(self, name: str, *, expect: bytes) -> bool:
        """Remove the document; False, and nothing is done, when it is not `expect`."""
        with self._ready().transaction() as change:
            return change.run("DELETE FROM cda.documents WHERE name = %s AND content = %s", name, expect) == 1

    def names(self, folder: str) -> list[str]:
        """The names of all documents that begin with `folder/`, sorted."""
        with self._ready().reading() as look:
            rows = look.rows("SELECT name FROM cda.documents WHERE starts_with(name, %s || '/') ORDER BY name", folder)
        return [name for (name,) in rows]

    def _ready(self) -> Database:
        if not self._current:
            require_current(self._database)
            self._current = True
        return self._database
