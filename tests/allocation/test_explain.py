"""Explanations on problems without an allocation: the true reason is named, and every change that is offered makes the claims fit."""

from __future__ import annotations

from pathlib import Path

import attrs
import pytest
from allocation_build import CLASS, DRIVER, claim, device, exact, node, slice_of

from dra_spec.allocation.explain import Explanation, explain, explain_together
from dra_spec.allocation.relax import Change, apply, helps
from dra_spec.allocation.z3_manifests import waiting
from dra_spec.allocation.z3_problem import Problem
from dra_spec.allocation.z3_solve import one
from dra_spec.resources import Constraint, DeviceRequest, SubRequest, Taint, load_checked

DATA = Path(__file__).parent.parent / "data" / "allocation"

# file -> (kinds of the core, words of the telling rule, offered changes: kinds)
CASES: dict[str, tuple[set[str], str, set[tuple[str, ...]]]] = {
    "count": ({"request"}, "request gpus of claim wanted wants 3 devices of class gpu", {("fewer",)}),
    "selector": ({"request", "selector"}, "memory >= 40", {("selector",), ("fewer",)}),
    "match": ({"request", "constraint"}, "matchAttribute gpu.example.com/numa", {("constraint",), ("fewer",)}),
    "distinct": ({"request", "constraint"}, "distinctAttribute gpu.example.com/numa", {("constraint",), ("fewer",)}),
    "taint": ({"request", "taint"}, "does not tolerate the taint example.com/unhealthy=fan:NoSchedule", {("taint",), ("fewer",)}),
    "in-use": ({"request", "in-use"}, "in use by ResourceClaim default/training", {("in-use",), ("fewer",)}),
    "counter": ({"request", "counter"}, "counter memory of gpu-0 has 40Gi", {("fewer",)}),
    "counter-held": ({"request", "counter", "in-use"}, "in use by ResourceClaim default/training", {("in-use",)}),
    "node-selector": ({"request", "node"}, "zone In west", set()),
    "pool": ({"request", "pool"}, "incomplete: it has 1 of 2 slices", set()),
    "class": ({"request", "class"}, "class nic: the selector", set()),
    "capacity": ({"request", "capacity"}, "wants 48Gi of memory, the device has 40Gi", {("capacity",)}),
    "capacity-shared": ({"request", "capacity-left"}, "has 40Gi of memory for all its users", {("fewer",)}),
    "twice": ({"request", "once"}, "a device serves one request only", {("fewer",)}),
    "two-rules": (
        {"request", "constraint", "taint"},
        "the taint example.com/unhealthy:NoExecute",
        {("constraint",), ("taint",), ("fewer",)},
    ),
    "all": ({"request", "in-use"}, "in use by ResourceClaim default/training", {("in-use",)}),
    "priority": ({"request"}, "wants 4 devices of class gpu, or else 3 devices of class gpu", {("fewer",)}),
    "policy": ({"request", "capacity"}, "which its request policy does not allow (2Gi to 8Gi in steps of 2Gi)", {("capacity",)}),
    "counter-pools": ({"request", "counter"}, "pool-b: counter mem of s has 5Gi; a device takes 6Gi", {("fewer",)}),
    "alternatives": (
        {"request", "selector", "taint"},
        "gpus/small of claim wanted does not tolerate the taint t:NoSchedule",
        {("selector",), ("taint",), ("fewer",)},
    ),
    "taint-rule": ({"request", "taint"}, "does not tolerate the taint from-rule=v:NoExecute", {("taint",)}),
    "no-attribute": ({"request", "constraint"}, "matchAttribute gpu.example.com/numa", {("constraint",), ("fewer",)}),
    "selector-fails": ({"request", "selector"}, "fails: no such key: mem", {("selector",)}),
    "overdrawn": ({"request", "counter", "in-use"}, "a counter that is overdrawn blocks its pool", {("in-use",)}),
    "claims": ({"request", "once"}, "a device serves one request only", {("fewer",)}),
    "generation": ({"request", "pool"}, "generation 1 of pool gpu.example.com/node-a is outdated, and pool", set()),
    "node-label": ({"request", "selector"}, "feature.node.kubernetes.io", {("selector",)}),
}


