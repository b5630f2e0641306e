"""Random small problems: the solver, a brute force over the validator's rules, and the reference allocator say the same, both ways."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import attrs
import pytest
from allocation_build import CLASS, DRIVER, device, exact, node, slice_of
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from dra_spec.allocation import AllocatedState, Allocator, DoesNotFit, FatalAllocation, Inventory, Settings
from dra_spec.allocation.validator import broken_rules
from dra_spec.allocation.z3_problem import Call, Holding, Pick, Problem, Solution, WantedClaim
from dra_spec.allocation.z3_solve import every, first, one
from dra_spec.resources import Capacity, ClaimSpec, Constraint, DeviceRequest, Quantity, ResourceSlice, SubRequest, Taint, Toleration
from dra_spec.resources.claims import CapacityRequirements, DeviceClaim
from dra_spec.resources.slices import CounterConsumption, CounterSet, RequestPolicy

AT = node()
TAINT = Taint(key="k", effect="NoSchedule")
NUMA = f"{DRIVER}/numa"


@st.composite
def inventories(draw: st.DrawFn) -> tuple[list[ResourceSlice], list[Holding]]:
    """One or two pools with two or three devices each; counters, taints, shared devices, and what is held already."""
    slices: list[ResourceSlice] = []
    holdings: list[Holding] = []
    for pool in ("p", "q")[: draw(st.integers(1, 2))]:
        counters = draw(st.booleans())
        devices = []
        for i in range(draw(st.integers(1, 3))):
            shared = draw(st.integers(0, 3)) == 0
            more: dict[str, object] = {"allow_multiple_allocations": shared}
            if draw(st.booleans()):
                policy = (
                    RequestPolicy(default=Quantity.of(1), valid_values=(Quantity.of(1), Quantity.of(3)))
                    if shared and draw(st.booleans())
                    else None
                )
                more["capacity"] = {"m": Capacity(value=Quantity.of(draw(st.integers(2, 4))), request_policy=policy)}
            if counters and draw(st.booleans()):
                more["consumes_counters"] = (CounterConsumption(counter_set="s", counters={"c": Quantity.of(draw(st.integers(0, 3)))}),)
            if draw(st.integers(0, 4)) == 0:
                more["taints"] = (TAINT,)
            attributes = {"numa": draw(st.integers(0, 1))} if draw(st.integers(0, 5)) else {}
            devices.append(device(f"d{i}", attributes=attributes, **more))
            name = f"{DRIVER}/{pool}/d{i}"
            if draw(st.integers(0, 5)) == 0:
                consumed = (("m", Quantity.of(1).value),) if shared and "capacity" in more else ()
                holdings.append(Holding(name, "other", shared, consumed))
        slices.append(slice_of(devices, name=f"s-{pool}", pool=pool, count=1 + counters))
        if counters:
            sets = (CounterSet(name="s", counters={"c": Quantity.of(draw(st.integers(1, 4)))}),)
            slices.append(slice_of([], name=f"t-{pool}", pool=pool, count=2, shared_counters=sets))
    return slices, holdings


@st.composite
def leaves(draw: st.DrawFn, alternative: bool) -> dict[str, object]:
    kind = draw(st.integers(0, 7))
    more: dict[str, object] = {}
    if draw(st.integers(0, 2)) == 0:
        more["tolerations"] = (Toleration(key="k", operator="Exists"),)
    if draw(st.integers(0, 4)) == 0:
        more["capacity"] = CapacityRequirements(requests={"m": Quantity.of(draw(st.integers(0, 3)))})
    if kind == 0 and not alternative:
        more["admin_access"] = True
    selectors = [f"device.attributes['{DRIVER}'].?numa.orValue(2) != {draw(st.integers(0, 3))}"] if draw(st.booleans()) else []
    request = exact(0 if kind == 1 else draw(st.integers(1, 2)), *selectors, **more)
    return {f.name: getattr(request, f.name) for f in attrs.fields(type(request))}


@st.composite
def claims(draw: st.DrawFn, most: int) -> ClaimSpec:
    requests = []
    for i in range(draw(st.integers(1, most))):
        if draw(st.integers(0, 3)) == 0:
            subs = tuple(SubRequest(name=f"s{j}", **draw(leaves(True))) for j in range(2))  # type: ignore[arg-type]
            requests.append(DeviceRequest(name=f"r{i}", first_available=subs))
        else:
            plain = draw(leaves(False))
            requests.append(DeviceRequest(name=f"r{i}", exactly=exact().__class__(**plain)))  # type: ignore[arg-type]
    constraints = []
    if draw(st.booleans()):
        names = draw(st.sampled_from([(), ("r0",)]))
        kind = draw(st.sampled_from(["match_attribute", "distinct_attribute"]))
        constraints.append(Constraint(requests=names, **{kind: NUMA}))
    return ClaimSpec(devices=DeviceClaim(requests=tuple(requests), constraints=tuple(constraints)))


@st.composite
def problems(draw: st.DrawFn) -> Problem:
    slices, holdings = draw(inventories())
    specs = [draw(claims(2)) for _ in range(draw(st.integers(1, 2)))]
    wanted = tuple(WantedClaim(f"claim {i}", s) for i, s in enumerate(specs))
    return Problem({"c": CLASS}, tuple(slices), {"n": AT}, (Call("pod", wanted, ("n",)),), tuple(holdings))


def choices(problem: Problem) -> Iterator[Solution]:
    """Every way to give each request devices, in upstream's order, right or wrong."""
    order = [(s.spec.pool.name, d) for s in sorted(problem.slices, key=lambda s: (s.spec.pool.name, s.name)) for d in s.spec.devices]
    names = [f"{DRIVER}/{pool}/{d.name}" for pool, d in order]
    options = []
    for i, claim in enumerate(problem.claims):
        for request in claim.spec.requests:
            ways = []
            for name, leaf in request.leaves:
                sizes = range(1, len(names) + 1) if leaf.all_devices else [leaf.number]
                sets = [s for n in sizes for s in itertools.combinations(names, n)]
                ways += [tuple(Pick(i, name, d, bool(leaf.admin_access)) for d in s) for s in sets]
            options.append(ways)
    assume(_product(options) <= 3000)
    for combination in itertools.product(*options):
        yield Solution(("n",), tuple(p for picks in combination for p in picks))


