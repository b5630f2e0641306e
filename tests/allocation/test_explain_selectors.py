"""What is said of selectors themselves when claims do not fit."""

from __future__ import annotations

import attrs
import pytest
from allocation_build import CLASS, DRIVER, claim, device, exact, node, slice_of
from hypothesis import given, settings
from hypothesis import strategies as st

from dra_spec.allocation.explain_selectors import Insight, insights
from dra_spec.allocation.z3_problem import Problem
from dra_spec.resources import CelSelector, ClaimSpec, DeviceRequest, ResourceSlice, SubRequest
from dra_spec.selectors import SelectorDevice, compile_selector

A = f"device.attributes['{DRIVER}']"
DEVICES = [device("a", attributes={"model": "H100", "index": 1}), device("b", attributes={"model": "A100"})]


def told(*selectors: str, slices: list[ResourceSlice] | None = None, class_too: str = "") -> list[Insight]:
    return of(claim(exact(1, *selectors)), slices, class_too)


def of(spec: ClaimSpec, slices: list[ResourceSlice] | None = None, class_too: str = "") -> list[Insight]:
    problem = Problem.of([CLASS], slices if slices is not None else [slice_of(DEVICES)], node(), [spec])
    if class_too:
        both = (*CLASS.spec.selectors, CelSelector(expression=class_too))
        problem = attrs.evolve(problem, classes={"c": attrs.evolve(CLASS, spec=attrs.evolve(CLASS.spec, selectors=both))})
    return list(insights(problem, problem.calls[0]))


def kinds(found: list[Insight]) -> list[str]:
    return [i.kind for i in found]


def test_nothing_is_said_of_selectors_that_hold_on_some_device() -> None:
    assert told(f"{A}.model == 'H100'") == []
    assert told() == []


def test_a_selector_that_no_device_can_satisfy() -> None:
    (found,) = told(f"{A}.model == 'H100' && {A}.model == 'A100'")
    assert found.kind == "unsatisfiable"
    assert found.text.startswith("no device at all can satisfy the selector of request r0 of claim 0: ")


def test_selectors_of_the_class_and_of_the_request_exclude_each_other() -> None:
    (found,) = told("device.driver == 'other.example.com'")
    assert found.kind == "disjoint"
    assert "selectors of class c and of request r0 of claim 0 exclude each other" in found.text


def test_two_selectors_of_a_request_exclude_each_other() -> None:
    found = told(f"{A}.?index.orValue(0) > 3", f"{A}.?index.orValue(0) < 2")
    assert kinds(found) == ["disjoint"]
    assert "selectors of request r0 of claim 0 exclude each other" in found[0].text


def test_an_attribute_that_no_device_has_and_what_was_probably_meant() -> None:
    (found,) = told(f"{A}.?modl.orValue('') == 'H100'")
    assert found.kind == "unknown-attribute"
    assert found.text.endswith(f"reads {A}.modl, which no device of the inventory has; did you mean {A}.model?")
    (elsewhere,) = told("device.attributes['gpu.nvidia.com'].?model.orValue('') == 'H100'")
    assert elsewhere.text.endswith(f"which no device of the inventory has; did you mean {A}.model?")
    (capacity,) = told(f"'memory' in device.capacity['{DRIVER}']")
    assert capacity.kind == "unknown-attribute"
    assert f"reads device.capacity['{DRIVER}'].memory" in capacity.text


def test_a_look_up_that_fails_where_the_attribute_is_missing() -> None:
    found = told(f"{A}.index == 1")
    assert kinds(found) == ["unguarded"]
    assert f"fails on a device without {A}.index, as on {DRIVER}/p/b, which ends the pod's attempt" in found[0].text
    assert f"guard it with has({A}.index) && ..., or read {A}.?index.orValue(...)" in found[0].text
    assert told(f"has({A}.index) && {A}.index == 1") == []
    assert told(f"{A}.?index.orValue(0) == 1") == []


def test_a_look_up_that_upstream_does_not_get_to_is_no_failure() -> None:
    assert told(f"{A}.index == 1", class_too=f"{A}.model == 'H100'") == []


def test_several_problems_and_alternatives_are_told_apart() -> None:
    subs = (
        SubRequest(name="x", device_class_name="c", selectors=(CelSelector(expression="device.driver == 'x'"),)),
        SubRequest(name="y", device_class_name="c", selectors=(CelSelector(expression=f"{A}.nope == 1"),)),
    )
    found = of(claim(DeviceRequest(name="r", first_available=subs)))
    assert [(i.kind, i.request) for i in found] == [
        ("disjoint", "request r/x of claim 0"),
        ("unguarded", "request r/y of claim 0"),
        ("unknown-attribute", "request r/y of claim 0"),
    ]


def test_without_devices_only_proofs_are_told() -> None:
    assert kinds(told("false", slices=[])) == ["unsatisfiable"]


PARTS = [f"{A}.model == 'H100'", f"{A}.model != 'H100'", f"{A}.index > 0", f"{A}.?index.orValue(2) == 2", "device.driver == 'z'", "true"]


@settings(max_examples=60, deadline=None)
@given(st.lists(st.sampled_from(PARTS), min_size=1, max_size=3), st.sampled_from(["&&", "||"]))
def test_what_is_told_is_true(parts: list[str], operator: str) -> None:
    expression = f" {operator} ".join(parts)
    views = [SelectorDevice.of(DRIVER, "p", d) for d in DEVICES]
    holds = [compile_selector(expression).matches(v) for v in views]
    for insight in told(expression):
        if insight.kind == "unguarded":
            assert any(not isinstance(h, bool) for h in holds)
        else:
            assert True not in holds or insight.kind == "disjoint"
        if insight.kind == "disjoint":
            assert not any(h is True and v.driver == DRIVER for h, v in zip(holds, views, strict=True))


@pytest.mark.parametrize("expression", ["device.driver ==", "device.nope"])
def test_selectors_that_do_not_compile_are_left_to_others(expression: str) -> None:
    assert told(expression) == []
