"""The `cda` command: a group whose commands come from entry points. No business logic, nothing heavy imported."""

import gc
import io
import os
import sys

import click

from cda.entry_point_group import EntryPointGroup
from cda.errors import CdaError, exit_code

EXIT_CODES = """\b
Exit codes
  0  done
  1  the command ran and its answer is a failure
  2  wrong usage, unreadable file or bad JSON: nothing done
  3  a needed service, key or file is missing or unreachable: nothing done
  4  interrupted or out of budget, resumable
"""


@click.command(
    cls=EntryPointGroup,
    points="cda.commands",
    epilog=EXIT_CODES,
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
)
@click.version_option(package_name="coverage-determination-agent", prog_name="cda")
def cli() -> None:
    """Dated, cited coverage determinations: does payer P, under plan L, cover procedure C as of date T, and which
    clause says so?"""


def main() -> None:
    """Run the command line; every deliberate error is one line on stderr and an exit code of the list in `--help`."""
    code = 0
    # A cold start makes hundreds of thousands of objects that all stay: looking through them for garbage over and over
    # took 0.1 s of a question's second. Garbage is still collected, in larger heaps.
    gc.set_threshold(50_000)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # JSON is UTF-8 whatever the locale, and no letter of a chart may stop an answer.
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")
    try:
        result = cli.main(standalone_mode=False)
        code = result if isinstance(result, int) else 0
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.ctx.get_help() if error.ctx else error.format_message())
    except click.ClickException as error:
        error.show()
        code = 2
    except (click.Abort, KeyboardInterrupt):
        click.echo("interrupted", err=True)
        code = 4
    except BrokenPipeError:
        # The reader went away (`cda ... | head`): nothing more can be said to it, and nothing is wrong here.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except Exception as error:
        if not isinstance(error, CdaError) and exit_code(error) == 1:
            raise
        click.echo(f"cda: {error}", err=True)
        code = exit_code(error)
    sys.exit(code)
