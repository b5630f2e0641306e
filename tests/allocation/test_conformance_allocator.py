"""The allocator against the answers of the Go implementation (k8s.io/dynamic-resource-allocation v0.37.2, variant incubating), from a
corpus outside the repository: the same outcome and the same devices in the same order, or "not encoded"."""

from __future__ import annotations

import gzip
import json
import os
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from dra_spec.allocation import Allocator, DoesNotFit, FatalAllocation, Inventory, UnsupportedFeature
from dra_spec.resources import DeviceClass, Node, ResourceClaim, ResourceSlice
from dra_spec.resources.decode import Context, read_object
from dra_spec.resources.tree import read_documents

CORPUS = os.environ.get("DRA_SPEC_CORPUS", "")
pytestmark = pytest.mark.skipif(not CORPUS, reason="no corpus")
# what this allocator has switched on; a problem that needs less and holds more fields would be answered differently
GATES = {"AdminAccess", "PrioritizedList", "PartitionableDevices", "DeviceTaints", "DeviceBindingAndStatus", "ConsumableCapacity"}


def read(cls: type, content: dict[str, Any]) -> Any:
    return read_object(cls, read_documents(json.dumps(content), "problem")[0], "", Context("problem"))


def solve(problem: dict[str, Any]) -> tuple[str, Any]:
    """(outcome, for each claim its results and node selector as plain data). Wrong problems, as far as validation goes, are read all the same."""
    try:
        node = read(Node, problem["node"])
        classes = [read(DeviceClass, c) for c in problem["classes"]]
        slices = [read(ResourceSlice, s) for s in problem["slices"]]
        claims = [read(ResourceClaim, c).spec for c in problem["claims"]]
        taken = problem["allocated"]
        if taken["sharedDevices"] or taken["consumedCapacity"]:
            return "unsupported", None
        in_use = frozenset(f"{d['driver']}/{d['pool']}/{d['device']}" for d in taken["devices"])
        found = Allocator(Inventory.of(classes, slices, [node])).allocate(claims, node, in_use)
    except DoesNotFit:
        return "no-fit", None
    except FatalAllocation:
        return "error", None
    except UnsupportedFeature:
        return "unsupported", None
    return "fit", [[(r.request, r.driver, r.pool, r.device, r.admin) for r in claim.results] for claim in found]


def expected(observed: dict[str, Any]) -> list[list[tuple[str, str, str, str, bool]]]:
    return [
        [(r["request"], r["driver"], r["pool"], r["device"], r.get("adminAccess", False)) for r in a.get("devices", {}).get("results", [])]
        for a in observed["allocations"]
    ]


def problems(name: str) -> list[dict[str, Any]]:
    path = Path(CORPUS) / "conformance" / name
    text = gzip.decompress(path.read_bytes()).decode() if path.suffix == ".gz" else path.read_text()
    return [json.loads(line) for line in text.splitlines()]


@pytest.mark.parametrize(
    ("name", "least"),
    [("allocator/upstream.jsonl", 100), ("allocator/crafted.jsonl", 50), ("allocator-random/problems.jsonl.gz", 700), ("allocator-random/admin-access-order.jsonl.gz", 20)],
)
def test_answers(name: str, least: int) -> None:
    wrong, decided = [], Counter[str]()
    for case in problems(name)[:1000]:
        answer = case["observed"]["v0.37.2"].get("incubating", {})
        if not answer.get("supported") or answer.get("orderUnstable"):
            continue
        outcome, allocations = solve(case["problem"])
        decided[outcome] += 1
        if outcome == "unsupported":
            continue
        if outcome != answer["outcome"] or (outcome == "fit" and allocations != expected(answer)):
            wrong.append((case["id"], answer["outcome"], outcome, sorted(GATES - set(case["features"]))))
    assert wrong == []
    assert decided.total() - decided["unsupported"] >= least, decided
