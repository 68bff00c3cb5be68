"""What the doctor says of models: which are chosen, whether key, library and price are there. Nothing is sent, and no
key is shown."""

from collections.abc import Mapping
from importlib.util import find_spec

from cda.contracts.health import Finding
from cda.errors import CdaError
from cda.llm.choice import Choice, choose
from cda.llm.prices import MILLION, Prices, read_prices
from cda.settings import Settings


def examine(settings: Settings) -> list[Finding]:
    """One finding a chosen model; one that says so when none is chosen."""
    try:
        choices = choose(settings)
    except CdaError:
        detail = "none is chosen: nothing is sent anywhere"
        return [Finding(name="model", state="ok", detail=detail)]
    prices = read_prices().priced(settings.model_prices)
    return [_finding(name, choices, settings, prices) for name in sorted({one.name for one in choices.values()})]


def _finding(name: str, choices: Mapping[str, Choice], settings: Settings, prices: Prices) -> Finding:
    roles = [role for role, choice in choices.items() if choice.name == name]
    provider = choices[roles[0]].provider
    variable = f"{provider.upper()}_API_KEY"
    key = settings.anthropic_api_key if provider == "anthropic" else settings.openai_api_key
    address = settings.anthropic_base_url if provider == "anthropic" else settings.openai_base_url
    needed = provider == "anthropic" or address is None
    told = "present" if key else "absent"
    detail = f"for {', '.join(roles)}; key {told}; {'its own' if address else 'the public'} address"
    remedy = ""
    if find_spec(provider) is None:
        remedy = f"install the extra `{provider}`"
    elif key is None and needed:
        remedy = f"set {variable}"
    else:
        try:
            price = prices.of(name)
            detail += (
                f"; USD {float(price.input * MILLION):g} in and {float(price.output * MILLION):g} out a million tokens"
            )
        except CdaError:
            remedy = f"set CDA_MODEL_PRICES={choices[roles[0]].model}=IN/OUT: no price of it is known"
    return Finding(name=f"model ({name})", state="warn" if remedy else "ok", detail=detail, remedy=remedy)
