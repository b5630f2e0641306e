"""The kubelet of a node: its DRA manager and what of the pod workers decides when the manager is called (kubelet.md).

This module has the way to a running container, K1 to K12; `kubelet_termination` the way back, K13 to K25 and the reconcile loop;
`kubelet_process` crash, restart and reboot; `kubelet_state` the variables.

Thin in these places:

- The kubelet sees its pods in the API server without a watch cache. That it sees them late is in the actions `kubelet.add_pod` and
  `kubelet.begin_termination`, which may come at any time after the change; what it has seen is the slot `life`.
- A plugin is registered if and only if it serves (G1, G2 and the connection state are one with the plugin's start and end).
- A write of the checkpoint does not fail; the pod's status never says Running (no part of the protocol reads it); a pod has one sandbox,
  its containers start and end together; CreateContainer and StartContainer (K11, K12) are one step.
- A pod that starts to terminate does not cut its running prepare call short: the call ends by itself, fails, is lost, or times out.
- A pod in the API server counts as active for the reconcile loop, so the window between its snapshot and the cache read is not there.
- An action that would change nothing (a failed check of a pod's first claim, a container that cannot be created yet) is disabled.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import attrs

from dra_spec.explorer.model import Action, Outcome, PartView, Slot, View, action
from dra_spec.protocol import kubelet_process, kubelet_termination
from dra_spec.protocol.instance import ClaimRef, Instance
from dra_spec.protocol.kubelet_site import MANAGER, Site, Sites, answer_of, answered_by, crashed, send, sites
from dra_spec.protocol.kubelet_state import IDLE, Do, Entry, Kubelet, Life, Task, Want, kubelets
from dra_spec.protocol.node import Call, Containers, Method, Sandbox, device_actions, shared_slots
from dra_spec.protocol.plugin_state import plugins


@action("kubelet.add_pod", writer="kubelet", step="K1", source="pkg/kubelet/kubelet.go:HandlePodAdditions")
def add_pod(v: View, sites: Sites, node: str, pod: str) -> Iterator[Outcome]:
    """The kubelet sees a pod that is bound to its node and starts a worker for it."""
    site = sites[node]
    if v.value(site.kubelet.lives[pod]) is not Life.UNKNOWN or not v.value(site.kubelet.running):
        return
    api = v[site.api.pod[pod]]
    if not api.exists or api.node != node or api.deleting or api.terminal:
        return
    if v.project(site.node.sandboxes[pod], _exited):
        return  # begin_termination
    ok = v.outcome()
    ok[site.kubelet.lives[pod]] = Life.SYNCING
    yield ok


def _exited(sandbox: Sandbox | None) -> bool:
    return sandbox is not None and sandbox.exited


def _is_created(sandbox: Sandbox | None) -> bool:
    return sandbox is not None and sandbox.state is Containers.CREATED


def _is_none(value: object) -> bool:
    return value is None


@action("kubelet.get_claim", writer="kubelet", step="K1", source=f"{MANAGER}:prepareResources")
def get_claim(v: View, sites: Sites, node: str, pod: str, index: int) -> Iterator[Outcome]:
    """Prepare, phase A: a live GET of one claim (K1), the checks (K2), the look-up of its plugins (K3); a failure ends the attempt."""
    site = sites[node]
    worker = site.kubelet.workers[pod]
    if index == 0:
        if not v[worker].idle or v.value(site.kubelet.lives[pod]) is not Life.SYNCING:
            return
        if not v.project(site.node.sandboxes[pod], _is_none):
            return
        seen: tuple[Want, ...] = ()
    else:
        if v[worker].do is not Do.GET or v[worker].index != index:
            return
        seen = v[worker].seen
    found = _check(v, site, pod, site.refs[pod][index])
    if isinstance(found, str):
        if index > 0:
            failed = v.outcome(found)
            failed[worker] = IDLE
            yield failed
        return
    ok = v.outcome()
    more = index + 1 < len(site.refs[pod])
    ok[worker] = Task(Do.GET if more else Do.REFERENCE, index + 1 if more else 0, seen=(*seen, found))
    yield ok


def _check(v: View, site: Site, pod: str, ref: ClaimRef) -> Want | str:
    """K1 to K3 for one claim: what was found, or why prepare fails."""
    if ref.template is not None and (ref.entry, ref.claim) not in v[site.api.pod[pod]].claim_names:
        return "unresolved"
    claim = v[site.api.claim[ref.claim]]
    if not claim.exists:
        return "not-found"
    if ref.template is not None and claim.owner != pod:
        return "not-owner"
    if pod not in claim.reserved_for:
        return "not-reserved"
    allocation = claim.allocation
    if allocation is None:
        return "not-allocated"
    for driver in allocation.drivers:
        if driver not in site.node.serving or not v.value(site.node.serving[driver]):
            return "no-plugin"
    return Want(ref.claim, claim.uid, allocation.drivers)


@action("kubelet.reference", writer="kubelet", step="K4", source=f"{MANAGER}:prepareResources")
def reference(v: View, sites: Sites, node: str, pod: str, index: int) -> Iterator[Outcome]:
    """Prepare, phase B: takes the cache lock (kept to the last checkpoint) and enters the pod in the claim's cache entry."""
    site = sites[node]
    me = site.kubelet
    worker = me.workers[pod]
    if v[worker].do is not Do.REFERENCE or v[worker].index != index:
        return
    if v.value(me.lock) != (None if index == 0 else pod):
        return
    task = v.value(worker)
    if index >= len(task.seen) or task.seen[index].claim not in me.cache:
        return
    want = task.seen[index]
    old = v.value(me.cache[want.claim])
    if old is not None and (old.uid != want.uid or old.unpreparing):
        refused = v.outcome("uid-differs" if old.uid != want.uid else "unpreparing")
        refused[worker] = IDLE
        refused[me.lock] = None
        yield refused
        return
    entry = Entry(want.uid, frozenset(), want.drivers) if old is None else old
    batch = task.batch if entry.prepared else (*task.batch, Want(want.claim, entry.uid, entry.drivers))
    ok = v.outcome()
    ok[me.lock] = pod
    ok[me.cache[want.claim]] = attrs.evolve(entry, pods=entry.pods | {pod})
    ok[worker] = attrs.evolve(task, do=Do.CHECKPOINT, batch=batch)
    yield ok


