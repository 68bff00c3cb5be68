"""The shapes of procedure and diagnosis codes. Bare identifiers only: no descriptor is read or kept anywhere."""

import re

SHAPES: dict[str, tuple[re.Pattern[str], str]] = {
    "CPT": (re.compile(r"(\d{5}|\d{4}[TFU])\Z", re.ASCII), "5 digits, or 4 digits and T, F or U"),
    "HCPCS": (re.compile(r"[A-V]\d{4}\Z", re.ASCII), "one letter A to V and 4 digits"),
    "ICD10CM": (
        re.compile(r"[A-Z][0-9A-Z]{2}(\.[0-9A-Z]{1,4})?\Z", re.ASCII),
        "a letter, 2 letters or digits, then nothing or a dot and 1 to 4 characters",
    ),
}


def system_of(code: str) -> str | None:
    """CPT, HCPCS or ICD10CM by the shape of `code` (upper case, no spaces), or None when it has none of them."""
    return next((system for system, (shape, _) in SHAPES.items() if shape.match(code)), None)
