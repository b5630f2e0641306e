"""Devices that belong together: NUMA nodes and PCIe roots by matchAttribute, as scalars and as lists."""

from __future__ import annotations

from pathlib import Path

import pytest

from dra_spec.allocation import AllocatedState, Allocator, DoesNotFit, Inventory
from dra_spec.allocation.explain import Explanation, explain
from dra_spec.allocation.relax import apply
from dra_spec.allocation.settings import Settings
from dra_spec.allocation.z3_manifests import waiting
from dra_spec.allocation.z3_problem import Problem
from dra_spec.allocation.z3_solve import first, one
from dra_spec.resources import Loaded, load_checked, load_text

DATA = Path(__file__).parent.parent / "data" / "allocation"
LISTS = Settings.of("1.37", {"DRAListTypeAttributes": True})


def problem_of(loaded: Loaded, settings: Settings) -> Problem:
    return waiting(loaded, "wanted", settings=settings).problem


def explained(problem: Problem) -> Explanation:
    found = explain(problem, "node-a")
    assert found is not None
    for relaxation in found.relaxations:
        assert one(apply(problem, relaxation)) is not None
    return found


def reference(loaded: Loaded, settings: Settings) -> list[str] | None:
    """The devices of the reference allocator, None if there are none."""
    held = AllocatedState.of([c.status.allocation for c in loaded.claims if c.status.allocation])
    wanted = next(c for c in loaded.claims if c.name == "wanted")
    try:
        (result,) = Allocator(Inventory.of_loaded(loaded), settings).allocate([wanted.spec], "node-a", held)
    except DoesNotFit:
        return None
    return [r.device for r in result.results]


def both(loaded: Loaded, settings: Settings) -> list[str] | None:
    """The devices of both implementations, which agree."""
    found = first(problem_of(loaded, settings))
    devices = None if found is None else [p.device.rpartition("/")[2] for p in found.picks]
    assert reference(loaded, settings) == devices
    return devices


@pytest.mark.parametrize(
    ("name", "attribute", "values"),
    [
        ("numa", "resource.kubernetes.io/numaNode", {"1": ["gpu-1"], "0": ["nic-0"]}),
        ("pcie-root", "resource.kubernetes.io/pcieRoot", {"pci0000:00": ["gpu-0"], "pci0000:40": ["gpu-1"], "pci0000:80": ["nic-0"]}),
    ],
)
def test_alignment_that_fails_is_the_reason(name: str, attribute: str, values: dict[str, list[str]]) -> None:
    loaded = load_checked([DATA / f"{name}.yaml"])
    assert both(loaded, Settings()) is None
    found = explained(problem_of(loaded, Settings()))
    kinds = {c.reason.kind for c in found.causes}
    assert kinds - {"in-use"} == {"request", "constraint"}  # nothing about classes and selectors, which are not to blame
    (cause,) = [c for c in found.causes if c.reason.kind == "constraint"]
    assert f"matchAttribute {attribute}" in cause.reason.text
    assert {v: [d.rpartition("/")[2] for d in devices] for v, devices in cause.values} == values
    offered = {tuple(c.kind for c in r) for r in found.relaxations}
    assert ("constraint",) in offered
    assert (("in-use",) in offered) is (name == "numa")


@pytest.mark.parametrize(("name", "freed"), [("numa", ["gpu-0", "nic-0"])])
def test_aligned_devices_are_found(name: str, freed: list[str]) -> None:
    text = (DATA / f"{name}.yaml").read_text()
    start = text.index("status:\n  allocation")
    loaded = load_text(text[:start] + text[text.index("---", start) :])
    assert both(loaded, Settings()) == freed


def test_a_pcie_root_in_a_list_matches_if_the_lists_have_a_common_value() -> None:
    loaded = load_checked([DATA / "pcie-root-list.yaml"])
    assert both(loaded, LISTS) == ["gpu-1", "nic-0"]
    assert both(loaded, Settings()) is None  # a list equals nothing while the gate is off


def test_lists_without_a_common_value() -> None:
    text = (DATA / "pcie-root-list.yaml").read_text().replace('"pci0000:80", "pci0000:40"', '"pci0000:80", "pci0000:c0"')
    loaded = load_text(text)
    assert both(loaded, LISTS) is None
    found = explained(problem_of(loaded, LISTS))
    (cause,) = [c for c in found.causes if c.reason.kind == "constraint"]
    assert {v: [d.rpartition("/")[2] for d in devices] for v, devices in cause.values} == {
        "pci0000:00": ["gpu-0"],
        "pci0000:40": ["gpu-1"],
        "pci0000:80, pci0000:c0": ["nic-0"],
    }
    assert ("constraint",) in {tuple(c.kind for c in r) for r in found.relaxations}


def test_a_device_without_the_attribute_is_aligned_with_nothing() -> None:
    text = (DATA / "pcie-root.yaml").read_text().replace(', attributes: {resource.kubernetes.io/pcieRoot: {string: "pci0000:80"}}', "")
    loaded = load_text(text)
    assert both(loaded, Settings()) is None
    found = explained(problem_of(loaded, Settings()))
    (cause,) = [c for c in found.causes if c.reason.kind == "constraint"]
    assert dict(cause.values)[""] == ("nic.example.com/node-a/nic-0",)