def after_reference(me: Kubelet, outcome: Outcome, pod: str, task: Task) -> None:
    """What follows the checkpoint of claim `task.index`: the next claim, or the lock is given back and the calls begin."""
    if task.index + 1 < len(task.seen):
        outcome[me.workers[pod]] = attrs.evolve(task, do=Do.REFERENCE, index=task.index + 1)
        return
    known = frozenset(driver for want in task.seen for driver in want.drivers)
    outcome[me.lock] = None
    outcome[me.workers[pod]] = Task(Do.PREPARE if task.drivers else Do.PREPARED, batch=task.batch, missing=frozenset(task.drivers - known))


@action("kubelet.checkpoint_reference", writer="kubelet", step="K5", source=f"{MANAGER}:prepareResources")
def checkpoint_reference(v: View, sites: Sites, node: str, pod: str, index: int) -> Iterator[Outcome]:
    """Prepare, phase B: writes the checkpoint, so that the reference is on disk before any call; after the last claim the lock is free."""
    me = sites[node].kubelet
    if v[me.workers[pod]].do is not Do.CHECKPOINT or v[me.workers[pod]].index != index:
        return
    ok = v.outcome()
    me.save(ok)
    after_reference(me, ok, pod, v.value(me.workers[pod]))
    yield ok


@action("kubelet.prepare_send", writer="kubelet", step="K6", source=f"{MANAGER}:prepareResources")
def prepare_send(v: View, sites: Sites, node: str, pod: str, driver: str) -> Iterator[Outcome]:
    """Prepare, phase C: calls NodePrepareResources of one driver; drivers are called one after another, in any order.

    A driver that the cached entry names but the live claim did not: nil pointer, the kubelet's process ends (`panic`, hazard O-NIL).
    """
    site = sites[node]
    worker = site.kubelet.workers[pod]
    if v[worker].do is not Do.PREPARE or v[worker].waiting is not None:
        return
    if driver in v[worker].missing:
        panic = v.outcome("panic")
        crashed(site, panic)
        yield panic
        return
    yield from send(v, site, pod, driver, worker, Method.PREPARE, IDLE)


