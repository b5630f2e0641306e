"""Cases of the conformance corpus (outside the repository) as problems for the solver."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeVar

from dra_spec.allocation.z3_problem import Call, Holding, Problem, WantedClaim
from dra_spec.resources import DeviceClass, Node, Quantity, ResourceClaim, ResourceSlice
from dra_spec.resources.decode import Context, Failed, read_object
from dra_spec.resources.tree import read_documents

CORPUS = os.environ.get("DRA_SPEC_CORPUS", "")
VERSION = "v0.37.2"
T = TypeVar("T")


def cases(name: str) -> Iterator[dict[str, Any]]:
    """The cases of a file, that no API server would hold left out of nothing: the allocator does not validate."""
    path = Path(CORPUS) / "conformance" / name
    text = gzip.decompress(path.read_bytes()).decode() if path.suffix == ".gz" else path.read_text()
    return (json.loads(line) for line in text.splitlines())


def read(cls: type[T], content: dict[str, Any]) -> T:
    """An object, whatever validation would say. Raises Failed if it cannot even be read."""
    return read_object(cls, read_documents(json.dumps(content), "problem")[0], "", Context("problem"))


def problem_of(case: dict[str, Any]) -> Problem:
    """Raises Failed for what cannot be read."""
    given = case["problem"]
    node = read(Node, given["node"])
    claims = [read(ResourceClaim, c) for c in given["claims"]]
    return Problem(
        {c["metadata"]["name"]: read(DeviceClass, c) for c in given["classes"]},
        tuple(read(ResourceSlice, s) for s in given["slices"]),
        {node.name: node},
        (Call("pod", tuple(WantedClaim(c.name, c.spec) for c in claims), (node.name,)),),
        tuple(holdings(given["allocated"])),
        features=frozenset(case["features"]),
    )


def holdings(allocated: dict[str, Any]) -> Iterator[Holding]:
    def name(d: dict[str, Any]) -> str:
        return f"{d['driver']}/{d['pool']}/{d['device']}"

    for device in allocated["devices"]:
        yield Holding(name(device))
    for device in allocated["sharedDevices"]:
        yield Holding(name(device), "", True)
    for device in allocated["consumedCapacity"]:
        amounts = tuple((k, Quantity.parse(str(v)).value) for k, v in device["capacity"].items())
        yield Holding(name(device), "", True, amounts)


def observed(case: dict[str, Any], variant: str = "") -> dict[str, Any]:
    """What upstream answered: the experimental variant, which is the incubating one and more, else the incubating one."""
    answers = case["observed"].get(VERSION, {})
    order = [variant] if variant else ["experimental", "incubating"]
    return next((answers[v] for v in order if answers.get(v, {}).get("supported")), {})


def picks(answer: dict[str, Any]) -> list[list[tuple[str, str]]]:
    """For each claim (request, device) in order."""
    return [
        [(r["request"], f"{r['driver']}/{r['pool']}/{r['device']}") for r in a.get("devices", {}).get("results", [])]
        for a in answer["allocations"]
    ]


__all__ = ["CORPUS", "Failed", "cases", "observed", "picks", "problem_of"]
