"""The allocator's rules, one by one."""

from __future__ import annotations

from typing import Any

import pytest
from allocation_build import CLASS, DRIVER, allocate, claim, device, exact, node, slice_of

from dra_spec.allocation import Allocator, DoesNotFit, FatalAllocation, Inventory, UnsupportedFeature
from dra_spec.resources import (
    Capacity,
    ClaimSpec,
    Constraint,
    Device,
    DeviceRequest,
    DeviceTaintRule,
    Metadata,
    NodeSelector,
    Quantity,
    ResourceSlice,
    SubRequest,
    Taint,
    Toleration,
)
from dra_spec.resources.claims import CapacityRequirements
from dra_spec.resources.meta import NodeSelectorTerm, Requirement
from dra_spec.resources.slices import CounterConsumption, CounterSet, DeviceTaintSelector, TaintRuleSpec

MATCH = Constraint(match_attribute=f"{DRIVER}/root")
DISTINCT = Constraint(distinct_attribute=f"{DRIVER}/root")


def rooted(*roots: int) -> list[Device]:
    return [device(f"d{i}", attributes={"root": r}) for i, r in enumerate(roots)]


def test_devices_are_taken_in_slice_order_and_not_twice() -> None:
    assert allocate([slice_of(["b", "a", "c"])], [claim(exact(), exact()), claim(exact())]) == [["r0=b", "r1=a"], ["r0=c"]]
    assert allocate([slice_of(["b", "a", "c"])], [claim(exact(4))]) is None


def test_devices_in_use_are_skipped() -> None:
    assert allocate([slice_of(["a", "b"])], [claim(exact())], ["a"]) == [["r0=b"]]
    assert allocate([slice_of(["a", "b"])], [claim(exact())], ["a", "b"]) is None


def test_pools_by_driver_then_name_and_slices_by_name() -> None:
    slices = [
        slice_of(["x"], name="2", pool="q"),
        slice_of(["y"], name="3", pool="p", count=2),
        slice_of(["z"], name="1", pool="p", count=2),
        slice_of(["w"], name="4", pool="a", driver="a.example.com"),
    ]
    assert allocate(slices, [claim(exact(3))]) == [["r0=z", "r0=y", "r0=x"]]  # the class refuses the other driver


def test_pools_with_binding_conditions_come_last() -> None:
    bound = device("a", binding_conditions=("ready",), binding_failure_conditions=("broken",))
    slices = [slice_of([bound, "b"], name="1", pool="p"), slice_of(["c"], name="2", pool="q")]
    found = Allocator(Inventory.of([CLASS], slices, [node()])).allocate([claim(exact(2))], "n")
    assert [(r.device, r.binding_conditions, r.binding_failure_conditions) for r in found[0].results] == [
        ("c", (), ()),
        ("a", ("ready",), ("broken",)),
    ]


def test_backtracking_crosses_requests_and_claims() -> None:
    devices: list[Device | str] = [device("any", attributes={"big": 1}), device("small", attributes={"big": 0})]
    big = f"device.attributes['{DRIVER}'].big == 1"
    assert allocate([slice_of(devices)], [claim(exact(), exact(1, big))]) == [["r0=small", "r1=any"]]
    assert allocate([slice_of(devices)], [claim(exact()), claim(exact(1, big))]) == [["r0=small"], ["r0=any"]]


@pytest.mark.parametrize(
    ("generations", "found"),
    [([(1, 1)], ["r0=d0"]), ([(1, 1), (2, 1)], ["r0=d1"]), ([(1, 2)], None), ([(2, 1), (2, 1)], None), ([(1, 1), (2, 2)], None)],
)
def test_only_a_complete_newest_generation_counts(generations: list[tuple[int, int]], found: list[str] | None) -> None:
    slices = [slice_of([f"d{i}"], name=str(i), generation=g, count=c) for i, (g, c) in enumerate(generations)]
    assert allocate(slices, [claim(exact())]) == ([found] if found else None)


def test_a_pool_whose_newest_slices_are_elsewhere_is_obsolete_or_stale() -> None:
    newer = slice_of(["d1"], name="1", generation=2, node_name="m")
    assert allocate([slice_of(["d0"], name="0", generation=1, count=2), newer], [claim(exact())]) is None
    # upstream does not look for newer slices once the old ones are complete
    assert allocate([slice_of(["d0"], name="0", generation=1, count=1), newer], [claim(exact())]) == [["r0=d0"]]


def test_a_device_name_that_occurs_twice_spoils_the_pool() -> None:
    assert allocate([slice_of(["a"], name="1", count=2), slice_of(["a"], name="2", count=2)], [claim(exact())]) is None


