"""What is wrong with objects, against the findings of the API's validation (format of validation/).

The project has no API validation. It has located checks of manifests, for new objects, and the reference's API server checks what the
protocol lives on when claims are updated. A valid object must be accepted. An invalid one agrees if the places and kinds of all findings
are the same. It disagrees if it breaks a rule that manifests are checked for (`validation_rules`) and no problem is reported where and as
recorded. Else it is not compared: other rules, or further findings, as the rules over a whole object wait until its parts are right.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

from apiserver import is_checked
from corpus import entries
from report import Disagreement, Report, sorted_out
from validation_rules import covered

from dra_spec.allocation.admission import ApiServer as Admission
from dra_spec.allocation.gates import gates_of
from dra_spec.reference.apiserver import CLAIM, ApiServer
from dra_spec.reference.errors import Invalid
from dra_spec.resources.problems import ManifestError, Problem
from dra_spec.resources.reader import load_text

# case id -> (why it is right to differ, where that is said)
LISTED: dict[str, tuple[str, str]] = {
    "ResourceClaim/create/first-available-with-zero-exactly-fails-old-validation": (
        "refused, but for the empty class name inside `exactly`: rules over a whole request wait until its parts are right",
        "pkg/apis/resource/validation, validateDeviceRequest",
    ),
}
VERSION = "1.37"
DRIVER = "driver.example.com"
# code of a problem -> the kinds of findings that say the same
KINDS = {
    "DRA111": {"Required"},
    "DRA112": {"Invalid"},
    "DRA113": {"Invalid", "Required", "TooLong"},
    "DRA114": {"NotSupported"},
    "DRA115": {"TooLong", "TooMany", "Invalid"},
    "DRA116": {"Invalid"},
    "DRA117": {"Duplicate"},
    "DRA118": {"Invalid", "Required", "Forbidden", "TooMany"},
    "DRA130": {"Invalid", "Forbidden", "TooLong"},
}
SWITCHED_OFF = "DRA140"  # validation proper comes after the fields of gates that are off have been dropped
ACCEPTED = "invalid by rules that manifests are not checked for"
OTHERS = "refused for a recorded reason, but with more or fewer findings"
UNCHECKED = "an update that breaks a rule which the reference does not check"


class NotCompared(Exception):
    """The reason."""


def run(paths: list[Path]) -> Report:
    """Raises UnreadableFile."""
    agreed = total = valid = 0
    found: list[Disagreement] = []
    omitted: Counter[str] = Counter()
    for path in paths:
        for case in entries(path):
            try:
                wrong = compared(case)
            except NotCompared as reason:
                omitted[str(reason)] += 1
                continue
            total += 1
            agreed += wrong is None
            valid += case["valid"]
            if wrong is not None:
                found.append(Disagreement(path.name, str(case.get("id")), *wrong))
    return sorted_out(agreed, total, found, LISTED, [f"{valid} valid cases among them"], omitted)


def compared(case: dict[str, Any]) -> tuple[str, str] | None:
    """(recorded, ours) if they differ. Raises NotCompared."""
    kind = "DeviceCapacity" if "capacity" in case else (case.get("object") or case["new"]).get("kind")
    if kind == "ResourcePoolStatusRequest":
        raise NotCompared("a kind that is not read")
    if case["operation"] == "create":
        return _created(case)
    if case["valid"] and (problems := read(case["new"], case.get("gates") or {})):
        return "valid", str(problems[0])
    if kind == CLAIM:
        return _updated(case)
    if case["valid"]:
        return None
    raise NotCompared("updates of kinds that the reference does not have")


def _created(case: dict[str, Any]) -> tuple[str, str] | None:
    problems = read(case["object"] if "object" in case else slice_with(case["capacity"]), case.get("gates") or {})
    if case["valid"]:
        return ("valid", str(problems[0])) if problems else None
    recorded = {(error["field"], error["type"]) for error in case["errors"]}
    said = [(places(problem), KINDS.get(problem.code, set())) for problem in problems]
    met = {(field, kind) for field, kind in recorded if any(field in at and kind in kinds for at, kinds in said)}
    if recorded == met and all(any(field in at and kind in kinds for field, kind in recorded) for at, kinds in said):
        return None
    if met:
        raise NotCompared(OTHERS)
    if any(covered(field, kind) for field, kind in recorded):
        return ", ".join(f"{field} {kind}" for field, kind in sorted(recorded)), "; ".join(map(str, problems)) or "no problem"
    raise NotCompared(ACCEPTED)


def places(problem: Problem) -> set[str]:
    """How the API names the place of a problem: for the key of a mapping, the mapping."""
    path = problem.where.path.replace("spec.devices[0].capacity[amount]", "spec.devices.capacity")
    return {problem.where.path, path, re.sub(r"\[(?!\d+\])[^\]]*\]$", "", path)}


def read(obj: dict[str, Any], gates: dict[str, bool]) -> list[Problem]:
    """What is wrong with an object as a manifest, and with its selectors for an API server with these gates."""
    try:
        Admission.of(VERSION, {gate: on for gate, on in gates.items() if _may_be(gate, on)}).admit(load_text(json.dumps(obj)))
    except ManifestError as error:
        return [problem for problem in error.problems if problem.code != SWITCHED_OFF]
    return []


def _may_be(gate: str, on: bool) -> bool:
    try:
        gates_of(VERSION, {gate: on})
    except ValueError:  # unknown, or locked: status updates are recorded as of an older release
        return False
    return True


def slice_with(capacity: dict[str, Any]) -> dict[str, Any]:
    """A slice whose only device has this capacity."""
    device = {"name": "d", "allowMultipleAllocations": True, "capacity": {"amount": capacity}}
    spec = {"driver": DRIVER, "allNodes": True, "pool": {"name": "p", "generation": 1, "resourceSliceCount": 1}, "devices": [device]}
    return {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice", "metadata": {"name": "s"}, "spec": spec}


def _updated(case: dict[str, Any]) -> tuple[str, str] | None:
    """An update of a claim, sent to the reference's API server."""
    server = ApiServer()
    old, new = _stored(case["old"]), _stored(case["new"])
    server._objects = {CLAIM: {old["metadata"]["name"]: old}}
    recorded = ", ".join(f"{e['field']} {e['type']}" for e in case["errors"]) or "valid"
    if not case["valid"] and not any(is_checked(error["field"], error["type"]) for error in case["errors"]):
        raise NotCompared(UNCHECKED)
    try:
        (server.update_status if case["operation"] == "status-update" else server.update)(CLAIM, new)
    except Invalid as error:
        return (recorded, str(error)) if case["valid"] else None
    return None if case["valid"] else (recorded, "valid")


def _stored(obj: dict[str, Any]) -> dict[str, Any]:
    meta = {"uid": "u", "resourceVersion": "1", **obj["metadata"]}
    return {"status": {}, **obj, "metadata": {key: value for key, value in meta.items() if value != ""}}
