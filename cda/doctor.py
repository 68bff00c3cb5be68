"""`cda doctor`: looks at everything the product needs on this machine and changes nothing."""

import json
from importlib.metadata import entry_points
from typing import TYPE_CHECKING

import click

from cda.errors import UsageError

if TYPE_CHECKING:
    from cda.contracts.health import DoctorCheck, Finding
    from cda.settings import Settings

MARKS = {"ok": "ok  ", "warn": "warn", "fail": "FAIL"}


def examine(settings: "Settings") -> "list[Finding]":
    """The findings of every installed check, in the order of the checks' names."""
    from cda.contracts.health import Finding

    findings: list[Finding] = []
    for point in sorted(entry_points(group="cda.doctor_checks"), key=lambda found: found.name):
        try:
            check: DoctorCheck = point.load()
            findings += check(settings)
        except Exception as error:  # the doctor's own boundary: one broken check hides no other
            detail = f"the check itself failed ({type(error).__name__})"
            findings.append(Finding(name=point.name, state="fail", detail=detail, remedy="install the package again"))
    return findings


def _settings_finding() -> "tuple[Settings | None, Finding]":
    from cda.contracts.health import Finding
    from cda.settings import load_settings

    try:
        settings = load_settings()
    except UsageError as error:
        return None, Finding(name="settings", state="fail", detail=str(error), remedy="correct the variable")
    return settings, Finding(name="settings", state="ok", detail=f"state lives in {settings.home}")


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.pass_context
def doctor(ctx: click.Context, as_json: bool) -> None:
    """Check store, index, embedder and settings; exit 1 when something is broken."""
    settings, first = _settings_finding()
    findings = [first, *(examine(settings) if settings else [])]
    failed = any(finding.state == "fail" for finding in findings)
    if as_json:
        document = {"ok": not failed, "findings": [finding.model_dump() for finding in findings]}
        click.echo(json.dumps(document, indent=2))
    else:
        for finding in findings:
            click.echo(f"{MARKS[finding.state]}  {finding.name}: {finding.detail}")
            if finding.remedy:
                click.echo(f"      -> {finding.remedy}")
    ctx.exit(1 if failed else 0)
