"""Extended resources as manifests give them: which classes serve which, which pods use them already, and what cannot be told."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import attrs

from dra_spec.allocation.extended import IMPLICIT, Ask, Backing, Running, asks_of, backing, offered, served_by_dra, totals
from dra_spec.allocation.settings import Settings
from dra_spec.resources.claims import ResourceClaim
from dra_spec.resources.core import Node, Pod
from dra_spec.resources.meta import Metadata
from dra_spec.resources.reader import Loaded

ANNOTATION = "resource.kubernetes.io/extended-resource-claim"


def pod_label(loaded: Loaded, pod: Pod) -> str:
    """The pod's name, with its namespace where another pod has the same name."""
    alike = sum(p.name == pod.name for p in loaded.pods)
    return f"pod {pod.name}" if alike == 1 else f"pod {pod.namespace}/{pod.name}"


def finished(pod: Pod) -> bool:
    """Whether all its containers have ended, so that it uses nothing any more."""
    return pod.status.phase in ("Succeeded", "Failed")


def made_by_scheduler(claim: ResourceClaim) -> bool:
    """Whether the claim is one that the scheduler made for the extended resources of a pod."""
    return claim.metadata.annotations.get(ANNOTATION) == "true"


@attrs.frozen(eq=False)
class Extended:
    """What the manifests say of extended resources, for a Kubernetes release with its gates."""

    loaded: Loaded
    settings: Settings
    all: Backing

    @classmethod
    def of(cls, loaded: Loaded, settings: Settings) -> Extended:
        """Raises ManifestError for a class whose creationTimestamp is no time."""
        return cls(loaded, settings, backing(loaded.classes))

    @property
    def classes(self) -> dict[str, str]:
        """Resource names and the classes that serve them; none while the gate is off."""
        return dict(self.all.classes) if self.settings.extended_resources else {}

    @property
    def unserved(self) -> dict[str, str]:
        """Resource names that classes would serve if the gate were on."""
        return {} if self.settings.extended_resources else dict(self.all.classes)

    def running(self) -> tuple[Running, ...]:
        """The pods that have a node and are not finished. Raises ManifestError."""
        found = []
        for pod in self.loaded.pods:
            amounts = totals(asks_of(pod)) if pod.spec.node_name and not finished(pod) else {}
            if amounts:
                found.append(Running(pod_label(self.loaded, pod), pod.spec.node_name, tuple(amounts.items())))
        return tuple(found)

    def not_told(self, pod: Pod, nodes: Sequence[str]) -> Iterator[str]:
        """Why it is not known what serves the waiting pod: what the releases leave open, and what the manifests do not say."""
        asks = asks_of(pod)
        backed = [a for a in asks if a.resource in self.classes]
        if backed and self.settings.version == "1.34":
            yield f"{_place(backed[0])}: pod {pod.name} asks for {backed[0].resource} (extended resources by DRA in Kubernetes 1.34, alpha)"
        for ask in asks:
            rival = self._better(ask.resource.removeprefix(IMPLICIT)) if ask in backed and ask.resource.startswith(IMPLICIT) else ""
            if rival:
                text = f"whether kube-scheduler {self.settings.version} knows this implicit name depends on the order of events"
                yield f"{_place(ask)}: pod {pod.name} asks for {ask.resource}; {text}, since class {rival} won (kubernetes#141103)"
            unknown = [n for n in nodes if all(o.name != n for o in self.loaded.nodes)]
            if ask not in backed and unknown:
                text = f"node {unknown[0]} has no Node object that says what its device plugins offer"
                yield f"{_place(ask)}: pod {pod.name} asks for {ask.resource}, and {text}"
        for claim in self.loaded.claims:
            owners = {o.name for o in claim.metadata.owner_references if o.controller and o.kind == "Pod"}
            if made_by_scheduler(claim) and claim.namespace == pod.namespace and pod.name in owners:
                yield f"{claim.where('metadata').place}: {claim.label} is left of an earlier attempt to place pod {pod.name}, which waits"

    def _better(self, name: str) -> str:
        """The class that took the extendedResourceName of this one, "" if none did."""
        for resource, losers in self.all.outdone.items():
            if name in losers:
                return self.all.classes[resource]
        return ""

    def hints(self, pods: Sequence[Pod], nodes: Sequence[str]) -> Iterator[str]:
        """What is allowed and yet probably not meant. `pods`: those that wait."""
        asked = {a.resource for pod in self.loaded.pods for a in asks_of(pod)}
        for resource, losers in self.all.outdone.items():
            if resource in asked and self.settings.extended_resources:
                others = ", ".join(losers)
                rule = "the newest by creationTimestamp, of equal ones the first by name"
                yield f"class {self.all.classes[resource]} serves {resource}, not {others} with the same extendedResourceName: {rule} does"
        for pod in pods:
            yield from self._never_bound(pod, nodes)
        for pod in self.loaded.pods:
            if pod.spec.node_name and not finished(pod) and pod.status.extended_resource_claim_status is None:
                served = served_by_dra(self.node(pod.spec.node_name), {a.resource for a in asks_of(pod)}, self.classes)
                if served:
                    text = f"pod {pod.name} is on node {pod.spec.node_name} and has no claim for {', '.join(sorted(served))}"
                    yield f"{text}: only the scheduler makes one, so it has no devices"

    def _never_bound(self, pod: Pod, nodes: Sequence[str]) -> Iterator[str]:
        """A claim beside an extended resource that a class maps and a device plugin serves: PreBind fails on the empty special claim."""
        backed = {a.resource for a in asks_of(pod) if a.resource in self.classes}
        for name in nodes if pod.spec.resource_claims and not pod.spec.node_name else ():
            node = self.node(name)
            if backed and all(offered(node, r) for r in backed):
                text = f"pod {pod.name} has resource claims, and node {name} serves {', '.join(sorted(backed))} by a device plugin"
                defect = f"kube-scheduler {self.settings.version} makes an empty claim there and can never bind the pod"
                yield f"{text} although a class provides it: {defect}"
                return

    def node(self, name: str) -> Node:
        """The node's object, or an empty one."""
        return next((n for n in self.loaded.nodes if n.name == name), None) or Node(metadata=Metadata(name=name))


def _place(ask: Ask) -> str:
    return ask.at.place
