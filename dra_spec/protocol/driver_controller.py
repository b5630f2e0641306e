"""A driver's central controller, as far as scheduling waits for it: it says of an allocated device whether it is ready (plugin.md, D3, D4).

The controller reads a claim and writes `status.devices` with UpdateStatus and the resourceVersion that it read, so that it never writes to
another allocation than the one it looked at; drivers that patch by name without a version have the defects C-ABA and C-LOST.
It has one decision: a device that is there becomes ready (all its binding conditions), one that has vanished failed (all its binding
failure conditions). Attaching and detaching (D2, D6) and publishing (D5) are not modelled; a vanished device stays in its ResourceSlice.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import attrs

from dra_spec.explorer.model import Action, Outcome, Slot, View, action
from dra_spec.protocol import budgets
from dra_spec.protocol.apiserver import Api
from dra_spec.protocol.budgets import Budgets
from dra_spec.protocol.instance import Instance
from dra_spec.protocol.node import DEVICE_ROOM, device_actions, present, shared_slots
from dra_spec.protocol.objects import Claim, DeviceResult

ROOM = "driver-controller"
READY, FAILED = "ready", "failed"  # parameter `kind`


@attrs.frozen(eq=False)
class Controller:
    """What the actions here work with. `copies`: claim -> what D3 read, until D4."""

    api: Api
    budgets: Budgets
    present: Mapping[str, Slot[bool]]
    copies: Mapping[str, Slot[Claim | None]]

    @property
    def rooms(self) -> frozenset[str]:
        return self.api.rooms | {ROOM, DEVICE_ROOM, budgets.ROOM}


def _make(instance: Instance) -> Controller:
    copies = {c.name: Slot[Claim | None](f"{ROOM}/copy/{c.name}", None, ROOM) for c in instance.claims}
    return Controller(Api.of(instance), Budgets.of(instance), present(instance), copies)


def controller(instance: Instance) -> Controller:
    """The controller of an instance: the context of the actions here."""
    return instance.memo(_make)


def missing_conditions(claim: Claim, present: frozenset[str]) -> frozenset[tuple[str, str]]:
    """The conditions that the controller would set on the claim as it is, given the devices that are there."""
    results = claim.allocation.results if claim.allocation else ()
    return frozenset((r.device, kind) for r in results for kind in _conditions(r, r.device in present)) - claim.conditions


def _conditions(result: DeviceResult, is_present: bool) -> tuple[str, ...]:
    if not result.binding_conditions:
        return ()
    return result.binding_conditions if is_present else result.binding_failure_conditions


def _present(v: View, me: Controller, claim: Claim) -> frozenset[str]:
    results = claim.allocation.results if claim.allocation else ()
    return frozenset(r.device for r in results if r.binding_conditions and r.device in me.present and v.value(me.present[r.device]))


@action("driver-controller.get_claim", writer="driver-controller", step="D3", source="KEP-5007; kubelet plugin helper has no part in it")
def get_claim(v: View, me: Controller, claim: str) -> Iterator[Outcome]:
    """Reads an allocated claim that has a device whose state is not in its conditions yet."""
    if v.value(me.copies[claim]) is not None or not v[me.api.claim[claim]].exists or v[me.api.claim[claim]].allocation is None:
        return
    found = v.value(me.api.claim[claim])
    if not missing_conditions(found, _present(v, me, found)):
        return
    ok = v.outcome()
    ok[me.copies[claim]] = found
    yield ok


@action("driver-controller.set_conditions", writer="driver-controller", step="D4", source="KEP-5007; validation.go:validateDeviceStatus")
def set_conditions(v: View, me: Controller, claim: str) -> Iterator[Outcome]:
    """Writes the conditions of the claim's devices, as they are now, with the version that was read. `conflict`: it reads again."""
    if v.project(me.copies[claim], _is_none):
        return
    copy = v.value(me.copies[claim])
    if copy is None:
        return
    wanted = missing_conditions(copy, _present(v, me, copy))
    if not wanted:
        skip = v.outcome("skip")
        skip[me.copies[claim]] = None
        yield skip
        return
    for answer in me.api.update_status(v, claim, copy, conditions=copy.conditions | wanted):
        answer[me.copies[claim]] = None
        yield answer


def _is_none(value: object) -> bool:
    return value is None


def slots(instance: Instance) -> Iterator[Slot[Any]]:
    """The controller's copies, and whether devices are there."""
    yield from shared_slots(instance, "driver-controller")
    yield from controller(instance).copies.values()


def actions(instance: Instance) -> Sequence[Action]:
    """All actions of the controller; nothing if it does not take part."""
    if "driver-controller" not in instance.writers:
        return ()
    me = controller(instance)
    made = [Action(kind, {"claim": claim}, me.rooms, me) for claim in me.copies for kind in (get_claim, set_conditions)]
    return (*made, *device_actions(instance, "driver-controller"))
