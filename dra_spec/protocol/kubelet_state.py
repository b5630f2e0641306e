"""The kubelet's variables: claim info cache, checkpoint, pod workers, reconcile loop (kubelet.md section 1)."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import Any

import attrs

from dra_spec.explorer.model import Outcome, PartView, Slot, Storage, View
from dra_spec.explorer.values import Version
from dra_spec.protocol.instance import Instance
from dra_spec.protocol.node import Node, nodes


def kubelet_room(node: str) -> str:
    """The room of a node's kubelet."""
    return f"kubelet/{node}"


@attrs.frozen
class Entry:
    """One entry of the claim info cache, or of the checkpoint (there `prepared` and `unpreparing` are always false).

    `pods`: the pods on this node that hold the claim; `drivers`: fixed when the entry is created; `devices`: the last answers.
    """

    uid: Version
    pods: frozenset[str]
    drivers: tuple[str, ...]
    devices: frozenset[str] = frozenset()
    prepared: bool = False
    unpreparing: bool = False

    @property
    def on_disk(self) -> Entry:
        """What of the entry goes into the checkpoint."""
        return attrs.evolve(self, prepared=False, unpreparing=False)


class Life(enum.Enum):
    """What the kubelet knows of a pod: its configuration (podManager) and the state of its worker."""

    UNKNOWN = "unknown"  # not seen, or forgotten
    SYNCING = "syncing"
    TERMINATING = "terminating"
    GONE = "gone"  # terminating, and no longer in the configuration: not an active pod
    TERMINATED = "terminated"


class Do(enum.Enum):
    """What a pod worker, or the reconcile loop, does next."""

    IDLE = "idle"
    GET = "get"  # prepare, phase A: fetch and check claim `index`
    REFERENCE = "reference"  # phase B: enter claim `index` in the cache
    CHECKPOINT = "checkpoint"  # phase B: write the checkpoint for claim `index`
    PREPARE = "prepare"  # phase C: calls
    PREPARED = "prepared"  # phase D
    SANDBOX = "sandbox"  # prepared; create the sandbox
    STOPPED = "stopped"  # the containers are stopped; unprepare (again)
    DROP = "drop"  # unprepare: give up the reference to claim `index`
    UNPREPARE = "unprepare"  # calls
    DELETE = "delete"  # all drivers have answered


@attrs.frozen
class Want:
    """A claim that a call is about: its name, its UID and the drivers to be called."""

    claim: str
    uid: Version
    drivers: tuple[str, ...]


@attrs.frozen
class Task:
    """The local variables of a pod worker (or of the reconcile loop, which works on one pod at a time).

    `seen`: what phase A found; `names`: claims to give up; `batch`: the claims of the calls; `done`: drivers that have answered;
    `waiting`: the driver whose answer is awaited, on `lane`; `stored`: claims of its answer that are in the cache;
    `missing`: drivers that the batch needs and phase A did not look up.
    """

    do: Do = Do.IDLE
    index: int = 0
    seen: tuple[Want, ...] = ()
    names: tuple[str, ...] = ()
    batch: tuple[Want, ...] = ()
    done: frozenset[str] = frozenset()
    waiting: str | None = None
    lane: int = 0
    stored: frozenset[str] = frozenset()
    missing: frozenset[str] = frozenset()

    @property
    def idle(self) -> bool:
        return self.do is Do.IDLE

    @property
    def drivers(self) -> frozenset[str]:
        """The drivers that are to be called."""
        return frozenset(d for want in self.batch for d in want.drivers)

    def for_driver(self, driver: str) -> tuple[Want, ...]:
        return tuple(want for want in self.batch if driver in want.drivers)


IDLE = Task()

WORKER, LOOP = "worker", "loop"  # who unprepares: the pod's worker or the reconcile loop (parameter `kind`)


def holds(entry: Entry | None, pod: str) -> bool:
    """For `View.project`: whether the entry refers to the pod."""
    return entry is not None and pod in entry.pods


def _save(p: PartView, cache: Slot[Entry | None], disk: Slot[Entry | None]) -> None:
    entry = p.value(cache)
    p.write(disk, None if entry is None else entry.on_disk)


@attrs.frozen(eq=False)
class Kubelet:
    """The slots of one kubelet. `lock`: the pod whose worker holds the cache lock between two file writes, None if free."""

    node: Node
    running: Slot[bool]
    lock: Slot[str | None]
    cache: Mapping[str, Slot[Entry | None]]
    disk: Mapping[str, Slot[Entry | None]]
    lives: Mapping[str, Slot[Life]]
    workers: Mapping[str, Slot[Task]]
    loops: Mapping[str, Slot[Task]]

    @property
    def room(self) -> str:
        return kubelet_room(self.node.name)

    @property
    def slots(self) -> tuple[Slot[Any], ...]:
        maps: tuple[Mapping[str, Slot[Any]], ...] = (self.cache, self.disk, self.lives, self.workers, self.loops)
        return (self.running, self.lock, *(slot for of in maps for slot in of.values()))

    def task(self, kind: str, pod: str) -> Slot[Task]:
        """The task slot of a pod's worker or of the loop's work on that pod."""
        return self.workers[pod] if kind == WORKER else self.loops[pod]

    def free(self, v: View) -> bool:
        """Whether the cache lock is free."""
        return v.value(self.lock) is None

    def save(self, outcome: Outcome, leave: frozenset[str] = frozenset()) -> None:
        """Writes the checkpoint: one file for all entries, by temporary file and rename. The caller writes those of `leave` itself."""
        for claim, slot in self.cache.items():
            if claim not in leave:
                outcome.part(_save, slot, self.disk[claim])


def _make(instance: Instance) -> dict[str, Kubelet]:
    return {name: _make_kubelet(node) for name, node in nodes(instance).items()}


def _make_kubelet(node: Node) -> Kubelet:
    room = kubelet_room(node.name)
    return Kubelet(
        node,
        running=Slot(f"{room}/running", True, room),
        lock=Slot[str | None](f"{room}/lock", None, room),
        cache={c: Slot[Entry | None](f"{room}/cache/{c}", None, room) for c in node.claims},
        disk={c: Slot[Entry | None](f"{room}/checkpoint/{c}", None, room, Storage.DISK) for c in node.claims},
        lives={p: Slot(f"{room}/life/{p}", Life.UNKNOWN, room) for p in node.pods},
        workers={p: Slot(f"{room}/worker/{p}", IDLE, room) for p in node.pods},
        loops={p: Slot(f"{room}/loop/{p}", IDLE, room) for p in node.pods},
    )


def kubelets(instance: Instance) -> dict[str, Kubelet]:
    """The slots of each node's kubelet, the same objects for all who ask."""
    return instance.memo(_make)