@pytest.mark.parametrize(
    ("constraint", "roots", "count", "found"),
    [
        (MATCH, (1, 2, 1), 2, ["d0", "d2"]),
        (MATCH, (1, 2, 3), 2, None),
        (MATCH, (1,), 1, ["d0"]),
        (DISTINCT, (1, 1, 2), 2, ["d0", "d2"]),
        (DISTINCT, (1, 2, 1), 3, None),  # all pairs differ, not only neighbours
    ],
)
def test_constraints(constraint: Constraint, roots: tuple[int, ...], count: int, found: list[str] | None) -> None:
    answer = allocate([slice_of(rooted(*roots))], [claim(exact(count), constraints=(constraint,))])
    assert answer == ([[f"r0={d}" for d in found]] if found else None)


def test_a_device_without_the_attribute_never_satisfies_a_constraint() -> None:
    assert allocate([slice_of(["bare", *rooted(1)])], [claim(exact(), constraints=(MATCH,))]) == [["r0=d0"]]
    assert allocate([slice_of(["bare"])], [claim(exact(), constraints=(DISTINCT,))]) is None


def test_a_constraint_on_some_requests_and_qualified_names() -> None:
    devices = [device("a", attributes={f"{DRIVER}/root": 1}), device("b", attributes={"root": 2}), device("c", attributes={"root": 1})]
    some = Constraint(requests=("r0", "r2"), match_attribute=f"{DRIVER}/root")
    assert allocate([slice_of(devices)], [claim(exact(), exact(), exact(), constraints=(some,))]) == [["r0=a", "r1=b", "r2=c"]]


def prefer(*selectors: str) -> DeviceRequest:
    return DeviceRequest(name="r", first_available=tuple(SubRequest(name=f"s{i}", **_fields(s)) for i, s in enumerate(selectors)))


def _fields(selector: str) -> dict[str, Any]:
    request = exact(1, selector)
    return {"device_class_name": request.device_class_name, "selectors": request.selectors, "count": 1}


def test_prioritized_lists_take_the_first_alternative_that_lets_all_finish() -> None:
    root = f"device.attributes['{DRIVER}'].root"
    assert allocate([slice_of(rooted(1, 2))], [claim(prefer(f"{root} == 3", f"{root} == 2", "true"))]) == [["r/s1=d1"]]
    # the first alternative would take the only device that the next claim can use
    assert allocate([slice_of(rooted(1, 2))], [claim(prefer(f"{root} == 2", "true")), claim(exact(1, f"{root} == 2"))]) == [
        ["r/s1=d0"],
        ["r0=d1"],
    ]


def test_mode_all() -> None:
    assert allocate([slice_of(rooted(1, 2, 1))], [claim(exact(0, f"device.attributes['{DRIVER}'].root == 1"))]) == [["r0=d0", "r0=d2"]]
    assert allocate([slice_of(["a", "b"])], [claim(exact(0))], ["b"]) is None
    assert allocate([slice_of(["a"])], [claim(exact(0, "false"))]) is None  # all of nothing is not enough
    with pytest.raises(FatalAllocation, match=r"asks for all devices, but pool a\.example\.com/q is incomplete"):
        allocate([slice_of(["a"]), slice_of(["x"], name="t", driver="a.example.com", pool="q", count=2)], [claim(exact(0))])
    with pytest.raises(FatalAllocation, match=r"a constraint refuses d\.example\.com/p/d1"):
        allocate([slice_of(rooted(1, 2))], [claim(exact(0), constraints=(MATCH,))])


def test_admin_access_depends_on_the_order_of_claims_as_upstream_does() -> None:
    admin, slices = claim(exact(1, admin_access=True)), [slice_of(["a"])]
    assert allocate(slices, [admin], ["a"]) == [["r0=a"]]
    assert allocate(slices, [claim(exact()), admin]) == [["r0=a"], ["r0=a"]]
    assert allocate(slices, [admin, claim(exact())]) is None
    found = Allocator(Inventory.of([CLASS], slices, [node()])).allocate([admin], "n")
    assert found[0].results[0].admin


@pytest.mark.parametrize(
    ("taint", "toleration", "fits"),
    [
        (Taint(key="k", value="v", effect="NoSchedule"), None, False),
        (Taint(key="k", value="v", effect="NoExecute"), None, False),
        (Taint(key="k", value="v", effect="None"), None, True),
        (Taint(key="k", value="v", effect="Future"), None, True),
        (Taint(key="k", value="v", effect="NoSchedule"), Toleration(key="k", value="v"), True),
        (Taint(key="k", value="v", effect="NoSchedule"), Toleration(key="k", value="w"), False),
        (Taint(key="k", value="v", effect="NoSchedule"), Toleration(key="k", operator="Exists"), True),
        (Taint(key="k", value="v", effect="NoSchedule"), Toleration(operator="Exists"), True),
        (Taint(key="k", value="v", effect="NoSchedule"), Toleration(key="k", operator="Exists", effect="NoExecute"), False),
        (Taint(key="k", value="v", effect="NoSchedule"), Toleration(key="other", operator="Exists"), False),
    ],
)
def test_taints(taint: Taint, toleration: Toleration | None, fits: bool) -> None:
    request = exact(1, tolerations=(toleration,) if toleration else ())
    assert (allocate([slice_of([device("a", taints=(taint,))])], [claim(request)]) is not None) is fits


