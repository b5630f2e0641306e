"""What each Kubernetes version takes in selectors, in the store and in new objects."""

from __future__ import annotations

import pytest

from dra_spec.resources import AttributeValue, Device
from dra_spec.selectors import Environment, SelectorDevice, SelectorError, SelectorSyntaxError, admit_derived, compile_selector
from dra_spec.selectors.environments import VERSIONS

A = "device.attributes['d.example.com']"
# expression -> (versions whose scheduler takes it, versions whose API server takes it in new objects with the gates of that expression on)
TAKEN: dict[str, tuple[str, str]] = {
    f"{A}.x == 1": ("1.34 1.35 1.36 1.37", "1.34 1.35 1.36 1.37"),
    f"{A}.x": ("1.34 1.35 1.36 1.37", "1.34 1.35 1.36 1.37"),
    "device.allowMultipleAllocations": ("1.34 1.35 1.36 1.37", "1.34 1.35 1.36 1.37"),
    f"{A}.x.includes(1)": ("1.36 1.37", "1.36 1.37"),
    f"{A}.x.exists(y, y == 1)": ("1.36 1.37", "1.36 1.37"),
    "[3, 1].sort() == [1, 3]": ("1.34 1.35 1.36 1.37", "1.35 1.36 1.37"),
    "[3, 1].sortBy(x, -x) == [3, 1]": ("1.34 1.35 1.36 1.37", "1.35 1.36 1.37"),
    "lists.range(2) == [0, 1]": ("1.34 1.35 1.36 1.37", "1.35 1.36 1.37"),
    "[1].all(i, v, i < v) && isSemver('1', true)": ("1.34 1.35 1.36 1.37", "1.34 1.35 1.36 1.37"),
    "math.greatest(1, 2) == 2": ("", ""),
}


@pytest.mark.parametrize("expression", TAKEN)
@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("stored", [True, False])
def test_what_each_version_takes(expression: str, version: str, stored: bool) -> None:
    taken = version in TAKEN[expression][0 if stored else 1].split()
    environment = Environment.of(version, stored=stored)
    if taken:
        compile_selector(expression, environment=environment)
        return
    with pytest.raises(SelectorSyntaxError) as error:
        compile_selector(expression, environment=environment)
    head, shown, caret = str(error.value).splitlines()
    known = TAKEN[expression][0]
    assert (f"Kubernetes {version} does not know this, 1.37 does" in head) == (bool(known) and version not in known)
    assert ("an API server of Kubernetes" in head) == (version in known)
    assert shown.strip() == expression
    assert caret.endswith("^")


def test_gates_are_blamed_for_what_they_switch_off() -> None:
    for version, words in (("1.36", "with these feature gates does not take this"), ("1.35", "Kubernetes 1.35 does not know this")):
        with pytest.raises(SelectorSyntaxError, match=words):
            compile_selector(f"{A}.x.includes(1)", environment=Environment.of(version, stored=False, list_types=False))


def test_in_1_36_includes_takes_no_longer_lists_than_attributes_may_be() -> None:
    expression = f"[{', '.join(['1'] * 49)}].includes(1)"
    device = SelectorDevice.of("d.example.com", "p", Device(name="a", attributes={"x": AttributeValue("int", 1)}))
    assert compile_selector(expression, environment=Environment.of("1.37")).matches(device) is True
    assert isinstance(compile_selector(expression, environment=Environment.of("1.36")).matches(device), SelectorError)


def test_an_unknown_version_is_refused() -> None:
    with pytest.raises(ValueError, match="version"):
        Environment.of("1.33")


def test_derived_attributes_share_a_budget() -> None:
    cost = admit_derived(f"{A}.x").max_cost
    assert cost > 0
    with pytest.raises(SelectorSyntaxError, match="may cost 1000000 together") as error:
        admit_derived(f"{A}.x", limit=cost - 1)
    assert error.value.kind == "cost-limit"
