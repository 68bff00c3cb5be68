"""The command line's root: help, lazy loading and exit codes."""

import subprocess
import sys
from collections.abc import Callable

import click
import pytest

from cda import cli as root
from cda.errors import CdaError, InterruptedRun, UnavailableError, UsageError


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", "from cda.cli import main; main()", *arguments],
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
        timeout=60,
    )


@pytest.mark.promise("cli.help")
def test_a_bare_command_prints_its_help_and_exits_zero() -> None:
    done = run()
    assert done.returncode == 0
    assert "Exit codes" in done.stdout
    assert all(f"  {code}  " in done.stdout for code in range(5))


@pytest.mark.promise("cli.help")
def test_help_loads_no_engine() -> None:
    code = (
        "import sys; sys.argv=['cda','--help']\nfrom cda.cli import main\ntry:\n main()\nexcept SystemExit: pass\n"
        "heavy = ('numpy','onnxruntime','pydantic','tantivy','rich','mcp','yaml','pypdf')\n"
        "print([m for m in heavy if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=60)
    assert done.stdout.splitlines()[-1] == "[]"


@pytest.mark.promise("cli.exit_codes")
@pytest.mark.parametrize(
    ("error", "code"),
    [
        (UsageError("a file is unreadable"), 2),
        (UnavailableError("no store"), 3),
        (InterruptedRun("budget"), 4),
        (CdaError("drifted"), 1),
        (KeyboardInterrupt(), 4),
        (click.UsageError("no such option"), 2),
    ],
)
def test_an_error_ends_with_its_exit_code_and_one_line(
    error: BaseException,
    code: int,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def fail(**_: object) -> None:
        raise error

    main: Callable[..., object] = fail
    monkeypatch.setattr(root.cli, "main", main)
    with pytest.raises(SystemExit) as stopped:
        root.main()
    assert stopped.value.code == code
    assert str(error) in capsys.readouterr().err


@pytest.mark.promise("cli.exit_codes")
def test_an_unknown_command_is_wrong_usage() -> None:
    done = run("asl")
    assert done.returncode == 2
    assert "asl" in done.stderr


@pytest.mark.promise("cli.doctor")
def test_the_doctor_prints_one_json_document_with_a_remedy_for_each_failure() -> None:
    import json

    done = run("doctor", "--json")
    report = json.loads(done.stdout)
    assert done.returncode == (0 if report["ok"] else 1)
    assert {finding["name"] for finding in report["findings"]} >= {"settings"}
    assert all(finding["remedy"] for finding in report["findings"] if finding["state"] == "fail")
