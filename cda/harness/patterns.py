"""Patterns that cost no more than the text they read is long."""

import re

_LONGEST_GAP = 8


def bounded(pattern: str, flags: int = 0) -> re.Pattern[str]:
    """Compile `pattern` with every unbounded run of white space in it bounded to eight.

    Neighbouring `\\s*` would otherwise try every way to share a long run of blanks among them.
    """
    for blank in (r"\s", r"[ \t]"):
        pattern = pattern.replace(f"{blank}*", f"{blank}{{0,{_LONGEST_GAP}}}")
        pattern = pattern.replace(f"{blank}+", f"{blank}{{1,{_LONGEST_GAP}}}")
    return re.compile(pattern, flags)
