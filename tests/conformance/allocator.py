"""Allocation problems with recorded answers (format of allocator/)."""

from __future__ import annotations

from pathlib import Path

from allocator_case import compared, solved
from corpus import entries
from report import Disagreement, Report, sorted_out

# case id -> (why it is right to differ, where that is said)
EXCEPTIONS: dict[str, tuple[str, str]] = {}


def run(paths: list[Path]) -> Report:
    """Compares devices, counters, capacities, configuration and node selector with each variant's answer of each known version; and the
    solver's verdict (fits, no-fit, fatal) and devices with the reference allocator's."""
    agreed = total = answers = undecided = 0
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
                theirs, ours = solved(case)
                undecided += ours.startswith("unknown")
                if theirs == ours or ours.startswith("unknown"):
                    agreed += 1
                else:
                    found.append(Disagreement(path.name, str(case.get("id")), f"reference allocator: {theirs}", f"solver: {ours}"))
    notes = [f"{answers} answers of {total} cases compared"]
    return sorted_out(agreed, total, found, EXCEPTIONS, [*notes, f"solver undecided on {undecided}"] if undecided else notes)
