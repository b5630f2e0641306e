"""What the writers of one node share: calls between kubelet and plugins, CDI files, containers, devices.

The kubelet's own variables are in `kubelet_state`, a plugin's in `plugin`. A call is one slot for both ends: the kubelet's request on its
way, the plugin's handler that works on it, the answer on its way back. A handler goes on when its client has gone (plugin.md section 4), so
there are several *lanes* for a pod's calls to a driver; a call that finds no free lane leaves the bounds of the model.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator, Mapping
from typing import Any

import attrs

from dra_spec.explorer.model import Action, Kind, Outcome, PartView, Slot, Storage, View, action
from dra_spec.explorer.values import Version
from dra_spec.protocol import budgets
from dra_spec.protocol.budgets import Budgets
from dra_spec.protocol.instance import Instance
from dra_spec.protocol.objects import Allocation

DEVICE_ROOM = "device"


def node_room(node: str) -> str:
    """The room of what kubelet, plugins and runtime of a node share."""
    return f"node/{node}"


@attrs.frozen
class Held:
    """Devices of one driver in one claim: those that nobody else may have, and those with admin access."""

    devices: frozenset[str] = frozenset()
    admin: frozenset[str] = frozenset()

    @property
    def all(self) -> frozenset[str]:
        return self.devices | self.admin

    @staticmethod
    def by(allocation: Allocation, driver: str) -> Held:
        """What the allocation names of the driver's devices."""
        mine = [r for r in allocation.results if r.driver == driver]
        return Held(frozenset(r.device for r in mine if not r.admin), frozenset(r.device for r in mine if r.admin))


class Method(enum.Enum):
    """The two calls of the DRA gRPC service."""

    PREPARE = "prepare"
    UNPREPARE = "unprepare"


class At(enum.Enum):
    """Where the plugin's handler of a call is."""

    SENT = "sent"  # on the way, or received; prepare: about to fetch the claim `index`
    LOCK = "lock"  # all claims fetched, waits for the plugin's lock
    LOOKUP = "lookup"  # has the lock; about to look up the claim `index`
    HARDWARE = "hardware"  # prepare: Started is recorded
    CDI = "cdi"  # the device is set up (prepare) or freed (unprepare)
    RECORD = "record"  # the CDI file is written (prepare) or removed (unprepare)
    REPLY = "reply"  # all claims are handled
    ANSWERED = "answered"  # the response is on its way to the kubelet


@attrs.frozen
class Call:
    """One NodePrepareResources or NodeUnprepareResources call.

    `claims`: (name, UID) of each claim in the request; `client` false: the kubelet has given up or died, nobody reads the answer;
    `index`: the claim that the handler works on; `fetched`: what P4 found for each claim; `devices`: what the answer says for each claim;
    `failed`: the answer is an error, or has one for some claim.
    """

    method: Method
    claims: tuple[tuple[str, Version], ...]
    at: At = At.SENT
    index: int = 0
    client: bool = True
    fetched: tuple[Held, ...] = ()
    devices: tuple[frozenset[str], ...] = ()
    failed: bool = False

    @property
    def answered(self) -> bool:
        return self.at is At.ANSWERED

    @property
    def claim(self) -> str | None:
        """The name of the claim that the handler works on."""
        return self.claims[self.index][0] if self.index < len(self.claims) else None


class Containers(enum.Enum):
    """What the runtime has of a pod."""

    CREATED = "created"  # a sandbox without containers
    RUNNING = "running"
    EXITED = "exited"  # all containers ended by themselves; the runtime remembers them until the pod is gone


@attrs.frozen
class Sandbox:
    """A pod in the runtime. `devices`: pairs (claim, device) that its containers were given."""

    state: Containers = Containers.CREATED
    devices: frozenset[tuple[str, str]] = frozenset()

    @property
    def running(self) -> bool:
        return self.state is Containers.RUNNING

    @property
    def exited(self) -> bool:
        return self.state is Containers.EXITED


@attrs.frozen
class CdiFile:
    """The CDI spec file of a claim: an id is made of the claim's UID and the device, so an old file can never serve a new claim."""

    uid: Version
    devices: frozenset[str]


def is_none(value: object) -> bool:
    """For `View.project`: whether the slot is empty."""
    return value is None


def _client_gone(p: PartView, slot: Slot[Call | None]) -> None:
    call = p.value(slot)
    if call is not None:
        p.write(slot, None if call.answered else attrs.evolve(call, client=False))


def _handler_gone(p: PartView, slot: Slot[Call | None]) -> None:
    call = p.value(slot)
    if call is not None and not call.answered:
        p.write(slot, answered(call, failed=True))


def answered(call: Call, failed: bool, devices: tuple[frozenset[str], ...] = ()) -> Call | None:
    """The call with its answer on the way; None if nobody waits for it. Everything that only the handler needed is dropped."""
    return Call(call.method, call.claims, At.ANSWERED, failed=failed, devices=() if failed else devices) if call.client else None


