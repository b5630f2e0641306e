"""From model files to scenarios: expectations, allocation, variants; and every complete case of the corpus."""

from __future__ import annotations

import os
import re
from pathlib import Path

import attrs
import pytest

from dra_spec.allocation.errors import DoesNotFit
from dra_spec.scenario.content import shipped
from dra_spec.scenario.modelfile import LimitSpec, Overrides
from dra_spec.scenario.run import run
from dra_spec.scenario.scenario import Scenario
from dra_spec.scenario.strict import InputError
from dra_spec.scenario.targets import scenarios
from dra_spec.scenario.variants import choose, default_model
from dra_spec.variants.base import VariantKind, variants


def one(name: str, **options: object) -> Scenario:
    (found,) = scenarios((name,), Overrides(**options))  # type: ignore[arg-type]
    return found


def test_the_allocator_of_a_model_is_first_fit_and_remembers_what_is_in_use() -> None:
    instance = one("h1").instance
    first, second = instance.allocate(("c1", "c2"), "n1", frozenset())
    assert [first.devices, second.devices] == [{"accel.example.org/n1/d1"}, {"accel.example.org/n1/d2"}]
    assert first.nodes == {"n1"}
    (third,) = instance.allocate(("c3",), "n1", first.devices)
    assert third.devices == second.devices
    with pytest.raises(DoesNotFit):
        instance.allocate(("c3",), "n1", first.devices | second.devices)


def test_binding_conditions_reach_the_allocation() -> None:
    scenario = one("binding-conditions")
    (allocation,) = scenario.instance.allocate(("c1",), "n1", frozenset())
    assert allocation.results[0].binding_conditions == ("Attached",)
    assert scenario.instance.binding_conditions


def test_expectations_follow_what_is_checked() -> None:
    assert (one("h1").expected, one("h1").expectations) == ("violated", {"no-double-allocation": "violated"})
    assert one("h1", repaired=True).expected == "holds"
    assert one("h1", invariants=("reserved-implies-allocated",)).expected != "violated"
    assert one("h1", bounds={"lag": 1}).expected is None
    assert one("touched-claim", variants=("allocation-only-assumed",)).expected == "violated"


def test_variants_are_found_by_name_and_by_bug() -> None:
    assert [v.name for v in choose(["B02"], repaired=False).variants] == ["allocation-only-assumed"]
    assert default_model(["B02"]) == "touched-claim"
    repairs = {v.name for v in variants().values() if v.kind is VariantKind.REPAIR}
    assert {v.name for v in choose([], repaired=True).variants} == repairs


def test_a_variant_that_the_model_cannot_show_is_an_error() -> None:
    with pytest.raises(InputError, match="no writer of the model kubelet-restart takes the action"):
        one("kubelet-restart", variants=("unreserve-no-restore",))


def test_every_model_has_each_object_and_writers_for_its_promises() -> None:
    for name in shipped("models"):
        scenario = one(name)
        assert not scenario.not_encoded, name
        assert scenario.invariants, name
        for invariant in scenario.invariants.values():
            assert invariant.needs <= scenario.instance.writers


def test_what_each_model_shows_is_a_variant() -> None:
    for name in shipped("models"):
        for variant in one(name).file.shows:
            assert variant in variants(), name


CORPUS = os.environ.get("DRA_SPEC_CORPUS")


def _cases() -> list[tuple[str, list[str]]]:
    """The table of complete cases in the corpus' README: an inventory and the manifests that go with it."""
    if not CORPUS:
        return []
    text = (Path(CORPUS) / "manifests" / "README.md").read_text()
    rows = re.findall(r"^\| `([a-z-]+\.yaml)` \| (`[^|]*) \|", text, re.MULTILINE)
    return [(inventory, re.findall(r"`([^`]+)`", files)) for inventory, files in rows]


@pytest.mark.full
@pytest.mark.skipif(not CORPUS, reason="no corpus")
def test_every_complete_case_ends_in_a_verdict_or_names_what_is_not_encoded() -> None:
    decided = 0
    cases = _cases()
    assert len(cases) >= 18
    for inventory, files in cases:
        root = Path(str(CORPUS)) / "manifests"
        extra = [root / "dra-driver-cpu/deviceclass-dracpu.part.yaml"] if inventory == "cpu-individual.yaml" else []
        paths = [root / "inventories" / inventory, *(root / file for file in files), *extra]
        verdicts = []
        for scenario in scenarios([str(path) for path in paths], Overrides(limits=LimitSpec(max_states=200_000))):
            report = run(attrs.evolve(scenario))
            verdicts.append(report.verdict)
            assert report.verdict != "undecided" or scenario.not_encoded or (report.result and report.result.stopped == "max-states")
            if scenario.not_encoded:
                assert report.verdict == "undecided"
                assert all(re.match(r".*\.yaml:\d+: ", note) for note in scenario.not_encoded), scenario.not_encoded
        assert verdicts, inventory
        decided += all(verdict in ("holds", "violated") for verdict in verdicts)
    assert decided >= 6
