"""One recorded allocation problem against the reference allocator."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import attrs
from objects import build

from dra_spec.allocation import (
    AllocatedState,
    Allocator,
    DoesNotFit,
    FatalAllocation,
    InvalidPools,
    Inventory,
    Settings,
    UnsupportedFeature,
)
from dra_spec.allocation.errors import AllocatorCrash
from dra_spec.allocation.explain_upstream import Upstream
from dra_spec.allocation.gates import SUPPORTED
from dra_spec.allocation.inventory import Pool
from dra_spec.allocation.variants import BY_VERSION, RELEASES, SNAPSHOT, rules_with
from dra_spec.allocation.z3_problem import Call, Holding, Problem, WantedClaim
from dra_spec.allocation.z3_verdict import verdict
from dra_spec.resources import ClaimSpec, DeviceClass, Node, Quantity, ResourceClaim, ResourceSlice
from dra_spec.resources.claims import AllocationResult

RELEASE = "v0.37.2"
EXACT = ("experimental", "incubating")  # the stable variant tries pools in any order
MAX_PERMUTED = 4  # pools that are tried in every order
INVALID = "invalid resource pools were encountered"


def compared(case: dict[str, Any]) -> Iterator[tuple[str, str, str]]:
    """(version/variant, recorded, ours) for each recorded answer that can be compared, as short texts."""
    observed: dict[str, Any] = dict(case["observed"])
    if case.get("snapshotObservedSame") and RELEASE in observed and SNAPSHOT not in observed:
        observed[SNAPSHOT] = {k: v for k, v in observed[RELEASE].items() if k in EXACT and v.get("supported")}
    given = given_of(case["problem"])
    for module, answers in observed.items():
        version = kubernetes_version(module)
        if version is None:
            continue
        for variant, answer in answers.items():
            where = f"{module}/{variant}"
            if module == RELEASE and variant in SUPPORTED[version]:
                supported = features_of(case) <= SUPPORTED[version][variant]
                if supported != bool(answer.get("supported")):
                    yield where, f"supported={answer.get('supported')}", f"supported={supported}"
            if not answer.get("supported"):
                continue
            settings = Settings(version, features_of(case), variant, rules_with(RELEASES.get(module, BY_VERSION[version])), as_written=True)
            orders = [settings] if variant in EXACT else list(_orders(case, settings))
            if not orders:
                continue  # too many
            others = [a if isinstance(a, dict) else {"outcome": "fit", "allocations": a} for a in answer.get("otherAllocations") or ()]
            recorded = [_text(*_recorded(a)) for a in (answer, *others)]
            ours: list[str] = []
            for text in recorded:
                while text not in ours and len(ours) < len(orders):
                    ours.append(_text(*solve(given, orders[len(ours)])))
                yield where, text, text if text in ours else ours[0]
    of_release = RELEASE in case.get("source", [RELEASE])
    if of_release and "facts" in case and observed.get(RELEASE, {}).get("experimental", {}).get("supported"):
        settings = Settings("1.37", features_of(case), "experimental", as_written=True)
        outcome, allocations = solve(given, settings)
        yield "facts", str(case["facts"]), str(_facts(case, outcome.partition(" ")[0], allocations))


def solved(case: dict[str, Any]) -> tuple[str, str]:
    """(the reference allocator's verdict and devices, the solver's), with the API server's defaults and the rules of 1.37."""
    given = given_of(case["problem"])
    features = features_of(case)
    allocator = Allocator(given.inventory, Settings("1.37", features, "experimental"), lambda: "x")
    claims = tuple(WantedClaim(f"claim {i}", spec) for i, spec in enumerate(given.claims))
    problem = Problem(
        given.inventory.classes,
        given.inventory.slices,
        {given.node.name: given.node},
        (Call("pod", claims, (given.node.name,)),),
        tuple(_holdings(given.state)),
        features=features,
    )
    found = verdict(problem, given.node.name, Upstream(allocator, given.state))
    picks = found.solution.picks if found.solution else ()
    outcome, allocations = solve(given, allocator.settings)
    kind = {"fit": "fits", "error": "fatal", "panic": "fatal", "error (this node)": "no-fit"}.get(outcome, outcome)
    theirs = [(i, r.request, f"{r.driver}/{r.pool}/{r.device}") for i, a in enumerate(allocations) for r in a.devices.results]
    return f"{kind} {theirs}", f"{found.kind} {[(p.claim, p.request, p.device) for p in picks]}"


def _holdings(state: AllocatedState) -> Iterator[Holding]:
    yield from (Holding(name) for name in state.devices)
    yield from (Holding(name, "", True) for name in state.shared_devices)
    for name, amounts in state.consumed.items():
        yield Holding(name, "", True, tuple((k, q.value) for k, q in amounts.items()))


def features_of(case: dict[str, Any]) -> frozenset[str]:
    """The allocator features that the case has on."""
    return frozenset(case.get("features", case["problem"].get("features")) or ())


