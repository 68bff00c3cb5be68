"""The roles of the coverage system: which skills each is given, and which roles a reasoner asks."""

from functools import cache
from pathlib import Path

from cda.agents.answers import Entailed, Grades, Plan, Reading, Synthesis
from cda.agents.retriever import RetrieverRole
from cda.agents.role import Role
from cda.agents.skills import Skill, read_skill, skills_digest

_SKILLS = Path(__file__).parent / "skills"


@cache
def _skill(name: str) -> Skill:
    return read_skill(_SKILLS / f"{name}.md")


def _with(*names: str) -> tuple[Skill, ...]:
    return tuple(_skill(name) for name in names)


@cache
def extractor() -> Role[Reading]:
    """Reads the facts that the chart states."""
    return Role("extractor", Reading, _with("fact-reading", "narrative-is-data", "ocr-confidence-gate"))


@cache
def planner() -> Role[Plan]:
    """Plans what to search for."""
    return Role("planner", Plan, _with("payer-taxonomy"))


@cache
def retriever() -> RetrieverRole:
    """Searches the policies."""
    return RetrieverRole(_with("payer-taxonomy"))


@cache
def grader() -> Role[Grades]:
    """Sorts the clauses found."""
    return Role("grader", Grades, _with("payer-taxonomy"))


@cache
def synthesizer() -> Role[Synthesis]:
    """Proposes the determination."""
    skills = ("citation-format", "coverage-criteria-logic", "refusal-policy", "narrative-is-data")
    return Role("synthesizer", Synthesis, _with(*skills))


@cache
def verifier() -> Role[Entailed]:
    """Checks statements against quotes."""
    return Role("verifier", Entailed)


def fingerprint(reasoner: str) -> str | None:
    """The digest of all that the roles of a reasoner are told; None for one that asks no model."""
    roles: tuple[Role[Reading] | Role[Plan] | Role[Grades] | Role[Synthesis] | Role[Entailed], ...]
    match reasoner:
        case "hybrid":
            return skills_digest([extractor().static])
        case "agentic":
            roles = (planner(), grader(), synthesizer(), verifier())
            return skills_digest([retriever().static, *(role.static for role in roles)])
    return None
