"""The forms in which a code is written, brought to the one form that a corpus holds."""

import re

# CPT category I to III and HCPCS level II: five characters, then modifiers of two ("95249-59", "A9276 NU").
_PROCEDURE = re.compile(r"([0-9]{4}[0-9A-Z]|[A-Z][0-9]{4})((?:[-\s:,]+[0-9A-Z]{2})*)\Z")
_HCPCS = re.compile(r"[A-V][0-9]{4}\Z")
_DIAGNOSIS = re.compile(r"([A-Z][0-9][0-9A-Z])\.?([0-9A-Z]{0,4})\Z")


def procedure_form(text: str) -> tuple[str, str] | None:
    """The bare code in upper case and its modifiers ("95249-59" is 95249 and -59), or None for another shape."""
    shaped = _PROCEDURE.match(text.strip().upper())
    return (shaped[1], shaped[2].strip()) if shaped else None


def diagnosis_form(text: str) -> str | None:
    """The dotted ICD-10-CM form of a diagnosis code ("e11649" is E11.649), or None for another shape."""
    shaped = _DIAGNOSIS.match(text.strip().upper())
    return ".".join(filter(None, shaped.groups())) if shaped else None


def is_hcpcs_shaped(text: str) -> bool:
    """True for a letter and four digits. Where a code of either kind may stand, this is never read as a diagnosis
    without its dot: E0607 is equipment, and guessing E06.07 would answer another question."""
    return _HCPCS.match(text.strip().upper()) is not None
