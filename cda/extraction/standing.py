"""What one mention of a fact amounts to, once the words around it are known."""

from datetime import date
from enum import StrEnum
from typing import NamedTuple

from cda.contracts.facts import FactType, Interval
from cda.extraction.lexicon import Lexicon


class Standing(StrEnum):
    """What a mention amounts to."""

    HOLDS = "holds"
    EXCLUDED = "excluded"  # a class value is denied: not this one
    PAST = "past"
    HEDGED = "hedged"
    ELSEWHERE = "elsewhere"  # a plan, a payer's rule, another person, a condition
    DOUBT = "doubt"


class Mention(NamedTuple):
    """One reading of a fact at one place; `why` holds the words that took it out of the running."""

    value: bool | str | Interval
    start: int
    end: int
    standing: Standing = Standing.HOLDS
    why: str | None = None
    now: bool = False
    own: bool = False
    firm_doubt: bool = False
    dated: tuple[date, date] | None = None


def judge(lexicon: Lexicon, mention: Mention, words: dict[str, str]) -> Mention:
    """Apply what the context says (kind -> words) to a mention; see cues.yaml for the kinds."""
    standing, value, why, firm = Standing.HOLDS, mention.value, None, False
    kinds = {kind for kind in words if kind not in lexicon.accepts}
    blocking = [k for k in ("mistaken", "family", "payer", "hypothetical", "plan", "unticked") if k in kinds]
    if "doubt" in kinds or "guard" in kinds:
        firm = "doubt" in kinds
        standing, why = Standing.DOUBT, words["doubt" if firm else "guard"]
    elif blocking:
        standing, why = Standing.ELSEWHERE, words[blocking[0]]
    elif "against" in kinds and lexicon.against == "doubt":
        standing, why, firm = Standing.DOUBT, words["against"], True
    elif "against" in kinds and lexicon.against == "false" and mention.value is True:
        value = False
    elif "negation" in kinds:
        standing, value, why = _negated(lexicon, mention, words["negation"], "hedge" in kinds)
    elif "hedge" in kinds and lexicon.hedge != "holds":
        if lexicon.hedge == "suspected" and value in {"confirmed", "suspected"}:
            value = "suspected"
        elif not (lexicon.hedge == "suspected" and mention.own):
            standing = Standing.DOUBT if lexicon.is_quantity else Standing.HEDGED
            why = words["hedge"]
    if standing is Standing.HOLDS and "past" in kinds and "now" not in kinds and lexicon.time == "current":
        standing, why = Standing.PAST, words["past"]
    return mention._replace(standing=standing, value=value, why=why, firm_doubt=firm)


def _negated(
    lexicon: Lexicon, mention: Mention, words: str, hedged: bool
) -> tuple[Standing, bool | str | Interval, str | None]:
    kind, value = lexicon.definition.type, mention.value
    if mention.own or hedged or lexicon.is_quantity:
        return Standing.DOUBT, value, words
    if kind is FactType.BOOL and value is True:
        return Standing.HOLDS, False, None
    if kind is FactType.STATUS and value == "confirmed":
        return Standing.HOLDS, "absent", None
    if kind is FactType.CLASS:
        return Standing.EXCLUDED, value, words
    return Standing.DOUBT, value, words
