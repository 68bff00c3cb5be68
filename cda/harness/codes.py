"""Procedure and diagnosis codes of a request: one form, known ones apart from the rest."""

from collections.abc import Sequence
from dataclasses import dataclass

from cda.contracts.codes import diagnosis_form, procedure_form
from cda.contracts.policy_tools import Directory


@dataclass(frozen=True, slots=True)
class Codes:
    """known: in order, once each. order: every line's label. unknown: label and reason. An entry that is not shaped
    like a code may be a name: its label is its place, and it is never repeated."""

    known: tuple[str, ...] = ()
    order: tuple[str, ...] = ()
    unknown: tuple[tuple[str, str], ...] = ()
    notes: tuple[str, ...] = ()


def read_codes(entries: Sequence[str], directory: Directory) -> Codes:
    """Procedure codes in upper case without modifiers, which no clause of a policy distinguishes."""
    known: list[str] = []
    order: list[str] = []
    unknown: list[tuple[str, str]] = []
    notes: list[str] = []
    for place, entry in enumerate(entries):
        shaped = procedure_form(entry)
        label = shaped[0] if shaped else f"procedure_codes[{place}]"
        if label in order:
            continue
        order.append(label)
        if shaped is None:
            unknown.append((label, "procedure_codes: the entry is not shaped like a CPT or HCPCS code"))
        elif directory.code_known(label):
            known.append(label)
            if shaped[1]:
                notes.append(f"note: procedure_codes: modifiers of {label} were set aside")
        else:
            unknown.append((label, f"procedure_codes: {label} is not a known code"))
    return Codes(tuple(known), tuple(order), tuple(unknown), tuple(notes))


def read_diagnoses(entries: Sequence[str], directory: Directory) -> Codes:
    """Diagnosis codes in dotted form. One that is not valid is noted and chooses nothing; it halts nothing, since
    diagnosis codes are never facts."""
    known: list[str] = []
    notes: list[str] = []
    for place, entry in enumerate(entries):
        dotted = diagnosis_form(entry)
        if dotted and directory.diagnosis_known(dotted):
            known += [dotted] if dotted not in known else []
        else:
            label = dotted or f"entry {place + 1}"
            notes.append(f"note: diagnosis_codes: {label} is not a valid ICD-10-CM code and was not used")
    return Codes(known=tuple(known), notes=tuple(notes))
