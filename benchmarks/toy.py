"""A small protocol in the manner of DRA, the same that the peers' models describe: pods reserve devices, a controller takes them back.

It is a benchmark, not the specification: its counts are known from other model checkers, so it says whether the engine is right and
how fast it is. Staleness is one flag per claim and reader; preparing is one step per claim.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import permutations
from typing import Any

import attrs

from dra_spec.explorer.model import (
    Action,
    ActionType,
    Model,
    Outcome,
    PartView,
    Slot,
    StateInvariant,
    Storage,
    Truth,
    View,
    action,
)

PENDING, RESERVED, BOUND, FINISHED, UNRESERVING = "pending", "reserved", "bound", "finished", "unreserving"
NEW, CHECKPOINTED, PREPARED, RUNNING, TERMINATING, DONE = "new", "checkpointed", "prepared", "running", "terminating", "done"


@attrs.frozen
class Config:
    """Claims per pod, number of claims, devices, nodes; and what is known of the state space.

    `depth` is the number of states on the longest shortest path; None: nobody has counted it. States and transitions of the small ones are
    what SPIN and Stateright report; those of the configurations after `q` are what both engines of this project found, or for `x1` and
    `x2`, which fit into no memory state by state, what decision diagrams of two libraries did.
    """

    uses: tuple[tuple[int, ...], ...]
    claims: int
    devices: int
    nodes: int
    states: int
    transitions: int
    depth: int | None


CONFIGS = {
    "g": Config(((0,), (0,)), 1, 2, 2, 11_414, 37_642, 43),
    "c": Config(((0,), (0, 1)), 2, 2, 1, 42_680, 186_508, 52),
    "d": Config(((0,), (0, 1)), 2, 3, 1, 108_456, 484_014, 52),
    "i": Config(((0,), (0, 1)), 2, 4, 2, 299_988, 1_323_656, 58),
    "e": Config(((0,), (0,), (1,)), 2, 2, 1, 383_384, 1_974_992, 60),
    "m": Config(((0,), (0,), (1,)), 2, 3, 1, 993_480, 5_206_704, 60),
    "l": Config(((0,), (1,), (1,)), 2, 2, 2, 1_476_652, 7_772_660, 66),
    "q": Config(((0,), (1,), (2,)), 3, 3, 1, 7_729_824, 48_471_456, 70),
    "o": Config(((0,), (0,), (1,), (1,)), 2, 2, 1, 5_412_448, 32_696_224, 73),
    "o3": Config(((0,), (0,), (1,), (1,)), 2, 3, 1, 15_214_368, 92_796_384, None),
    "q4": Config(((0,), (1,), (2,)), 3, 4, 1, 22_832_256, 146_587_008, None),
    "o4": Config(((0,), (0,), (1,), (1,)), 2, 4, 1, 29_749_824, 182_076_864, None),
    "o5": Config(((0,), (0,), (1,), (1,)), 2, 5, 1, 49_018_816, 300_537_664, None),
    "x2": Config(((0,), (0,), (1,), (1,), (2,)), 3, 3, 1, 1_641_051_696, 13_220_586_168, None),
    "x1": Config(((0,), (1,), (2,), (3,)), 4, 4, 1, 3_059_423_232, 25_576_283_136, None),
}


class Toy:
    """The slots of a configuration. Devices and nodes count from 1, 0 is none."""

    def __init__(self, config: Config, bug: str = "none") -> None:
        self.config, self.bug = config, bug
        self.slots: list[Slot[Any]] = []
        self.pods = range(len(config.uses))
        self.claims = range(config.claims)
        self.nodes = range(1, config.nodes + 1)
        used = [(p, c) for p in self.pods for c in config.uses[p]]
        self.phase = {p: self._slot(f"phase[{p}]", PENDING) for p in self.pods}
        self.kubelet = {p: self._slot(f"kubelet[{p}]", NEW) for p in self.pods}
        self.node = {p: self._slot(f"node[{p}]", 0) for p in self.pods}
        self.seen_finished = {p: self._slot(f"seen_finished[{p}]", False) for p in self.pods}
        self.owns = {pc: self._slot(f"owns{pc}", False) for pc in used}
        self.reserved = {pc: self._slot(f"reserved{pc}", False) for pc in used}
        self.memory_ref = {pc: self._slot(f"memory_ref{pc}", False) for pc in used}
        self.disk_ref = {pc: self._slot(f"disk_ref{pc}", False) for pc in used}
        self.allocated = {c: self._slot(f"allocated[{c}]", 0) for c in self.claims}
        self.known = {c: self._slot(f"known[{c}]", 0) for c in self.claims}
        self.in_flight = {c: self._slot(f"in_flight[{c}]", 0) for c in self.claims}
        self.finalizer = {c: self._slot(f"finalizer[{c}]", False) for c in self.claims}
        self.scheduler_stale = {c: self._slot(f"scheduler_stale[{c}]", False) for c in self.claims}
        self.controller_stale = {c: self._slot(f"controller_stale[{c}]", False) for c in self.claims}
        self.up = {n: self._slot(f"up[{n}]", True) for n in self.nodes}
        self.response = {(n, c): self._slot(f"response{n, c}", False) for n in self.nodes for c in self.claims}
        self.plugin = {(n, c): self._slot(f"plugin{n, c}", 0) for n in self.nodes for c in self.claims}

    def _slot(self, name: str, initial: Any) -> Slot[Any]:
        slot: Slot[Any] = Slot(name, initial, "toy", Storage.MEMORY)
        self.slots.append(slot)
        return slot

    def node_of(self, device: int) -> int:
        return (device - 1) % self.config.nodes + 1

    def here(self, v: View, p: int) -> int:
        """The pod's node if its kubelet runs, else 0."""
        n = v.value(self.node[p])
        return n if n and v.value(self.up[n]) else 0

    def others(self, v: View, p: int, c: int, n: int) -> bool:
        """Whether another pod on the node still refers to the claim."""
        return any(q != p and c in self.config.uses[q] and v.value(self.memory_ref[q, c]) and v.value(self.node[q]) == n for q in self.pods)

    def fits(self, v: View, c: int, device: int) -> bool:
        known = v.value(self.known[c])
        if known:
            return bool(known == device)
        if v.value(self.in_flight[c]):
            return False
        for e in self.claims:
            if v.value(self.known[e]) == device or (self.bug != "inflight" and v.value(self.in_flight[e]) == device):
                return False
        return True


