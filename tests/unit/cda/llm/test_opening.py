"""What is wrong before the first question is one clear line, and exit 3."""

import subprocess
import sys

import pytest
from doubles.messages_server import Fault, ModelDouble
from model_world import ANTHROPIC, OPENAI, Open, settings_for

from cda.errors import CdaError, UnavailableError, UsageError, exit_code
from cda.llm.opening import open_model_client

pytestmark = pytest.mark.promise("clients.opening")
BOTH = pytest.mark.parametrize("model", [ANTHROPIC, OPENAI])


def refused(double: ModelDouble, model: str, **more: object) -> str:
    with pytest.raises(CdaError) as caught:
        open_model_client(settings_for(double, model, **more))
    assert isinstance(caught.value, UnavailableError)
    assert exit_code(caught.value) == 3
    text = str(caught.value)
    assert "\n" not in text
    assert double.key not in text
    return text


def test_no_key_names_its_variable(double: ModelDouble) -> None:
    assert refused(double, ANTHROPIC, ANTHROPIC_API_KEY=None).startswith("ANTHROPIC_API_KEY is not set")
    assert refused(double, OPENAI, OPENAI_API_KEY=None, OPENAI_BASE_URL=None).startswith("OPENAI_API_KEY is not set")
    assert double.seen == []


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"ANTHROPIC_API_KEY": "canary-\u00e4"}, "ANTHROPIC_API_KEY holds a character"),
        ({"ANTHROPIC_API_KEY": "canary\nkey"}, "ANTHROPIC_API_KEY holds a character"),
        ({"ANTHROPIC_BASE_URL": "http://[canary"}, "ANTHROPIC_BASE_URL is no address"),
        ({"ANTHROPIC_BASE_URL": "http://host:99999"}, "ANTHROPIC_BASE_URL is no address"),
    ],
)
def test_a_key_or_address_that_cannot_be_one_is_refused_unseen(
    double: ModelDouble, given: dict[str, str], says: str
) -> None:
    with pytest.raises(UsageError, match=says) as caught:
        open_model_client(settings_for(double, ANTHROPIC, **given))
    assert "canary" not in str(caught.value)


@BOTH
def test_a_wrong_key_names_its_variable(double: ModelDouble, model: str) -> None:
    wrong = {"ANTHROPIC_API_KEY": "canary-key-55", "OPENAI_API_KEY": "canary-key-55"}
    text = refused(double, model, **wrong)
    assert "does not accept the key" in text
    assert f"correct {model.partition(':')[0].upper()}_API_KEY" in text
    assert "canary-key-55" not in text


@pytest.mark.parametrize("model", ["anthropic:claude-sonnet-99", "openai:gpt-99"])
def test_an_unknown_model_is_named(double: ModelDouble, model: str) -> None:
    text = refused(double, model, CDA_MODEL_PRICES="claude-sonnet-99=1/1,gpt-99=1/1")
    assert text.startswith(f"{model}: ")
    assert "it has no such model; correct CDA_MODEL" in text


def test_a_retired_model_is_refused(double: ModelDouble) -> None:
    double.retired.add("claude-sonnet-5")
    assert "the model is retired; correct CDA_MODEL" in refused(double, ANTHROPIC)


@BOTH
def test_an_endpoint_that_is_down_is_named_by_its_variable(double: ModelDouble, model: str) -> None:
    double.close()
    text = refused(double, model)
    assert "cannot be reached" in text
    assert f"{model.partition(':')[0].upper()}_BASE_URL" in text


def test_a_server_that_tells_of_no_models_is_taken_at_its_word(double: ModelDouble, open_client: Open) -> None:
    double.faults = [Fault("status", 9, "/v1/models", 404)]
    open_client(OPENAI)
    double.faults = [Fault("status", 1, "/v1/models/", 404)]
    open_client(OPENAI)  # this one lists it


def test_a_server_of_one_s_own_needs_no_key(double: ModelDouble, open_client: Open) -> None:
    double.key = "none"
    open_client(OPENAI, OPENAI_API_KEY=None)


@pytest.mark.promise("clients.lazy")
@pytest.mark.parametrize(
    "line",
    ["import cda.cli", "import cda.systems.coverage.ask_command", "import cda.doctor", "import cda.llm.opening"],
)
def test_no_library_of_a_provider_is_loaded_before_its_model_is_opened(line: str) -> None:
    look = f"{line}; import sys; print([n for n in ('anthropic', 'openai', 'httpx2') if n in sys.modules])"
    done = subprocess.run([sys.executable, "-c", look], capture_output=True, text=True, timeout=120, check=True)
    assert (done.stdout, done.stderr) == ("[]\n", "")