@pytest.mark.parametrize(
    ("selector", "found"),
    [
        (None, "a"),  # no selector: no device
        (DeviceTaintSelector(), None),  # an empty one: every device
        (DeviceTaintSelector(driver=DRIVER, device="a"), "b"),
        (DeviceTaintSelector(driver=DRIVER, pool="q"), "a"),
    ],
)
def test_taint_rules_hold_from_the_start(selector: DeviceTaintSelector | None, found: str | None) -> None:
    rule = DeviceTaintRule(
        metadata=Metadata(name="r"), spec=TaintRuleSpec(device_selector=selector, taint=Taint(key="k", effect="NoSchedule"))
    )
    allocator = Allocator(Inventory.of([CLASS], [slice_of(["a", "b"])], [node()], [rule]))
    if found is None:
        with pytest.raises(DoesNotFit):
            allocator.allocate([claim(exact())], "n")
    else:
        assert allocator.allocate([claim(exact())], "n")[0].results[0].device == found


def uses(amount: int) -> tuple[CounterConsumption, ...]:
    return (CounterConsumption(counter_set="s", counters={"mem": Quantity.of(amount)}),)


def counters(total: int) -> ResourceSlice:
    return slice_of(
        [], name="counters", count=2, shared_counters=(CounterSet(name="s", counters={"mem": Quantity.of(total), "other": Quantity.of(0)}),)
    )


def test_counters_bound_what_fits_together() -> None:
    parts = slice_of(
        [
            device("whole", consumes_counters=uses(4)),
            device("a", consumes_counters=uses(2)),
            device("b", consumes_counters=uses(2)),
            "free",
        ],
        count=2,
    )
    slices = [parts, counters(4)]
    assert allocate(slices, [claim(exact())]) == [["r0=whole"]]
    assert allocate(slices, [claim(exact(2))]) == [["r0=whole", "r0=free"]]
    assert allocate(slices, [claim(exact(3))]) == [["r0=a", "r0=b", "r0=free"]]
    assert allocate(slices, [claim(exact(2))], ["a"]) == [["r0=b", "r0=free"]]
    assert allocate([parts], [claim(exact())]) is None  # the counters' slice is missing
    assert (
        allocate(
            [
                slice_of(
                    [device("a", consumes_counters=(CounterConsumption(counter_set="t", counters={"mem": Quantity.of(1)}),))], count=2
                ),
                counters(4),
            ],
            [claim(exact())],
        )
        is None
    )


def test_admin_access_is_charged_too() -> None:
    slices = [slice_of([device("a", consumes_counters=uses(4))], count=2), counters(4)]
    assert allocate(slices, [claim(exact(1, admin_access=True))], ["a"]) is None


def test_a_capacity_request_filters_ordinary_devices() -> None:
    devices = [
        device("small", capacity={"m": Capacity(value=Quantity.parse("1Gi"))}),
        "none",
        device("big", capacity={"m": Capacity(value=Quantity.parse("4Gi"))}),
    ]
    wanted = CapacityRequirements(requests={"m": Quantity.parse("2Gi")})
    assert allocate([slice_of(devices)], [claim(exact(1, capacity=wanted))]) == [["r0=big"]]
    with pytest.raises(FatalAllocation, match="capacity m: the amount is negative: -1"):
        allocate([slice_of(devices)], [claim(exact(1, capacity=CapacityRequirements(requests={"m": Quantity.of(-1)})))])


def select(key: str, operator: str, *values: str) -> NodeSelector:
    return NodeSelector(terms=(NodeSelectorTerm(match_expressions=(Requirement(key=key, operator=operator, values=values),)),))


