"""Models of manifests that nobody prepared: one of the control plane, and one of the node for each node that gets a pod.

Scheduler, claim controller and API server in full, and kubelet and plugin in full, are too much for one search (the product of both), and
no promise needs them together; so each promise is checked in the model that has its writers.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import attrs

from dra_spec.allocation.errors import DoesNotFit, FatalAllocation
from dra_spec.scenario import objects
from dra_spec.scenario.allocator import allocator
from dra_spec.scenario.build import make
from dra_spec.scenario.cluster import Cluster, cluster
from dra_spec.scenario.modelfile import LimitSpec, ModelFile, Overrides
from dra_spec.scenario.scenario import Scenario

CONTROL_PLANE = ("apiserver", "scheduler", "claim-controller", "workload")
NODE = ("kubelet", "plugin", "workload")
LIMITS = LimitSpec(max_states=3_000_000, time_limit=60.0, memory=4_000)
LAG = 1


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
    made = [make(control, overrides, found, f"{name}: control plane")]
    if made[0].not_encoded:
        return [attrs.evolve(made[0], name=name, expected=None, expectations={})]
    for node, part in _by_node(found):
        made.append(make(attrs.evolve(file, writers=NODE), overrides, part, f"{name}: node {node}"))
    return [attrs.evolve(scenario, expected=None, expectations={}) for scenario in made if scenario.invariants]


def _name(paths: Sequence[Path]) -> str:
    names = [path.stem if path.is_file() else path.resolve().name for path in paths]
    return "+".join(names) if len(names) <= 2 else f"{names[0]}+{len(names) - 1} more"


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
    return [(node, _only(found, node, names)) for node, names in sorted(placed.items())]


def _only(found: Cluster, node: str, names: Sequence[str]) -> Cluster:
    pods = [pod for pod in found.pods if pod.name in names]
    used = {ref.claim for pod in pods for ref in pod.claims}
    return attrs.evolve(
        found,
        pods=pods,
        claims=[claim for claim in found.claims if claim.name in used],
        nodes=[node],
        devices=[device for device in found.devices if device.node in (None, node)],
        schedulers=("scheduler",),
        warnings=(),
    )
