"""Settings: the only reader of the environment and of `.env`. A real variable beats the file.

`.env.example` mirrors this module; a test holds the two equal.
"""

import os
from decimal import Decimal
from functools import cached_property
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AliasChoices, Field, SecretStr, ValidationError
from pydantic_settings import BaseSettings, SettingsConfigDict

from cda.errors import UsageError

Fault = Literal["hallucinate", "paraphrase", "stale", "unsupported", "lowconf"]
# PROVIDER:ID, and how the model is used; a role's own may leave out the first part and then changes the use alone.
_USE = r"(effort=(low|medium|high|xhigh|max)|thinking=(adaptive|disabled)|tokens=[1-9]\d{1,5}|seconds=[1-9]\d{0,3})"
MODEL = rf"^((anthropic|openai):[^\s,=]+(,{_USE})*|{_USE}(,{_USE})*)$"
_PRICE = r"[^\s,=]+=\d+(\.\d+)?/\d+(\.\d+)?"
PRICES = rf"^({_PRICE}(,{_PRICE})*)?$"
URL = r"^https?://\S+$"


def default_home() -> Path:
    """Where state lives that is given no place: the user's data folder; as root /var/lib/cda."""
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        return Path("/var/lib/cda")
    base = os.environ.get("XDG_DATA_HOME")
    return (Path(base) if base else Path.home() / ".local" / "share") / "cda"


def _named(variable: str) -> AliasChoices:
    return AliasChoices(variable)


