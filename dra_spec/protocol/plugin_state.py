"""A node plugin's variables: its lock, its record on disk, what its hardware is set up for (plugin.md section 6.1)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import attrs

from dra_spec.explorer.model import Slot, Storage, View
from dra_spec.explorer.values import Version
from dra_spec.protocol import budgets
from dra_spec.protocol.apiserver import Api
from dra_spec.protocol.budgets import Budgets
from dra_spec.protocol.instance import Instance
from dra_spec.protocol.node import DEVICE_ROOM, At, Call, CdiFile, Held, Method, Node, nodes, present, shared_slots


def plugin_room(node: str, driver: str) -> str:
    """The room of one plugin."""
    return f"plugin/{node}/{driver}"


@attrs.frozen
class Record:
    """A claim in the plugin's checkpoint: Started, or Completed with its devices."""

    uid: Version
    completed: bool
    held: Held

    @property
    def blocks(self) -> frozenset[str]:
        """Devices that no other claim may get (the overlap check ignores claims that are only Started)."""
        return self.held.devices if self.completed else frozenset()


@attrs.frozen
class Setup:
    """For which claim the hardware is set up, and which devices."""

    uid: Version
    held: Held


@attrs.frozen(eq=False)
class Plugin:
    """The slots of one plugin, and what its actions work with. `lock`: the call (pod, lane) whose handler holds the lock."""

    driver: str
    node: Node
    api: Api
    budgets: Budgets
    present: Mapping[str, Slot[bool]]
    lock: Slot[tuple[str, int] | None]
    records: Mapping[str, Slot[Record | None]]
    hardware: Mapping[str, Slot[Setup | None]]

    @property
    def room(self) -> str:
        return plugin_room(self.node.name, self.driver)

    @property
    def rooms(self) -> frozenset[str]:
        """The rooms of the plugin's actions."""
        return self.api.rooms | {budgets.ROOM, DEVICE_ROOM, self.node.room, self.room}

    @property
    def slots(self) -> tuple[Slot[Any], ...]:
        return (self.lock, *self.records.values(), *self.hardware.values())

    @property
    def serving(self) -> Slot[bool]:
        return self.node.serving[self.driver]

    def cdi(self, claim: str) -> Slot[CdiFile | None]:
        return self.node.cdi[self.driver, claim]

    def call(self, pod: str, lane: int) -> Slot[Call | None]:
        return self.node.calls[self.driver, pod][lane]

    def handling(self, v: View, pod: str, lane: int, method: Method, at: At) -> Call | None:
        """The call if its handler is at this point, else None."""
        slot = self.call(pod, lane)
        return v.value(slot) if v.project(slot, _is_at, method, at) else None


def _is_at(call: Call | None, method: Method, at: At) -> bool:
    if call is None or call.method is not method or call.at is not at:
        return False
    return at is At.REPLY or call.index < len(call.claims)


Plugins = Mapping[tuple[str, str], Plugin]


def _make(instance: Instance) -> dict[tuple[str, str], Plugin]:
    return {(name, d): _make_plugin(instance, node, d) for name, node in nodes(instance).items() for d in node.drivers}


def _make_plugin(instance: Instance, node: Node, driver: str) -> Plugin:
    room = plugin_room(node.name, driver)
    return Plugin(
        driver,
        node,
        Api.of(instance),
        Budgets.of(instance),
        present(instance),
        lock=Slot[tuple[str, int] | None](f"{room}/lock", None, room),
        records={c: Slot[Record | None](f"{room}/record/{c}", None, room, Storage.DISK) for c in node.claims},
        hardware={c: Slot[Setup | None](f"{room}/hardware/{c}", None, room, Storage.DEVICE) for c in node.claims},
    )


def plugins(instance: Instance) -> Plugins:
    """The plugins by node and driver: the context of the actions here."""
    return instance.memo(_make)


def slots(instance: Instance) -> Iterator[Slot[Any]]:
    """All slots of the plugins, and those that the writers of a node share."""
    yield from shared_slots(instance, "plugin")
    for plugin in plugins(instance).values():
        yield from plugin.slots
