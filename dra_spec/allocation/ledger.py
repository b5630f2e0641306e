"""Whether nodes have the ordinary resources that chosen devices cost, beside what the pods there ask for (KEP-5517, alpha).

kube-scheduler looks at this after the devices of a node are chosen: a node that has too little is given up, other devices of it are not
tried. Only resources that devices cost are counted here; whether a pod fits otherwise is not asked. Source: kube-scheduler v1.37.2,
dynamicresources, nodeallocatabledynamicresources.go; what a pod asks for: KEP-753.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import attrs

from dra_spec.allocation.errors import FatalAllocation, UnsupportedFeature
from dra_spec.allocation.inventory import Inventory
from dra_spec.allocation.nodeallocatable import ZERO, Cost, Held, cost_of, resources_missing
from dra_spec.resources.claims import ResourceClaim
from dra_spec.resources.core import Pod
from dra_spec.resources.quantity import Quantity
from dra_spec.resources.reader import Loaded

FINISHED = ("Succeeded", "Failed")


@attrs.frozen(eq=False)
class ClaimDevices:
    """The devices of a claim that a pod uses. `claim`: its label; `containers`: how many of the pod's containers refer to it."""

    claim: str
    devices: Sequence[Held]
    containers: int


@attrs.frozen
class Charge:
    """What one pod's devices cost on a node. `refused`: why the node does not do, "" if it does."""

    pod: str
    cost: Cost
    refused: str = ""
    unknown: bool = False  # the node does not say what it has


@attrs.define(eq=False)
class Ledger:
    """What is used of each node; charges are added as pods are placed."""

    inventory: Inventory
    used: dict[str, list[Mapping[str, Quantity]]] = attrs.field(factory=dict)

    @classmethod
    def of(cls, loaded: Loaded, inventory: Inventory) -> Ledger:
        """The pods that run already count with what they ask for and what their allocated devices cost.

        Raises UnsupportedFeature for a pod with a device that is in no slice any more: its cost is in its status, which is not read.
        """
        ledger = cls(inventory)
        for pod in loaded.pods if ledger.matters else ():
            if not pod.spec.node_name or pod.status.phase in FINISHED:
                continue
            try:
                cost = ledger.cost(pod.spec.node_name, allocated(loaded, pod))
            except FatalAllocation as error:
                raise UnsupportedFeature(f"what the devices of a running pod cost: {error}", pod.where("spec")) from None
            ledger.add(pod.spec.node_name, pod, cost)
        return ledger

    @property
    def matters(self) -> bool:
        """Whether any device costs anything."""
        return any(d.node_allocatable_resources for s in self.inventory.slices for d in s.spec.devices)

    def cost(self, node: str, claims: Sequence[ClaimDevices]) -> Cost:
        """What the devices of these claims cost one pod. Raises FatalAllocation."""
        return cost_of(self.inventory, self.inventory.node(node), [c.devices for c in claims], [c.containers for c in claims])

    def charge(self, node: str, pods: Sequence[tuple[Pod, Sequence[ClaimDevices]]]) -> tuple[Charge, ...]:
        """What each pod of a call would cost on the node, all of them together there. Raises FatalAllocation."""
        charges: list[Charge] = []
        there: list[Mapping[str, Quantity]] = list(self.used.get(node, ()))
        allocatable = self.inventory.node(node).status.allocatable
        for pod, claims in pods:
            cost = self.cost(node, claims)
            there += [requests_of(pod), cost.total]
            shared = self._shared(node, pods, claims) if cost.mapped else ""
            missing = {k: q for k, q in resources_missing(self.inventory.node(node), there).items() if k in cost.total}
            if shared:
                charges.append(Charge(pod.name, cost, f"{shared} stands for resources of the node, so several pods cannot share it"))
            elif missing and allocatable:
                text = ", ".join(f"{Quantity(q.value, cost.total[k].style)} of {k} too little" for k, q in missing.items())
                charges.append(Charge(pod.name, cost, f"node {node} has {text} for the devices of pod {pod.name}"))
            else:
                charges.append(Charge(pod.name, cost, unknown=bool(cost.total) and not allocatable))
        return tuple(charges)

    def add(self, node: str, pod: Pod, cost: Cost) -> None:
        """The pod is there now."""
        self.used.setdefault(node, []).extend([requests_of(pod), cost.total])

    def _shared(self, node: str, pods: Sequence[tuple[Pod, Sequence[ClaimDevices]]], claims: Sequence[ClaimDevices]) -> str:
        """The first of the claims with a mapped device that another pod uses, too."""
        for each in claims:
            users = sum(any(c.claim == each.claim for c in others) for _, others in pods)
            if users > 1 and self.cost(node, [each]).mapped:
                return each.claim
        return ""


def allocated(loaded: Loaded, pod: Pod) -> list[ClaimDevices]:
    """The claims of the pod that have devices already."""
    claims: dict[tuple[str, str], ResourceClaim] = {(c.namespace, c.name): c for c in loaded.claims}
    generated = {s.name: s.resource_claim_name for s in pod.status.resource_claim_statuses}
    found = []
    for entry in pod.spec.resource_claims:
        claim = claims.get((pod.namespace, entry.resource_claim_name or generated.get(entry.name, "")))
        if claim is not None and claim.status.allocation is not None:
            found.append(ClaimDevices(f"claim {claim.name}", claim.status.allocation.devices.results, references(pod, entry.name)))
    return found


def references(pod: Pod, entry: str) -> int:
    """How many containers of the pod use a claim of it."""
    return sum(any(use.name == entry for use in c.resources.claims) for c in pod.spec.all_containers)


def requests_of(pod: Pod) -> dict[str, Quantity]:
    """What the pod asks for at once: init containers run one after the other, beside the sidecars before them."""
    lasting: dict[str, Quantity] = {}
    peak: dict[str, Quantity] = {}
    for index, container in enumerate(pod.spec.all_containers):
        amounts = {**container.resources.limits, **container.resources.requests}
        if index < len(pod.spec.init_containers) and container.restart_policy != "Always":
            for name, amount in _sum([lasting, amounts]).items():
                peak[name] = max(peak.get(name, ZERO), amount, key=lambda q: q.value)
        else:
            lasting = _sum([lasting, amounts])
    return {name: max(lasting.get(name, ZERO), peak.get(name, ZERO), key=lambda q: q.value) for name in {**lasting, **peak}}


def _sum(parts: Iterable[Mapping[str, Quantity]]) -> dict[str, Quantity]:
    total: dict[str, Quantity] = {}
    for part in parts:
        for name, amount in part.items():
            total[name] = total[name] + amount if name in total else amount
    return total
