"""What `cda doctor` reports."""

from typing import Literal, Protocol

from pydantic import BaseModel, ConfigDict

from cda.settings import Settings


class Finding(BaseModel):
    """One thing looked at. `remedy` is the command or change that mends it; empty when all is well."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    state: Literal["ok", "warn", "fail"]
    detail: str
    remedy: str = ""


class DoctorCheck(Protocol):
    """An entry point of the group `cda.doctor_checks`."""

    def __call__(self, settings: Settings) -> list[Finding]:
        """Look, change nothing, never raise: a check that cannot look reports that as a finding."""
        ...
