"""Random problems as in test_z3_random, of what that leaves out: where devices can be used, generations, list attributes, ranges of
capacity, taint rules, binding conditions, two drivers. Solver, brute force and reference allocator say the same, both ways."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import attrs
from allocation_build import CLASS, DRIVER, device, node, slice_of
from hypothesis import given, settings
from hypothesis import strategies as st
from test_z3_random import NUMA, SLOW, TAINT, claims, plain

from dra_spec.allocation import AllocatedState, Allocator, DoesNotFit, FatalAllocation, Inventory, Settings
from dra_spec.allocation.validator import broken_rules
from dra_spec.allocation.z3_problem import DEFAULT_FEATURES, Call, Holding, Pick, Problem, Solution, WantedClaim
from dra_spec.allocation.z3_solve import first, one
from dra_spec.resources import AttributeValue, Capacity, Device, Metadata, Quantity, ResourceSlice, Taint
from dra_spec.resources.meta import NodeSelector, NodeSelectorTerm, Requirement
from dra_spec.resources.slices import DeviceTaintRule, DeviceTaintSelector, RequestPolicy, TaintRuleSpec, ValidRange

AT = node(zone="east")


def in_zone(*zones: str) -> NodeSelector:
    return NodeSelector(terms=(NodeSelectorTerm(match_expressions=(Requirement(key="zone", operator="In", values=zones),)),))


WHERE: dict[str, dict[str, object]] = {
    "here": {"node_name": "n"},
    "elsewhere": {"node_name": "m"},
    "everywhere": {"all_nodes": True},
    "zone": {"node_selector": in_zone("east", "west")},
    "another zone": {"node_selector": in_zone("west")},
    "each": {"per_device_node_selection": True},
}
OF_A_DEVICE = ["here", "elsewhere", "everywhere", "zone", "another zone"]


@st.composite
def devices(draw: st.DrawFn, name: str, each: bool, lists: bool) -> Device:
    more: dict[str, object] = dict(WHERE[draw(st.sampled_from(OF_A_DEVICE))]) if each else {}
    if draw(st.integers(0, 5)) == 0:
        more |= {"binding_conditions": ("ready",), "binding_failure_conditions": ("failed",)}
    if draw(st.integers(0, 3)) == 0:
        allowed = ValidRange(min=Quantity.of(1), max=Quantity.of(3), step=Quantity.of(draw(st.integers(1, 2))))
        policy = RequestPolicy(default=Quantity.of(1), valid_range=allowed)
        more |= {"allow_multiple_allocations": True, "capacity": {"m": Capacity(value=Quantity.of(4), request_policy=policy)}}
    if draw(st.integers(0, 6)) == 0:
        more["taints"] = (TAINT,)
    made = device(name, **more)
    values = draw(st.lists(st.integers(0, 2), min_size=1, max_size=2, unique=True))
    numa = AttributeValue("ints", tuple(values)) if lists and draw(st.booleans()) else AttributeValue("int", values[0])
    return attrs.evolve(made, attributes={NUMA: numa} if draw(st.integers(0, 5)) else {})


@st.composite
def problems(draw: st.DrawFn) -> Problem:
    lists = draw(st.booleans())
    slices: list[ResourceSlice] = []
    for driver, pool in ((DRIVER, "p"), (DRIVER, "q"), ("z.example.com", "p"))[: draw(st.integers(1, 3))]:
        where = draw(st.sampled_from(list(WHERE)))
        found = [draw(devices(f"d{i}", where == "each", lists)) for i in range(draw(st.integers(1, 3)))]
        generation = draw(st.integers(1, 2))
        slices.append(slice_of(found, name=f"s-{pool}", driver=driver, pool=pool, generation=generation, **WHERE[where]))
        if generation == 2:
            place = WHERE["everywhere" if where == "each" else where]
            slices.append(slice_of(["old"], name=f"a-{pool}", driver=driver, pool=pool, **place))
    names = [f"{s.spec.driver}/{s.spec.pool.name}/{d.name}" for s in slices for d in s.spec.devices]
    held = draw(st.lists(st.sampled_from(names), max_size=1))
    rules = []
    if draw(st.integers(0, 3)) == 0:
        selected = draw(st.sampled_from([{"pool": "p"}, {"driver": DRIVER, "device": "d1"}, {}]))
        taint = Taint(key=draw(st.sampled_from(["k", "other"])), effect=draw(st.sampled_from(["NoExecute", "None"])))
        spec = TaintRuleSpec(device_selector=DeviceTaintSelector(**selected), taint=taint)
        rules.append(DeviceTaintRule(metadata=Metadata(name="rule"), spec=spec))
    wanted = tuple(WantedClaim(f"claim {i}", draw(claims(2))) for i in range(draw(st.integers(1, 2))))
    features = DEFAULT_FEATURES | ({"ListTypeAttributes"} if lists else set())
    call = Call("pod", wanted, ("n",))
    return Problem({"c": CLASS}, tuple(slices), {"n": AT}, (call,), tuple(Holding(n, "x") for n in held), tuple(rules), features)


def order(problem: Problem) -> list[str]:
    """The devices in upstream's order: pools with binding conditions on the node last. Those that the node cannot use are refused later."""

    def late(pool: tuple[str, str]) -> bool:
        mine = [s for s in problem.slices if s.pool_id == pool]
        newest = max(s.spec.pool.generation for s in mine)
        return any(d.binding_conditions for s in mine if s.spec.pool.generation == newest for d in s.spec.devices)

    ordered = sorted(problem.slices, key=lambda s: (late(s.pool_id), s.pool_id, s.name))
    return [f"{s.spec.driver}/{s.spec.pool.name}/{d.name}" for s in ordered for d in s.spec.devices]


