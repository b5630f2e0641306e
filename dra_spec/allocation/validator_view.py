"""What one node can see of the published slices, as the validator reads it.

Written from the rules (KEP-4381 and the behaviour of Kubernetes 1.37), with no code of either allocator: it is here to contradict them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction

import attrs

from dra_spec.allocation.z3_problem import Problem
from dra_spec.resources.core import Node
from dra_spec.resources.meta import NodeSelector
from dra_spec.resources.slices import Device, DeviceTaintRule, ResourceSlice, Taint

_COMPARE: dict[str, Callable[[int, int], bool]] = {"Gt": lambda a, b: a > b, "Lt": lambda a, b: a < b}


@attrs.frozen(eq=False)
class Seen:
    """A device of a slice that targets the node. `here`: the device's own node selection, if it has one, means this node."""

    name: str
    device: Device
    slice: ResourceSlice
    taints: tuple[Taint, ...]
    here: bool
    declares: tuple[str, ...] = ()  # features that the node declares


@attrs.define(eq=False)
class SeenPool:
    """A pool that targets the node. `broken`: why none of its devices can be allocated, "" if they can."""

    label: str
    devices: dict[str, Seen] = attrs.field(factory=dict)
    listed: list[Device] = attrs.field(factory=list)  # of this generation, whatever node they are for
    counters: dict[tuple[str, str], Fraction] = attrs.field(factory=dict)
    broken: str = ""


def pools_seen(problem: Problem, node: Node) -> Mapping[str, SeenPool]:
    """The pools with a slice for this node, by driver/pool."""
    groups = "CompatibilityGroups" in problem.features
    usable = []
    for each in problem.slices:
        if not groups and any(c.compatibility_groups for d in each.spec.devices for c in d.consumes_counters):
            continue
        usable.append(each)
    by_pool: dict[str, list[ResourceSlice]] = {}
    for each in usable:
        by_pool.setdefault("/".join(each.pool_id), []).append(each)
    found = {}
    for label, members in by_pool.items():
        pool = _pool(problem, label, members, node)
        if pool is not None:
            found[label] = pool
    return found


def _pool(problem: Problem, label: str, members: list[ResourceSlice], node: Node) -> SeenPool | None:
    partitions = "PartitionableDevices" in problem.features
    plain = [s for s in members if partitions or not (s.spec.per_device_node_selection or s.spec.shared_counters)]
    mine = [s for s in plain if targets(s, node)]
    if not mine:
        return None
    generation = max(s.spec.pool.generation for s in mine)
    mine = sorted((s for s in mine if s.spec.pool.generation == generation), key=lambda s: s.name)
    complete = mine
    declared = mine[0].spec.pool.resource_slice_count
    pool = SeenPool(label)
    if len(mine) != declared:
        if max(s.spec.pool.generation for s in members) > generation:
            return None
        complete = [s for s in members if s.spec.pool.generation == generation]
        if len(complete) != declared:
            pool.broken = f"pool {label} has {len(complete)} slices of generation {generation}, and says {declared}"
    for each in complete:
        for counter_set in each.spec.shared_counters:
            if any(counter_set.name == known for known, _ in pool.counters):
                pool.broken = pool.broken or f"pool {label} has two counter sets {counter_set.name}"
            for counter, amount in counter_set.counters.items():
                pool.counters[counter_set.name, counter] = amount.value
        pool.listed += each.spec.devices
    for each in mine:
        for device in each.spec.devices:
            name = f"{label}/{device.name}"
            if name in pool.devices:
                pool.broken = pool.broken or f"pool {label} has two devices {device.name}"
            taints = device.taints + tuple(r.spec.taint for r in problem.taint_rules if _rule_means(r, each, device))
            here = not each.spec.per_device_node_selection or _means(device.node_name, device.all_nodes, device.node_selector, node)
            pool.devices[name] = Seen(name, device, each, taints, here, node.status.declared_features)
    if "PartitionableDevices" in problem.features:
        for device in pool.listed:
            for use in device.consumes_counters:
                if any((use.counter_set, counter) not in pool.counters for counter in use.counters):
                    pool.broken = pool.broken or f"pool {label}: device {device.name} draws on a counter that does not exist"
    return pool


def targets(each: ResourceSlice, node: Node) -> bool:
    """Whether the slice, or one of its devices if they select nodes themselves, means the node."""
    spec = each.spec
    if spec.per_device_node_selection:
        return any(_means(d.node_name, d.all_nodes, d.node_selector, node) for d in spec.devices)
    return _means(spec.node_name, spec.all_nodes, spec.node_selector, node)


def _means(name: str, everywhere: bool, selector: NodeSelector | None, node: Node) -> bool:
    if name:
        return name == node.name
    if everywhere:
        return True
    return selector is not None and any(
        (term.match_expressions or term.match_fields)
        and all(_satisfied(r.operator, r.values, node.labels.get(r.key)) for r in term.match_expressions)
        and all(_satisfied(r.operator, r.values, node.name if r.key == "metadata.name" else None) for r in term.match_fields)
        for term in selector.terms
    )


def _satisfied(operator: str, values: tuple[str, ...], value: str | None) -> bool:
    match operator:
        case "In":
            return value in values
        case "NotIn":
            return value not in values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
    try:
        return value is not None and _COMPARE[operator](int(value), int(values[0]))
    except ValueError:
        return False


def _rule_means(rule: DeviceTaintRule, each: ResourceSlice, device: Device) -> bool:
    wanted = rule.spec.device_selector
    if wanted is None:
        return False
    return wanted.driver in ("", each.spec.driver) and wanted.pool in ("", each.spec.pool.name) and wanted.device in ("", device.name)
