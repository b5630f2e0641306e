"""The reference's kubelet beside the real DRA manager: the same operations, then result, cache and file (format of kubelet/).

A sequence is followed up to its first operation that the reference does not have; the steps after it are not compared. Where the real
manager may go on in any order, the reference agrees if it does as in one of the recorded traces.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs
from corpus import entries
from kubelet_harness import Harness, Unsupported, real
from report import Disagreement, Report, sorted_out

# "sequence step" -> (why it is right to differ, where that is said)
LISTED: dict[str, tuple[str, str]] = {}
NOT_SEEN = "the order that the reference takes was not observed"


@attrs.frozen
class Followed:
    """How far a sequence was followed: steps that agree; the disagreement with its step, if any; why the rest was left out."""

    agreed: int
    disagreement: tuple[int, str, str] | None = None
    reason: str = ""


def run(paths: list[Path]) -> Report:
    """Counts steps. Request names, CDI ids of single requests, RPCs and messages are not compared. Raises UnreadableFile."""
    agreed = total = whole = sequences = 0
    found: list[Disagreement] = []
    omitted: Counter[str] = Counter()
    for path in paths:
        for sequence in entries(path):
            sequences += 1
            done = follow(sequence)
            agreed += done.agreed
            total += done.agreed + (done.disagreement is not None)
            rest = len(sequence["steps"]) - done.agreed
            if done.disagreement is not None:
                number, expected, ours = done.disagreement
                found.append(Disagreement(path.name, f"{sequence['id']} step {number}", expected, ours))
                omitted["after a disagreement"] += rest - 1
            elif done.reason:
                omitted[done.reason] += rest
            whole += not rest
    return sorted_out(agreed, total, found, LISTED, [f"steps of {sequences} sequences, {whole} of them whole"], +omitted)


def follow(sequence: dict[str, Any]) -> Followed:
    """Follows a sequence; one whose answers vary in two orders, of which the better counts."""
    first = _follow(sequence, last_first=False)
    if "nondeterministic" not in sequence or first.disagreement is None:
        return first
    second = _follow(sequence, last_first=True)
    if second.disagreement is None or second.agreed > first.agreed:
        first = second
    if first.disagreement is not None and sequence.get("allOrdersObserved") is False:
        return Followed(first.agreed, reason=NOT_SEEN)
    return first


def _follow(sequence: dict[str, Any], *, last_first: bool) -> Followed:
    left = traces(sequence)
    with tempfile.TemporaryDirectory() as directory:
        number = 0
        try:
            harness = Harness(Path(directory), sequence["initial"], last_first=last_first)
            for number, step in enumerate(sequence["steps"]):
                result = harness.perform(step["operation"], left[0][number]["result"])
                ours = {"result": result, "memory": harness.memory(), "checkpoint": harness.checkpoint()}
                fitting = [trace for trace in left if not differences(trace[number], ours)]
                if not fitting:
                    field, expected = differences(left[0][number], ours)[0]
                    return Followed(number, (number, f"{field} {expected} after {_short(step['operation'])}", str(ours[field])))
                left = fitting
        except Unsupported as reason:
            return Followed(number, reason=str(reason))
        except AssertionError as error:  # a call that neither ends nor waits for an answer
            return Followed(number, (number, f"an end of {_short(sequence['steps'][number]['operation'])}", str(error)))
    return Followed(len(sequence["steps"]))


def differences(step: dict[str, Any], ours: dict[str, Any]) -> list[tuple[str, Any]]:
    """(field, recorded) where a recorded step and ours differ. A result of None is not compared."""
    found: list[tuple[str, Any]] = []
    if ours["result"] is not None:
        expected = {key: step["result"][key] for key in ("outcome", "class", "value") if key in step["result"]}
        if step["operation"]["op"] == "get_resources" and expected["outcome"] == "ok":
            expected["cdiDevices"] = step["result"].get("cdiDevices") or []
        if expected != ours["result"]:
            found.append(("result", expected))
    recorded: list[tuple[str, Callable[[Any], Any]]] = [("memory", real), ("checkpoint", real)]
    return found + [(field, read(step[field])) for field, read in recorded if read(step[field]) != ours[field]]


def traces(sequence: dict[str, Any]) -> list[list[dict[str, Any]]]:
    """All recorded traces, the most frequent one first."""
    found = [sequence["steps"]]
    for other in sequence.get("otherTraces", ()):
        steps = [dict(step) for step in sequence["steps"]]
        for difference in other["differs"]:
            steps[difference["step"]][difference["field"]] = difference["value"]
        found.append(steps)
    return found


def _short(operation: dict[str, Any]) -> str:
    return ", ".join(f"{key} {value}" for key, value in operation.items() if isinstance(value, str))
