"""The kubelet's way back: a pod terminates, its claims are unprepared, its phase becomes terminal, its object is removed (K13 to K25), and
the reconcile loop (R1 to R3) that unprepares for pods which are not active. See `kubelet` for what is thin."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import attrs

from dra_spec.explorer.model import Kind, Outcome, PartView, Slot, View, action
from dra_spec.protocol.kubelet_site import MANAGER, Site, Sites, answer_of, answered_by, send
from dra_spec.protocol.kubelet_state import IDLE, LOOP, WORKER, Do, Entry, Kubelet, Life, Task, Want, holds
from dra_spec.protocol.node import Call, Containers, Method, Sandbox
from dra_spec.protocol.objects import Phase


def _state(sandbox: Sandbox | None) -> Containers | None:
    return None if sandbox is None else sandbox.state


@action("workload.exit_containers", writer="workload", step="K12", source="pod restartPolicy Never", kind=Kind.WORKLOAD)
def exit_containers(v: View, sites: Sites, node: str, pod: str) -> Iterator[Outcome]:
    """The containers of a pod end by themselves (budget "finish-pod")."""
    site = sites[node]
    slot = site.node.sandboxes[pod]
    if v.project(slot, _state) is not Containers.RUNNING or not site.budgets.left(v, "finish-pod"):
        return
    ok = v.outcome()
    ok[slot] = Sandbox(Containers.EXITED)
    site.budgets.spend(ok, "finish-pod")
    yield ok


@action("kubelet.begin_termination", writer="kubelet", step="K13", source="pkg/kubelet/pod_workers.go:UpdatePod")
def begin_termination(v: View, sites: Sites, node: str, pod: str) -> Iterator[Outcome]:
    """The kubelet sees that a pod is deleting, terminal, out of running containers, or gone from the API server.

    Labels: `ok` (its worker is to terminate it), `gone` (that too, and the pod is not active any more), `terminated` (after a start
    of the kubelet: the phase is terminal and nothing runs, there is nothing left to stop), `forgotten` (gone, and the worker had finished).
    """
    site = sites[node]
    life = v.value(site.kubelet.lives[pod])
    if not v.value(site.kubelet.running) or life is Life.GONE:
        return
    label, after = _next_life(v, site, node, pod, life)
    if after is life:
        return
    ok = v.outcome(label)
    ok[site.kubelet.lives[pod]] = after
    if label == "forgotten":
        ok[site.node.sandboxes[pod]] = None
    yield ok


def _next_life(v: View, site: Site, node: str, pod: str, life: Life) -> tuple[str, Life]:
    api = v[site.api.pod[pod]]
    if not api.exists:
        if life is Life.UNKNOWN:
            return "ok", life
        return ("forgotten", Life.UNKNOWN) if life is Life.TERMINATED else ("gone", Life.GONE)
    if life in (Life.TERMINATING, Life.TERMINATED) or api.node != node:
        return "ok", life
    state = v.project(site.node.sandboxes[pod], _state)
    if api.terminal and life is Life.UNKNOWN and state in (None, Containers.EXITED):
        return "terminated", Life.TERMINATED
    done = api.deleting or api.terminal or state is Containers.EXITED
    return "ok", Life.TERMINATING if done else life


@action("kubelet.kill_containers", writer="kubelet", step="K14", source="pkg/kubelet/kubelet.go:SyncTerminatingPod")
def kill_containers(v: View, sites: Sites, node: str, pod: str) -> Iterator[Outcome]:
    """The containers have stopped, at the latest at the end of the grace period, and the worker has verified it (K14, K15)."""
    site = sites[node]
    me = site.kubelet
    life = v.value(me.lives[pod])
    if life not in (Life.TERMINATING, Life.GONE) or not v[me.workers[pod]].idle:
        return
    ok = v.outcome()
    if life is Life.GONE or v.project(site.node.sandboxes[pod], _state) is not Containers.EXITED:
        ok[site.node.sandboxes[pod]] = None
    ok[me.workers[pod]] = Task(Do.STOPPED)
    yield ok


@action("kubelet.kill_orphan", writer="kubelet", step="K14", source="pkg/kubelet/kubelet.go:SyncTerminatingRuntimePod")
def kill_orphan(v: View, sites: Sites, node: str, pod: str) -> Iterator[Outcome]:
    """Containers of a pod that the kubelet does not know and that is gone from the API server are killed; nothing is unprepared here."""
    site = sites[node]
    if v.project(site.node.sandboxes[pod], _state) is None or not v.value(site.kubelet.running):
        return
    if v.value(site.kubelet.lives[pod]) is not Life.UNKNOWN or v[site.api.pod[pod]].exists:
        return
    ok = v.outcome()
    ok[site.node.sandboxes[pod]] = None
    yield ok


def names_in_cache(v: View, me: Kubelet, pod: str) -> tuple[str, ...]:
    """The claims whose entries refer to the pod."""
    return tuple(claim for claim, slot in me.cache.items() if v.project(slot, holds, pod))


@action("kubelet.list_names", writer="kubelet", step="K16", source=f"{MANAGER}:unprepareResourcesForPod")
def list_names(v: View, sites: Sites, node: str, pod: str) -> Iterator[Outcome]:
    """Unprepare: the claims whose cache entries refer to the pod; if there are none, those that the pod names."""
    site = sites[node]
    me = site.kubelet
    if v[me.workers[pod]].do is not Do.STOPPED or not me.free(v):
        return
    names = names_in_cache(v, me, pod) or tuple(dict.fromkeys(ref.claim for ref in site.refs[pod]))
    ok = v.outcome()
    ok[me.workers[pod]] = Task(Do.DROP, names=names) if names else Task(Do.DELETE)
    yield ok


@action("kubelet.loop_scan", writer="kubelet", step="R2", source=f"{MANAGER}:reconcileLoop")
def loop_scan(v: View, sites: Sites, node: str, pod: str) -> Iterator[Outcome]:
    """The reconcile loop finds references of a pod that is not active (R1, R2). Whether its containers have stopped is not looked at."""
    site = sites[node]
    if loop_may_take(v, site, pod):
        yield from loop_takes(v, site, pod)


def loop_may_take(v: View, site: Site, pod: str) -> bool:
    """Whether the loop is idle and the pod not active: gone from the configuration, or its worker has finished."""
    me = site.kubelet
    if not v.value(me.running):
        return False
    life = v.value(me.lives[pod])
    if life in (Life.SYNCING, Life.TERMINATING) or (life is Life.UNKNOWN and v[site.api.pod[pod]].exists):
        return False
    return me.free(v) and all(v[loop].idle for loop in me.loops.values())


def loop_takes(v: View, site: Site, pod: str) -> Iterator[Outcome]:
    """The loop starts to unprepare for the pod, if an entry refers to it."""
    names = names_in_cache(v, site.kubelet, pod)
    if names:
        ok = v.outcome()
        ok[site.kubelet.loops[pod]] = Task(Do.DROP, names=names)
        yield ok


def after_drop(task: Task, batch: tuple[Want, ...]) -> Task:
    """The task after one name was handled: the next one, the calls, or straight to the end if there is nothing to call."""
    if task.index + 1 < len(task.names):
        return attrs.evolve(task, index=task.index + 1, batch=batch)
    calls = any(want.drivers for want in batch)
    return Task(Do.UNPREPARE if calls else Do.DELETE, batch=batch)


@action("kubelet.drop_reference", writer="kubelet", step="K17", source=f"{MANAGER}:unprepareResources")
def drop_reference(v: View, sites: Sites, node: str, pod: str, kind: str) -> Iterator[Outcome]:
    """Unprepare: one claim, in its own critical section.

    Labels: `shared` (K17: other pods hold it, the pod is taken off in memory only), `last` (K18: the entry is marked as being unprepared,
    its drivers are to be called), `skip` (no entry, or it does not refer to the pod).
    """
    me = sites[node].kubelet
    slot = me.task(kind, pod)
    if v[slot].do is not Do.DROP or not me.free(v):
        return
    task = v.value(slot)
    if task.index >= len(task.names):
        return
    cache = me.cache[task.names[task.index]]
    yield from drop(v, slot, task, cache, pod, member=v.project(cache, holds, pod))


def drop(v: View, slot: Slot[Task], task: Task, cache: Slot[Entry | None], pod: str, member: bool) -> Iterator[Outcome]:
    """K17, K18 for the entry `cache`; `member`: whether the pod counts as one of its holders."""
    entry, batch = (v.value(cache) if member else None), task.batch
    if entry is None:
        outcome = v.outcome("skip")
    elif len(entry.pods) > 1:
        outcome = v.outcome("shared")
        outcome[cache] = attrs.evolve(entry, pods=entry.pods - {pod})
    else:
        outcome = v.outcome("last")
        outcome[cache] = attrs.evolve(entry, unpreparing=True)
        batch = (*batch, Want(task.names[task.index], entry.uid, entry.drivers))
    outcome[slot] = after_drop(task, batch)
    yield outcome


def aborted(kind: str) -> Task:
    """What becomes of a failed unprepare: the worker tries again after its back-off, the loop at its next tick."""
    return Task(Do.STOPPED) if kind == WORKER else IDLE


@action("kubelet.unprepare_send", writer="kubelet", step="K19", source=f"{MANAGER}:unprepareResources")
def unprepare_send(v: View, sites: Sites, node: str, pod: str, driver: str, kind: str) -> Iterator[Outcome]:
    """Unprepare: calls NodeUnprepareResources of one driver; drivers are called one after another, in any order."""
    site = sites[node]
    slot = site.kubelet.task(kind, pod)
    if v[slot].do is not Do.UNPREPARE or v[slot].waiting is not None:
        return
    yield from send(v, site, pod, driver, slot, Method.UNPREPARE, aborted(kind))


def has_failed(call: Call | None) -> bool:
    """For `View.project`: whether the answer is an error."""
    return call is not None and call.failed


@action("kubelet.unprepare_answer", writer="kubelet", step="K20", source=f"{MANAGER}:unprepareResources")
def unprepare_answer(v: View, sites: Sites, node: str, pod: str, driver: str, kind: str) -> Iterator[Outcome]:
    """Unprepare: a driver has answered; with an error (`failed`) the attempt ends, references and the mark stay."""
    site = sites[node]
    slot = site.kubelet.task(kind, pod)
    if v[slot].do is not Do.UNPREPARE:
        return
    call = answer_of(v, site, pod, driver, slot)
    if call is None:
        return
    failed = v.project(call, has_failed)
    outcome = v.outcome("failed" if failed else "ok")
    outcome[call] = None
    outcome[slot] = aborted(kind) if failed else answered_by(v.value(slot), driver, Do.DELETE)
    yield outcome


@action("kubelet.call_times_out", writer="kubelet", step="K7", source=f"{MANAGER}; client timeout of 45 s", kind=Kind.FAULT)
def call_times_out(v: View, sites: Sites, node: str, pod: str, driver: str, kind: str) -> Iterator[Outcome]:
    """No answer within 45 s (K7, K20; budget "rpc-timeout"): the kubelet gives up, the plugin's handler goes on."""
    site = sites[node]
    slot = site.kubelet.task(kind, pod)
    if v[slot].waiting != driver or v[slot].lane >= len(site.node.calls[driver, pod]):
        return
    lane = site.node.calls[driver, pod][v[slot].lane]
    call = v.value(lane)
    if call is None or call.answered or not site.budgets.left(v, "rpc-timeout"):
        return
    out = v.outcome("timeout")
    out[lane] = attrs.evolve(call, client=False)
    out[slot] = IDLE if call.method is Method.PREPARE else aborted(kind)
    site.budgets.spend(out, "rpc-timeout")
    yield out


