"""A backend by its name, and what is loaded for it."""

import subprocess
import sys
from pathlib import Path

import pytest

from backends.errors import BackendError
from backends.factory import BackendConfig, needing, open_backend

pytestmark = pytest.mark.promise("backends.by_name")


def test_the_local_backend_is_opened_on_its_folder(tmp_path: Path) -> None:
    backend = open_backend(BackendConfig("local", tmp_path))
    assert (backend.capabilities().name, backend.targets()) == ("local", ())


def test_pinecone_without_its_configuration_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BackendError, match="PINECONE_API_KEY"):
        open_backend(BackendConfig("pinecone", tmp_path))


def test_a_library_that_is_not_installed_is_named_with_its_extra() -> None:
    with pytest.raises(BackendError, match="lib is not installed: install the extra `pinecone`"), needing("pinecone"):
        raise ModuleNotFoundError("No module named 'lib'", name="lib")


def test_the_local_backend_loads_no_library_of_a_service() -> None:
    code = (
        "import sys, pathlib, tempfile\n"
        "from backends.factory import BackendConfig, open_backend\n"
        "import cda.systems.coverage.setting_up\n"
        "open_backend(BackendConfig('local', pathlib.Path(tempfile.mkdtemp()))).targets()\n"
        "assert not {'pinecone', 'tenacity', 'httpx', 'psycopg'} & set(sys.modules), sorted(sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr.decode()