def _product(options: list[list[tuple[Pick, ...]]]) -> int:
    size = 1
    for each in options:
        size *= len(each)
    return size


def plain(solution: Solution | None) -> list[tuple[int, str, str]] | None:
    return None if solution is None else [(p.claim, p.request, p.device) for p in solution.picks]


def reference(problem: Problem) -> list[tuple[int, str, str]] | None:
    inventory = Inventory.of([CLASS], problem.slices, [AT])
    devices = frozenset(h.device for h in problem.holdings if not h.shared)
    shares = frozenset((h.device, str(i)) for i, h in enumerate(problem.holdings) if h.shared)
    consumed = {h.device: {k: Quantity.of(v) for k, v in h.consumed} for h in problem.holdings if h.consumed}
    try:
        found = Allocator(inventory, Settings()).allocate([c.spec for c in problem.claims], AT, AllocatedState(devices, shares, consumed))
    except DoesNotFit:
        return None
    return [(i, r.request, r.name) for i, c in enumerate(found) for r in c.results]


def check(problem: Problem) -> None:
    expected = next((s for s in choices(problem) if not broken_rules(problem, s)), None)
    assert plain(first(problem)) == plain(expected)
    assert (one(problem) is None) == (expected is None)
    try:
        found = reference(problem)
    except FatalAllocation as fatal:
        # upstream gives up for good where a constraint refuses one of "all" devices, even if a later subrequest would fit
        if "asks for all devices, but a constraint refuses" not in str(fatal):
            raise
    else:
        assert found == plain(expected)


SLOW = [HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large]


@settings(max_examples=60, deadline=None, suppress_health_check=SLOW)
@given(problems())
def test_solver_brute_force_and_reference_agree(problem: Problem) -> None:
    check(problem)


@pytest.mark.full
@settings(max_examples=3000, deadline=None, suppress_health_check=SLOW)
@given(problems())
def test_solver_brute_force_and_reference_agree_on_many(problem: Problem) -> None:
    check(problem)


@settings(max_examples=20, deadline=None, suppress_health_check=SLOW)
@given(problems())
def test_every_allocation_is_found(problem: Problem) -> None:
    right = {tuple(plain(s) or ()) for s in choices(problem) if not broken_rules(problem, s)}
    assume(len(right) <= 60)
    found = [tuple(plain(s) or ()) for s in every(problem, 100)]
    assert len(set(found)) == len(found)
    assert set(found) == right
