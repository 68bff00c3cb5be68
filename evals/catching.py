"""Whether a planted fault was caught, and by the step that owns it."""

from dataclasses import dataclass

from cda.contracts.decision import GateState, RunResult
from evals.case_model import VerifierCase


@dataclass(frozen=True, slots=True)
class Caught:
    """What became of one planted fault. right: it was caught by its owner, or, being no fault, passed as it stands.
    by: what caught it first, in the form of `VerifierCase.caught_by`."""

    case_id: str
    fault: str
    expected: str
    by: tuple[str, ...]
    gate: str
    right: bool


def judge(case: VerifierCase, result: RunResult) -> Caught:
    """Hold the run against the case."""
    by = _catchers(case, result)
    owned = case.caught_by in by if case.caught_by else not any(name.startswith("verifier.") for name in by)
    right = owned and result.gate.state.value == case.expected_gate
    return Caught(case.case_id, case.fault, case.caught_by, by, result.gate.state.value, right)


def _catchers(case: VerifierCase, result: RunResult) -> tuple[str, ...]:
    if result.gate.state is GateState.HALT and result.preflight.halt_reason:
        return (f"halt.{result.preflight.halt_reason.split(':', 1)[0]}",)
    checks = [check for check in result.verification.checks if check.reason]
    named = [check for check in checks if check.claim_index == case.claim] if case.caught_by else checks
    steps = [f"verifier.{check.reason.split(':', 1)[0]}" for check in named]
    kinds = [f"gate.{reason.split(':', 1)[0]}" for reason in result.gate.reasons if ":" in reason]
    return tuple(dict.fromkeys(steps + kinds))
