"""The model client of one run of evals: paced or by batches, its answers kept until the run ends."""

from dataclasses import dataclass
from typing import Any

from cda.contracts.model_client import ModelClient
from cda.errors import UsageError
from evals.journal import Journal
from evals.paid import PaidAnswers, PaidClient
from evals.suite import Options, Say

BATCH_SECONDS = 24 * 3600.0
"""A batch expires after a day; no run waits longer."""


@dataclass(frozen=True, slots=True)
class ModelRun:
    """A client whose answers are kept, and what was paid."""

    client: ModelClient
    answers: PaidAnswers

    def spent(self) -> dict[str, Any]:
        """What was paid so far, over every resume."""
        return self.answers.spent().as_json()


def open_model_run(options: Options, journal: Journal, say: Say) -> ModelRun | None:
    """The client of a run; None where nothing asks a model. Raises UsageError for batches without a model, and
    UnavailableError, one line, where no model can be asked."""
    if options.batch and options.settings.reasoner == "criteria":
        raise UsageError("--batch is for a reasoner that asks a model: --reasoner hybrid or agentic")
    if not options.asks_models:
        return None
    return ModelRun(PaidClient(_opened(options, journal, say), answers := PaidAnswers(journal.paid)), answers)


def _opened(options: Options, journal: Journal, say: Say) -> ModelClient:
    if options.batch:
        from cda.llm.batches import BatchClient
        from cda.llm.calling import ProviderClient
        from cda.systems.coverage.asking_models import ROLES, opened_client
        from evals.batching import WaitingClient

        client = opened_client(options.settings, say=say)
        for role in ROLES[options.settings.reasoner]:
            if not client.describe(role).startswith("anthropic:"):
                client.close()
                raise UsageError(f"--batch: {client.describe(role)}: batches are Anthropic's; choose such a model")
        assert isinstance(client, ProviderClient)
        return WaitingClient(BatchClient(client, journal.batches), say=say)
    if options.settings.reasoner == "criteria":
        from cda.llm.opening import open_model_client

        return open_model_client(options.settings)
    from cda.systems.coverage.asking_models import opened_client

    return opened_client(options.settings, say=say)