def _delete(p: PartView, cache: Slot[Entry | None], disk: Slot[Entry | None]) -> None:
    p.write(cache, None)
    p.write(disk, None)


def delete_from(me: Kubelet, outcome: Outcome, batch: tuple[Want, ...]) -> None:
    """K21: entries go by name, whatever their UID, and the checkpoint is written."""
    claims = frozenset(want.claim for want in batch if want.claim in me.cache)
    for claim in sorted(claims):
        outcome.part(_delete, me.cache[claim], me.disk[claim])
    me.save(outcome, leave=claims)


@action("kubelet.delete_entries", writer="kubelet", step="K21", source=f"{MANAGER}:unprepareResources")
def delete_entries(v: View, sites: Sites, node: str, pod: str, kind: str) -> Iterator[Outcome]:
    """Unprepare: all drivers have answered; the entries are deleted and the checkpoint is written, in one critical section.

    With that the worker has terminated the pod (K22); if the pod is gone from the API server, the kubelet forgets it.
    """
    site = sites[node]
    me = site.kubelet
    slot = me.task(kind, pod)
    if v[slot].do is not Do.DELETE or not me.free(v):
        return
    ok = v.outcome()
    delete_from(me, ok, v[slot].batch)
    ok[slot] = IDLE
    if kind == WORKER:
        gone = v.value(me.lives[pod]) is Life.GONE
        ok[me.lives[pod]] = Life.UNKNOWN if gone else Life.TERMINATED
        if gone:
            ok[site.node.sandboxes[pod]] = None
    yield ok