def problem_of(name: str) -> Problem:
    return waiting(load_checked([DATA / f"{name}.yaml"])).problem


def explained(problem: Problem, at: str = "n") -> Explanation:
    found = explain(problem, at)
    assert found is not None
    return found


@pytest.mark.parametrize("name", CASES)
def test_the_true_reason_is_named_and_every_change_helps(name: str) -> None:
    kinds, words, changes = CASES[name]
    problem = problem_of(name)
    found = explained(problem, "node-a")
    assert {c.reason.kind for c in found.causes} == kinds
    assert any(words in c.reason.text for c in found.causes)
    assert {tuple(c.kind for c in r) for r in found.relaxations} == changes
    for relaxation in found.relaxations:
        assert one(apply(problem, relaxation)) is not None
        assert one(problem) is None


@pytest.mark.parametrize("name", CASES)
def test_no_cause_can_be_left_out(name: str) -> None:
    """Each rule of the core that a change can take away does not, alone with the others gone, leave the claims without devices."""
    found = explained(problem_of(name), "node-a")
    assert len({(c.reason.kind, c.reason.key, c.reason.text) for c in found.causes}) == len(found.causes)
    assert all(c.reason.where.line or c.reason.kind in ("once", "in-use") for c in found.causes)


def test_a_claim_that_fits_needs_no_explanation() -> None:
    assert explain(Problem.of([CLASS], [slice_of(["a"])], node(), [claim(exact())]), "n") is None


def test_each_device_has_the_first_rule_against_it() -> None:
    devices = [
        device("a", attributes={"x": 1}),
        device("b", attributes={"x": 2}, taints=(Taint(key="k", effect="NoSchedule"),)),
        device("c", attributes={"x": 2}),
        device("d"),
        device("e", attributes={"x": 2}),
    ]
    request = exact(2, f"device.attributes['{DRIVER}'].?x.orValue(0) != 1")
    constraint = Constraint(match_attribute=f"{DRIVER}/x")
    problem = Problem.of([CLASS], [slice_of(devices)], node(), [claim(request, constraints=(constraint,))], [f"{DRIVER}/p/c"])
    found = {v.device.rpartition("/")[2]: v.reason.kind if v.reason else None for v in explained(problem).devices}
    assert found == {"a": "selector", "b": "taint", "c": "in-use", "d": "constraint", "e": None}


def test_each_device_has_its_own_words_where_one_rule_has_several() -> None:
    found = explained(problem_of("selector-fails"), "node-a")
    words = {v.device.rpartition("/")[2]: v.reason.text.rpartition("'")[2] for v in found.devices if v.reason}
    assert "fails: no such key: mem" in words["g0"]
    assert "does not hold" in words["g1"]
    assert [c.devices for c in found.causes if c.reason.kind == "selector"] == [
        ("gpu.example.com/node-a/g0",),
        ("gpu.example.com/node-a/g1",),
    ]


def test_a_device_without_the_attribute_of_a_constraint_is_told() -> None:
    found = explained(problem_of("no-attribute"), "node-a")
    told = {v.device.rpartition("/")[2]: v.reason.text for v in found.devices if v.reason}
    assert list(told) == ["g1"]
    assert told["g1"].startswith("the device has no attribute gpu.example.com/numa")


def test_pods_that_do_not_fit_together_on_several_nodes() -> None:
    problem = problem_of("pods")
    assert all(explain(attrs.evolve(problem, calls=(c,)), n) is None for c in problem.calls for n in c.nodes)
    found = explain_together(problem)
    assert found is not None
    assert found.node == "node-a, node-b"
    assert {c.reason.kind for c in found.causes} == {"request", "once"}
    assert {str(r[0]).partition(" (")[0] for r in found.relaxations} == {f"do without pod {p}" for p in ("p1", "p2", "p3")}
    for relaxation in found.relaxations:
        assert one(apply(problem, relaxation)) is not None