@action("kubelet.prepare_failed", writer="kubelet", step="K7", source=f"{MANAGER}:prepareResources")
def prepare_failed(v: View, sites: Sites, node: str, pod: str, driver: str) -> Iterator[Outcome]:
    """The answer of a prepare call is an error: the attempt ends, the references stay."""
    site = sites[node]
    worker = site.kubelet.workers[pod]
    if v[worker].do is not Do.PREPARE:
        return
    call = answer_of(v, site, pod, driver, worker)
    if call is None or not v.project(call, _has_failed):
        return
    failed = v.outcome("failed")
    failed[call] = None
    failed[worker] = IDLE
    yield failed


def _has_failed(call: Call | None) -> bool:
    return call is not None and call.failed


@action("kubelet.store_devices", writer="kubelet", step="K8", source=f"{MANAGER}:prepareResources")
def store_devices(v: View, sites: Sites, node: str, pod: str, driver: str, claim: str) -> Iterator[Outcome]:
    """Prepare, phase C: puts the answer for one claim into the cache, found by name; the claims of an answer come in any order.

    Fewer results than requests (`skipped`): the attempt ends.
    """
    site = sites[node]
    me = site.kubelet
    worker = me.workers[pod]
    if v[worker].do is not Do.PREPARE:
        return
    slot = answer_of(v, site, pod, driver, worker)
    if slot is None or v.project(slot, _has_failed) or not me.free(v):
        return
    task, call = v.value(worker), v.value(slot)
    wanted = [want.claim for want in task.for_driver(driver)]
    if call is None or claim not in wanted or claim in task.stored:
        return
    entry = v.value(me.cache[claim])
    if entry is None:
        lost = v.outcome("missing")
        lost[slot] = None
        lost[worker] = IDLE
        yield lost
        return
    answers = {name: devices for (name, _), devices in zip(call.claims, call.devices, strict=False)}
    mine = frozenset(d for d in entry.devices if d.partition("/")[0] != driver) | answers.get(claim, frozenset())
    stored = task.stored | {claim}
    last = stored >= set(wanted)
    short = len(wanted) > len(set(wanted))  # a claim that the pod names twice was asked for twice and answered once (O-DUPREF)
    ok = v.outcome("skipped" if last and short else "ok")
    ok[me.cache[claim]] = attrs.evolve(entry, devices=mine)
    if last:
        ok[slot] = None
        ok[worker] = IDLE if short else answered_by(task, driver, Do.PREPARED)
    else:
        ok[worker] = attrs.evolve(task, stored=stored)
    yield ok


def _mark(p: PartView, cache: Slot[Entry | None], disk: Slot[Entry | None]) -> None:
    entry = p.value(cache)
    if entry is not None:
        p.write(cache, attrs.evolve(entry, prepared=True))
        p.write(disk, entry.on_disk)


@action("kubelet.mark_prepared", writer="kubelet", step="K9", source=f"{MANAGER}:prepareResources")
def mark_prepared(v: View, sites: Sites, node: str, pod: str) -> Iterator[Outcome]:
    """Prepare, phase D: all drivers have answered; the entries become prepared and the checkpoint is written, in one critical section."""
    me = sites[node].kubelet
    worker = me.workers[pod]
    if v[worker].do is not Do.PREPARED or not me.free(v):
        return
    claims = [want.claim for want in v[worker].batch if want.claim in me.cache]
    if any(v.project(me.cache[claim], _is_none) for claim in claims):
        missing = v.outcome("missing")
        missing[worker] = IDLE
        yield missing
        return
    ok = v.outcome()
    for claim in claims:
        ok.part(_mark, me.cache[claim], me.disk[claim])
    me.save(ok, leave=frozenset(claims))
    ok[worker] = Task(Do.SANDBOX)
    yield ok


