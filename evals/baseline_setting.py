"""What `--set-baseline` asks before it writes: a clean tree, floors met, and nothing worse without a reason."""

from collections.abc import Mapping
from typing import Any

from cda.errors import CdaError, UsageError
from evals.baseline import FILE, entry_of, write_baseline
from evals.provenance import working_tree
from evals.suite import Run, Say


class BaselineRefused(CdaError):
    """The run may not become the baseline as it stands."""


def commit_to_name(say: Say) -> str | None:
    """The commit the baseline will name; None, said aloud, without git. Raises UsageError for a tree with changes."""
    tree = working_tree()
    if tree.commit is None:
        say("no git here: the baseline names no commit, and whether the tree is clean was not checked")
        return None
    if tree.dirty:
        few = ", ".join(tree.dirty[:5]) + (" ..." if len(tree.dirty) > 5 else "")
        raise UsageError(f"--set-baseline: the tree has uncommitted changes ({few}); commit or undo them first")
    return tree.commit


def set_to(
    suite: str, run: Run, comparison: Mapping[str, Any] | None, *, commit: str | None, accept: str | None, say: Say
) -> None:
    """Write the run as the suite's baseline. Raises BaselineRefused, exit 1, for what is worse and not accepted."""
    against = [*run.failures, *(comparison["regressions"] if comparison else ())]
    if against and accept is None:
        raise BaselineRefused(
            f"--set-baseline: {'; '.join(against[:5])}{' ...' if len(against) > 5 else ''}. "
            'Mend it, or write it down with --accept "REASON"'
        )
    write_baseline(suite, entry_of(run, commit, accept if against else None))
    say(f"the baseline of {suite} is written to {FILE}")
