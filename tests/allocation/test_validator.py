"""The validator names each broken rule, and only that one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs
import pytest
from allocation_build import CLASS, DRIVER, claim, device, exact, node, slice_of

from dra_spec.allocation import FatalAllocation
from dra_spec.allocation.validator import broken_rules
from dra_spec.allocation.z3_problem import DEFAULT_FEATURES, Call, Holding, Pick, Problem, Solution
from dra_spec.resources import Capacity, ClaimSpec, Constraint, DeviceTaintRule, Metadata, Quantity, ResourceSlice, Taint
from dra_spec.resources.claims import CapacityRequirements
from dra_spec.resources.slices import CounterConsumption, CounterSet, DeviceTaintSelector, RequestPolicy, TaintRuleSpec, ValidRange

Q = Quantity.of


def taken(*devices: str, **more: Any) -> list[Pick]:
    """Picks written as request=device, all of claim 0."""
    return [Pick(0, d.split("=")[0], f"{DRIVER}/p/{d.split('=')[1]}", **more) for d in devices]


def rules(slices: Sequence[ResourceSlice], claims: Sequence[ClaimSpec], picks: Sequence[Pick], **more: Any) -> list[str]:
    problem = attrs.evolve(Problem.of([CLASS], slices, node(), claims), **more)
    return [b.rule for b in broken_rules(problem, Solution(("n",), tuple(picks)))]


def roots(*values: int) -> list[Any]:
    return [device(f"d{i}", attributes={"root": v}) for i, v in enumerate(values)]


def use(amount: int, *groups: str) -> tuple[CounterConsumption, ...]:
    return (CounterConsumption(counter_set="s", counters={"m": Q(amount)}, compatibility_groups=groups),)


def counters(total: int) -> ResourceSlice:
    return slice_of([], name="t", count=2, shared_counters=(CounterSet(name="s", counters={"m": Q(total)}),))


AB = [slice_of(["a", "b"])]
SHARED = [slice_of([device("a", allow_multiple_allocations=True, capacity={"m": Capacity(value=Q(4))})])]
WANTS_3 = exact(1, capacity=CapacityRequirements(requests={"m": Q(3)}))
MATCH = Constraint(match_attribute=f"{DRIVER}/root")
DISTINCT = Constraint(distinct_attribute=f"{DRIVER}/root")
BY_DEVICE = [slice_of([device("a", node_name="m"), device("b", node_name="n")], per_device_node_selection=True)]
PARTS = [slice_of([device("a", consumes_counters=use(3)), device("b", consumes_counters=use(2))], count=2), counters(4)]
TAINTED = [slice_of([device("a", taints=(Taint(key="k", effect="NoExecute"),))])]


@pytest.mark.parametrize(
    ("slices", "claims", "picks", "broken"),
    [
        (AB, [claim(exact(2))], taken("r0=a", "r0=b"), []),
        (AB, [claim(exact(2))], taken("r0=a"), ["count"]),
        (AB, [claim(exact(2))], taken("r0=a", "r0=a"), ["count", "once"]),
        (AB, [claim(exact())], [], ["count"]),
        (AB, [claim(exact())], taken("x=a", "r0=b"), ["request"]),
        (AB, [claim(exact())], taken("r0=z"), ["inventory"]),
        (AB, [claim(exact(), exact())], taken("r0=a", "r1=a"), ["once"]),
        (AB, [claim(exact())], taken("r0=a", admin=True), ["admin"]),
        (AB, [claim(exact(1, "false"))], taken("r0=a"), ["selector"]),
        (AB, [claim(exact(1, "device.attributes['x'].y == 1"))], taken("r0=a"), ["selector"]),  # it fails, so it does not hold
        ([slice_of(["a"], node_name="m")], [claim(exact())], taken("r0=a"), ["inventory"]),
        ([slice_of(["a"], count=2)], [claim(exact())], taken("r0=a"), ["pool"]),
        (BY_DEVICE, [claim(exact())], taken("r0=a"), ["node"]),
        (TAINTED, [claim(exact())], taken("r0=a"), ["taint"]),
        (AB, [claim(exact(0))], taken("r0=a"), ["all"]),
        (AB, [claim(exact(0))], taken("r0=a", "r0=b"), []),
        ([slice_of(roots(1, 2))], [claim(exact(2), constraints=(MATCH,))], taken("r0=d0", "r0=d1"), ["constraint"]),
        ([slice_of(roots(1, 1))], [claim(exact(2), constraints=(MATCH,))], taken("r0=d0", "r0=d1"), []),
        ([slice_of(roots(1, 1))], [claim(exact(2), constraints=(DISTINCT,))], taken("r0=d0", "r0=d1"), ["constraint"]),
        (AB, [claim(exact(1), constraints=(MATCH,))], taken("r0=a"), ["constraint"]),
        (SHARED, [claim(WANTS_3)], taken("r0=a", consumed=(("m", Q(3).value),)), []),
        (SHARED, [claim(WANTS_3)], taken("r0=a", consumed=(("m", Q(2).value),)), ["capacity"]),
        (SHARED, [claim(WANTS_3, WANTS_3)], taken("r0=a", "r1=a"), ["capacity"]),
        (PARTS, [claim(exact(2))], taken("r0=a", "r0=b"), ["counter"]),
    ],
)  # fmt: skip
def test_each_rule(slices: list[ResourceSlice], claims: list[ClaimSpec], picks: list[Pick], broken: list[str]) -> None:
    assert rules(slices, claims, picks) == broken


def test_what_others_hold() -> None:
    held = Holding(f"{DRIVER}/p/a", "other")
    assert rules(AB, [claim(exact())], taken("r0=a"), holdings=(held,)) == ["in-use"]
    assert rules(AB, [claim(exact(1, admin_access=True))], taken("r0=a", admin=True), holdings=(held,)) == []
    share = Holding(f"{DRIVER}/p/a", "other", True, (("m", Q(2).value),))
    assert rules(SHARED, [claim(WANTS_3)], taken("r0=a"), holdings=(share,)) == ["capacity"]
    assert rules(PARTS, [claim(exact())], taken("r0=b"), holdings=(held,)) == ["counter"]


def test_taint_rules_and_switched_off_features() -> None:
    rule = DeviceTaintRule(
        metadata=Metadata(name="r"),
        spec=TaintRuleSpec(device_selector=DeviceTaintSelector(device="a"), taint=Taint(key="k", effect="NoSchedule")),
    )
    assert rules(AB, [claim(exact())], taken("r0=a"), taint_rules=(rule,)) == ["taint"]
    assert rules(AB, [claim(exact())], taken("r0=b"), taint_rules=(rule,)) == []
    assert rules(TAINTED, [claim(exact())], taken("r0=a"), features=DEFAULT_FEATURES - {"DeviceTaints"}) == []
    bound = [slice_of([device("a", binding_conditions=("c",), binding_failure_conditions=("d",))])]
    assert rules(bound, [claim(exact())], taken("r0=a"), features=DEFAULT_FEATURES - {"DeviceBindingAndStatus"}) == ["gate"]


def test_policies_round_and_refuse() -> None:
    policy = RequestPolicy(default=Q(2), valid_range=ValidRange(min=Q(2), max=Q(6), step=Q(2)))
    slices = [slice_of([device("a", allow_multiple_allocations=True, capacity={"m": Capacity(value=Q(8), request_policy=policy)})])]
    for asked, consumed, broken in [(1, 2, []), (3, 4, []), (6, 6, []), (7, 8, ["capacity"]), (None, 2, []), (3, 3, ["capacity"])]:
        capacity = None if asked is None else CapacityRequirements(requests={"m": Q(asked)})
        picks = taken("r0=a", consumed=(("m", Q(consumed).value),))
        assert rules(slices, [claim(exact(1, capacity=capacity))], picks) == broken, asked


def test_compatibility_groups() -> None:
    on = DEFAULT_FEATURES | {"CompatibilityGroups"}

    def pair(*groups: tuple[str, ...]) -> list[str]:
        devices = [device(f"d{i}", consumes_counters=use(1, *g)) for i, g in enumerate(groups)]
        picks = taken(*(f"r0=d{i}" for i in range(len(groups))))
        return rules([slice_of(devices, count=2), counters(9)], [claim(exact(len(groups)))], picks, features=on)

    assert pair(("x",), ("x", "y")) == []
    assert pair((), ()) == []
    assert pair(("x",), ("y",)) == ["compatibility"]
    assert pair((), ("y",)) == ["compatibility"]
    assert pair(("x", "y"), ("x",), ("y",)) == ["compatibility"]


def test_two_pods_do_not_share_a_device() -> None:
    problem = Problem.of([CLASS], AB, node(), [claim(exact())])
    wanted = problem.calls[0].claims
    problem = attrs.evolve(problem, calls=(Call("one", wanted, ("n",)), Call("two", wanted, ("n",))))
    same = Solution(("n", "n"), (Pick(0, "r0", f"{DRIVER}/p/a"), Pick(1, "r0", f"{DRIVER}/p/a")))
    assert [b.rule for b in broken_rules(problem, same)] == ["once"]
    elsewhere = Solution(("m", "n"), (Pick(0, "r0", f"{DRIVER}/p/a"), Pick(1, "r0", f"{DRIVER}/p/b")))
    assert {b.rule for b in broken_rules(problem, elsewhere)} == {"node", "inventory"}


def test_all_devices_of_a_broken_pool_is_fatal() -> None:
    with pytest.raises(FatalAllocation, match="says 2"):
        rules([*AB, slice_of(["x"], name="x", pool="q", count=2)], [claim(exact(0))], taken("r0=a", "r0=b"))
