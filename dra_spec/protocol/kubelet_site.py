"""What all actions of a kubelet work with: the slots they may use, the end of the process, the kubelet's side of a call."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import attrs

from dra_spec.explorer.model import Outcome, Slot, View
from dra_spec.protocol import budgets
from dra_spec.protocol.apiserver import Api
from dra_spec.protocol.budgets import Budgets
from dra_spec.protocol.instance import ClaimRef, Instance
from dra_spec.protocol.kubelet_state import IDLE, Do, Kubelet, Life, Task, kubelets
from dra_spec.protocol.node import Call, Method, Node

MANAGER = "pkg/kubelet/cm/dra/manager.go"


@attrs.frozen(eq=False)
class Site:
    """What the actions of one node work with. `refs`: pod -> the claims it names, in order; `writers`: those that take part."""

    node: Node
    kubelet: Kubelet
    api: Api
    budgets: Budgets
    refs: Mapping[str, tuple[ClaimRef, ...]]
    writers: frozenset[str]

    @property
    def rooms(self) -> frozenset[str]:
        """The rooms of the kubelet's actions."""
        return self.api.rooms | {budgets.ROOM, self.node.room, self.kubelet.room}


Sites = Mapping[str, Site]


def _make(instance: Instance) -> dict[str, Site]:
    api = Api.of(instance)
    left = Budgets.of(instance)
    return {
        name: Site(kubelet.node, kubelet, api, left, {p: instance.pod(p).claims for p in kubelet.node.pods}, instance.writers)
        for name, kubelet in kubelets(instance).items()
    }


def sites(instance: Instance) -> Sites:
    """The sites of an instance by node: the context of the actions here."""
    return instance.memo(_make)


def crashed(site: Site, outcome: Outcome) -> None:
    """The kubelet's process ends: its memory is lost, its calls have no client any more."""
    me = site.kubelet
    outcome[me.running] = False
    outcome[me.lock] = None
    for cache in me.cache.values():
        outcome[cache] = None
    for life in me.lives.values():
        outcome[life] = Life.UNKNOWN
    for task in (*me.workers.values(), *me.loops.values()):
        outcome[task] = IDLE
    site.node.client_gone(outcome)


def send(v: View, site: Site, pod: str, driver: str, slot: Slot[Task], method: Method, aborted: Task) -> Iterator[Outcome]:
    """K6, K19: puts a call for the task's claims of the driver on its way.

    Labels: `ok`; `no-plugin` (nobody serves), `failed` (fault "rpc-failed": the request never arrives): the task becomes `aborted`.
    """
    task = v.value(slot)
    if driver not in task.drivers or driver in task.done:
        return
    if not v.value(site.node.serving[driver]):
        refused = v.outcome("no-plugin")
        refused[slot] = aborted
        yield refused
        return
    lane = site.node.free_lane(v, driver, pod)
    if lane is None:
        yield v.outcome().beyond_bounds(f"more than {len(site.node.calls[driver, pod])} open calls for pod {pod} to driver {driver}")
    else:
        ok = v.outcome()
        ok[slot] = attrs.evolve(task, waiting=driver, lane=lane)
        ok[site.node.calls[driver, pod][lane]] = Call(method, tuple((w.claim, w.uid) for w in task.for_driver(driver)))
        yield ok
    if site.budgets.left(v, "rpc-failed"):
        failed = v.outcome("failed")
        failed[slot] = aborted
        site.budgets.spend(failed, "rpc-failed")
        yield failed


def answer_of(v: View, site: Site, pod: str, driver: str, slot: Slot[Task]) -> Slot[Call | None] | None:
    """The slot of the call that the task waits for if its answer is there."""
    if v[slot].waiting != driver or v[slot].lane >= len(site.node.calls[driver, pod]):
        return None
    call = site.node.calls[driver, pod][v[slot].lane]
    return call if v.project(call, _is_answered) else None


def _is_answered(call: Call | None) -> bool:
    return call is not None and call.answered


def answered_by(task: Task, driver: str, then: Do) -> Task:
    """The task after the driver has answered: on to the next driver, or to `then` if it was the last."""
    done = task.done | {driver}
    if done >= task.drivers:
        return Task(then, batch=task.batch)
    return attrs.evolve(task, done=done, waiting=None, lane=0, stored=frozenset())