def _change(v: View, updates: dict[Slot[Any], Any], label: str = "ok") -> Outcome:
    outcome = v.outcome(label)
    for slot, value in updates.items():
        outcome[slot] = value
    return outcome


# the scheduler


@action("scheduler.reserve", writer="scheduler")
def reserve(v: View, t: Toy, pod: int) -> Iterator[Outcome]:
    """Picks devices of one node for all claims of the pod, in memory."""
    if v.value(t.phase[pod]) != PENDING:
        return
    claims = t.config.uses[pod]
    for devices in permutations(range(1, t.config.devices + 1), len(claims)):
        if len({t.node_of(d) for d in devices}) == 1 and all(t.fits(v, c, d) for c, d in zip(claims, devices, strict=True)):
            outcome = _change(v, {t.phase[pod]: RESERVED, t.node[pod]: t.node_of(devices[0])}, f"devices {devices}")
            for c, d in zip(claims, devices, strict=True):
                if not v.value(t.known[c]):
                    outcome[t.in_flight[c]] = d
                    outcome[t.owns[pod, c]] = True
            yield outcome


@action("scheduler.write_finalizer", writer="scheduler")
def write_finalizer(v: View, t: Toy, pod: int, claim: int) -> Iterator[Outcome]:
    if v.value(t.phase[pod]) != RESERVED or not v.value(t.owns[pod, claim]):
        return
    if not v.value(t.finalizer[claim]) and not v.value(t.scheduler_stale[claim]):
        yield _change(v, {t.finalizer[claim]: True, t.controller_stale[claim]: True})


@action("scheduler.write_allocation", writer="scheduler")
def write_allocation(v: View, t: Toy, pod: int, claim: int) -> Iterator[Outcome]:
    if v.value(t.phase[pod]) != RESERVED or not v.value(t.owns[pod, claim]):
        return
    if v.value(t.finalizer[claim]) and not v.value(t.scheduler_stale[claim]):
        device = v.value(t.in_flight[claim])
        memory = {t.known[claim]: device, t.in_flight[claim]: 0, t.owns[pod, claim]: False}
        yield _change(v, {t.allocated[claim]: device, t.reserved[pod, claim]: True, t.controller_stale[claim]: True} | memory)


