"""What a manifest can ask for and this version does not encode. Each such thing is named with its place and makes the verdict undecided."""

from __future__ import annotations

from collections.abc import Iterator

from dra_spec.allocation.extended import IMPLICIT
from dra_spec.resources.core import Node, Pod
from dra_spec.resources.problems import Where
from dra_spec.resources.reader import Loaded
from dra_spec.resources.slices import ResourceSlice


def remark(where: Where, text: str) -> str:
    """A text with its place in the manifests before it."""
    return f"{where.place}: {text}" if where.place else text


def not_encoded(loaded: Loaded) -> list[str]:
    """All that the protocol does not encode, a line each, in order of the files. What the allocator lacks is named by `allocator`."""
    return list(dict.fromkeys(_all(loaded)))


def _all(loaded: Loaded) -> Iterator[str]:
    extended = {c.spec.extended_resource_name for c in loaded.classes if c.spec.extended_resource_name}
    for pod in loaded.pods:
        yield from _pod(pod, extended)
    for node in loaded.nodes:
        yield from _node(node)
    for group in loaded.pod_groups:
        yield remark(group.where("metadata.name"), f"PodGroup {group.name} (pod groups)")
    for rule in loaded.taint_rules:
        if rule.spec.taint.effect == "NoExecute":
            yield remark(rule.where("metadata.name"), f"DeviceTaintRule {rule.name} has the effect NoExecute (eviction of pods)")
    for each in loaded.slices:
        yield from _slice(each)
    for claim in loaded.claims:
        if claim.metadata.deletion_timestamp:
            yield remark(claim.where("metadata.deletionTimestamp"), f"claim {claim.name} is being deleted already (initial state)")


def _pod(pod: Pod, extended: set[str]) -> Iterator[str]:
    for container in pod.spec.all_containers:
        for name in {**container.resources.requests, **container.resources.limits}:
            if name in extended or name.startswith(IMPLICIT):
                yield remark(container.resources.at, f"pod {pod.name} asks for the extended resource {name} (extended resources by DRA)")
    if not pod.spec.resource_claims:
        return
    if pod.metadata.deletion_timestamp:
        yield remark(pod.where("metadata.deletionTimestamp"), f"pod {pod.name} is being deleted already (initial state)")
    if pod.status.resource_claim_statuses:
        yield remark(pod.where("status.resourceClaimStatuses"), f"pod {pod.name} has its generated claims already (initial state)")
    if pod.spec.scheduling_gates:
        yield remark(pod.where("spec.schedulingGates"), f"pod {pod.name} has scheduling gates")
    if pod.spec.scheduling_group is not None:
        yield remark(pod.where("spec.schedulingGroup"), f"pod {pod.name} belongs to a pod group (pod groups)")
    if pod.spec.node_selector:
        yield remark(pod.where("spec.nodeSelector"), f"pod {pod.name} has a node selector")
    affinity = pod.spec.affinity
    if affinity:
        yield remark(pod.where("spec.affinity"), f"pod {pod.name} has affinity rules")


def _node(node: Node) -> Iterator[str]:
    if node.spec.unschedulable:
        yield remark(node.where("spec.unschedulable"), f"node {node.name} is unschedulable")
    if any(taint.effect in ("NoSchedule", "NoExecute") for taint in node.spec.taints):
        yield remark(node.where("spec.taints"), f"node {node.name} has taints")


def _slice(each: ResourceSlice) -> Iterator[str]:
    if each.spec.skip_node_operations:
        yield remark(each.where("spec.skipNodeOperations"), f"slice {each.name} skips node operations")
    for device in each.spec.devices:
        if device.node_allocatable_resources:
            yield remark(device.at, f"device {device.name} stands for node resources (nodeAllocatableResources)")
