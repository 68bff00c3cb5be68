"""What each role may answer. The bounds hold the largest answer to a known number of tokens (docs/benchmarks/model.md).

No form has room for prose: a model that was talked into something has nowhere to pass it on.
"""

from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from cda.agents.role import Answer

Name = Annotated[str, StringConstraints(max_length=48)]
Words = Annotated[str, StringConstraints(max_length=120)]
MAX_FACTS, MAX_CLAIMS, MAX_LINES, MAX_CLAUSES = 16, 10, 4, 16


class ReadFact(Answer):
    """One fact that the chart states. value: true | false | one of the fact's values | a day | a number, with a
    comparison (">=4") or a second number ("4..5"), in `unit`, which is as the chart has it and empty where it has none.
    quote: the chart's own words."""

    fact: Name
    value: Annotated[str, StringConstraints(max_length=24)]
    unit: Literal["", "day", "week", "month", "year"]
    quote: Words


class Reading(Answer):
    """The facts that are stated; one that is left out is unknown."""

    facts: Annotated[list[ReadFact], Field(max_length=MAX_FACTS)]


class Plan(Answer):
    """What to search for."""

    queries: Annotated[list[Words], Field(min_length=1, max_length=3)]


class Grades(Answer):
    """The clauses that bear on the request, and whether anything is still missing."""

    relevant: Annotated[list[Name], Field(max_length=MAX_CLAUSES)]
    complete: bool


class LineAnswer(Answer):
    """The outcome of one code. missing: names of the facts that leave it open."""

    code: Annotated[str, StringConstraints(max_length=8)]
    outcome: Literal["COVERED", "NOT_COVERED", "INSUFFICIENT_EVIDENCE"]
    missing: Annotated[list[Name], Field(max_length=4)]


class ClauseClaim(Answer):
    """That a node of a clause's criterion has a status, on these of the answer's facts (places from 0)."""

    clause: Name
    path: Annotated[str, StringConstraints(max_length=40)]
    status: Literal["met", "not_met", "unknown", "presumed"]
    facts: Annotated[list[int], Field(max_length=MAX_FACTS)]


class Synthesis(Answer):
    """A proposed determination."""

    lines: Annotated[list[LineAnswer], Field(min_length=1, max_length=MAX_LINES)]
    facts: Annotated[list[ReadFact], Field(max_length=12)]
    claims: Annotated[list[ClauseClaim], Field(max_length=MAX_CLAIMS)]


class Entailed(Answer):
    """The numbers of the statements that their quotes make; one that is left out is not made by its quote."""

    entailed: Annotated[list[int], Field(max_length=MAX_CLAIMS)]
