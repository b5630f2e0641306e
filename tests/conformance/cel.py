"""Selectors and derived attributes against recorded answers of k8s.io/dynamic-resource-allocation cel.

A case agrees if, in every recorded environment, the outcome, the value and the class of the error are the recorded ones. The cost
estimate is counted apart, in the notes; an expression that Kubernetes refuses for its cost and we accept is a disagreement.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import attrs
from corpus import entries
from report import Disagreement, Report, sorted_out

from dra_spec.resources.decode import Context, read_object
from dra_spec.resources.slices import Device
from dra_spec.resources.tree import read_documents
from dra_spec.selectors import (
    CelAttribute,
    Environment,
    SelectorDevice,
    SelectorError,
    SelectorSyntaxError,
    compile_derived,
    compile_selector,
)
from dra_spec.selectors.charges import LIMIT

# id of a case -> (why it is right to differ, where that is said)
LISTED: dict[str, tuple[str, str]] = {}
SNAPSHOT = "3d036712930c"
SNAPSHOT_LIMIT = 48  # includes() took no longer lists in that snapshot


@attrs.frozen
class Answer:
    """`estimate`: None if the expression does not compile."""

    outcome: str
    error_class: str = ""
    value: Any = None
    estimate: int | None = None

    def __str__(self) -> str:
        return self.outcome + (f" {self.error_class}" if self.error_class else "") + (f" {self.value}" if self.value is not None else "")


def device_of(entry: dict[str, Any]) -> SelectorDevice:
    content = {k: v for k, v in entry["device"].items() if k != "driver"} | {"name": "dev"}
    device = read_object(Device, read_documents(json.dumps(content), "device")[0], "", Context("device"))
    return SelectorDevice.of(entry["device"].get("driver", ""), "pool", device)


def environment_of(text: str, source: str) -> Environment:
    """`stored,consumable=true,listType=false`."""
    kind, *gates = text.split(",")
    on = {name: value == "true" for name, _, value in (gate.partition("=") for gate in gates)}
    limit = SNAPSHOT_LIMIT if source == SNAPSHOT else None
    if kind == "stored":  # whatever the gates say
        return Environment(includes_limit=limit)
    return Environment(False, on.get("consumable", False), on.get("listType", False), limit)


def answer(entry: dict[str, Any], environment: Environment) -> Answer:
    """What we say of a case in one environment."""
    derived = entry["kind"] != "selector"
    try:
        program = (compile_derived if derived else compile_selector)(entry["expression"], environment=environment)
    except SelectorSyntaxError as error:
        return Answer("compile-error", error.kind)
    device = device_of(entry)
    value: Any = program.value(device) if derived else program.matches(device)  # type: ignore[attr-defined]
    if isinstance(value, SelectorError):
        return Answer("runtime-error", value.kind, None, program.max_cost)
    if not derived:
        return Answer(str(value).lower(), "", None, program.max_cost)
    return Answer("attribute", "", attribute_json(value), program.max_cost)


def attribute_json(value: CelAttribute) -> dict[str, Any]:
    """As in a ResourceSlice."""
    many = isinstance(value, tuple)
    items: list[Any] = list(value) if isinstance(value, tuple) else [value]
    first = items[0] if items else ""
    kind = "bool" if isinstance(first, bool) else "int" if isinstance(first, int) else "string" if isinstance(first, str) else "version"
    plain = [str(i) if kind == "version" else i for i in items]
    return {f"{kind}s": plain} if many else {kind: plain[0]}


def recorded(group: dict[str, Any]) -> Answer:
    return Answer(group["outcome"], group.get("errorClass") or "", group.get("attribute"), group.get("maxCost"))


def run(paths: list[Path]) -> Report:
    """Raises UnreadableFile."""
    agreed = total = costs = equal_costs = 0
    found: list[Disagreement] = []
    for path in paths:
        for entry in entries(path):
            total += 1
            wrong: list[tuple[str, Answer, Answer]] = []
            same_cost, has_cost = True, False
            answers: dict[Environment, Answer] = {}
            for group in entry["observed"]:
                theirs = recorded(group)
                for text in group["environments"]:
                    environment = environment_of(text, entry.get("source", ""))
                    if environment not in answers:
                        answers[environment] = answer(entry, environment)
                    ours = answers[environment]
                    if (ours.outcome, ours.error_class, ours.value) != (theirs.outcome, theirs.error_class, theirs.value):
                        wrong.append((text, theirs, ours))
                    elif theirs.estimate is not None:
                        has_cost = True
                        same_cost = same_cost and ours.estimate == theirs.estimate
                        if theirs.estimate > LIMIT and ours.estimate is not None and ours.estimate <= LIMIT:
                            wrong.append((text, Answer("refused for its cost"), Answer("accepted")))
            costs += has_cost
            equal_costs += has_cost and same_cost
            agreed += not wrong
            if wrong:
                text, theirs, ours = wrong[0]
                found.append(Disagreement(path.name, entry.get("id", entry["expression"]), f"{theirs} in {text}", str(ours)))
    return sorted_out(agreed, total, found, LISTED, [f"cost estimate equal on {equal_costs} of {costs}"])
