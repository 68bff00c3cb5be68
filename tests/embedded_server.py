"""One Postgres server a test process, in a folder of its own, and any number of empty databases in it."""

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path

from backends.embedded import EmbeddedPostgres
from backends.migrations import migrate
from backends.postgres import Database

# A test's data outlives no crash, so nothing waits for a disk.
HASTY = {"fsync": "off", "full_page_writes": "off", "synchronous_commit": "off", "shared_buffers": "64MB"}


class TestServer:
    """A running server. `database()` is the address of a migrated database without a target; `give_back` empties one
    for the next caller, since making one costs more than most tests do."""

    __test__ = False

    def __init__(self, server: EmbeddedPostgres) -> None:
        self._server = server
        self._numbers = count(1)
        self._free: list[str] = []
        self._template = self.empty_database()
        database = Database(self._template)
        migrate(database)
        database.close()

    def database(self) -> str:
        return self._free.pop() if self._free else self._made(f"TEMPLATE {self._template.split('@/')[1].split('?')[0]}")

    def give_back(self, url: str) -> None:
        database = Database(url)
        with database.transaction() as change:
            for (number,) in change.rows("DELETE FROM cda.targets RETURNING number"):
                change.run(f"DROP TABLE cda.records_{number}")
            change.run("DELETE FROM cda.documents")
        database.close()
        self._free.append(url)

    def empty_database(self) -> str:
        return self._made("TEMPLATE template0")

    def start(self) -> None:
        self._server.up()

    def stop(self) -> None:
        self._server.down()

    def _made(self, how: str) -> str:
        name = f"d{next(self._numbers)}"
        database = Database(self._server.url)
        with database.reading() as admin:
            admin.run(f"CREATE DATABASE {name} {how}")
        database.close()
        return self._server.url.replace("/postgres?", f"/{name}?")


@contextmanager
def running_server() -> Iterator[TestServer]:
    """A server of the caller's own; most tests share the one of the fixture `postgres_server`."""
    folder = Path(tempfile.mkdtemp(prefix="cda-pg-"))
    folder.chmod(0o755)  # as root, the server's account must pass
    server = EmbeddedPostgres(folder / "postgres", options=HASTY)
    try:
        server.up()
        yield TestServer(server)
    finally:
        server.down()
        shutil.rmtree(folder, ignore_errors=True)
