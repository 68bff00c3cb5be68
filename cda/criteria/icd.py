"""ICD-10-CM patterns: a whole code, or a prefix that ends in `*`.

`E10.*` takes E10.9 and E10.65 but not E10 itself, `E10*` takes all three. Codes are compared in dotted upper-case form.
"""

import re

from cda.contracts.codes import diagnosis_form

_PATTERN = re.compile(r"[A-Z][0-9][0-9A-Z](?:\.[0-9A-Z]{0,4})?\*|[A-Z][0-9][0-9A-Z](?:\.[0-9A-Z]{1,4})?")


def is_pattern(text: object) -> bool:
    """True for a pattern this language reads: category, optional dotted rest, optional final `*`."""
    return isinstance(text, str) and _PATTERN.fullmatch(text) is not None


def matches(pattern: str, code: str) -> bool:
    """True when `code`, in any of its usual forms, is one of those that `pattern` names."""
    code = diagnosis_form(code) or code
    return code.startswith(pattern[:-1]) if pattern.endswith("*") else code == pattern


def any_matches(patterns: tuple[str, ...], codes: tuple[str, ...]) -> bool:
    """True when some code matches some pattern."""
    return any(matches(pattern, code) for pattern in patterns for code in codes)
