"""Users and containers: who creates, deletes and edits pods and claims, and when a pod finishes.

Where no kubelet takes part, this module also stands for the node: a bound pod whose claims are reserved for it and allocated for its node
becomes Running, a pod being deleted becomes terminal and then disappears. That is the order in which the kubelet reports; what it does on
the node, and so whether the devices are free when the pod becomes terminal, is the kubelet's and the plugin's model.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import attrs

from dra_spec.explorer.model import Action, ActionType, Kind, Outcome, Slot, Storage, View, action
from dra_spec.protocol.apiserver import Answer, Api
from dra_spec.protocol.instance import Instance
from dra_spec.protocol.objects import Claim, Phase

WRITER = "workload"
ROOM = "workload"


@attrs.frozen(eq=False)
class Workload:
    """`created`: for each pod that is not there from the start, whether it has been created; a name is used once."""

    instance: Instance
    api: Api
    created: Mapping[str, Slot[bool]]

    @staticmethod
    def of(instance: Instance) -> Workload:
        """The one `Workload` object of the instance."""
        return instance.memo(_make)

    @property
    def rooms(self) -> frozenset[str]:
        return frozenset({ROOM}) | self.api.rooms


def _make(instance: Instance) -> Workload:
    later = [pod.name for pod in instance.pods if not pod.present]
    return Workload(instance, Api.of(instance), {name: Slot(f"{ROOM}/created/{name}", False, ROOM, Storage.BUDGET) for name in later})


def _spending(v: View, w: Workload, budget: str, answers: Iterator[Answer]) -> Iterator[Outcome]:
    """The answers, if the event may still happen, each of them using up one of its budget."""
    if w.api.budgets.left(v, budget):
        for answer in answers:
            w.api.budgets.spend(answer, budget)
            yield answer


# -- users


@action("workload.create_pod", writer=WRITER, step="AS-9", source="pkg/registry/core/pod/strategy.go:PrepareForCreate", kind=Kind.USER)
def create_pod(v: View, w: Workload, pod: str) -> Iterator[Outcome]:
    """Somebody creates the pod, once."""
    if v.value(w.created[pod]) or v[w.api.pod[pod]].exists:
        return
    for answer in w.api.create_pod(v, pod, node=w.instance.pod(pod).node):
        answer[w.created[pod]] = True
        yield answer


@action("workload.delete_pod", writer=WRITER, step="AS-12", source="pkg/registry/core/pod/strategy.go:CheckGracefulDelete", kind=Kind.USER)
def delete_pod(v: View, w: Workload, pod: str) -> Iterator[Outcome]:
    """Somebody deletes the pod: at once if it has no node or is terminal, else it is being deleted until the node has let it go."""
    if v[w.api.pod[pod]].exists and not v[w.api.pod[pod]].deleting:
        yield from _spending(v, w, "delete-pod", w.api.delete_pod(v, pod))


@action(
    "workload.force_delete_pod", writer=WRITER, step="AS-14", source="pkg/registry/core/pod/strategy.go:CheckGracefulDelete", kind=Kind.USER
)
def force_delete_pod(v: View, w: Workload, pod: str) -> Iterator[Outcome]:
    """Somebody deletes the pod with grace period 0, or pod GC does: the object goes although containers may run."""
    if v[w.api.pod[pod]].exists:
        yield from _spending(v, w, "force-delete-pod", w.api.delete_pod(v, pod, force=True))


@action("workload.delete_claim", writer=WRITER, step="AS-6", source="pkg/registry/resource/resourceclaim/strategy.go", kind=Kind.USER)
def delete_claim(v: View, w: Workload, claim: str) -> Iterator[Outcome]:
    """Somebody deletes the claim: with the finalizer it is being deleted until that is gone."""
    if v[w.api.claim[claim]].exists and not v[w.api.claim[claim]].deleting:
        yield from _spending(v, w, "delete-claim", w.api.delete_claim(v, claim, faults=False))


@action("workload.touch_claim", writer=WRITER, step="AS-2", source="pkg/registry/resource/resourceclaim/strategy.go", kind=Kind.USER)
def touch_claim(v: View, w: Workload, claim: str) -> Iterator[Outcome]:
    """Somebody edits a label of the claim: a new version with the same content for the protocol."""
    if v[w.api.claim[claim]].exists:
        yield from _spending(v, w, "touch-claim", w.api.touch_claim(v, claim))


# -- containers and the node, where no kubelet takes part


@action("workload.finish_pod", writer=WRITER, step="K23", source="pkg/kubelet/status/status_manager.go:syncPod", kind=Kind.WORKLOAD)
def finish_pod(v: View, w: Workload, pod: str) -> Iterator[Outcome]:
    """All containers end by themselves, and the pod is reported as terminal."""
    if v[w.api.pod[pod]].exists and v[w.api.pod[pod]].phase is Phase.RUNNING and not v[w.api.pod[pod]].deleting:
        yield from _spending(v, w, "finish-pod", w.api.patch_pod_status(v, pod, phase=Phase.SUCCEEDED, faults=False))


def usable(claim: Claim, pod: str, node: str) -> bool:
    """For `View.project`: whether the pod may start with the claim on the node. Source: pkg/kubelet/cm/dra/manager.go:prepareResources."""
    allocation = claim.allocation if claim.exists else None
    return allocation is not None and pod in claim.reserved_for and (allocation.nodes is None or node in allocation.nodes)


@action("workload.start_pod", writer=WRITER, step="K12", source="pkg/kubelet/cm/dra/manager.go:prepareResources")
def start_pod(v: View, w: Workload, pod: str) -> Iterator[Outcome]:
    """A bound pod starts: all its claims have a name, are allocated for its node and reserved for it."""
    if not v[w.api.pod[pod]].exists or v[w.api.pod[pod]].deleting or v[w.api.pod[pod]].phase is not Phase.PENDING:
        return
    node = v[w.api.pod[pod]].node
    if node is None:
        return
    for ref in w.instance.pod(pod).claims:
        if ref.template is not None and (ref.entry, ref.claim) not in v[w.api.pod[pod]].claim_names:
            return
        if not v.project(w.api.claim[ref.claim], usable, pod, node):
            return
    yield from w.api.patch_pod_status(v, pod, phase=Phase.RUNNING, faults=False)


@action("workload.stop_pod", writer=WRITER, step="K23", source="pkg/kubelet/status/status_manager.go:syncPod")
def stop_pod(v: View, w: Workload, pod: str) -> Iterator[Outcome]:
    """The containers of a pod that is being deleted are stopped, and it is reported as terminal."""
    if v[w.api.pod[pod]].exists and v[w.api.pod[pod]].deleting and not v[w.api.pod[pod]].terminal:
        yield from w.api.patch_pod_status(v, pod, phase=Phase.SUCCEEDED, faults=False)


@action("workload.remove_pod", writer=WRITER, step="K25", source="pkg/kubelet/status/status_manager.go:syncPod")
def remove_pod(v: View, w: Workload, pod: str) -> Iterator[Outcome]:
    """The final delete of a pod that is being deleted and terminal."""
    if v[w.api.pod[pod]].exists and v[w.api.pod[pod]].deleting and v[w.api.pod[pod]].terminal:
        yield from w.api.remove_pod(v, pod, faults=False)


def slots(instance: Instance) -> Sequence[Slot[Any]]:
    """Which pods have been created, if there are users."""
    return tuple(Workload.of(instance).created.values()) if WRITER in instance.writers else ()


def actions(instance: Instance) -> Sequence[Action]:
    """The actions of users, by their budgets; those of the node if no kubelet takes part."""
    if WRITER not in instance.writers:
        return ()
    w = Workload.of(instance)
    events = {"delete-pod": delete_pod, "force-delete-pod": force_delete_pod}
    per_pod: list[ActionType] = [kind for budget, kind in events.items() if instance.budget(budget)]
    if "kubelet" not in instance.writers:
        per_pod.append(start_pod)
        per_pod += [stop_pod, remove_pod] if instance.budget("delete-pod") else []
        per_pod += [finish_pod] if instance.budget("finish-pod") else []
    per_claim = [kind for budget, kind in {"delete-claim": delete_claim, "touch-claim": touch_claim}.items() if instance.budget(budget)]
    made = [Action(create_pod, {"pod": pod}, w.rooms, w) for pod in w.created]
    made += [Action(kind, {"pod": pod.name}, w.rooms, w) for pod in instance.pods for kind in per_pod]
    made += [Action(kind, {"claim": claim.name}, w.rooms, w) for claim in instance.claims for kind in per_claim]
    return made
