"""Devices that look the same to a selector are asked once: the answer must be the one that each would give by itself."""

from __future__ import annotations

import pytest
from allocation_build import DRIVER
from hypothesis import given, settings
from hypothesis import strategies as st

from dra_spec.allocation.reads import reads_of
from dra_spec.resources import AttributeValue, Capacity, Device, Quantity
from dra_spec.selectors import SelectorDevice, SelectorError, compile_selector

A, C = f'device.attributes["{DRIVER}"]', f'device.capacity["{DRIVER}"]'


@pytest.mark.parametrize(
    ("expression", "names"),
    [
        (f'device.driver == "{DRIVER}"', []),
        ("device.allowMultipleAllocations", []),
        (f"{A}.x == 1 && {A}['y'] == 2", [("attributes", DRIVER, "x"), ("attributes", DRIVER, "y")]),
        (f"has({A}.x)", [("attributes", DRIVER, "x")]),
        (f"[1, 2].exists(i, {A}.x == i)", [("attributes", DRIVER, "x")]),
        (f'{C}.m.isGreaterThan(quantity("1"))', [("capacity", DRIVER, "m")]),
        ("device.attributes.other.x == 1", [("attributes", "other", "x")]),
        # the whole map, a computed name, an optional: these look at more than names in the text
        (f"{A}.exists(k, k == 'x')", None),
        (f"{A}['x' + 'y'] == 1", None),
        (f'"{DRIVER}" in device.attributes', None),
        (f"{A}.?x.orValue(1) == 1", None),
        ("[device].all(device, device.driver == 'x')", None),
    ],
)
def test_what_is_read(expression: str, names: list[tuple[str, str, str]] | None) -> None:
    reads = reads_of(compile_selector(expression))
    assert (sorted(reads.names) if reads else reads) == names


ATOMS = (
    f"{A}.x == 1",
    f"{A}.x == 'one'",
    f"{A}['y'] < 2",
    f"has({A}.x)",
    f"!has({C}.m)",
    f'{C}.m.isGreaterThan(quantity("1"))',
    "device.attributes['other.example.com'].x == 1",
    f"{A}.x in [1, 2]",
    f"{A}.x.size() > 2",
    "device.allowMultipleAllocations",
    f"device.driver == '{DRIVER}'",
    f"[0, 1].exists(i, {A}.x == i)",
)
values = st.sampled_from(
    [AttributeValue("int", 1), AttributeValue("int", 2), AttributeValue("string", "one"), AttributeValue("bool", True)]
)
names = st.sampled_from(["x", "y", "z", "other.example.com/x"])
devices = st.builds(
    Device,
    name=st.just("d"),
    attributes=st.dictionaries(names, values, max_size=3),
    capacity=st.dictionaries(st.just("m"), st.builds(Capacity, value=st.sampled_from([Quantity.of(1), Quantity.of(2)]))),
    allow_multiple_allocations=st.booleans(),
)


@settings(max_examples=300, deadline=None)
@given(st.lists(st.sampled_from(ATOMS), min_size=1, max_size=3), st.sampled_from([" && ", " || "]), devices, devices)
def test_devices_that_look_the_same_answer_the_same(atoms: list[str], operator: str, left: Device, right: Device) -> None:
    selector = compile_selector(operator.join(atoms))
    reads = reads_of(selector)
    assert reads is not None
    if reads.seen(DRIVER, left) == reads.seen(DRIVER, right):
        answers = [selector.matches(SelectorDevice.of(DRIVER, "p", d)) for d in (left, right)]
        assert str(answers[0]) == str(answers[1])
        assert isinstance(answers[0], bool | SelectorError)


def test_a_name_given_twice_is_not_told_apart() -> None:
    reads = reads_of(compile_selector(f"{A}.x == 1"))
    twice = {"x": AttributeValue("int", 1), f"{DRIVER}/x": AttributeValue("int", 2)}
    assert reads is not None
    assert reads.seen(DRIVER, Device(name="d", attributes=twice)) is None
