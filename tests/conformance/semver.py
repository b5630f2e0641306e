"""Semantic versions against recorded answers of the semver functions of the Kubernetes CEL environment."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from corpus import entries
from quantities import cel, literal
from report import Disagreement, Report, sorted_out

from dra_spec.resources import SemVer

# input -> (why it is right to differ, where that is said)
LISTED: dict[str, tuple[str, str]] = {}


def run(paths: list[Path]) -> Report:
    """Raises UnreadableFile."""
    agreed = total = 0
    found: list[Disagreement] = []
    for path in paths:
        for entry in entries(path):
            total += 1
            ours = _compared(entry["a"], entry["b"]) if "a" in entry else _read(entry["input"])
            wrong = [key for key in ours if key in entry and entry[key] != ours[key]]
            agreed += not wrong
            if wrong:
                case = entry["input"] if "input" in entry else f"{entry['a']} and {entry['b']}"
                found.append(Disagreement(path.name, case, f"{wrong[0]} {entry[wrong[0]]}", str(ours[wrong[0]])))
    return sorted_out(agreed, total, found, LISTED)


def _parsed(text: str, *, normalize: bool) -> SemVer | None:
    try:
        return SemVer.parse_normalized(text) if normalize else SemVer.parse(text)
    except ValueError:
        return None


def _read(text: str) -> dict[str, Any]:
    strict, lenient = _parsed(text, normalize=False), _parsed(text, normalize=True)
    version = strict or lenient
    return {
        "isSemver": cel(f"isSemver({literal(text)})"),
        "isSemverNormalized": cel(f"isSemver({literal(text)}, true)"),
        "parsed": None if strict is None else str(strict),
        "normalized": None if lenient is None else str(lenient),
        **{name: None if version is None else _int64(getattr(version, name)) for name in ("major", "minor", "patch")},
    }


def _int64(number: int) -> int:
    """An unsigned number as CEL's int shows it."""
    return (number + 2**63) % 2**64 - 2**63


def _compared(a: str, b: str) -> dict[str, Any]:
    left, right = f"semver({literal(a)})", f"semver({literal(b)})"
    order = next((n for n in (-1, 0, 1) if cel(f"{left}.compareTo({right}) == {n}") is True), None)
    return {
        "compareTo": order,
        "equal": cel(f"{left} == {right}"),
        "isLessThan": cel(f"{left}.isLessThan({right})"),
        "isGreaterThan": cel(f"{left}.isGreaterThan({right})"),
    }
