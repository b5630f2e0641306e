"""Stands for the scheduler, and for the claim controller, in worlds that are about what happens on a node: each does its work in one
step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from dra_spec.allocation.errors import DoesNotFit, FatalAllocation
from dra_spec.reference.apiserver import CLAIM, POD, without_finalizer
from dra_spec.reference.choice import accepted, injected, name_of_choice
from dra_spec.reference.cycle import fits, with_finalizer
from dra_spec.reference.shapes import (
    Object,
    allocation,
    allocation_object,
    claim_name,
    clone,
    consumer,
    consumers,
    deleting,
    exclusive,
    finalizer,
    generated_claim,
    is_for,
    name_of,
    node_name,
    owner_pod,
    reserved_for,
    terminal,
    uid_of,
)
from dra_spec.reference.steps import Move, Moves, Turn

if TYPE_CHECKING:
    from dra_spec.reference.world import World


class Placement:
    """Allocates, reserves and binds in one step; generates and releases claims in one step if there is no claim controller."""

    def __init__(self, world: World) -> None:
        self.world, self.api, self.instance = world, world.api, world.instance
        self._controls = "claim-controller" not in world.instance.writers

    def settle(self) -> None:
        """Nothing to do."""

    def moves(self) -> Moves:
        found: Moves = {}
        for spec in self.instance.pods:
            pod = self.api.find(POD, spec.name)
            if pod is None:
                continue
            for node in self.instance.nodes if spec.node is None else ():
                if self._placeable(pod, node):
                    found[Move.of("scheduler.place", {"pod": spec.name, "node": node})] = self._place
            if self._controls and self._lacks_claims(pod, spec):
                found[Move.of("claim-controller.generate", {"pod": spec.name})] = self._generate
        for claim in self.api.list(CLAIM) if self._controls else ():
            if self._released(claim) is not None:
                found[Move.of("claim-controller.release", {"claim": name_of(claim)})] = self._release
        return found

    def _placeable(self, pod: Object, node: str) -> bool:
        """Whether the step may be taken; where any allocation may be chosen, the choice shows whether there is one."""
        claims = self._usable(pod, node)
        if claims is None:
            return False
        names, in_use = self._question(claims)
        return not names or self.instance.any_allocation is not None or self._upstream(names, node, in_use) is not None

    def _upstream(self, names: tuple[str, ...], node: str, in_use: frozenset[str]) -> Sequence[Any] | None:
        """The allocator's answer, None if there is none."""
        try:
            return self.world.allocate(names, node, in_use) if names else ()
        except (DoesNotFit, FatalAllocation):
            return None

    def _question(self, claims: dict[str, Object]) -> tuple[tuple[str, ...], frozenset[str]]:
        """What the allocator is asked: the claims that need an allocation, and the devices in use."""
        names = tuple(name for name, claim in claims.items() if allocation(claim) is None)
        return names, frozenset(device for claim in self.api.list(CLAIM) for device in exclusive(allocation(claim)))

    def _usable(self, pod: Object, node: str) -> dict[str, Object] | None:
        """The pod's claims by name, None if the pod cannot be placed on the node whatever devices are free."""
        if deleting(pod) or terminal(pod) or node_name(pod) is not None:
            return None
        claims: dict[str, Object] = {}
        for entry in pod["spec"]["resourceClaims"]:
            name = claim_name(pod, entry)
            claim = self.api.find(CLAIM, name) if name is not None else None
            if claim is None or deleting(claim) or not fits(allocation(claim), node):
                return None
            if "resourceClaimTemplateName" in entry and not is_for(claim, pod):
                return None
            claims[name_of(claim)] = claim
        return claims

    @staticmethod
    def _taken(claim: Object, pod: Object, made: Any) -> Object:
        new = with_finalizer(claim)
        if made is not None:
            new["status"]["allocation"] = allocation_object(made)
        if not reserved_for(new, uid_of(pod)):
            new["status"].setdefault("reservedFor", []).append(consumer(pod))
        return new

    def _place(self, turn: Turn) -> None:
        name, node = str(turn.params["pod"]), str(turn.params["node"])
        pod = self.api.get(POD, name)
        claims = self._usable(pod, node) or {}
        names, in_use = self._question(claims)
        choice = injected(self.world, turn.asked)
        made = accepted(self.world, str(turn.move), choice, names, in_use) if choice else self._upstream(names, node, in_use)
        if made is None:
            turn.took("no-fit")
            return
        label = name_of_choice(self.world, node, names, in_use, made)
        chosen: dict[str, Any] = dict(zip(names, made, strict=True))
        for each, claim in claims.items():
            self.api.put(CLAIM, self._taken(claim, pod, chosen.get(each)))
        self.api.bind(name, node)
        turn.took(label)

    @staticmethod
    def _lacks_claims(pod: Object, spec: Any) -> bool:
        templated = any(ref.template is not None for ref in spec.claims)
        return templated and not deleting(pod) and not terminal(pod) and not pod["status"].get("resourceClaimStatuses")

    def _generate(self, turn: Turn) -> None:
        name = str(turn.params["pod"])
        pod = self.api.get(POD, name)
        spec = next(p for p in self.instance.pods if p.name == name)
        refs = [ref for ref in spec.claims if ref.template is not None]
        requests = {claim.name: tuple(claim.requests) for claim in self.instance.claims}
        for ref in refs:
            if self.api.find(CLAIM, ref.claim) is None:
                self.api.create(CLAIM, generated_claim(ref.claim, ref.entry, requests[ref.claim], pod))
        statuses = [{"name": ref.entry, "resourceClaimName": ref.claim} for ref in refs]
        self.api.patch_status(POD, name, lambda status: status.update(resourceClaimStatuses=statuses))
        turn.took("ok")

    def _done(self, name: str) -> bool:
        pod = self.api.find(POD, name)
        return pod is None or terminal(pod)

    def _released(self, claim: Object) -> tuple[Object, bool] | None:
        """The claim without finished consumers, and whether it goes altogether; None if there is nothing to do."""
        kept = [entry for entry in consumers(claim) if not self._done(entry["name"])]
        owner = owner_pod(claim)
        goes = not kept and (deleting(claim) or (owner is not None and self._done(owner[0])))
        idle = not kept and (goes or finalizer(claim) or allocation(claim) is not None)
        if len(kept) == len(consumers(claim)) and not idle:
            return None
        new = clone(claim)
        if kept:
            new["status"]["reservedFor"] = kept
            return new, False
        new["status"] = {}
        return without_finalizer(new), goes

    def _release(self, turn: Turn) -> None:
        name = str(turn.params["claim"])
        found = self._released(self.api.get(CLAIM, name))
        assert found is not None
        if found[1]:
            self.api.drop(CLAIM, name)
        else:
            self.api.put(CLAIM, found[0])
        turn.took("ok")
