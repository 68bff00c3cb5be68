"""A backend by its name. Its client library is loaded here, when it is the one that was asked for."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from backends.base import VectorBackend
from backends.errors import BackendError
from backends.pinecone_config import PineconeConfig

BackendName = Literal["local", "pinecone"]


@dataclass(frozen=True, slots=True)
class BackendConfig:
    """Which backend, and what it needs. `root` is the folder of local targets."""

    name: BackendName
    root: Path
    pinecone: PineconeConfig | None = None


def open_backend(config: BackendConfig) -> VectorBackend:
    """The backend, not yet asked anything. BackendError when its library or its configuration is missing."""
    match config.name:
        case "local":
            from backends.local import LocalBackend

            return LocalBackend(config.root)
        case "pinecone":
            if config.pinecone is None:
                raise BackendError("the pinecone backend needs PINECONE_API_KEY")
            with needing("pinecone"):
                from backends.pinecone import PineconeBackend

            return PineconeBackend(config.pinecone)


@contextmanager
def needing(extra: str) -> Iterator[None]:
    """An import that only an extra satisfies. BackendError names the extra when it was not installed."""
    try:
        yield
    except ModuleNotFoundError as error:
        raise BackendError(f"{error.name} is not installed: install the extra `{extra}`") from None