@pytest.mark.parametrize(
    ("selector", "matches"),
    [
        (select("zone", "In", "a", "b"), True),
        (select("zone", "In", "b"), False),
        (select("zone", "NotIn", "b"), True),
        (select("none", "NotIn", "b"), True),
        (select("zone", "Exists"), True),
        (select("none", "Exists"), False),
        (select("none", "DoesNotExist"), True),
        (select("cpus", "Gt", "7"), True),
        (select("cpus", "Lt", "8"), False),
        (select("zone", "Gt", "7"), False),
        (NodeSelector(terms=(NodeSelectorTerm(),)), False),
        (NodeSelector(terms=(NodeSelectorTerm(match_fields=(Requirement(key="metadata.name", operator="In", values=("n",)),)),)), True),
    ],
)
def test_node_selectors_of_slices(selector: NodeSelector, matches: bool) -> None:
    at = node("n", zone="a", cpus="8")
    assert (allocate([slice_of(["a"], node_selector=selector)], [claim(exact())], at=at) is not None) is matches


def test_a_malformed_node_selector_is_fatal() -> None:
    with pytest.raises(FatalAllocation, match="node selector on cpus: Gt takes one integer, found x"):
        allocate([slice_of(["a"], node_selector=select("cpus", "Gt", "x"))], [claim(exact())])


def test_the_node_selector_of_an_allocation() -> None:
    nodes = [node("n", zone="a", fast="yes"), node("m", zone="a"), node("o", zone="b")]

    def nodes_of(*slices: ResourceSlice) -> frozenset[str] | None:
        return Allocator(Inventory.of([CLASS], slices, nodes)).allocate([claim(exact(len(slices)))], "n")[0].nodes

    everywhere = slice_of(["e"], name="e", pool="e", all_nodes=True)
    zone = slice_of(["z"], name="z", pool="z", node_selector=select("zone", "In", "a"))
    fast = slice_of(["f"], name="f", pool="f", node_selector=select("fast", "Exists"))
    local = slice_of(["l"], name="l", pool="l", node_name="n")
    binds = slice_of([device("b", binds_to_node=True)], name="b", pool="b", all_nodes=True)
    assert nodes_of(everywhere) is None
    assert nodes_of(everywhere, zone) == {"n", "m"}
    assert nodes_of(zone, fast) == {"n"}
    assert nodes_of(zone, local) == {"n"}
    assert nodes_of(binds) == {"n"}


def test_node_selection_by_device() -> None:
    devices = [device("m", node_name="m"), device("any", all_nodes=True), device("n", node_name="n")]
    slices = [slice_of(devices, per_device_node_selection=True)]
    assert allocate(slices, [claim(exact(2))]) == [["r0=any", "r0=n"]]
    assert allocate(slices, [claim(exact(3))]) is None


@pytest.mark.parametrize(
    ("claims", "message"),
    [
        ([claim(exact(1, f"device.attributes['{DRIVER}'].nothing == 1"))], "no such key: nothing"),
        ([claim(exact(33))], "needs at least 33 devices, more than 32"),
        (
            [claim(exact(), DeviceRequest(name="x", exactly=exact().__class__(device_class_name="none")))],
            "request x: there is no DeviceClass 'none'",
        ),
        ([claim(exact(1, "device.driver ="))], "CEL line 1"),
    ],
)
def test_fatal_errors(claims: list[ClaimSpec], message: str) -> None:
    with pytest.raises(FatalAllocation, match=message):
        allocate([slice_of(["a", "b"])], claims)


def test_selector_errors_matter_only_where_the_search_gets() -> None:
    devices = [device("a", attributes={"x": 1}), "b"]
    selector = f"device.attributes['{DRIVER}'].x == 1"
    assert allocate([slice_of(devices)], [claim(exact(1, selector))]) == [["r0=a"]]  # b is not reached
    assert allocate([slice_of(list(reversed(devices)))], [claim(exact(1, selector))], ["b"]) == [["r0=a"]]  # b is in use
    with pytest.raises(FatalAllocation):
        allocate([slice_of(devices)], [claim(exact(2, selector))])


def test_what_is_not_encoded_is_said() -> None:
    with pytest.raises(UnsupportedFeature, match="allowMultipleAllocations"):
        allocate([slice_of([device("a", allow_multiple_allocations=True)])], [claim(exact())])


def test_a_search_that_is_too_long_is_undecided(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dra_spec.allocation.search.MAX_TRIALS", 50)
    with pytest.raises(UnsupportedFeature, match="more than 50 steps"):
        allocate([slice_of(rooted(*range(12)))], [claim(exact(6), constraints=(MATCH,))])


def test_classes_without_devices() -> None:
    other = CLASS.__class__(
        metadata=Metadata(name="other"), spec=CLASS.spec.__class__(selectors=exact(1, "device.driver == 'x'").selectors)
    )
    broken = CLASS.__class__(
        metadata=Metadata(name="broken"), spec=CLASS.spec.__class__(selectors=exact(1, "device.attributes['x'].y").selectors)
    )
    assert Allocator(Inventory.of([CLASS, other, broken], [slice_of(["a"])], [node()])).classes_without_devices() == ("other",)
