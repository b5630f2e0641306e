"""The solver's verdict on one pod, with selectors that can fail: the same kind as the reference allocator's, and the same devices."""

from __future__ import annotations

import attrs
import pytest
from allocation_build import CLASS, DRIVER, claim, device, exact, node, slice_of
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st
from test_z3_random import problems

from dra_spec.allocation import Allocator, DoesNotFit, FatalAllocation, Inventory, Settings
from dra_spec.allocation.explain_upstream import Upstream
from dra_spec.allocation.validator import broken_rules
from dra_spec.allocation.z3_groups import World
from dra_spec.allocation.z3_problem import Problem, WantedClaim
from dra_spec.allocation.z3_verdict import verdict
from dra_spec.resources import ClaimSpec, Constraint, ResourceSlice
from dra_spec.selectors import SelectorSyntaxError

SLOW = [HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large]
GUARDED, UNGUARDED = ".?numa.orValue(2)", ".numa"


@st.composite
def failing(draw: st.DrawFn) -> Problem:
    """Some selectors look an attribute up that some devices lack."""
    problem = draw(problems())
    (call,) = problem.calls
    return attrs.evolve(problem, calls=(attrs.evolve(call, claims=tuple(WantedClaim(c.label, _bold(draw, c.spec)) for c in call.claims)),))


def _bold(draw: st.DrawFn, spec: ClaimSpec) -> ClaimSpec:
    def leaf(each):  # type: ignore[no-untyped-def]
        if not draw(st.booleans()):
            return each
        changed = tuple(attrs.evolve(s, expression=s.expression.replace(GUARDED, UNGUARDED)) for s in each.selectors)
        return attrs.evolve(each, selectors=changed)

    requests = tuple(
        attrs.evolve(r, exactly=leaf(r.exactly))
        if r.exactly
        else attrs.evolve(r, first_available=tuple(leaf(s) for s in r.first_available))
        for r in spec.requests
    )
    return attrs.evolve(spec, devices=attrs.evolve(spec.devices, requests=requests))


def check(problem: Problem) -> None:
    found = verdict(problem, "n")
    upstream = Upstream.of(problem)
    try:
        results = upstream.results(problem, "n")
        kind, theirs = "fits", [(i, r.request, r.name) for i, c in enumerate(results) for r in c.results]
    except DoesNotFit:
        kind, theirs = "no-fit", []
    except FatalAllocation:
        kind, theirs = "fatal", []
    event(kind)
    assert (found.kind, found.upstream) == (kind, kind)
    assert [(p.claim, p.request, p.device) for p in (found.solution.picks if found.solution else ())] == theirs
    if kind != "fatal":
        assert found.exists == (kind == "fits")
        assert not found.remark
        return
    if found.exists is None:
        return  # the solver refused by itself
    # an error that only the search meets: the solver knows of a device on which something fails, or a request for all cannot be kept
    everything = any(leaf.all_devices for c in problem.claims for r in c.spec.requests for _, leaf in r.leaves)
    assert World(problem).table.errors or (everything and any(c.spec.devices.constraints for c in problem.claims))


@settings(max_examples=60, deadline=None, suppress_health_check=SLOW)
@given(failing())
def test_the_kind_of_the_verdict_is_the_reference_allocators(problem: Problem) -> None:
    check(problem)


@pytest.mark.full
@settings(max_examples=3000, deadline=None, suppress_health_check=SLOW)
@given(failing())
def test_the_kind_of_the_verdict_is_the_reference_allocators_on_many(problem: Problem) -> None:
    check(problem)


def a_problem(slices: list[ResourceSlice], *requests: object, **more: object) -> Problem:
    return Problem.of([CLASS], slices, node(), [claim(*requests, **more)])  # type: ignore[arg-type]


WITH, WITHOUT = device("a", attributes={"x": 1}), device("b")
READS = f"device.attributes['{DRIVER}'].x == 1"


def test_an_error_behind_the_solution_is_not_met() -> None:
    found = verdict(a_problem([slice_of([WITH, WITHOUT])], exact(1, READS)), "n")
    assert (found.kind, found.exists) == ("fits", True)


def test_an_error_before_the_solution_is_fatal_and_the_verdict_says_that_an_allocation_exists() -> None:
    found = verdict(a_problem([slice_of([device("0"), WITH])], exact(1, READS)), "n")
    assert (found.kind, found.exists, found.solution) == ("fatal", True, None)
    assert "no such key: x" in found.words
    assert found.remark == "without that error the claims would fit on node n"


def test_an_error_on_a_device_that_is_in_use_is_not_met() -> None:
    problem = Problem.of([CLASS], [slice_of([WITHOUT, WITH])], node(), [claim(exact(1, READS))], [f"{DRIVER}/p/b"])
    assert verdict(problem, "n").kind == "fits"


def test_a_request_for_all_meets_every_error() -> None:
    found = verdict(a_problem([slice_of([WITH, WITHOUT])], exact(0, READS)), "n")
    assert (found.kind, found.exists) == ("fatal", None)


def test_a_release_that_overlooks_an_allocation_or_breaks_a_rule_is_named() -> None:
    # 1.36 keeps distinctAttribute apart by request only while it backtracks: a, b, a passes for three devices
    devices = [device("a", attributes={"x": 1}), device("b", attributes={"x": 2}), device("c", attributes={"x": 1})]
    problem = a_problem([slice_of(devices)], exact(3), constraints=(Constraint(distinct_attribute=f"{DRIVER}/x"),))
    now, before = verdict(problem, "n"), verdict(attrs.evolve(problem, version="1.36", features=Settings.of("1.36").features), "n")
    assert (now.kind, now.remark) == ("no-fit", "")
    assert (before.kind, before.upstream) == ("no-fit", "fits")
    assert before.remark == "kube-scheduler 1.36 would give devices that break a rule"


def test_a_fatal_error_on_any_node_decides() -> None:
    problem = a_problem([slice_of([WITH]), slice_of([WITHOUT], name="t", pool="q", node_name="m")], exact(1, READS))
    both = attrs.evolve(problem, nodes={"n": node("n"), "m": node("m")}, calls=(attrs.evolve(problem.calls[0], nodes=("n", "m")),))
    assert [verdict(both, name).kind for name in ("n", "m")] == ["fits", "fatal"]
    assert Upstream.of(both).gives_up(both) == "m"


def test_upstream_is_the_release_of_the_problem() -> None:
    problem = attrs.evolve(a_problem([slice_of([WITH])], exact()), version="1.34", features=Settings.of("1.34").features)
    assert Upstream.of(problem).allocator.settings.version == "1.34"
    assert Allocator(Inventory.of([CLASS], [], []), Settings.of("1.34")).settings.environment.version == "1.34"


def test_selectors_follow_the_version_everywhere() -> None:
    problem = a_problem([slice_of([WITH])], exact(1, f"device.attributes['{DRIVER}'].x.includes(1)"))
    assert verdict(problem, "n").kind == "fits"
    old = attrs.evolve(problem, version="1.35", features=Settings.of("1.35").features)
    found = verdict(old, "n")
    assert (found.kind, found.upstream) == ("fatal", "fatal")
    assert "Kubernetes 1.35 does not know this, 1.37 does" in found.words
    fits = verdict(problem, "n").solution
    assert fits is not None
    with pytest.raises(SelectorSyntaxError, match=r"Kubernetes 1\.35 does not know this"):
        broken_rules(old, fits)