def test_a_change_that_only_leads_to_an_error_is_not_offered() -> None:
    devices = [device("a", attributes={"model": "x"}), device("b", attributes={"model": "x", "mem": 1})]
    first, second = f"device.attributes['{DRIVER}'].model == 'y'", f"device.attributes['{DRIVER}'].mem == 1"
    problem = Problem.of([CLASS], [slice_of(devices)], node(), [claim(exact(1, first, second))])
    without_first = (Change("selector", (0, "r0", 0), ""),)
    assert one(apply(problem, without_first)) is not None  # device b would do, but the search meets device a before
    assert not helps(problem, without_first)
    assert without_first not in explained(problem).relaxations
    turned = Problem.of([CLASS], [slice_of(devices[::-1])], node(), [claim(exact(1, first, second))])
    assert helps(turned, without_first)
    assert without_first in explained(turned).relaxations


def test_devices_elsewhere_are_only_a_reason_where_the_node_has_none() -> None:
    elsewhere = slice_of(["x", "y"], name="m", pool="m", node_name="m")
    none = explained(Problem.of([CLASS], [elsewhere], node(), [claim(exact())]))
    assert [c.reason.text for c in none.causes if c.reason.kind == "node"] == ["devices are on node m, not on n"]
    some = explained(Problem.of([CLASS], [elsewhere, slice_of(["a"])], node(), [claim(exact(2))]))
    assert [c.reason.kind for c in some.causes] == ["request"]
    assert some.devices[-1].reason is not None
    assert some.devices[-1].reason.kind == "node"


def test_changes_are_the_smallest_and_can_be_two_together() -> None:
    taints = [device(n, taints=(Taint(key=n, effect="NoSchedule"),)) for n in ("a", "b")]
    found = explained(Problem.of([CLASS], [slice_of(taints)], node(), [claim(exact(), exact())]))
    # one request less and one taint tolerated, or both taints tolerated by the right requests
    assert {len(r) for r in found.relaxations} == {2}
    assert any({c.kind for c in r} == {"taint"} for r in found.relaxations)


def test_a_request_that_goes_takes_its_constraints_along() -> None:
    both = Constraint(requests=("r0", "r1"), match_attribute=f"{DRIVER}/x")
    one_only = Constraint(requests=("r1",), match_attribute=f"{DRIVER}/x")
    problem = Problem.of([CLASS], [slice_of(["a"])], node(), [claim(exact(), exact(), constraints=(both, one_only))])
    changed = apply(problem, (Change("fewer", (0, "r1"), "", 1),)).claims[0].spec
    assert [r.name for r in changed.requests] == ["r0"]
    assert [c.requests for c in changed.devices.constraints] == [("r0",)]


def test_an_alternative_can_be_changed() -> None:
    subs = tuple(SubRequest(name=n, device_class_name="c", count=3) for n in ("s", "t"))
    problem = Problem.of([CLASS], [slice_of(["a", "b"])], node(), [claim(DeviceRequest(name="r", first_available=subs))])
    change = Change("fewer", (0, "r/t"), "", 1)
    assert helps(problem, (change,))
    edited = apply(problem, (change,)).claims[0].spec.requests[0].first_available
    assert [s.count for s in edited] == [3, 2]


def test_what_upstream_refuses_before_it_looks_is_said() -> None:
    found = explained(Problem.of([CLASS], [slice_of(["a"])], node(), [claim(exact(40))]))
    assert "needs at least 40 devices" in found.fatal
    assert not found.causes


def test_a_selector_that_fails_makes_upstream_give_up_although_devices_would_do() -> None:
    devices = [device("a"), device("b", attributes={"x": 1})]
    problem = Problem.of([CLASS], [slice_of(devices)], node(), [claim(exact(1, f"device.attributes['{DRIVER}'].x == 1"))])
    assert one(problem) is not None
    found = explained(problem)
    assert not found.causes
    assert f"on device {DRIVER}/p/a" in found.fatal
    turned = Problem.of([CLASS], [slice_of(devices[::-1])], node(), [claim(exact(1, f"device.attributes['{DRIVER}'].x == 1"))])
    assert explain(turned, "n") is None  # the search ends before it gets to the other device