@action("scheduler.write_reserved_for", writer="scheduler")
def write_reserved_for(v: View, t: Toy, pod: int, claim: int) -> Iterator[Outcome]:
    if v.value(t.phase[pod]) != RESERVED or v.value(t.owns[pod, claim]) or v.value(t.reserved[pod, claim]):
        return
    if not v.value(t.scheduler_stale[claim]) and v.project(t.allocated[claim], bool):
        yield _change(v, {t.reserved[pod, claim]: True, t.controller_stale[claim]: True})


@action("scheduler.bind", writer="scheduler")
def bind(v: View, t: Toy, pod: int) -> Iterator[Outcome]:
    if v.value(t.phase[pod]) == RESERVED and all(v.value(t.reserved[pod, c]) for c in t.config.uses[pod]):
        yield _change(v, {t.phase[pod]: BOUND})


@action("scheduler.fail", writer="scheduler")
def fail(v: View, t: Toy, pod: int) -> Iterator[Outcome]:
    if v.value(t.phase[pod]) == RESERVED:
        yield _change(v, {t.phase[pod]: UNRESERVING})


@action("scheduler.unreserve_memory", writer="scheduler")
def unreserve_memory(v: View, t: Toy, pod: int, claim: int) -> Iterator[Outcome]:
    if v.value(t.phase[pod]) == UNRESERVING and v.value(t.owns[pod, claim]):
        yield _change(v, {t.owns[pod, claim]: False, t.in_flight[claim]: 0})


@action("scheduler.unreserve_api", writer="scheduler")
def unreserve_api(v: View, t: Toy, pod: int, claim: int) -> Iterator[Outcome]:
    if v.value(t.phase[pod]) == UNRESERVING and v.value(t.reserved[pod, claim]):
        yield _change(v, {t.reserved[pod, claim]: False, t.controller_stale[claim]: True, t.scheduler_stale[claim]: True})


@action("scheduler.unreserve_done", writer="scheduler")
def unreserve_done(v: View, t: Toy, pod: int) -> Iterator[Outcome]:
    if v.value(t.phase[pod]) != UNRESERVING:
        return
    if not any(v.value(t.owns[pod, c]) or v.value(t.reserved[pod, c]) for c in t.config.uses[pod]):
        yield _change(v, {t.phase[pod]: PENDING, t.node[pod]: 0})


@action("scheduler.informer", writer="scheduler")
def scheduler_informer(v: View, t: Toy, claim: int) -> Iterator[Outcome]:
    if v.value(t.scheduler_stale[claim]):
        yield _change(v, {t.known[claim]: v.value(t.allocated[claim]), t.scheduler_stale[claim]: False})


# the claim controller


@action("controller.sees_pod", writer="controller")
def sees_pod(v: View, t: Toy, pod: int) -> Iterator[Outcome]:
    if v.value(t.phase[pod]) == FINISHED and not v.value(t.seen_finished[pod]):
        yield _change(v, {t.seen_finished[pod]: True})


@action("controller.informer", writer="controller")
def controller_informer(v: View, t: Toy, claim: int) -> Iterator[Outcome]:
    if v.value(t.controller_stale[claim]):
        yield _change(v, {t.controller_stale[claim]: False})


def _controller_write(v: View, t: Toy, claim: int, slot: Slot[Any], value: object) -> Outcome:
    return _change(v, {slot: value, t.controller_stale[claim]: True, t.scheduler_stale[claim]: True})


@action("controller.remove_reserved_for", writer="controller")
def remove_reserved_for(v: View, t: Toy, pod: int, claim: int) -> Iterator[Outcome]:
    if v.value(t.seen_finished[pod]) and v.value(t.reserved[pod, claim]) and not v.value(t.controller_stale[claim]):
        yield _controller_write(v, t, claim, t.reserved[pod, claim], False)


@action("controller.deallocate", writer="controller")
def deallocate(v: View, t: Toy, claim: int) -> Iterator[Outcome]:
    if v.value(t.controller_stale[claim]) or not v.project(t.allocated[claim], bool):
        return
    if not any(v.value(t.reserved[p, claim]) for p in t.pods if claim in t.config.uses[p]):
        yield _controller_write(v, t, claim, t.allocated[claim], 0)


@action("controller.remove_finalizer", writer="controller")
def remove_finalizer(v: View, t: Toy, claim: int) -> Iterator[Outcome]:
    if not v.value(t.controller_stale[claim]) and v.value(t.finalizer[claim]) and not v.project(t.allocated[claim], bool):
        yield _controller_write(v, t, claim, t.finalizer[claim], False)


