"""Facts from chart language and from structured fields.

`RuleExtractor` reads a narrative, `merge` joins what it found with structured facts, `check_definition` finds the
faults of a definition before anything uses it; see
docs/reference/fact-definitions.md for the data both work from.
"""

from cda.extraction.extractor import RuleExtractor, check_definition
from cda.extraction.structured import merge

__all__ = ["RuleExtractor", "check_definition", "merge"]
