"""Allocation problems with recorded answers (format of allocator/)."""

from __future__ import annotations

from pathlib import Path

from allocator_case import compared
from corpus import entries
from report import Disagreement, Report, sorted_out

# case id -> (why it is right to differ, where that is said)
EXCEPTIONS: dict[str, tuple[str, str]] = {}


def run(paths: list[Path]) -> Report:
    """Compares devices, counters, capacities, configuration and node selector with each variant's answer of each known version."""
    agreed = total = answers = 0
    found: list[Disagreement] = []
    for path in paths:
        for case in entries(path):
            total += 1
            checked = list(compared(case))
            wrong = [c for c in checked if c[1] != c[2]]
            answers += len(checked)
            if not checked:
                found.append(Disagreement(path.name, str(case.get("id")), "an answer of a known version", "none"))
            elif wrong:
                where, expected, ours = wrong[0]
                found.append(Disagreement(path.name, str(case.get("id")), f"{where}: {expected}", ours))
            else:
                agreed += 1
    return sorted_out(agreed, total, found, EXCEPTIONS, [f"{answers} answers of {total} cases compared"])
