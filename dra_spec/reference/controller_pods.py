"""The pod keys of the ResourceClaim controller: claims from templates, their names in the pod's status, reservations for pods with a
node."""

from __future__ import annotations

from typing import Any

import attrs

from dra_spec.reference.apiserver import CLAIM, POD, ApiServer
from dra_spec.reference.shapes import (
    Object,
    allocation,
    claim_name,
    clone,
    consumer,
    deleting,
    generated_claim,
    is_for,
    node_name,
    reserved_for,
    rv_of,
    uid_of,
)
from dra_spec.reference.steps import Body, Step, Thread, Turn


@attrs.define(eq=False)
class PodSync:
    """The local variables of a pod key's worker: its copy of the pod, the names found (entry -> claim), the entry and claim copy at
    hand."""

    pod: Object
    found: dict[str, str] = attrs.field(factory=dict)
    index: int = 0
    claim: Object | None = None


class PodKeys:
    """The part of the controller that works on pods. The attributes belong to `ClaimController`."""

    api: ApiServer
    claims: dict[str, Object]
    pods: dict[str, Object]
    mutations: dict[str, Object]
    templates: dict[str, tuple[str, ...]]
    pod_entries: dict[str, list[tuple[str, str, str | None]]]
    pod_work: dict[str, tuple[PodSync, Thread]]

    def _load_pod(self, turn: Turn) -> None:
        name = str(turn.params["pod"])
        work = PodSync(self.pods[name])
        self.pod_work[name] = (work, Thread(self._sync_pod(name, work)))
        self._work_on_pod(turn)

    def _work_on_pod(self, turn: Turn) -> None:
        name = str(turn.params["pod"])
        thread = self.pod_work[name][1]
        thread.take(turn)
        if thread.ended:
            del self.pod_work[name]

    def pod_needs_work(self, name: str) -> bool:
        """podNeedsWork on the cached pod, or a sync would drop an entry of the mutation cache (the key may be queued for a reason that
        has gone)."""
        pod = self.pods.get(name)
        if pod is None or deleting(pod):
            return False
        return self.has_reason(pod) or any(self._outdated(claim) for _, claim, template in self.pod_entries[name] if template is not None)

    def has_reason(self, pod: Object) -> bool:
        """Whether some entry lacks its claim, or an allocated claim lacks the reservation of a pod with a node. The phase is not looked
        at."""
        for entry in pod["spec"]["resourceClaims"]:
            generated = "resourceClaimTemplateName" in entry
            name = claim_name(pod, entry)
            if name is None:
                return True
            claim = self.claims.get(name)
            if claim is None:
                if generated:
                    return True
                continue
            if generated and not self.is_for(pod, claim):
                continue
            if node_name(pod) is not None and self.lacks_reservation(claim, pod):
                return True
        return False

    @staticmethod
    def is_for(pod: Object, claim: Object) -> bool:
        return is_for(claim, pod)

    @staticmethod
    def lacks_reservation(claim: Object, pod: Object) -> bool:
        return allocation(claim) is not None and not reserved_for(claim, uid_of(pod))

    # -- the mutation cache

    def _outdated(self, claim: str) -> bool:
        written, cached = self.mutations.get(claim), self.claims.get(claim)
        return written is not None and cached is not None and rv_of(written) <= rv_of(cached)

    def look_up(self, claim: str) -> bool:
        """Whether the mutation cache, or the informer's below it, has the claim; an entry that the informer has caught up with is dropped.

        An entry of a claim that was deleted before any such look-up stays (variant V5).
        """
        if self._outdated(claim):
            del self.mutations[claim]
        return claim in self.claims or claim in self.mutations

    # -- the sync

    def _step(self, verb: str, name: str) -> Step:
        return Step(f"claim-controller.{verb}", pod=name)

    def _sync_pod(self, name: str, work: PodSync) -> Body:
        """RC-20 to RC-23."""
        turn = yield self._step("load_pod", name)
        turn.took("ok")
        for work.index, (entry, claim, template) in enumerate(self.pod_entries[name]):
            if template is not None and not (yield from self._handle_claim(name, work, entry, claim)):
                return
        if work.found and not (yield from self.apply(name, work)):
            return
        if node_name(work.pod) is None:
            return
        yield from self._reserve(name, work)

    def _handle_claim(self, name: str, work: PodSync, entry: str, claim: str) -> Any:
        """RC-20a and RC-21 for one entry: its claim exists, or is created."""
        recorded = self.recorded(work.pod)
        if entry in recorded:
            if self.look_up(claim):
                return True
            turn: Turn = yield self._step("get_claim", name)
            exists = self.api.find(CLAIM, claim) is not None
            turn.took("ok" if exists else "not-found")
            if exists:
                return True
        if not self.look_up(claim) and not (yield from self._create(name, work, entry, claim)):
            return False
        work.found[entry] = claim
        return True

    def _create(self, name: str, work: PodSync, entry: str, claim: str) -> Any:
        turn: Turn = yield self._step("create_claim", name)
        wanted = generated_claim(claim, entry, self.templates[claim], work.pod)
        stored = turn.request(lambda: self.api.create(CLAIM, wanted))
        if stored is None:
            return False
        self.mutations[claim] = stored
        return True

    @staticmethod
    def recorded(pod: Object) -> dict[str, str]:
        """Entry -> claim, as the pod's status has it."""
        return {status["name"]: status["resourceClaimName"] for status in pod["status"].get("resourceClaimStatuses", ())}

    def names_to_apply(self, work: PodSync) -> dict[str, str]:
        """The names that the apply contains: those of the copy, overlaid with those found."""
        return {**self.recorded(work.pod), **work.found}

    def apply(self, name: str, work: PodSync) -> Any:
        """RC-22: server-side apply with force; what this manager owned and does not name any more goes."""
        turn: Turn = yield self._step("apply_pod_status", name)
        names = self.names_to_apply(work)
        wanted = [{"name": entry, "resourceClaimName": claim} for entry, claim in sorted(names.items())]
        return turn.request(lambda: self.api.patch_status(POD, name, lambda s: s.update(resourceClaimStatuses=wanted))) is not None

    def _reserve(self, name: str, work: PodSync) -> Any:
        """RC-23 for each entry, on the copy of the pod that was loaded: a name that was only just recorded ends the sync."""
        for index, entry in enumerate(work.pod["spec"]["resourceClaims"]):
            work.index = index
            claim = claim_name(work.pod, entry)
            cached = self.claims.get(claim) if claim is not None else None
            if cached is None:
                return
            if self.lacks_reservation(cached, work.pod):
                work.claim = cached
                turn: Turn = yield self._step("reserve_for_pod", name)
                if not self.reserve(turn, work, cached):
                    return
                work.claim = None

    def reserve(self, turn: Turn, work: PodSync, claim: Object) -> bool:
        """RC-23: appends the pod to the cached copy's consumers. False: the sync ends."""
        wanted = clone(claim)
        wanted["status"].setdefault("reservedFor", []).append(consumer(work.pod))
        return turn.request(lambda: self.api.update_status(CLAIM, wanted)) is not None


__all__ = ["PodKeys", "PodSync"]
