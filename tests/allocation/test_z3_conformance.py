"""The solver against the answers of the Go implementation (k8s.io/dynamic-resource-allocation v0.37.2) from a corpus outside this project.

Where upstream fits, the solver's first allocation has the same devices in the same order, and the validator has nothing against
upstream's. Where upstream finds nothing, there is nothing. Where upstream aborts, the solver refuses too or knows the error that upstream's
search may run into.
"""

from __future__ import annotations

from collections import Counter
from itertools import islice
from typing import Any

import pytest
from z3_cases import CORPUS, cases, observed, picks, problem_of

from dra_spec.allocation import FatalAllocation, UnsupportedFeature
from dra_spec.allocation.validator import broken_rules
from dra_spec.allocation.z3_groups import World
from dra_spec.allocation.z3_problem import Pick, Problem, Solution
from dra_spec.allocation.z3_solve import first

pytestmark = pytest.mark.skipif(not CORPUS, reason="no corpus")

# objects that no API server holds, and that reading makes into other ones
UNREADABLE = {
    "upstream/partitionable-devices-device-counter-consumption-references-unknown-counter-set": "a consumption without counters",
    "upstream/partitionable-devices-same-counter-set-name-in-different-resource-slices": "a counter set without counters",
    "upstream/unknown-allocation-mode": "an allocation mode that does not exist",
    "upstream/unknown-selector": "a selector without an expression",
    "crafted/unknown-mode": "an allocation mode that does not exist",
    "crafted/count-zero": "the API server makes count 0 a 1",
}
# upstream finds nothing though an allocation exists by the rules as they are read here: case -> reason
INCOMPLETE: dict[str, str] = {}


def outcome(case: dict[str, Any]) -> str:
    """Compares one case; gives what it was, for the count. Fails if they disagree."""
    answer = observed(case)
    if not answer:
        return "not supported upstream"
    problem = problem_of(case)
    try:
        found = first(problem)
    except FatalAllocation:
        assert answer["outcome"] == "error", case["id"]
        return "error"
    except UnsupportedFeature as error:
        return f"not encoded: {error.feature}"
    if answer["outcome"] == "fit":
        assert found is not None, case["id"]
        mine = [[(p.request, p.device) for p in found.picks if p.claim == i] for i in range(len(problem.claims))]
        assert mine == picks(answer), case["id"]
        assert not broken_rules(problem, Solution(found.nodes, upstream_picks(answer))), case["id"]
    elif answer["outcome"] == "no-fit":
        assert found is None or case["id"] in INCOMPLETE, case["id"]
    elif found is not None:
        # the search runs into an error before it gets to the allocation: a selector that fails, or a constraint that refuses a device of
        # an alternative that wants all
        refused = "claim constraint would not be satisfied" in answer["error"]
        assert World(problem).table.errors or (refused and has_all(problem)), case["id"]
        return "error on the way to an allocation"
    return str(answer["outcome"])


def has_all(problem: Problem) -> bool:
    return any(leaf.all_devices for c in problem.claims for r in c.spec.requests for _, leaf in r.leaves)


def upstream_picks(answer: dict[str, Any]) -> tuple[Pick, ...]:
    return tuple(
        Pick(i, r["request"], f"{r['driver']}/{r['pool']}/{r['device']}", r.get("adminAccess", False))
        for i, a in enumerate(answer["allocations"])
        for r in a.get("devices", {}).get("results", [])
    )


def compared(name: str, start: int, stop: int | None, step: int) -> Counter[str]:
    return Counter(outcome(c) for c in islice(cases(name), start, stop, step) if c["id"] not in UNREADABLE)


def decided(found: Counter[str]) -> int:
    return sum(n for kind, n in found.items() if not kind.startswith("not "))


@pytest.mark.parametrize(
    ("name", "step", "least"),
    [("allocator/upstream.jsonl", 3, 85), ("allocator/crafted.jsonl", 2, 50), ("allocator-random/problems.jsonl.gz", 25, 70)],
)
def test_a_sample(name: str, step: int, least: int) -> None:
    found = compared(name, 0, None, step)
    assert decided(found) >= least, found


@pytest.mark.full
@pytest.mark.parametrize(
    ("name", "least"),
    [
        ("allocator/upstream.jsonl", 272),
        ("allocator/crafted.jsonl", 105),
        ("allocator-random/problems.jsonl.gz", 1900),
        ("allocator-random/snapshot-divergences.jsonl.gz", 90),
        ("allocator-random/admin-access-order.jsonl.gz", 34),
    ],
)
def test_all(name: str, least: int) -> None:
    found = compared(name, 0, None, 1)
    assert decided(found) >= least, found
