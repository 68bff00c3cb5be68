"""What the Pinecone backend is told; apart from it, so that naming a backend loads no client library."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from pydantic import SecretStr


@dataclass(frozen=True, slots=True)
class PineconeConfig:
    """Which index, under which key, and for how long to wait. `host` is the control plane's, None for the public one;
    the data plane's follows from it. `namespace` comes before the names of all targets of this deployment."""

    api_key: SecretStr
    index: str
    namespace: str
    cloud: str = "aws"
    region: str = "us-east-1"
    host: str | None = None
    deletion_protection: bool = False
    tags: Mapping[str, str] = field(default_factory=dict)
    read_deadline_s: float = 12.0
    write_deadline_s: float = 60.0
    create_deadline_s: float = 300.0
