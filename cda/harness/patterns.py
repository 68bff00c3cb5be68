"""Patterns that cost no more than the text they read is long."""

import re
from functools import cache

from cda.patterns import compiled

_LONGEST_GAP = 8


@cache
def bounded(pattern: str, flags: int = 0) -> re.Pattern[str]:
    """Compile `pattern` with every unbounded run of white space in it bounded to eight; kept once compiled.

    Neighbouring `\\s*` would otherwise try every way to share a long run of blanks among them. Rules hold their source
    and ask here when they are tried, since compiling them all would take longer than answering a request.
    """
    for blank in (r"\s", r"[ \t]"):
        pattern = pattern.replace(f"{blank}*", f"{blank}{{0,{_LONGEST_GAP}}}")
        pattern = pattern.replace(f"{blank}+", f"{blank}{{1,{_LONGEST_GAP}}}")
    return compiled(pattern, flags)
