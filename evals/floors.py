"""The absolute floors of the coverage suite: what no run may fall below, whatever the baseline says.

They are data (`floors.json`). Two of them hold each other: no false auto-determination, and a share of what can be
determined that must be determined, so that a system that never determines fails.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

FILE = Path(__file__).parent / "floors.json"


def read_floors() -> dict[str, Any]:
    """The floors: `max` and `min` by figure, `both_correct` by sets taken together, `laws` the share that must hold."""
    floors: dict[str, Any] = json.loads(FILE.read_text(encoding="utf-8"))
    return floors


def failures(card: Mapping[str, Any], *, whole: bool = True) -> list[str]:
    """Every floor that the scorecard does not meet, in words.

    For a part of a set (whole False) only what may never happen at all is judged: the figures under `max`. A figure
    without observations fails no floor.
    """
    floors = read_floors()
    found = [
        f"{name} is {card[name]}, at most {limit} is allowed"
        for name, limit in floors["max"].items()
        if card[name] is not None and card[name] > limit
    ]
    if not whole:
        return found
    found += [
        f"{name} is {card[name]}, at least {floor} is asked for"
        for name, floor in floors["min"].items()
        if card[name] is not None and card[name] < floor
    ]
    for group, floor in floors["both_correct"].items():
        rows = [card["per_set"][name] for name in group.split(" + ") if name in card["per_set"]]
        total = sum(row["count"] for row in rows)
        right = total - sum(len(row["misses"]) for row in rows)
        if total and right / total < floor:
            found.append(f"both_correct on {group} is {right / total:.4f} ({right} of {total}), at least {floor}")
    for law, row in card["laws"].items():
        if row["held"] < floors["laws"] * row["pairs"]:
            broken = _few(row["broken"])
            found.append(f"the law {law} holds for {row['held']} of {row['pairs']} pairs; broken: {broken}")
    return found


def _few(names: list[str]) -> str:
    return ", ".join(names[:5]) + (" ..." if len(names) > 5 else "")