class Settings(BaseSettings):
    """Every variable the product reads, with its default. Unknown CDA_* names are not an error; wrong values are."""

    model_config = SettingsConfigDict(
        env_file=".env",
        env_file_encoding="utf-8",
        extra="ignore",
        frozen=True,
        env_ignore_empty=True,
        hide_input_in_errors=True,
    )

    home: Annotated[Path, Field(validation_alias=_named("CDA_HOME"))] = Field(default_factory=default_home)
    store: Annotated[Path | None, Field(validation_alias=_named("CDA_STORE"))] = None
    trace_dir: Annotated[Path | None, Field(validation_alias=_named("CDA_TRACE_DIR"))] = None
    vector_backend: Annotated[
        Literal["local", "pinecone", "pgvector"], Field(validation_alias=_named("CDA_VECTOR_BACKEND"))
    ] = "local"
    database_url: Annotated[SecretStr | None, Field(validation_alias=_named("DATABASE_URL"))] = None
    pgvector_hnsw: Annotated[bool, Field(validation_alias=_named("CDA_PGVECTOR_HNSW"))] = False
    embedder: Annotated[
        Literal["minilm-int8", "minilm-int8-dynamic", "tfidf"], Field(validation_alias=_named("CDA_EMBEDDER"))
    ] = "minilm-int8"
    reranker: Annotated[
        Literal["rrf", "weighted", "date_aware", "adaptive"], Field(validation_alias=_named("CDA_RERANKER"))
    ] = "adaptive"
    lexical: Annotated[Literal["tantivy", "rank-bm25", "postgres"], Field(validation_alias=_named("CDA_LEXICAL"))] = (
        "tantivy"
    )
    reasoner: Annotated[Literal["criteria", "hybrid", "agentic"], Field(validation_alias=_named("CDA_REASONER"))] = (
        "criteria"
    )
    hybrid_passes: Annotated[int, Field(ge=1, le=2, validation_alias=_named("CDA_HYBRID_PASSES"))] = 1
    policy_tools: Annotated[Literal["inprocess", "mcp"], Field(validation_alias=_named("CDA_POLICY_TOOLS"))] = (
        "inprocess"
    )
    fault: Annotated[Fault | None, Field(validation_alias=_named("CDA_FAULT"))] = None
    run_timeout_s: Annotated[float, Field(gt=0, validation_alias=_named("CDA_RUN_TIMEOUT_S"))] = 900.0
    max_iterations: Annotated[int, Field(ge=1, le=10, validation_alias=_named("CDA_MAX_ITERATIONS"))] = 3

    run_max_tokens: Annotated[int, Field(ge=0, validation_alias=_named("CDA_RUN_MAX_TOKENS"))] = 400_000
    run_max_usd: Annotated[Decimal, Field(ge=0, validation_alias=_named("CDA_RUN_MAX_USD"))] = Decimal("2.00")

    model: Annotated[str | None, Field(pattern=MODEL, validation_alias=_named("CDA_MODEL"))] = None
    model_planner: Annotated[str | None, Field(pattern=MODEL, validation_alias=_named("CDA_MODEL_PLANNER"))] = None
    model_retriever: Annotated[str | None, Field(pattern=MODEL, validation_alias=_named("CDA_MODEL_RETRIEVER"))] = None
    model_grader: Annotated[str | None, Field(pattern=MODEL, validation_alias=_named("CDA_MODEL_GRADER"))] = None
    model_synthesizer: Annotated[str | None, Field(pattern=MODEL, validation_alias=_named("CDA_MODEL_SYNTHESIZER"))] = (
        None
    )
    model_verifier: Annotated[str | None, Field(pattern=MODEL, validation_alias=_named("CDA_MODEL_VERIFIER"))] = None
    model_extractor: Annotated[str | None, Field(pattern=MODEL, validation_alias=_named("CDA_MODEL_EXTRACTOR"))] = None
    model_drafter: Annotated[str | None, Field(pattern=MODEL, validation_alias=_named("CDA_MODEL_DRAFTER"))] = None
    model_adversary: Annotated[str | None, Field(pattern=MODEL, validation_alias=_named("CDA_MODEL_ADVERSARY"))] = None
    model_judge: Annotated[str | None, Field(pattern=MODEL, validation_alias=_named("CDA_MODEL_JUDGE"))] = None
    model_concurrency: Annotated[int, Field(ge=1, le=256, validation_alias=_named("CDA_MODEL_CONCURRENCY"))] = 8
    model_tries: Annotated[int, Field(ge=1, le=20, validation_alias=_named("CDA_MODEL_TRIES"))] = 6
    model_prices: Annotated[str, Field(pattern=PRICES, validation_alias=_named("CDA_MODEL_PRICES"))] = ""
    anthropic_api_key: Annotated[SecretStr | None, Field(validation_alias=_named("ANTHROPIC_API_KEY"))] = None
    anthropic_base_url: Annotated[str | None, Field(pattern=URL, validation_alias=_named("ANTHROPIC_BASE_URL"))] = None
    openai_api_key: Annotated[SecretStr | None, Field(validation_alias=_named("OPENAI_API_KEY"))] = None
    openai_base_url: Annotated[str | None, Field(pattern=URL, validation_alias=_named("OPENAI_BASE_URL"))] = None

    manifests: Annotated[Path | None, Field(validation_alias=_named("CDA_MANIFESTS"))] = None
    pinecone_api_key: Annotated[SecretStr | None, Field(validation_alias=_named("PINECONE_API_KEY"))] = None
    pinecone_host: Annotated[str | None, Field(validation_alias=_named("CDA_PINECONE_HOST"))] = None
    pinecone_index: Annotated[
        str, Field(pattern=r"^[a-z0-9]([a-z0-9-]{0,43}[a-z0-9])?$", validation_alias=_named("CDA_PINECONE_INDEX"))
    ] = "cda-policies"
    pinecone_namespace: Annotated[
        str, Field(pattern=r"^[A-Za-z0-9_-]{1,64}$", validation_alias=_named("CDA_PINECONE_NAMESPACE"))
    ] = "cda"
    pinecone_cloud: Annotated[Literal["aws", "gcp", "azure"], Field(validation_alias=_named("CDA_PINECONE_CLOUD"))] = (
        "aws"
    )
    pinecone_region: Annotated[str, Field(validation_alias=_named("CDA_PINECONE_REGION"))] = "us-east-1"
    pinecone_tags: Annotated[
        str, Field(pattern=r"^([^=,]+=[^=,]+(,[^=,]+=[^=,]+)*)?$", validation_alias=_named("CDA_PINECONE_TAGS"))
    ] = ""
    pinecone_model: Annotated[
        Literal["llama-text-embed-v2", "multilingual-e5-large"] | None,
        Field(validation_alias=_named("CDA_PINECONE_MODEL")),
    ] = None
    pinecone_dimension: Annotated[int, Field(validation_alias=_named("CDA_PINECONE_DIMENSION"))] = 1024
    pinecone_rerank: Annotated[
        Literal["bge-reranker-v2-m3"] | None, Field(validation_alias=_named("CDA_PINECONE_RERANK"))
    ] = None
    pinecone_protected: Annotated[bool, Field(validation_alias=_named("CDA_PINECONE_PROTECTED"))] = False
    api_key: Annotated[SecretStr | None, Field(validation_alias=_named("CDA_API_KEY"))] = None
    keys: Annotated[Path | None, Field(validation_alias=_named("CDA_KEYS"))] = None
    rate_limit: Annotated[
        str, Field(pattern=r"^[1-9]\d{0,6}/[1-9]\d{0,4}$", validation_alias=_named("CDA_RATE_LIMIT"))
    ] = "60/60"
    claims_db: Annotated[Path | None, Field(validation_alias=_named("CDA_CLAIMS_DB"))] = None
    ledger_dir: Annotated[Path | None, Field(validation_alias=_named("CDA_LEDGER_DIR"))] = None
    ledger_head: Annotated[Path | None, Field(validation_alias=_named("CDA_LEDGER_HEAD"))] = None
    ledger_keys: Annotated[Path | None, Field(validation_alias=_named("CDA_LEDGER_KEYS"))] = None

    @cached_property
    def claims_db_path(self) -> Path:
        """The claims database."""
        return self.claims_db or self.home / "claims.sqlite"

    @cached_property
    def keys_path(self) -> Path:
        """The file of API keys."""
        return self.keys or self.home / "keys.json"

    @cached_property
    def ledger_path(self) -> Path:
        """The folder of the ledger's segments."""
        return self.ledger_dir or self.home / "ledger"

    @cached_property
    def ledger_head_path(self) -> Path:
        """The folder of the ledger's head and checkpoints."""
        return self.ledger_head or self.home / "ledger-head"

    @cached_property
    def ledger_keys_path(self) -> Path:
        """The folder of the ledger's own keys."""
        return self.ledger_keys or self.home / "ledger-keys"

    @cached_property
    def store_path(self) -> Path:
        """The corpus store's file."""
        return self.store or self.home / "corpus.sqlite"

    @cached_property
    def trace_path(self) -> Path:
        """The folder of run traces."""
        return self.trace_dir or self.home / "traces"

    @cached_property
    def manifests_path(self) -> Path:
        """The folder of the manifests and pointers of indexes on services."""
        return self.manifests or self.home / "manifests"

    @cached_property
    def index_path(self) -> Path:
        """The folder of local indexes."""
        return self.home / "index"

    @cached_property
    def postgres_path(self) -> Path:
        """The folder of the embedded Postgres, which serves when no DATABASE_URL is set."""
        return self.home / "postgres"


def load_settings() -> Settings:
    """The settings of this process. Raises UsageError that names each wrong variable and its rule, never its value."""
    try:
        return Settings()
    except ValidationError as error:
        faults = "; ".join(f"{fault['loc'][0]}: {fault['msg']}" for fault in error.errors(include_input=False))
        raise UsageError(f"settings: {faults}") from None
