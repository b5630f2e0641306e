"""Random allocation problems with recorded answers and an independent reference (format of allocator-random/)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import allocator
from allocator_case import features_of, given_of, solve
from corpus import entries
from report import Disagreement, Report, sorted_out

from dra_spec.allocation import Settings


def run(paths: list[Path]) -> Report:
    """As for other allocation problems, and our devices against those of the independent search."""
    report = allocator.run(paths)
    bad = {(d.file, d.case) for d in report.disagreements}
    found = list(report.disagreements)
    agreed = report.agreed
    for path in paths:
        for case in entries(path):
            wrong = _against_reference(case)
            if wrong and (path.name, str(case.get("id"))) not in bad:
                found.append(Disagreement(path.name, str(case.get("id")), *wrong))
                agreed -= 1
    return sorted_out(agreed, report.total, found, allocator.EXCEPTIONS, report.notes)


def _against_reference(case: dict[str, Any]) -> tuple[str, str] | None:
    reference = case.get("reference")
    if not reference:
        return None
    outcome, allocations = solve(given_of(case["problem"]), Settings("1.37", features_of(case), "experimental", as_written=True))
    choice = [[i, r.request, r.driver, r.pool, r.device] for i, a in enumerate(allocations) for r in a.devices.results]
    ours = (outcome.partition(" ")[0], choice)
    theirs = (reference["outcome"], [list(c) for c in reference.get("choice") or ()])
    return None if ours == theirs else (f"reference: {theirs}", str(ours))
