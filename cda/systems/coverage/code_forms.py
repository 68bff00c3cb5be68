"""The forms in which a code is written, brought to the one form the corpus holds."""

import re

_PROCEDURE = re.compile(r"([A-Z0-9]{5})(?:-[A-Z0-9]{2})*\Z", re.ASCII)
_HCPCS = re.compile(r"[A-V]\d{4}\Z", re.ASCII)
_DIAGNOSIS = re.compile(r"([A-Z]\d[A-Z0-9])(?:\.?([A-Z0-9]{1,4}))?\Z", re.ASCII)


def procedure_form(text: str) -> str | None:
    """The bare CPT or HCPCS code of `text`: upper case, modifiers dropped ("95249-59" is 95249), or None."""
    match = _PROCEDURE.match(text.strip().upper())
    return match[1] if match else None


def diagnosis_form(text: str) -> str | None:
    """The dotted ICD-10-CM form of `text` ("e11649" is E11.649), or None.

    A letter and four digits without a dot has the shape of an HCPCS code, so it is never read as a diagnosis: E0607 is
    equipment, and guessing E06.07 would answer another question.
    """
    code = text.strip().upper()
    match = None if _HCPCS.match(code) else _DIAGNOSIS.match(code)
    if match is None:
        return None
    return f"{match[1]}.{match[2]}" if match[2] else match[1]
