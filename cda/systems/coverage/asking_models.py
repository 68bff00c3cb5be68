"""Who asks models for the coverage system, and what is said before anything leaves the machine for the first time."""

from collections.abc import Callable
from hashlib import sha256

from cda.contracts.model_client import ModelClient
from cda.errors import UnavailableError
from cda.settings import Settings
from cda.systems.coverage.setting_up import to_stderr

ROLES = {
    "hybrid": ("extractor",),
    "agentic": ("planner", "retriever", "grader", "synthesizer", "verifier"),
}
_LEAVES = {
    "hybrid": "the redacted narrative, the codes, the day and the facts to look for",
    "agentic": "the redacted narrative, structured facts, codes, plan, day and policy text",
}


def opened_client(settings: Settings, *, say: Callable[[str], None] | None = None) -> ModelClient:
    """The client that settings choose. The first time that these models are used from this home, `say` hears what is
    sent to whom. Raises UnavailableError, one line."""
    from cda.llm.opening import open_model_client

    client: ModelClient = open_model_client(settings)
    told = leaving(settings, client)
    marker = settings.home / "models" / f"{sha256(told.encode()).hexdigest()[:16]}.told"
    if not marker.exists():
        (say or to_stderr)(told)
        try:
            marker.parent.mkdir(parents=True, exist_ok=True)
            marker.write_text(told + "\n", encoding="utf-8")
        except OSError:
            client.close()
            raise UnavailableError(f"{marker.parent} cannot be written; nothing was sent to a model") from None
    return client


def leaving(settings: Settings, client: ModelClient) -> str:
    """What a determination sends, and to which models."""
    models = models_of(settings.reasoner, client)
    kept = "No key, no name and no date of birth that was found leaves it; CDA_REASONER=criteria sends nothing."
    return f"--reasoner {settings.reasoner} sends {_LEAVES[settings.reasoner]} to {models}. {kept}"


def models_of(reasoner: str, client: ModelClient | None) -> str | None:
    """The models that a reasoner's roles ask, each once; None for one that asks none."""
    if client is None or reasoner not in ROLES:
        return None
    return ", ".join(dict.fromkeys(client.describe(role) for role in ROLES[reasoner]))
