"""Features that are off by default: the solver's first allocation is the reference allocator's, on random problems with the features on."""

from __future__ import annotations

import attrs
from allocation_build import CLASS, DRIVER, claim, exact, node, slice_of
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dra_spec.allocation import Allocator, DoesNotFit, FatalAllocation, Inventory, Settings
from dra_spec.allocation.z3_problem import DEFAULT_FEATURES, Problem
from dra_spec.allocation.z3_solve import first
from dra_spec.resources import AttributeValue, Constraint, Device, Quantity, ResourceSlice
from dra_spec.resources.claims import DerivedAttribute
from dra_spec.resources.slices import CounterConsumption, CounterSet

FEATURES = DEFAULT_FEATURES | {"ListTypeAttributes", "CompatibilityGroups", "DerivedAttributes"}
AT = node()
GROUPS = st.sampled_from([(), ("x",), ("y",), ("x", "y")])
ROOTS = st.lists(st.integers(0, 2), min_size=1, max_size=2, unique=True).map(tuple)


@st.composite
def devices(draw: st.DrawFn, name: str) -> Device:
    value = AttributeValue("ints", draw(ROOTS)) if draw(st.booleans()) else AttributeValue("int", draw(st.integers(0, 2)))
    attributes = {"root": value, "size": AttributeValue("int", draw(st.integers(0, 3)))}
    uses = ()
    if draw(st.booleans()):
        uses = (CounterConsumption(counter_set="s", counters={"c": Quantity.of(1)}, compatibility_groups=draw(GROUPS)),)
    return Device(name=name, attributes=attributes, consumes_counters=uses)


@st.composite
def problems(draw: st.DrawFn) -> Problem:
    names = [f"d{i}" for i in range(draw(st.integers(2, 4)))]
    slices: list[ResourceSlice] = [
        slice_of([draw(devices(n)) for n in names], count=2),
        slice_of([], name="t", count=2, shared_counters=(CounterSet(name="s", counters={"c": Quantity.of(3)}),)),
    ]
    derived = (DerivedAttribute(name="derived/half", expression=f"device.attributes['{DRIVER}'].size / 2"),)
    specs = []
    for _ in range(draw(st.integers(1, 2))):
        requests = [exact(draw(st.integers(1, 2)), derived_attributes=derived) for _ in range(draw(st.integers(1, 2)))]
        name = draw(st.sampled_from([f"{DRIVER}/root", "derived/half"]))
        kind = draw(st.sampled_from(["match_attribute", "distinct_attribute"]))
        specs.append(claim(*requests, constraints=(Constraint(**{kind: name}),)))
    in_use = draw(st.lists(st.sampled_from(names), max_size=1))
    return attrs.evolve(Problem.of([CLASS], slices, AT, specs, [f"{DRIVER}/p/{n}" for n in in_use]), features=FEATURES)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(problems())
def test_solver_and_reference_agree(problem: Problem) -> None:
    found = first(problem)
    allocator = Allocator(Inventory.of([CLASS], problem.slices, [AT]), Settings(features=FEATURES, variant="experimental"))
    try:
        results = allocator.allocate([c.spec for c in problem.claims], AT, frozenset(h.device for h in problem.holdings))
    except (DoesNotFit, FatalAllocation):
        assert found is None
        return
    assert found is not None
    assert [(p.claim, p.request, p.device) for p in found.picks] == [
        (i, r.request, r.name) for i, result in enumerate(results) for r in result.results
    ]
