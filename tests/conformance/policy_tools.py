"""What every implementation of `PolicyTools` must do: inherit `PolicyToolsConformance` and give it `tools`.

`tools` and `reference` stand on the same corpus; `reference` is the one in process. Equal answers means equal models.
"""

from collections.abc import Callable
from datetime import date
from typing import Any

import pytest

from cda.contracts.policy_tools import ERROR_CODES, PolicyTools
from cda.errors import PolicyToolError

DAY = date(2024, 3, 15)
CANARY = "123456789"

Call = Callable[[PolicyTools], Any]


def _calls(*calls: tuple[str, Call]) -> list[Any]:
    return [pytest.param(call, id=name) for name, call in calls]


ANSWERED = _calls(
    ("search-plain", lambda t: t.search_policies(["insulin glucose sensor"])),
    ("search-filtered", lambda t: t.search_policies(["insulin"], payer_id="ACM", plan_id="ACM-GOLD", as_of=DAY, k=3)),
    ("search-plan-only", lambda t: t.search_policies(["insulin"], plan_id="ACM-GOLD", k=25)),
    ("search-several", lambda t: t.search_policies(["insulin", "waived", "Zoë 王 §"], codes=["a9276"], k=2)),
    ("search-16", lambda t: t.search_policies([f"question {n}" for n in range(16)], k=1)),
    ("search-superseded", lambda t: t.search_policies(["insulin"], as_of=DAY, include_superseded=True, k=25)),
    ("search-longest", lambda t: t.search_policies(["x" * 8000], k=1)),
    ("clause", lambda t: t.get_clause_by_id("ACM-MP-1.v1.C1")),
    ("clause-undated", lambda t: t.get_clause_by_id("ACM-MP-9.v1.C2")),
    ("clause-rider", lambda t: t.get_clause_by_id("ACM-RID-STEP.C1")),
    ("versions", lambda t: t.list_policy_versions("ACM-MP-1")),
    ("versions-rider", lambda t: t.list_policy_versions("ACM-RID-STEP")),
    ("code", lambda t: t.lookup_code("95249")),
    ("code-payer-date", lambda t: t.lookup_code("A9276", payer_id="ACM", as_of=DAY)),
    ("code-modifier", lambda t: t.lookup_code("95249-59")),
    ("code-lower", lambda t: t.lookup_code(" a9276 ")),
    ("code-ungoverned", lambda t: t.lookup_code("E0607")),
    ("diagnosis", lambda t: t.lookup_code("e10.65")),
    ("riders", lambda t: t.get_plan_riders("ACM-GOLD")),
    ("riders-none", lambda t: t.get_plan_riders("ACM-BASE")),
    ("riders-dated", lambda t: t.get_plan_riders("ACM-GOLD", as_of=date(2025, 1, 1))),
)

REFUSED = [
    pytest.param(call, code, words, id=f"{code}-{number}")
    for number, (call, code, words) in enumerate(
        [
            (lambda t: t.get_clause_by_id(CANARY), "clause_not_found", "search_policies"),
            (lambda t: t.get_clause_by_id(""), "invalid_argument", "clause_id: must not be blank"),
            (lambda t: t.get_clause_by_id(CANARY * 30), "invalid_argument", "clause_id: must have at most 200 char"),
            (lambda t: t.list_policy_versions(CANARY), "policy_not_found", "no policy or rider"),
            (lambda t: t.list_policy_versions(" \t"), "invalid_argument", "policy_id: must not be blank"),
            (lambda t: t.lookup_code(CANARY), "code_not_found", "ICD-10-CM"),
            (lambda t: t.lookup_code("E1065"), "code_not_found", "in full"),
            (lambda t: t.lookup_code("95249", payer_id=CANARY), "payer_not_found", "ACM, ZED"),
            (lambda t: t.lookup_code("9" * 41), "invalid_argument", "code: must have at most 40"),
            (lambda t: t.get_plan_riders(CANARY), "plan_not_found", "case-sensitive"),
            (lambda t: t.get_plan_riders("acm-gold", as_of=DAY), "plan_not_found", "case-sensitive"),
            (lambda t: t.search_policies([]), "invalid_argument", "queries: must have at least 1 items"),
            (lambda t: t.search_policies([CANARY] * 17), "invalid_argument", "queries: must have at most 16 items"),
            (lambda t: t.search_policies(["a", "  "]), "invalid_argument", "queries[1]: must not be blank"),
            (lambda t: t.search_policies([CANARY * 900]), "invalid_argument", "queries[0]: must have at most 8000"),
            (lambda t: t.search_policies(CANARY), "invalid_argument", "queries: must be a list"),
            (lambda t: t.search_policies(["a"], codes=CANARY), "invalid_argument", "codes: must be a list"),
            (lambda t: t.search_policies(["a"], codes=["1"] * 65), "invalid_argument", "codes: must have at most 64"),
            (lambda t: t.search_policies(["a"], k=0), "invalid_argument", "k: must be at least 1"),
            (lambda t: t.search_policies(["a"], k=26), "invalid_argument", "k: must be at most 25"),
            (lambda t: t.search_policies(["a"], k=CANARY), "invalid_argument", "k: must be a whole number"),
            (lambda t: t.search_policies(["a"], payer_id=CANARY), "payer_not_found", "ACM, ZED"),
            (lambda t: t.search_policies(["a"], plan_id=CANARY), "plan_not_found", "case-sensitive"),
            (lambda t: t.search_policies(["a"], payer_id="ZED", plan_id="ACM-GOLD"), "invalid_argument", "plan_id: is"),
            (lambda t: t.search_policies(["a"], payer_id=["x"]), "invalid_argument", "payer_id: must be a string"),
        ]
    )
]


class PolicyToolsConformance:
    """Inherit and override both fixtures."""

    @pytest.fixture
    def tools(self) -> PolicyTools:
        raise NotImplementedError

    @pytest.fixture
    def reference(self) -> PolicyTools:
        raise NotImplementedError

    @pytest.mark.promise("tools.equal_answers")
    @pytest.mark.parametrize("call", ANSWERED)
    def test_the_answer_equals_the_one_in_process(self, tools: PolicyTools, reference: PolicyTools, call: Call) -> None:
        assert call(tools) == call(reference)

    @pytest.mark.promise("tools.equal_errors", "tools.no_echo")
    @pytest.mark.parametrize(("call", "code", "words"), REFUSED)
    def test_the_refusal_has_the_code_and_the_words_of_the_one_in_process_and_no_input(
        self, tools: PolicyTools, reference: PolicyTools, call: Call, code: str, words: str
    ) -> None:
        with pytest.raises(PolicyToolError) as here:
            call(tools)
        with pytest.raises(PolicyToolError) as there:
            call(reference)
        assert (here.value.code, str(here.value)) == (there.value.code, str(there.value))
        assert here.value.code == code
        assert here.value.code in ERROR_CODES
        assert words in str(here.value)
        assert CANARY not in str(here.value)
