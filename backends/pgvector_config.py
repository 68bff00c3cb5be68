"""What the pgvector backend needs. Without its driver: anybody may read it."""

from dataclasses import dataclass
from pathlib import Path

from pydantic import SecretStr


@dataclass(frozen=True, slots=True)
class PgVectorConfig:
    """A server's address, or else the folder of the embedded server; `hnsw`: an approximate index is used."""

    database_url: SecretStr | None
    folder: Path
    hnsw: bool = False