# kubelet and plugin


@action("kubelet.add_ref", writer="kubelet")
def add_ref(v: View, t: Toy, pod: int, claim: int) -> Iterator[Outcome]:
    if v.value(t.phase[pod]) != BOUND or v.value(t.kubelet[pod]) != NEW or v.value(t.memory_ref[pod, claim]) or not t.here(v, pod):
        return
    if v.value(t.reserved[pod, claim]) and v.project(t.allocated[claim], bool):
        yield _change(v, {t.memory_ref[pod, claim]: True})


@action("kubelet.checkpoint", writer="kubelet")
def checkpoint(v: View, t: Toy, pod: int) -> Iterator[Outcome]:
    claims = t.config.uses[pod]
    if v.value(t.phase[pod]) != BOUND or v.value(t.kubelet[pod]) != NEW or not t.here(v, pod):
        return
    if all(v.value(t.memory_ref[pod, c]) for c in claims):
        yield _change(v, {t.kubelet[pod]: CHECKPOINTED} | {t.disk_ref[pod, c]: True for c in claims})


@action("plugin.prepare", writer="plugin")
def prepare(v: View, t: Toy, pod: int, claim: int) -> Iterator[Outcome]:
    n = t.here(v, pod) if v.value(t.kubelet[pod]) == CHECKPOINTED else 0
    if n and not v.value(t.response[n, claim]) and not v.project(t.plugin[n, claim], bool):
        yield _change(v, {t.plugin[n, claim]: v.value(t.allocated[claim])})


@action("kubelet.response", writer="kubelet")
def prepare_response(v: View, t: Toy, pod: int, claim: int) -> Iterator[Outcome]:
    n = t.here(v, pod) if v.value(t.kubelet[pod]) == CHECKPOINTED else 0
    if n and not v.value(t.response[n, claim]) and v.project(t.plugin[n, claim], bool):
        yield _change(v, {t.response[n, claim]: True})


@action("kubelet.prepared", writer="kubelet")
def prepared(v: View, t: Toy, pod: int) -> Iterator[Outcome]:
    n = t.here(v, pod) if v.value(t.kubelet[pod]) == CHECKPOINTED else 0
    if n and all(v.value(t.response[n, c]) for c in t.config.uses[pod]):
        yield _change(v, {t.kubelet[pod]: PREPARED})


@action("kubelet.start", writer="kubelet")
def start(v: View, t: Toy, pod: int) -> Iterator[Outcome]:
    if v.value(t.kubelet[pod]) == PREPARED and t.here(v, pod):
        yield _change(v, {t.kubelet[pod]: RUNNING})


@action("workload.terminate", writer="workload")
def terminate(v: View, t: Toy, pod: int) -> Iterator[Outcome]:
    if v.value(t.kubelet[pod]) == RUNNING:
        yield _change(v, {t.kubelet[pod]: TERMINATING})


@action("plugin.unprepare", writer="plugin")
def unprepare(v: View, t: Toy, pod: int, claim: int) -> Iterator[Outcome]:
    n = t.here(v, pod) if v.value(t.kubelet[pod]) == TERMINATING else 0
    if not n or not v.value(t.memory_ref[pod, claim]) or not v.project(t.plugin[n, claim], bool):
        return
    if t.bug == "unprepare" or not t.others(v, pod, claim, n):
        yield _change(v, {t.plugin[n, claim]: 0, t.response[n, claim]: False})


@action("kubelet.drop_ref", writer="kubelet")
def drop_ref(v: View, t: Toy, pod: int, claim: int) -> Iterator[Outcome]:
    n = t.here(v, pod) if v.value(t.kubelet[pod]) == TERMINATING else 0
    if n and v.value(t.memory_ref[pod, claim]) and (not v.project(t.plugin[n, claim], bool) or t.others(v, pod, claim, n)):
        yield _change(v, {t.memory_ref[pod, claim]: False, t.disk_ref[pod, claim]: False})


@action("kubelet.finish", writer="kubelet")
def finish(v: View, t: Toy, pod: int) -> Iterator[Outcome]:
    if v.value(t.kubelet[pod]) == TERMINATING and t.here(v, pod) and not any(v.value(t.memory_ref[pod, c]) for c in t.config.uses[pod]):
        yield _change(v, {t.kubelet[pod]: DONE, t.phase[pod]: FINISHED})


