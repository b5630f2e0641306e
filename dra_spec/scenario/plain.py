"""Models of manifests that nobody prepared: one of the control plane, and one of the node for each node that gets a pod.

Scheduler, claim controller and API server in full, and kubelet and plugin in full, are too much for one search (the product of both), and
no promise needs them together; so each promise is checked in the model that has its writers. More than two pods are too much for the
control plane with its lagging caches: then every two of them are explored together, which the report says.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from pathlib import Path

import attrs

from dra_spec.allocation.errors import DoesNotFit, FatalAllocation
from dra_spec.properties.invariant import find
from dra_spec.protocol.instance import PodSpec
from dra_spec.scenario import objects
from dra_spec.scenario.allocator import allocator
from dra_spec.scenario.build import make
from dra_spec.scenario.cluster import Cluster, cluster
from dra_spec.scenario.encoded import remark
from dra_spec.scenario.modelfile import LimitSpec, ModelFile, Overrides
from dra_spec.scenario.scenario import Scenario
from dra_spec.scenario.strict import InputError

CONTROL_PLANE = ("apiserver", "scheduler", "claim-controller", "workload")
NODE = ("kubelet", "plugin", "workload")
LIMITS = LimitSpec(max_states=3_000_000, time_limit=60.0, memory=4_000)
LAG = 1
TOGETHER = 2  # pods that are explored together without being asked for
MOST_GROUPS = 10


def from_manifests(paths: Sequence[Path], overrides: Overrides) -> list[Scenario]:
    """The scenarios of a set of files and folders. Raises `InputError`, `ManifestError`, `InvariantError`."""
    name = _name(paths)
    base = ModelFile(
        name, "made of plain manifests", manifests=tuple(paths), environment={"finish-pod": -1}, bounds={"lag": LAG}, limits=LIMITS
    )
    file = overrides.apply(base)
    read = objects.read(file.manifests, replicas=file.bound("replicas") or 1)
    found = cluster(read.loaded, pods=file.bound("pods"), schedulers=file.bounds.get("schedulers"))
    found = attrs.evolve(found, notes=[*read.clashes, *found.notes])
    conditions = any(device.binding_conditions for device in found.devices)
    control = attrs.evolve(
        file,
        writers=(*CONTROL_PLANE, "driver-controller") if conditions else CONTROL_PLANE,
        features={"DRADeviceBindingConditions": conditions},
    )
    made = []
    for label, part in _groups(found, together="pods" in overrides.bounds):
        fitting = _fitting(overrides, control)
        if fitting is None:
            break
        made.append(make(control, fitting, part, f"{name}: control plane{label}"))
        if made[0].not_encoded:
            return [attrs.evolve(made[0], name=name, expected=None, expectations={})]
    for node, part in _by_node(found):
        part = attrs.evolve(part, notes=[*part.notes, *_admin(part)])
        of_node = attrs.evolve(file, writers=NODE)
        fitting = _fitting(overrides, of_node)
        if fitting is not None:
            made.append(make(of_node, fitting, part, f"{name}: node {node}"))
    if not made:
        raise InputError(f"no model made of plain manifests has all writers that {', '.join(overrides.invariants)} needs")
    return [attrs.evolve(scenario, expected=None, expectations={}) for scenario in made if scenario.invariants]


def _name(paths: Sequence[Path]) -> str:
    names = [path.stem if path.is_file() else path.resolve().name for path in paths]
    return "+".join(names) if len(names) <= 2 else f"{names[0]}+{len(names) - 1} more"


def _fitting(overrides: Overrides, file: ModelFile) -> Overrides | None:
    """The overrides with those of the promises asked for that the writers of a model can be judged by; None if there are none."""
    if not overrides.invariants:
        return overrides
    names = tuple(name for name in overrides.invariants if find(name).needs <= set(file.writers))
    return attrs.evolve(overrides, invariants=names) if names else None


def _admin(part: Cluster) -> list[str]:
    """Requests with admin access: what is prepared on a node is seen without the devices that are shared in this way."""
    found = []
    for claim in part.claims:
        for request in part.sources[claim.name].requests:
            if any(leaf.admin_access for _, leaf in request.leaves):
                found.append(remark(request.at, f"claim {claim.name} asks for admin access (on the node's side)"))
    return found


def _groups(found: Cluster, together: bool) -> list[tuple[str, Cluster]]:
    """The parts of the cluster that are explored together, with a label each: all pods if they are few, or if the command line says how
    many; else every two of them, two that are like two others once."""
    if together or len(found.pods) <= TOGETHER:
        return [("", found)]
    seen: set[tuple[str, ...]] = set()
    groups = []
    for one, other in itertools.combinations(found.pods, 2):
        alike = tuple(sorted([str(_alike(one)), str(_alike(other))]))
        if alike in seen:
            continue
        seen.add(alike)
        groups.append((f", {one.name} and {other.name}", _only(found, [one.name, other.name], found.nodes)))
    warning = f"of the {len(found.pods)} pods every two are explored together; --bound pods={len(found.pods)} takes all"
    head, *rest = groups[:MOST_GROUPS]
    left = (
        [f"{len(groups) - MOST_GROUPS} more pairs of pods (too many for a model made of plain manifests)"]
        if len(groups) > MOST_GROUPS
        else []
    )
    return [(head[0], attrs.evolve(head[1], warnings=[*found.warnings, warning], notes=[*head[1].notes, *left])), *rest]


def _alike(pod: PodSpec) -> object:
    """What of a pod decides how it behaves: named claims by name, generated ones by template."""
    claims = tuple((ref.template, None) if ref.template else (None, ref.claim) for ref in pod.claims)
    return claims, pod.node, pod.scheduler, pod.present


def _by_node(found: Cluster) -> list[tuple[str, Cluster]]:
    """The cluster cut into one for each node that gets a pod when the pods are placed in order, first fit."""
    allocate, _, _ = allocator(found)
    placed: dict[str, list[str]] = {}
    where: dict[str, frozenset[str] | None] = {}
    used: frozenset[str] = frozenset()
    for pod in found.pods:
        claims = tuple(dict.fromkeys(ref.claim for ref in pod.claims))
        new = tuple(name for name in claims if name not in where)
        for node in found.nodes if pod.node is None else [pod.node]:
            if any(where.get(name) is not None and node not in (where[name] or ()) for name in claims):
                continue
            try:
                allocations = allocate(new, node, used) if new else ()
            except (DoesNotFit, FatalAllocation):
                continue
            where |= {name: allocation.nodes for name, allocation in zip(new, allocations, strict=True)}
            used |= frozenset(device for allocation in allocations for device in allocation.devices)
            placed.setdefault(node, []).append(pod.name)
            break
    return [(node, _only(found, names, [node])) for node, names in sorted(placed.items())]


def _only(found: Cluster, names: Sequence[str], nodes: Sequence[str]) -> Cluster:
    """The part of a cluster that these pods and nodes are."""
    pods = [pod for pod in found.pods if pod.name in names]
    used = {ref.claim for pod in pods for ref in pod.claims}
    return attrs.evolve(
        found,
        pods=pods,
        claims=[claim for claim in found.claims if claim.name in used],
        nodes=list(nodes),
        devices=[device for device in found.devices if device.node is None or device.node in nodes],
        schedulers=tuple(dict.fromkeys(pod.scheduler or found.schedulers[0] for pod in pods)),
        warnings=(),
    )
