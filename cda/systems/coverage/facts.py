"""The facts of a case: those that its clauses can use, from the narrative and from structured values."""

from collections.abc import Mapping, Sequence
from typing import Any

from cda.contracts.facts import Fact, FactDefinition
from cda.contracts.policy_tools import ClauseView
from cda.criteria.line import facts_needed
from cda.extraction import RuleExtractor, merge
from cda.extraction.structured import parse_value
from cda.harness.reasoner import Case


class CaseFacts:
    """Reads a case's facts by the corpus's definitions, and judges structured values by their types."""

    def __init__(self, definitions: Mapping[str, FactDefinition]) -> None:
        self._definitions = definitions
        self._extractor = RuleExtractor(definitions)

    def read(
        self, case: Case, clauses: Sequence[ClauseView], *, ignore: Sequence[tuple[int, int]]
    ) -> Mapping[str, Fact]:
        """One Fact for each name that a requested code's clauses can use; see `FactReader`."""
        names = self.needed(case, clauses)
        return self.named(case, names, ignore=ignore)

    def needed(self, case: Case, clauses: Sequence[ClauseView]) -> tuple[str, ...]:
        """The names of those facts, sorted."""
        found = {
            name
            for code in case.codes
            for name in facts_needed(
                procedure_code=code,
                clauses=clauses,
                definitions=self._definitions,
                as_of=case.as_of,
                plan_id=case.request.plan_id,
                payer_id=case.request.payer_id,
            )
        }
        return tuple(sorted(found))

    def named(self, case: Case, names: Sequence[str], *, ignore: Sequence[tuple[int, int]] = ()) -> dict[str, Fact]:
        """The facts of these names. A structured value of another name is kept, so that a derivation can use it."""
        said = self._extractor.extract(case.request.narrative, names, as_of=case.as_of, ignore=ignore)
        return merge(case.request.facts or {}, said, self._definitions)

    def fault(self, name: str, value: Any) -> str | None:
        """Why a structured fact cannot be used, or None; never repeats the value."""
        if name not in self._definitions:
            return "unknown fact name"
        if value is None:
            return None
        try:
            parse_value(self._definitions[name], value)
        except ValueError as error:
            return str(error).removeprefix(f"fact {name}: ")
        return None
