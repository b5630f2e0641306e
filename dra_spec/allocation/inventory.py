"""Classes, slices and nodes, and the pools that one node sees.

Source: k8s.io/dynamic-resource-allocation v0.37.2, structured/internal/incubating, GatherPools and buildPool; taints of rules:
resourceslice/tracker, applyPatches.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction

import attrs

from dra_spec.allocation.errors import UnsupportedFeature
from dra_spec.allocation.nodes import node_matches
from dra_spec.resources.core import Node
from dra_spec.resources.meta import Metadata
from dra_spec.resources.reader import Loaded
from dra_spec.resources.slices import Device, DeviceClass, DeviceTaintRule, ResourceSlice
from dra_spec.selectors import SelectorDevice

Counters = dict[tuple[str, str], Fraction]  # (counter set, counter) -> amount


@attrs.frozen(eq=False)
class PoolDevice:
    """A device that the node can use, at its place in the search order."""

    name: str  # driver/pool/device
    driver: str
    pool: Pool
    device: Device
    slice: ResourceSlice
    view: SelectorDevice


@attrs.define(eq=False)
class Pool:
    """A pool as one node sees it. `devices` are those of slices meant for the node; `others`: further devices of the same
    generation, which still draw on the pool's counters. `problem`: "" or why it gives no devices."""

    driver: str
    name: str
    devices: list[PoolDevice] = attrs.field(factory=list)
    others: list[Device] = attrs.field(factory=list)
    counters: Counters = attrs.field(factory=dict)
    problem: str = ""

    @property
    def label(self) -> str:
        return f"{self.driver}/{self.name}"

    @property
    def has_binding_conditions(self) -> bool:
        return any(d.device.binding_conditions for d in self.devices)


@attrs.frozen(eq=False)
class Inventory:
    """Everything that allocation looks at and never changes. `taint_rules` hold from the start.

    Nodes that only slices name need no Node object: see `node`.
    """

    classes: Mapping[str, DeviceClass]
    slices: tuple[ResourceSlice, ...]
    nodes: Mapping[str, Node]
    taint_rules: tuple[DeviceTaintRule, ...] = ()
    _pools: dict[str, tuple[Pool, ...]] = attrs.field(factory=dict, init=False, repr=False)

    @classmethod
    def of(
        cls,
        classes: Iterable[DeviceClass],
        slices: Iterable[ResourceSlice],
        nodes: Iterable[Node],
        taint_rules: Iterable[DeviceTaintRule] = (),
    ) -> Inventory:
        rules = tuple(taint_rules)
        tainted = tuple(_with_rules(s, rules) for s in sorted(slices, key=lambda s: s.name))
        return cls({c.name: c for c in classes}, tainted, {n.name: n for n in nodes}, rules)

    @classmethod
    def of_loaded(cls, loaded: Loaded) -> Inventory:
        """The inventory in a set of manifests; its DeviceTaintRules hold from the start."""
        return cls.of(loaded.classes, loaded.slices, loaded.nodes, loaded.taint_rules)

    def node(self, name: str) -> Node:
        """The node object, or one without labels for a name that has none."""
        return self.nodes.get(name) or Node(metadata=Metadata(name=name))

    def pools(self, node: Node) -> tuple[Pool, ...]:
        """The node's pools in search order: by driver and name, those with binding conditions last. Raises UnsupportedFeature."""
        if node.name not in self._pools:
            self._pools[node.name] = tuple(_gather(self.slices, node))
        return self._pools[node.name]


def _with_rules(slice_: ResourceSlice, rules: Sequence[DeviceTaintRule]) -> ResourceSlice:
    if not rules:
        return slice_
    devices = []
    for device in slice_.spec.devices:
        taints = tuple(r.spec.taint for r in rules if _rule_selects(r, slice_, device))
        devices.append(attrs.evolve(device, taints=device.taints + taints) if taints else device)
    return attrs.evolve(slice_, spec=attrs.evolve(slice_.spec, devices=tuple(devices)))


def _rule_selects(rule: DeviceTaintRule, slice_: ResourceSlice, device: Device) -> bool:
    selector = rule.spec.device_selector
    if selector is None:  # no selector selects nothing, an empty one everything
        return False
    pairs = ((selector.driver, slice_.spec.driver), (selector.pool, slice_.spec.pool.name), (selector.device, device.name))
    return all(not wanted or wanted == found for wanted, found in pairs)


def _gather(slices: Sequence[ResourceSlice], node: Node) -> list[Pool]:
    groups: dict[tuple[str, str], list[ResourceSlice]] = {}
    for slice_ in slices:
        if _relevant(slice_, node):
            groups.setdefault(slice_.pool_id, []).append(slice_)
    pools = []
    for (driver, name), group in sorted(groups.items()):
        newest = max(s.spec.pool.generation for s in group)
        group = [s for s in group if s.spec.pool.generation == newest]
        everything = group
        problem = ""
        if len(group) != group[0].spec.pool.resource_slice_count:
            # perhaps the rest is meant for other nodes
            same_pool = [s for s in slices if s.pool_id == (driver, name)]
            if any(s.spec.pool.generation > newest for s in same_pool):
                continue  # obsolete
            everything = [s for s in same_pool if s.spec.pool.generation == newest]
            expected = group[0].spec.pool.resource_slice_count
            if len(everything) != expected:
                problem = f"pool {driver}/{name} is incomplete: it has {len(everything)} of {expected} slices of generation {newest}"
        pools.append(_build(driver, name, group, everything, problem))
    return [p for p in pools if not p.has_binding_conditions] + [p for p in pools if p.has_binding_conditions]


def _relevant(slice_: ResourceSlice, node: Node) -> bool:
    spec = slice_.spec
    if spec.per_device_node_selection:
        return any(node_matches(node, d) for d in spec.devices)
    return node_matches(node, spec)


def _build(driver: str, name: str, group: Sequence[ResourceSlice], everything: Sequence[ResourceSlice], problem: str) -> Pool:
    pool = Pool(driver, name, problem=problem)
    names: set[str] = set()
    sets: set[str] = set()
    for slice_ in everything:
        for counter_set in slice_.spec.shared_counters:
            if counter_set.name in sets:
                pool.problem = pool.problem or f"pool {pool.label} is invalid: two counter sets are called {counter_set.name}"
            sets.add(counter_set.name)
            pool.counters.update({(counter_set.name, c): q.value for c, q in counter_set.counters.items()})
        for device in slice_.spec.devices:
            if any(c.compatibility_groups for c in device.consumes_counters):
                raise UnsupportedFeature("compatibility groups of devices", device.at)
            if slice_ not in group:
                pool.others.append(device)
                continue
            if device.name in names:
                pool.problem = pool.problem or f"pool {pool.label} is invalid: two devices are called {device.name}"
            names.add(device.name)
            view = SelectorDevice.of(driver, name, device)
            pool.devices.append(PoolDevice(view.name, driver, pool, device, slice_, view))
    for device in [d.device for d in pool.devices] + pool.others:
        for counter in consumed(device):
            if counter not in pool.counters:
                pool.problem = (
                    pool.problem or f"pool {pool.label} is invalid: device {device.name} uses the unknown counter {'/'.join(counter)}"
                )
    return pool


def consumed(device: Device) -> Counters:
    """What the device draws from its pool's counters while it is allocated."""
    return {(use.counter_set, name): q.value for use in device.consumes_counters for name, q in use.counters.items()}
