"""Codes and ids in a text, in every form under which somebody may look for them.

A code is one token here, never its fragments: 95249-59 is found by 95249, by its modifier and by itself; E10.65 also
as E1065; a range by each of its members.
"""

import re
from collections.abc import Iterable
from functools import lru_cache

MAX_RANGE = 500

_CPT = r"\d{4}[0-9TUF]"
_HCPCS = r"[A-V]\d{4}"
_ICD10 = r"[A-TV-Z]\d[0-9AB](?:\.[0-9A-Z]{1,4})?"
_IDENT = r"[A-Z]{2,}(?:-[A-Z0-9]+)+(?:\.[A-Za-z0-9]+)*"
_PROCEDURE = rf"(?:{_CPT}|{_HCPCS})"
_FOUND = re.compile(
    rf"(?<![\w.-])(?:(?P<low>{_PROCEDURE})\s*(?:-|–|to|through)\s*(?P<high>{_PROCEDURE})"
    rf"|(?P<code>{_PROCEDURE})-(?P<modifier>[A-Z0-9]{{2}})"
    rf"|(?P<plain>{_IDENT}|{_PROCEDURE}|{_ICD10})"
    rf"|(?i:modifier)\s+(?P<named>[A-Z0-9]{{2}}))(?![\w-]|\.\w)"
)
_DIGITS = re.compile(r"\d+")


def forms(code: str) -> list[str]:
    """One code in full and without its dot, upper case. A policy's, version's or clause's id has its one form."""
    code = code.strip().upper()
    return [code] if "." not in code or "-" in code else [code, code.replace(".", "")]


def codes_in(text: str) -> list[str]:
    """Every form of every code and id that the text names, each once, sorted."""
    found: set[str] = set()
    for match in _FOUND.finditer(text):
        group = match.groupdict()
        if group["low"]:
            found.update(_members(group["low"], group["high"]))
        elif group["code"]:
            found.update((group["code"], f"{group['code']}-{group['modifier']}", modifier(group["modifier"])))
        elif group["named"]:
            found.add(modifier(group["named"]))
        else:
            found.update(forms(group["plain"]))
    return sorted(found)


@lru_cache(maxsize=64)
def codes_asked(query: str) -> frozenset[str]:
    """`codes_in` of a query, which may name codes in lower case too."""
    upper = query.upper()
    return frozenset(codes_in(query)) | frozenset(codes_in(upper) if upper != query else ())


def modifier(code: str) -> str:
    """The token of a procedure code's modifier, kept apart from codes."""
    return f"MOD:{code}"


def all_forms(codes: Iterable[str]) -> list[str]:
    """Every form of the given codes, ranges and modifiers included, each once, sorted."""
    return sorted({form for code in codes for form in _given(code)})


@lru_cache(maxsize=1 << 14)
def _given(code: str) -> tuple[str, ...]:
    return (*forms(code), *codes_in(code.strip().upper()))


def _members(low: str, high: str) -> list[str]:
    """Every code of a range of equal shape; only its ends when it is no rising range or longer than MAX_RANGE."""
    first, last = _DIGITS.search(low), _DIGITS.search(high)
    if first is None or last is None or _DIGITS.sub("#", low) != _DIGITS.sub("#", high):
        return [low, high]
    start, stop, width = int(first[0]), int(last[0]), len(first[0])
    if not start <= stop <= start + MAX_RANGE:
        return [low, high]
    return [_DIGITS.sub(f"{number:0{width}d}", low) for number in range(start, stop + 1)]
