"""A policy of an invented payer with a diagnosis node, and a rider that adds a requirement, determine as authored."""

from pathlib import Path
from typing import Any

import pytest
from coverage_world import answer, open_system

from cda.systems.coverage.authored_corpus import build_corpus

pytestmark = pytest.mark.promise("coverage.authored_nodes")

POLICY = """
payer: {payer_id: ZED, name: Zed Health, plans: [{plan_id: ZED-ONE}, {plan_id: ZED-TWO}]}
---
codes: {HCPCS: [K9001]}
---
facts:
  zed_topical_failed: {type: bool, label: topical therapy failed}
  zed_infection: {type: bool, label: active infection}
---
policy:
  policy_id: ZED-1
  title: Zed light box
  doc_type: medical_policy_bulletin
  payer_id: ZED
  codes: [K9001]
  versions:
    - version: v1
      effective_start: 2024-01-01
      effective_end: null
      clauses:
        - id: C1
          section: Coverage Criteria
          codes: [K9001]
          text: A light box is covered for psoriasis after failed topical therapy.
          criterion:
            covers_if:
              all:
                - {diagnosis: ["L40.*"]}
                - {fact: zed_topical_failed, op: "=", value: true}
---
rider:
  rider_id: ZED-RID
  title: Zed rider
  payer_id: ZED
  plan_id: ZED-TWO
  overrides_policy_ids: [ZED-1]
  effective_start: 2024-01-01
  effective_end: null
  clauses:
    - id: C1
      section: Rider
      codes: [K9001]
      text: Policy ZED-1 additionally requires that no active infection is present.
      criterion: {patch: {add_node: {all: [{fact: zed_infection, op: "=", value: false}]}, of: ZED-1}}
"""


@pytest.mark.parametrize("plan", ["ZED-ONE", "ZED-TWO"])
@pytest.mark.parametrize(("dx", "outcome"), [("L40.0", "COVERED"), ("J45.909", "NOT_COVERED")])
def test_diagnosis_nodes_and_added_requirements_determine(tmp_path: Path, plan: str, dx: str, outcome: str) -> None:
    source = tmp_path / "zed.yaml"
    source.write_text(POLICY, encoding="utf-8")
    store = tmp_path / "zed.sqlite"
    build_corpus([source], store)
    raw: dict[str, Any] = {
        "payer_id": "ZED",
        "plan_id": plan,
        "procedure_codes": ["K9001"],
        "diagnosis_codes": [dx],
        "as_of_date": "2024-07-01",
        "question": "Is it covered?",
        "facts": {"zed_topical_failed": True, "zed_infection": False},
    }

    result = open_system(tmp_path / "home", CDA_STORE=store).ask(raw)

    assert answer(result) == (outcome, "DETERMINE"), result.gate.reasons