def choices(problem: Problem) -> Iterator[Solution] | None:
    """Every way to give each request devices, in upstream's order, right or wrong; None if they are too many."""
    names, options, size = order(problem), [], 1
    for i, claim in enumerate(problem.claims):
        for request in claim.spec.requests:
            ways = []
            for name, leaf in request.leaves:
                sizes = range(1, len(names) + 1) if leaf.all_devices else [leaf.number]
                sets = [s for n in sizes for s in itertools.combinations(names, n)]
                ways += [tuple(Pick(i, name, d, bool(leaf.admin_access)) for d in s) for s in sets]
            options.append(ways)
            size *= len(ways)
    if size > 2000:
        return None
    return (Solution(("n",), tuple(p for picks in c for p in picks)) for c in itertools.product(*options))


def reference(problem: Problem) -> list[tuple[int, str, str]] | None:
    inventory = Inventory.of([CLASS], problem.slices, [AT], problem.taint_rules)
    state = AllocatedState(frozenset(h.device for h in problem.holdings))
    allocator = Allocator(inventory, Settings.with_features("1.37", problem.features))
    try:
        found = allocator.allocate([c.spec for c in problem.claims], AT, state)
    except DoesNotFit:
        return None
    return [(i, r.request, r.name) for i, c in enumerate(found) for r in c.results]


@settings(max_examples=60, deadline=None, suppress_health_check=SLOW)
@given(problems())
def test_solver_brute_force_and_reference_agree_on_more(problem: Problem) -> None:
    found = plain(first(problem))
    assert (one(problem) is None) == (found is None)
    tried = choices(problem)
    if tried is not None:
        assert found == plain(next((s for s in tried if not broken_rules(problem, s)), None))
    try:
        theirs = reference(problem)
    except FatalAllocation as fatal:
        # upstream gives up for good where a constraint refuses one of "all" devices, even if a later subrequest would fit
        if "asks for all devices, but a constraint refuses" not in str(fatal):
            raise
    else:
        assert theirs == found