@action("kubelet.create_sandbox", writer="kubelet", step="K10", source="pkg/kubelet/kuberuntime/kuberuntime_manager.go:SyncPod")
def create_sandbox(v: View, sites: Sites, node: str, pod: str) -> Iterator[Outcome]:
    """The runtime creates the pod's sandbox. A pod that has one is never prepared again."""
    site = sites[node]
    worker = site.kubelet.workers[pod]
    if v[worker].do is not Do.SANDBOX and not (not site.refs[pod] and v[worker].idle and v.value(site.kubelet.lives[pod]) is Life.SYNCING):
        return
    if not v.project(site.node.sandboxes[pod], _is_none):
        return
    ok = v.outcome()
    ok[site.node.sandboxes[pod]] = Sandbox()
    ok[worker] = IDLE
    yield ok


@action("kubelet.start_container", writer="kubelet", step="K11", source=f"{MANAGER}:GetResources")
def start_container(v: View, sites: Sites, node: str, pod: str) -> Iterator[Outcome]:
    """The runtime creates and starts the containers (K11, K12, RT1) with the CDI ids in the cache, found by the claims' names.

    Neither the claim's UID nor `prepared` nor the pod's reference is looked at. An id without a CDI file, or a claim without an entry:
    the creation fails and is tried again, without a new prepare.
    """
    site = sites[node]
    me = site.kubelet
    if not v.project(site.node.sandboxes[pod], _is_created):
        return
    if v.value(me.lives[pod]) is not Life.SYNCING or not v[me.workers[pod]].idle or not me.free(v):
        return
    given: set[tuple[str, str]] = set()
    for ref in site.refs[pod]:
        entry = v.value(me.cache[ref.claim])
        if entry is None:
            return
        for driver in sorted({device.partition("/")[0] for device in entry.devices}):
            file = v.value(site.node.cdi[driver, ref.claim])
            wanted = {device for device in entry.devices if device.startswith(f"{driver}/")}
            if file is None or file.uid != entry.uid or not wanted <= file.devices:
                return
        given |= {(ref.claim, device) for device in entry.devices}
    ok = v.outcome()
    ok[site.node.sandboxes[pod]] = Sandbox(Containers.RUNNING, frozenset(given))
    yield ok


def pod_actions(site: Site, pod: str) -> Iterator[tuple[Any, dict[str, Any]]]:
    """The action types of this module for one pod, with their parameters."""
    where = {"node": site.node.name, "pod": pod}
    yield add_pod, where
    for index in range(len(site.refs[pod])):
        yield get_claim, {**where, "index": index}
        yield reference, {**where, "index": index}
        yield checkpoint_reference, {**where, "index": index}
    for driver in site.node.drivers if site.refs[pod] else ():
        yield prepare_send, {**where, "driver": driver}
        yield prepare_failed, {**where, "driver": driver}
        for claim in dict.fromkeys(ref.claim for ref in site.refs[pod]):
            yield store_devices, {**where, "driver": driver, "claim": claim}
    if site.refs[pod]:
        yield mark_prepared, where
    yield create_sandbox, where
    yield start_container, where


def slots(instance: Instance) -> Iterator[Slot[Any]]:
    """All slots of the kubelets, and those that the writers of a node share."""
    yield from shared_slots(instance, "kubelet")
    for kubelet in kubelets(instance).values():
        yield from kubelet.slots
    for plugin in plugins(instance).values() if "plugin" not in instance.writers else ():
        yield from plugin.slots  # a reboot loses the devices' state also in a model without plugins


def actions(instance: Instance) -> Sequence[Action]:
    """All actions of the kubelets, with crash, restart and reboot as far as their budgets allow; nothing if no kubelet takes part."""
    if "kubelet" not in instance.writers:
        return ()
    context = sites(instance)
    made: list[Action] = []
    for site in context.values():
        for pod in site.node.pods:
            for kind, params in (*pod_actions(site, pod), *kubelet_termination.pod_actions(site, pod)):
                made.append(Action(kind, params, site.rooms, context))
    return (*made, *kubelet_process.actions(instance), *device_actions(instance, "kubelet"))
