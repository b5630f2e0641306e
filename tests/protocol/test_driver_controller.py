"""The driver's controller: conditions of allocated devices, written with the version that was read."""

from __future__ import annotations

from typing import Any

from node_models import instance, model

from dra_spec.explorer import Limits, explore
from dra_spec.explorer.model import AlwaysPossible, Kind, StateInvariant, StepInvariant, Truth, View
from dra_spec.protocol.apiserver import Api

ONE: dict[str, Any] = {"pods": {"p1": ["c1"]}, "drivers": {"c1": ["gpu"]}, "conditions": ("attached",)}
WRITERS = {"apiserver", "driver-controller", "workload"}
DEVICE = "gpu/n1/gpu-0"


def verdicts(inst: Any, *asked: Any) -> list[str]:
    checked = model(inst, only=["none"])
    checked.properties.extend(asked)
    return [p.verdict for p in explore(checked, Limits(expand_violating=True)).properties]


def test_an_allocated_device_becomes_ready() -> None:
    inst = instance(**ONE, writers=WRITERS, touch_claim=2, api_refused=1)
    claim = Api.of(inst).claim["c1"]

    def ready(v: View) -> Truth:
        return Truth(2 * (v.value(claim).conditions == {(DEVICE, "attached")}))

    def allowed(action: Any) -> bool:
        return action.type.kind is Kind.PROTOCOL

    assert verdicts(inst, AlwaysPossible("ready", ready, allowed)) == ["holds"]


def test_a_vanished_device_becomes_failed_and_a_ready_one_too() -> None:
    inst = instance(**ONE, writers=WRITERS, device_vanishes=1)
    claim = Api.of(inst).claim["c1"]
    seen = {
        "ready": {(DEVICE, "attached")},
        "failed": {(DEVICE, "not-attached")},
        "both": {(DEVICE, "attached"), (DEVICE, "not-attached")},
    }
    never = [StateInvariant(name, lambda v, c=c: Truth(2 * (v.value(claim).conditions != c))) for name, c in seen.items()]
    assert verdicts(inst, *never) == ["violated"] * 3


def test_a_write_from_an_old_copy_is_a_conflict() -> None:
    inst = instance(**ONE, writers=WRITERS, touch_claim=1)
    claim = Api.of(inst).claim["c1"]
    checked = model(inst, only=["none"])
    copy = next(s for s in checked.slots if s.name == "driver-controller/copy/c1")

    def judged(before: View, after: View, action: Any, label: str) -> Truth:
        return Truth(2 * ((label == "conflict") == (before.value(copy).rv != before.value(claim).rv)))

    assert verdicts(inst, StepInvariant("conflict", lambda a: a.name == "driver-controller.set_conditions", judged)) == ["holds"]


def test_conditions_only_name_devices_of_the_allocation() -> None:
    """Also when the claim is released and allocated again between read and write."""
    inst = instance({"p1": ["c1"], "p2": ["c1"]}, {"c1": ["gpu"]}, writers=WRITERS, conditions=("attached",), force_delete_pod=1)
    claim = Api.of(inst).claim["c1"]

    def fits(v: View) -> Truth:
        found = v.value(claim)
        return Truth(2 * ({d for d, _ in found.conditions} <= found.devices))

    assert verdicts(inst, StateInvariant("fits", fits)) == ["holds"]


def test_devices_without_conditions_are_left_alone() -> None:
    inst = instance({"p1": ["c1"]}, {"c1": ["gpu"]}, writers=WRITERS, device_vanishes=1)
    claim = Api.of(inst).claim["c1"]
    assert verdicts(inst, StateInvariant("none", lambda v: Truth(2 * (not v.value(claim).conditions)))) == ["holds"]
