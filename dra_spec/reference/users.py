"""Users, the garbage collector, and - where no kubelet takes part - the node as the API server sees it.

Users create, delete and edit pods and claims, as often as the budgets say. Without a kubelet a bound pod whose claims are reserved for it
and allocated for its node becomes Running, a pod being deleted becomes terminal and then disappears.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from dra_spec.reference.apiserver import CLAIM, POD, ApiServer
from dra_spec.reference.cycle import fits
from dra_spec.reference.shapes import (
    Object,
    allocation,
    claim_name,
    deleting,
    name_of,
    node_name,
    phase,
    pod_object,
    reserved_for,
    terminal,
    uid_of,
)
from dra_spec.reference.steps import Move, Moves, Turn

if TYPE_CHECKING:
    from dra_spec.reference.world import World


class GarbageCollector:
    """Deletes generated claims whose owners are gone."""

    def __init__(self, world: World) -> None:
        self.api: ApiServer = world.api
        self._generated = [claim.name for claim in world.instance.claims if claim.pod is not None]

    def moves(self) -> Moves:
        return {Move.of("apiserver.collect_claim", {"claim": c}): self._collect for c in self._generated if self.api.collectable(CLAIM, c)}

    def _collect(self, turn: Turn) -> None:
        self.api.collect(CLAIM, str(turn.params["claim"]))
        turn.took("ok")

    def settle(self) -> None:
        """Nothing to do."""


class Workload:
    """Users, and the node's reports if there is no kubelet."""

    def __init__(self, world: World) -> None:
        self.world, self.api = world, world.api
        self._specs = {pod.name: pod for pod in world.instance.pods}
        self.created = {name: False for name, pod in self._specs.items() if not pod.present}
        self._node = "kubelet" not in world.instance.writers

    def settle(self) -> None:
        """Nothing to do."""

    def moves(self) -> Moves:
        found: Moves = {}

        def add(verb: str, taker: Callable[[Turn], None], **params: str) -> None:
            found[Move.of(f"workload.{verb}", params)] = taker

        left = self.world.left
        for name, created in self.created.items():
            if not created:
                add("create_pod", self._create_pod, pod=name)
        for pod in self.api.list(POD):
            name = name_of(pod)
            if left("delete-pod") and not deleting(pod):
                add("delete_pod", self._delete_pod, pod=name)
            if left("force-delete-pod"):
                add("force_delete_pod", self._force_delete_pod, pod=name)
            if self._node:
                for verb, taker in self._reports(pod).items():
                    add(verb, taker, pod=name)
        for claim in self.api.list(CLAIM):
            if left("delete-claim") and not deleting(claim):
                add("delete_claim", self._delete_claim, claim=name_of(claim))
            if left("touch-claim"):
                add("touch_claim", self._touch_claim, claim=name_of(claim))
        return found

    def _reports(self, pod: Object) -> dict[str, Callable[[Turn], None]]:
        """What the node may report of a pod."""
        found: dict[str, Callable[[Turn], None]] = {}
        if deleting(pod):
            found["remove_pod" if terminal(pod) else "stop_pod"] = self._remove_pod if terminal(pod) else self._stop_pod
        elif phase(pod) == "Pending" and self._may_start(pod):
            found["start_pod"] = self._start_pod
        elif phase(pod) == "Running" and self.world.left("finish-pod"):
            found["finish_pod"] = self._finish_pod
        return found

    def _may_start(self, pod: Object) -> bool:
        node = node_name(pod)
        if node is None:
            return False
        for entry in pod["spec"]["resourceClaims"]:
            name = claim_name(pod, entry)
            claim = self.api.find(CLAIM, name) if name is not None else None
            if claim is None or allocation(claim) is None or not reserved_for(claim, uid_of(pod)) or not fits(allocation(claim), node):
                return False
        return True

    def _report(self, turn: Turn, new: str) -> None:
        self.api.patch_status(POD, str(turn.params["pod"]), lambda status: status.update(phase=new))
        turn.took("ok")

    def _start_pod(self, turn: Turn) -> None:
        self._report(turn, "Running")

    def _stop_pod(self, turn: Turn) -> None:
        self._report(turn, "Succeeded")

    def _finish_pod(self, turn: Turn) -> None:
        turn.spend("finish-pod")
        self._report(turn, "Succeeded")

    def _remove_pod(self, turn: Turn) -> None:
        self.api.delete(POD, str(turn.params["pod"]), grace=0)
        turn.took("ok")

    def _create_pod(self, turn: Turn) -> None:
        name = str(turn.params["pod"])
        spec = self._specs[name]
        entries = [(ref.entry, ref.claim, ref.template) for ref in spec.claims]
        self.api.create(POD, pod_object(name, entries, spec.node))
        self.created[name] = True
        turn.took("ok")

    def _delete_pod(self, turn: Turn) -> None:
        turn.spend("delete-pod")
        self.api.delete(POD, str(turn.params["pod"]))
        turn.took("ok")

    def _force_delete_pod(self, turn: Turn) -> None:
        turn.spend("force-delete-pod")
        self.api.delete(POD, str(turn.params["pod"]), grace=0)
        turn.took("ok")

    def _delete_claim(self, turn: Turn) -> None:
        turn.spend("delete-claim")
        self.api.delete(CLAIM, str(turn.params["claim"]))
        turn.took("ok")

    def _touch_claim(self, turn: Turn) -> None:
        turn.spend("touch-claim")
        self.api.touch(CLAIM, str(turn.params["claim"]))
        turn.took("ok")
