"""Small functions about claims and pods, against recorded answers of k8s.io/dynamic-resource-allocation (format of lifecycle/)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from corpus import entries
from objects import build
from report import Disagreement, Report, sorted_out

from dra_spec.allocation.constraints import tolerates
from dra_spec.allocation.results import configs_for_request
from dra_spec.reference.shapes import claim_name, consumer, is_for, reserved_for, uid_of
from dra_spec.resources.claims import main_request
from dra_spec.resources.meta import DeviceConfig, Toleration
from dra_spec.resources.slices import Taint

LISTED: dict[str, tuple[str, str]] = {}
NO_GROUPS = "the protocol has no pod groups"
NO_EQUAL = "no function: statuses are compared as plain data"
NO_EMPTY = "entries without claim and template are refused when manifests are read"


class NotCompared(Exception):
    """The project has no such function; the reason."""


def run(paths: list[Path]) -> Report:
    """An error is compared as such, without its text. Raises UnreadableFile."""
    agreed = total = 0
    found: list[Disagreement] = []
    omitted: Counter[str] = Counter()
    for path in paths:
        for case in entries(path):
            try:
                expected, ours = compared(case)
            except NotCompared as reason:
                omitted[f"{case['function']}: {reason}"] += 1
                continue
            total += 1
            agreed += expected == ours
            if expected != ours:
                found.append(Disagreement(path.name, str(case.get("id")), str(expected), str(ours)))
    return sorted_out(agreed, total, found, LISTED, omitted=omitted)


def compared(case: dict[str, Any]) -> tuple[Any, Any]:
    """(recorded, ours). Raises NotCompared."""
    function = FUNCTIONS.get(case["function"])
    if function is None:
        raise NotCompared("no such function")
    return function(case["input"], case["expected"])


def _base(given: dict[str, Any], expected: dict[str, Any]) -> tuple[Any, Any]:
    return expected["baseRequestRef"], main_request(given["requestRef"])


def _configs(given: dict[str, Any], expected: dict[str, Any]) -> tuple[Any, Any]:
    built = [build(DeviceConfig, c) for c in given.get("deviceConfigurations") or ()]
    return tuple(build(DeviceConfig, c) for c in expected.get("configs") or ()), configs_for_request(given["result"]["request"], built)


def _tolerates(given: dict[str, Any], expected: dict[str, Any]) -> tuple[Any, Any]:
    return expected["tolerated"], tolerates(build(Toleration, given["toleration"]), build(Taint, given["taint"]))


def _is_for(given: dict[str, Any], expected: dict[str, Any]) -> tuple[Any, Any]:
    _pods_only(given)
    return expected["error"] is None, is_for(given["claim"], given["pod"])


def _reserved(given: dict[str, Any], expected: dict[str, Any]) -> tuple[Any, Any]:
    _pods_only(given)
    return expected["result"], reserved_for({"status": {}, **given["claim"]}, uid_of(given["pod"]))


def _target(given: dict[str, Any], expected: dict[str, Any]) -> tuple[Any, Any]:
    if given.get("podGroup"):
        raise NotCompared(NO_GROUPS)
    if expected.get("error"):
        raise NotCompared(NO_EMPTY)
    return expected["value"], consumer(given["pod"])


def _claim_name(given: dict[str, Any], expected: dict[str, Any]) -> tuple[Any, Any]:
    """The claim's name, None for an error or a claim that is not needed; and whether its owner is to be checked."""
    entry = given["podClaim"]
    name = claim_name({"status": {}, **given["pod"]}, entry)
    recorded = (expected.get("name"), expected["check"])
    return recorded, (name, name is not None and "resourceClaimTemplateName" in entry)


def _pods_only(given: dict[str, Any]) -> None:
    in_group = given.get("acceptPodGroup") and given["pod"]["spec"].get("schedulingGroup")
    if in_group or given["pod"].get("kind") != "Pod":
        raise NotCompared(NO_GROUPS)


def _never(reason: str) -> Callable[[dict[str, Any], dict[str, Any]], tuple[Any, Any]]:
    def refuse(given: dict[str, Any], expected: dict[str, Any]) -> tuple[Any, Any]:
        raise NotCompared(reason)

    return refuse


FUNCTIONS: dict[str, Callable[[dict[str, Any], dict[str, Any]], tuple[Any, Any]]] = {
    "base-request-name": _base,
    "configs-for-result": _configs,
    "tolerates": _tolerates,
    "claim-is-for": _is_for,
    "claim-is-reserved-for-pod": _reserved,
    "reservation-target": _target,
    "claim-name-of-pod-claim": _claim_name,
    "claim-name-of-podgroup-claim": _never(NO_GROUPS),
    "pod-claim-statuses-equal": _never(NO_EQUAL),
    "pod-extended-resource-status-equal": _never(NO_EQUAL),
}