@action("kubelet.patch_phase", writer="kubelet", step="K23", source="pkg/kubelet/status/status_manager.go:mergePodStatus")
def patch_phase(v: View, sites: Sites, node: str, pod: str) -> Iterator[Outcome]:
    """The pod's phase becomes terminal in the API server, once its worker has finished and no cache entry refers to it."""
    site = sites[node]
    if v.value(site.kubelet.lives[pod]) is not Life.TERMINATED or not v[site.api.pod[pod]].exists or v[site.api.pod[pod]].terminal:
        return
    if names_in_cache(v, site.kubelet, pod):
        return
    yield from site.api.patch_pod_status(v, pod, phase=Phase.SUCCEEDED)


@action("kubelet.delete_pod", writer="kubelet", step="K25", source="pkg/kubelet/status/status_manager.go:canBeDeleted")
def delete_pod(v: View, sites: Sites, node: str, pod: str) -> Iterator[Outcome]:
    """The kubelet removes the object of a pod that is deleting, terminal in the API server, and finished here (K24, K25)."""
    site = sites[node]
    if v.value(site.kubelet.lives[pod]) is not Life.TERMINATED:
        return
    api = v[site.api.pod[pod]]
    if not api.exists or not api.deleting or not api.terminal:
        return
    for answer in site.api.remove_pod(v, pod):
        if answer.label == "ok":
            answer[site.kubelet.lives[pod]] = Life.UNKNOWN
            answer[site.node.sandboxes[pod]] = None
        yield answer


def pod_actions(site: Site, pod: str) -> Iterator[tuple[Any, dict[str, Any]]]:
    """The action types of this module for one pod, with their parameters."""
    where = {"node": site.node.name, "pod": pod}
    for plain in (begin_termination, kill_containers, kill_orphan, list_names, patch_phase, delete_pod):
        yield plain, where
    if "workload" in site.writers:
        yield exit_containers, where
    if site.refs[pod]:
        yield loop_scan, where
    for kind in (WORKER, LOOP) if site.refs[pod] else (WORKER,):
        yield delete_entries, {**where, "kind": kind}
        if site.refs[pod]:
            yield drop_reference, {**where, "kind": kind}
            for driver in site.node.drivers:
                yield unprepare_send, {**where, "driver": driver, "kind": kind}
                yield unprepare_answer, {**where, "driver": driver, "kind": kind}
                yield call_times_out, {**where, "driver": driver, "kind": kind}
