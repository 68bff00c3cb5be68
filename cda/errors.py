"""The error tree of the application.

    CdaError
    ├── UsageError          wrong option, unreadable file, bad JSON            exit 2, nothing done
    ├── UnavailableError    a needed service, key or file is missing           exit 3, nothing done
    ├── InterruptedRun      out of budget or stopped, can be resumed           exit 4
    ├── CriterionError      a criterion that is not in the expression language
    └── ToolRefusal         a tool's refusal: `code` names it (claim_not_found, ...)
        └── PolicyToolError a policy tool's (clause_not_found, ...)

`backends.errors.BackendError` and `corpus.errors.CorpusError` are the roots of the two trees that do not know this
one; `exit_code` places all of them.
"""

from backends.errors import BackendError
from corpus.errors import CorpusError, CorpusFaults


class CdaError(Exception):
    """Base of every error this application raises on purpose."""


class UsageError(CdaError):
    """The caller's words are off: an unknown option value, an unreadable file, bad JSON."""


class UnavailableError(CdaError):
    """Something that is needed before the first answer is missing or unreachable."""


class InterruptedRun(CdaError):
    """The run was stopped or ran out of budget; what was done is kept and it can be resumed."""


class CriterionError(CdaError):
    """A criterion is not in the closed expression language; the message names the node and the rule."""


class ToolRefusal(CdaError):
    """A tool refused. `code` is a word of ours; the message names nothing that was sent."""

    def __init__(self, code: str, message: str) -> None:
        self.code = code
        super().__init__(message)


class PolicyToolError(ToolRefusal):
    """A policy tool refused. `code` is one of the names in `cda.contracts.policy_tools.ERROR_CODES`."""


def exit_code(error: BaseException) -> int:
    """The process exit code for an error, as listed in `cda --help`."""
    match error:
        case UsageError() | CorpusFaults():
            return 2
        case UnavailableError() | CorpusError() | BackendError():
            return 3
        case InterruptedRun() | KeyboardInterrupt():
            return 4
        case _:
            return 1
