"""A finding: where, which case, which rule, what is wrong and what to do. And the tags that cases may carry."""

from dataclasses import dataclass

# What makes a chart or a request hard. Closed, so that a tag compares and a typing slip does not open a new kind.
STRESS = frozenset(
    {
        "boundary_day",
        "contradictory",
        "halt",
        "hedged",
        "hostile_clause",
        "injection",
        "missing",
        "near_miss",
        "ocr",
        "payer_text",
        "planned",
        "plea",
        "several_codes",
        "sibling_code",
        "structured",
        "tense",
        "undated",
        "unit_trap",
        "wrong_person",
    }
)


@dataclass(frozen=True, slots=True, order=True)
class Finding:
    """One broken rule. `rule` is its stable name; `message` says what is wrong and what to do."""

    file: str
    case_id: str
    rule: str
    message: str

    def __str__(self) -> str:
        return f"{self.file}: {self.case_id or '(the set)'}: {self.rule}: {self.message}"


Broken = tuple[str, str]
"""(rule, message) of a case, before the file and the case are put to it."""