def _orders(case: dict[str, Any], settings: Settings) -> Iterator[Settings]:
    """One for each order of the pools: the stable copy may take any of them. None if there are too many."""
    count = len({(s["spec"]["driver"], s["spec"]["pool"]["name"]) for s in case["problem"].get("slices") or ()})
    for order in itertools.permutations(range(count)) if count <= MAX_PERMUTED else ():

        def ordered(pools: tuple[Pool, ...], order: tuple[int, ...] = order) -> tuple[Pool, ...]:
            return tuple(pools[i] for i in order if i < len(pools))

        yield attrs.evolve(settings, pool_order=ordered)


def kubernetes_version(module: str) -> str | None:
    """The Kubernetes version of a module version, None for one that the allocator does not know."""
    if module == SNAPSHOT:
        return "1.37"
    parts = module.removeprefix("v").split(".")
    version = f"1.{parts[1]}" if len(parts) > 1 else ""
    return version if version in SUPPORTED else None


@attrs.frozen(eq=False)
class Given:
    """The objects of a problem."""

    node: Node
    inventory: Inventory
    claims: tuple[ClaimSpec, ...]
    state: AllocatedState


def given_of(problem: dict[str, Any]) -> Given:
    """Raises ValueError or TypeError for a problem that cannot be read."""
    node = build(Node, problem["node"])
    classes = [build(DeviceClass, c) for c in problem.get("classes") or ()]
    slices = [build(ResourceSlice, s) for s in problem.get("slices") or ()]
    claims = tuple(build(ResourceClaim, c).spec for c in problem.get("claims") or ())
    return Given(node, Inventory.of(classes, slices, [node]), claims, state(problem.get("allocated") or {}))


def solve(given: Given, settings: Settings) -> tuple[str, tuple[AllocationResult, ...]]:
    """(outcome, allocations with one and the same share ID)."""
    try:
        found = Allocator(given.inventory, settings, lambda: "x").allocate(given.claims, given.node, given.state)
    except InvalidPools:
        return "error (this node)", ()
    except DoesNotFit:
        return "no-fit", ()
    except AllocatorCrash:
        return "panic", ()
    except FatalAllocation:
        return "error", ()
    except UnsupportedFeature as error:
        return f"undecided: {error}", ()
    return "fit", tuple(r.allocation for r in found)


def state(allocated: dict[str, Any]) -> AllocatedState:
    """What other claims hold."""
    return AllocatedState(
        frozenset(_name(d) for d in allocated.get("devices") or ()),
        frozenset((_name(d), f"{i}/{d.get('shareID')}") for i, d in enumerate(allocated.get("sharedDevices") or ())),
        {_name(d): {k: Quantity.parse(str(v)) for k, v in d["capacity"].items()} for d in allocated.get("consumedCapacity") or ()},
    )


def _name(device: dict[str, str]) -> str:
    return f"{device['driver']}/{device['pool']}/{device['device']}"


def _recorded(answer: dict[str, Any]) -> tuple[str, tuple[AllocationResult, ...]]:
    if answer["outcome"] == "error" and INVALID in answer.get("error", ""):
        return "error (this node)", ()
    return answer["outcome"], tuple(_one_share_id(build(AllocationResult, a)) for a in answer.get("allocations") or ())


def _one_share_id(allocation: AllocationResult) -> AllocationResult:
    results = tuple(attrs.evolve(r, share_id="x" if r.share_id else "") for r in allocation.devices.results)
    return attrs.evolve(allocation, devices=attrs.evolve(allocation.devices, results=results))


def _text(outcome: str, allocations: tuple[AllocationResult, ...]) -> str:
    """All that counts, so that equal texts are equal answers."""
    parts = [outcome]
    for allocation in allocations:
        parts += [str(_plain(r)) for r in allocation.devices.results]
        parts += [str(_plain(c)) for c in allocation.devices.config]
        parts.append(f"nodes {_plain(allocation.node_selector)};")
    return " ".join(parts)


def _plain(value: Any) -> Any:
    """Without what is empty, so that texts stay short; quantities by their number."""
    if isinstance(value, Quantity):
        return str(value.value)
    if attrs.has(type(value)):
        pairs = ((a.name, _plain(getattr(value, a.name))) for a in attrs.fields(type(value)) if a.name != "at")
        return {k: v for k, v in pairs if v not in ("", None, False, [], {})}
    if isinstance(value, dict):
        return {k: _plain(v) for k, v in sorted(value.items())}
    if isinstance(value, (list, tuple)):
        return [_plain(v) for v in value]
    return value


def _facts(case: dict[str, Any], outcome: str, allocations: tuple[AllocationResult, ...]) -> dict[str, Any]:
    """The same facts of our answer, in the order of the recorded ones."""
    facts: dict[str, Any] = {"outcome": outcome}
    if outcome == "fit":
        counts = {}
        for i, (claim, allocation) in enumerate(zip(case["problem"]["claims"], allocations, strict=True)):
            for request in claim["spec"]["devices"].get("requests") or ():
                if request.get("exactly"):
                    counts[f"{i}/{request['name']}"] = sum(r.request == request["name"] for r in allocation.devices.results)
        facts |= {"devicesPerExactRequest": counts, "results": len(allocations)}
    return {k: facts.get(k) if not isinstance(facts.get(k), dict) else {n: facts[k].get(n) for n in v} for k, v in case["facts"].items()}
