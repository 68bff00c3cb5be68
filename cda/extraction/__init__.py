"""Facts from chart language and from structured fields.

`RuleExtractor` reads a narrative, `merge` joins what it found with structured facts; see
docs/reference/fact-definitions.md for the data both work from.
"""

from cda.extraction.extractor import RuleExtractor
from cda.extraction.structured import merge

__all__ = ["RuleExtractor", "merge"]