def _forget(p: PartView, t: Toy, pod: int, node: int) -> None:
    """What a crash of the kubelet does to a pod on its node."""
    if p.value(t.node[pod]) != node:
        return
    for c in t.config.uses[pod]:
        p.write(t.memory_ref[pod, c], False)
    if p.value(t.kubelet[pod]) in (CHECKPOINTED, PREPARED):
        p.write(t.kubelet[pod], NEW)


def _reload(p: PartView, t: Toy, pod: int, node: int) -> None:
    """What a restart of the kubelet does to a pod on its node."""
    if p.value(t.node[pod]) == node:
        for c in t.config.uses[pod]:
            p.write(t.memory_ref[pod, c], p.value(t.disk_ref[pod, c]))


@action("kubelet.crash", writer="kubelet")
def crash(v: View, t: Toy, node: int) -> Iterator[Outcome]:
    busy = (CHECKPOINTED, PREPARED, RUNNING, TERMINATING)
    if v.value(t.up[node]) and any(v.value(t.node[p]) == node and v.value(t.kubelet[p]) in busy for p in t.pods):
        outcome = _change(v, {t.up[node]: False} | {t.response[node, c]: False for c in t.claims})
        for p in t.pods:
            outcome.part(_forget, t, p, node)
        yield outcome


@action("kubelet.restart", writer="kubelet")
def restart(v: View, t: Toy, node: int) -> Iterator[Outcome]:
    if not v.value(t.up[node]):
        outcome = _change(v, {t.up[node]: True})
        for p in t.pods:
            outcome.part(_reload, t, p, node)
        yield outcome


PER_POD = (reserve, bind, fail, unreserve_done, sees_pod, checkpoint, prepared, start, terminate, finish)
PER_POD_AND_CLAIM = (
    write_finalizer,
    write_allocation,
    write_reserved_for,
    unreserve_memory,
    unreserve_api,
    remove_reserved_for,
    add_ref,
    prepare,
    prepare_response,
    unprepare,
    drop_ref,
)
PER_CLAIM = (scheduler_informer, controller_informer, deallocate, remove_finalizer)
PER_NODE = (crash, restart)


# promises


def _no_double_allocation(t: Toy, c: int, e: int, v: View) -> Truth:
    device = v.value(t.allocated[c])
    return Truth.TRIVIAL if not device else Truth(2 * (v.value(t.allocated[e]) != device))


def _in_use_is_prepared(t: Toy, p: int, c: int, v: View) -> Truth:
    if v.value(t.kubelet[p]) not in (PREPARED, RUNNING):
        return Truth.TRIVIAL
    n = v.value(t.node[p])
    return Truth(2 * (n != 0 and v.project(t.plugin[n, c], bool)))


def _prepared_is_reserved(t: Toy, n: int, c: int, v: View) -> Truth:
    device = v.value(t.plugin[n, c])
    if not device:
        return Truth.TRIVIAL
    reserved = any(v.value(t.reserved[p, c]) for p in t.pods if c in t.config.uses[p])
    return Truth(2 * (reserved and v.value(t.allocated[c]) == device))


def toy(name: str, bug: str = "none") -> Model:
    """The model of a configuration.

    `bug`: "none", "unprepare" (no look at other pods) or "inflight" (reserve ignores what is in flight).
    """
    t = Toy(CONFIGS[name], bug)
    rooms = frozenset({"toy"})

    def instance(kind: ActionType, **params: int) -> Action:
        return Action(kind, params, rooms, t)

    actions = [instance(kind, pod=p) for p in t.pods for kind in PER_POD]
    actions += [instance(kind, pod=p, claim=c) for p in t.pods for c in t.config.uses[p] for kind in PER_POD_AND_CLAIM]
    actions += [instance(kind, claim=c) for c in t.claims for kind in PER_CLAIM]
    actions += [instance(kind, node=n) for n in t.nodes for kind in PER_NODE]

    def promise(title: str, fn: Callable[..., Truth], *args: int) -> StateInvariant:
        return StateInvariant(title, partial(fn, t, *args), {"objects": str(args)})

    promises = [promise("no-double-allocation", _no_double_allocation, c, e) for c in t.claims for e in t.claims if c < e]
    promises += [promise("in-use-is-prepared", _in_use_is_prepared, p, c) for p in t.pods for c in t.config.uses[p]]
    promises += [promise("prepared-is-reserved", _prepared_is_reserved, n, c) for n in t.nodes for c in t.claims]
    return Model(f"toy {name}", t.slots, actions, promises)