@attrs.frozen(eq=False)
class Node:
    """The slots that the writers of one node share.

    `calls`: (driver, pod) -> lanes; `serving`: driver -> whether the plugin listens and is registered; `cdi`: (driver, claim) -> spec file;
    `sandboxes`: pod -> what the runtime has of it; `rebooted`: driver -> whether the node was rebooted since the plugin last started.
    """

    name: str
    pods: tuple[str, ...]
    claims: tuple[str, ...]
    drivers: tuple[str, ...]
    calls: Mapping[tuple[str, str], tuple[Slot[Call | None], ...]]
    serving: Mapping[str, Slot[bool]]
    cdi: Mapping[tuple[str, str], Slot[CdiFile | None]]
    sandboxes: Mapping[str, Slot[Sandbox | None]]
    rebooted: Mapping[str, Slot[bool]]

    @property
    def room(self) -> str:
        return node_room(self.name)

    @property
    def slots(self) -> tuple[Slot[Any], ...]:
        lanes = [slot for lanes in self.calls.values() for slot in lanes]
        return (*lanes, *self.serving.values(), *self.cdi.values(), *self.sandboxes.values(), *self.rebooted.values())

    def free_lane(self, v: View, driver: str, pod: str) -> int | None:
        """The first lane without a call; None if all are taken."""
        for lane, slot in enumerate(self.calls[driver, pod]):
            if v.project(slot, is_none):
                return lane
        return None

    def client_gone(self, outcome: Outcome) -> None:
        """The kubelet's process ends: handlers go on, answers are lost."""
        for lanes in self.calls.values():
            for slot in lanes:
                outcome.part(_client_gone, slot)

    def handlers_gone(self, outcome: Outcome, driver: str) -> None:
        """A plugin's process ends: open calls fail at the kubelet."""
        for (of, _), lanes in self.calls.items():
            for slot in lanes if of == driver else ():
                outcome.part(_handler_gone, slot)


def _lanes(instance: Instance) -> int:
    """How many calls of one pod to one driver may be open at once: the pod worker's, the reconcile loop's if a pod can be gone while the
    kubelet knows of it, and one whose client is gone for each way to lose a client (at most two)."""
    lost = [instance.budget("kubelet-crash"), instance.budget("rpc-timeout")]
    loop = int(any(instance.budget(name) for name in ("force-delete-pod", "kubelet-crash", "node-reboot")))
    return 1 + loop + min(2, sum(2 if n < 0 else n for n in lost))


def _make(instance: Instance) -> dict[str, Node]:
    return {node: _make_node(instance, node) for node in instance.nodes}


def _make_node(instance: Instance, node: str) -> Node:
    room = node_room(node)
    pods = tuple(p.name for p in instance.pods if p.node in (None, node))
    claims = tuple(c.name for c in instance.claims if any(pod in pods for pod in instance.pods_of(c.name)))
    drivers = tuple(sorted({d.driver for d in instance.devices if d.node in (None, node)}))
    lanes = _lanes(instance)
    return Node(
        node,
        pods,
        claims,
        drivers,
        calls={
            (d, p): tuple(Slot[Call | None](f"{room}/call/{d}/{p}/{lane}", None, room, Storage.CHANNEL) for lane in range(lanes))
            for d in drivers
            for p in pods
        },
        serving={d: Slot(f"{room}/serving/{d}", True, room, Storage.MEMORY) for d in drivers},
        cdi={(d, c): Slot[CdiFile | None](f"{room}/cdi/{d}/{c}", None, room, Storage.DISK) for d in drivers for c in claims},
        sandboxes={p: Slot[Sandbox | None](f"{room}/sandbox/{p}", None, room, Storage.DEVICE) for p in pods},
        rebooted={d: Slot(f"{room}/rebooted/{d}", False, room, Storage.DISK) for d in drivers},
    )


def nodes(instance: Instance) -> dict[str, Node]:
    """The shared slots of each node, the same objects for all who ask."""
    return instance.memo(_make)


def _make_devices(instance: Instance) -> dict[str, Slot[bool]]:
    return {d.name: Slot(f"device/{d.name}", True, DEVICE_ROOM, Storage.DEVICE) for d in instance.devices}


def present(instance: Instance) -> dict[str, Slot[bool]]:
    """Device -> whether it is there (false: it has vanished)."""
    return instance.memo(_make_devices)


def shared_slots(instance: Instance, writer: str) -> Iterator[Slot[Any]]:
    """The slots of this module, once in a model: for the first of its users that takes part."""
    if _owner(instance) == writer:
        yield from present(instance).values()
        for node in nodes(instance).values() if writer != "driver-controller" else ():
            yield from node.slots


def _owner(instance: Instance) -> str | None:
    return next((user for user in ("kubelet", "plugin", "driver-controller") if user in instance.writers), None)


@action("device.vanish", writer="driver-controller", step="D5", source="KEP-5007 failure conditions; hardware loss", kind=Kind.FAULT)
def vanish(v: View, instance: Instance, device: str) -> Iterator[Outcome]:
    """A device vanishes for good (budget "device-vanishes"): preparing it fails from now on, the driver's controller says that it failed.

    What is set up for it stays as it is, containers that have it go on, and it stays in its ResourceSlice.
    """
    slot, left = present(instance)[device], Budgets.of(instance)
    if v.value(slot) and left.left(v, "device-vanishes"):
        out = v.outcome("vanishes")
        out[slot] = False
        left.spend(out, "device-vanishes")
        yield out


def device_actions(instance: Instance, writer: str) -> Iterator[Action]:
    """The faults of devices, once in a model: with the writer that has the slots of this module."""
    if instance.budget("device-vanishes") and _owner(instance) == writer:
        for device in present(instance):
            yield Action(vanish, {"device": device}, frozenset({DEVICE_ROOM, budgets.ROOM}), instance)
