"""A backend by its name. Its client library is loaded here, when it is the one that was asked for."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from backends.base import VectorBackend
from backends.embedded import EmbeddedPostgres
from backends.errors import BackendError
from backends.pgvector_config import PgVectorConfig
from backends.pinecone_config import PineconeConfig
from backends.schema import Schema
from backends.words import WordIndex

if TYPE_CHECKING:
    from backends.pgdocuments import PgDocuments
    from backends.postgres import Database
    from backends.s3documents import S3Documents

BackendName = Literal["local", "pinecone", "pgvector"]


@dataclass(frozen=True, slots=True)
class BackendConfig:
    """Which backend, and what it needs. `root` is the folder of local targets."""

    name: BackendName
    root: Path
    pinecone: PineconeConfig | None = None
    pgvector: PgVectorConfig | None = None


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
        case "pgvector":
            if config.pgvector is None:
                raise BackendError("the pgvector backend needs a database")
            database = open_database(config.pgvector)
            from backends.pgvector import PgVectorBackend

            return PgVectorBackend(database, hnsw=config.pgvector.hnsw)


def open_words(config: PgVectorConfig, schema: Schema, analyzer: str) -> WordIndex:
    """The word indexes of the database. BackendError as `open_database`."""
    database = open_database(config)
    from backends.pgwords import PgWords

    return PgWords(database, schema, analyzer)


def open_documents(config: PgVectorConfig) -> "PgDocuments":
    """The shared documents of the database. BackendError as `open_database`."""
    database = open_database(config)
    from backends.pgdocuments import PgDocuments

    return PgDocuments(database)


def open_bucket(bucket: str, prefix: str) -> "S3Documents":
    """The shared documents of a bucket, not yet asked for any. BackendError without the library."""
    with needing("s3"):
        from backends.s3documents import S3Documents

    return S3Documents(bucket, prefix)


def open_database(config: PgVectorConfig) -> "Database":
    """The database, not yet connected. BackendUnavailable when the embedded server is needed and does not run;
    BackendError without the driver."""
    with needing("pgvector"):
        from backends.postgres import Database

    given = config.database_url
    return Database(given.get_secret_value() if given else EmbeddedPostgres(config.folder).url)


@contextmanager
def needing(extra: str) -> Iterator[None]:
    """An import that only an extra satisfies. BackendError names the extra when it was not installed."""
    try:
        yield
    except ModuleNotFoundError as error:
        raise BackendError(f"{error.name} is not installed: install the extra `{extra}`") from None
