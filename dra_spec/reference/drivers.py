"""Devices, and a driver's central controller that says of allocated devices whether they are ready (D3, D4)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dra_spec.reference.apiserver import CLAIM
from dra_spec.reference.shapes import Object, allocation, clone, conditions, device_id, results
from dra_spec.reference.steps import Move, Moves, Turn

if TYPE_CHECKING:
    from dra_spec.reference.world import World


class Devices:
    """A device may vanish for good."""

    def __init__(self, world: World) -> None:
        self.world = world

    def moves(self) -> Moves:
        if not self.world.left("device-vanishes"):
            return {}
        return {Move.of("device.vanish", {"device": d}): self._vanish for d, there in self.world.present.items() if there}

    def settle(self) -> None:
        """Nothing to do."""

    def _vanish(self, turn: Turn) -> None:
        turn.spend("device-vanishes")
        self.world.present[str(turn.params["device"])] = False
        turn.took("vanishes")


class DriverController:
    """Sets the binding conditions of a device that is there, the failure conditions of one that has vanished, with the version that it
    read."""

    def __init__(self, world: World) -> None:
        self.world, self.api = world, world.api
        self.copies: dict[str, Object] = {}

    def settle(self) -> None:
        """Nothing to do."""

    def moves(self) -> Moves:
        found: Moves = {}
        for spec in self.world.instance.claims:
            name = spec.name
            if name in self.copies:
                found[Move.of("driver-controller.set_conditions", {"claim": name})] = self._set
            else:
                claim = self.api.find(CLAIM, name)
                if claim is not None and self.missing(claim):
                    found[Move.of("driver-controller.get_claim", {"claim": name})] = self._get
        return found

    def missing(self, claim: Object) -> set[tuple[str, str]]:
        """The (device, type) pairs that the controller would set to True, given the devices that are there."""
        wanted = set()
        for result in results(allocation(claim)):
            if result.get("bindingConditions"):
                there = self.world.present.get(device_id(result), False)
                kinds = result["bindingConditions"] if there else result.get("bindingFailureConditions", ())
                wanted |= {(device_id(result), kind) for kind in kinds}
        return wanted - conditions(claim)

    def _get(self, turn: Turn) -> None:
        name = str(turn.params["claim"])
        self.copies[name] = self.api.get(CLAIM, name)
        turn.took("ok")

    def _set(self, turn: Turn) -> None:
        claim = self.copies.pop(str(turn.params["claim"]))
        wanted = self.missing(claim)
        if not wanted:
            turn.took("skip")
            return
        new = with_conditions(claim, wanted)
        turn.request(lambda: self.api.update_status(CLAIM, new))


def with_conditions(claim: Object, true: set[tuple[str, str]]) -> Object:
    """A copy with more conditions of devices set to True."""
    new = clone(claim)
    entries = new["status"].setdefault("devices", [])
    for result in results(allocation(claim)):
        device = device_id(result)
        kinds = sorted(kind for of, kind in true if of == device)
        if kinds:
            entry = next((e for e in entries if device_id(e) == device), None)
            if entry is None:
                entry = {field: result[field] for field in ("driver", "pool", "device")} | {"conditions": []}
                entries.append(entry)
            entry["conditions"] += [{"type": kind, "status": "True"} for kind in kinds]
    return new
