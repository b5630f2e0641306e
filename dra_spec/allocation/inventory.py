"""Classes, slices and nodes, and the pools that one node sees.

Source: k8s.io/dynamic-resource-allocation v0.37.2, structured/internal/incubating and experimental, GatherPools and buildPool; taints of
rules: resourceslice/tracker, applyPatches.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from fractions import Fraction
from typing import Any

import attrs

from dra_spec.allocation.errors import UnsupportedFeature
from dra_spec.allocation.gates import DEFAULT_FEATURES
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

    @functools.cached_property
    def view(self) -> SelectorDevice:
        """The device as selectors see it."""
        return SelectorDevice.of(self.driver, self.pool.name, self.device)


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
    invalid: bool = False  # the problem is a contradiction, not a slice that is still to come

    @property
    def label(self) -> str:
        return f"{self.driver}/{self.name}"

    @property
    def has_binding_conditions(self) -> bool:
        return not self.problem and any(d.device.binding_conditions for d in self.devices)


@attrs.frozen(eq=False)
class Inventory:
    """Everything that allocation looks at and never changes. `taint_rules` hold from the start.

    Nodes that only slices name need no Node object: see `node`.
    """

    classes: Mapping[str, DeviceClass]
    slices: tuple[ResourceSlice, ...]
    nodes: Mapping[str, Node]
    taint_rules: tuple[DeviceTaintRule, ...] = ()
    _pools: dict[Any, tuple[Pool, ...]] = attrs.field(factory=dict, init=False, repr=False)
    _index: dict[AbstractSet[str], _Index] = attrs.field(factory=dict, init=False, repr=False)
    _built: _Builder = attrs.field(factory=lambda: _Builder(), init=False, repr=False)

    @classmethod
    def of(
        cls,
        classes: Iterable[DeviceClass],
        slices: Iterable[ResourceSlice],
        nodes: Iterable[Node],
        taint_rules: Iterable[DeviceTaintRule] = (),
    ) -> Inventory:
        """Slices stay in the order given: it decides which slice's count a pool goes by, should they disagree."""
        rules = tuple(taint_rules)
        tainted = tuple(_with_rules(s, rules) for s in slices)
        return cls({c.name: c for c in classes}, tainted, {n.name: n for n in nodes}, rules)

    @classmethod
    def of_loaded(cls, loaded: Loaded) -> Inventory:
        """The inventory in a set of manifests; its DeviceTaintRules hold from the start."""
        return cls.of(loaded.classes, loaded.slices, loaded.nodes, loaded.taint_rules)

    def node(self, name: str) -> Node:
        """The node object, or one without labels for a name that has none."""
        return self.nodes.get(name) or Node(metadata=Metadata(name=name))

    def pools(
        self, node: Node, features: AbstractSet[str] = DEFAULT_FEATURES, *, undecided: bool = True, stable: bool = False
    ) -> tuple[Pool, ...]:
        """The node's pools in search order: by driver and name, those with binding conditions last.

        `stable`: as the oldest copy of the code sees them. It knows no binding conditions, leaves slices in the order given, and takes
        counters for relevant on every node (it tries pools in any order).
        Raises FatalAllocation for a malformed node selector, and with `undecided` UnsupportedFeature for what these features do not have.
        """
        key = (node.name, tuple(sorted(node.labels.items())), frozenset(features), undecided, stable)
        if key not in self._pools:
            self._pools[key] = tuple(_gather(self._indexed(frozenset(features), undecided), node, features, stable, self._built))
        return self._pools[key]

    def _indexed(self, features: frozenset[str], undecided: bool) -> _Index:
        key = features | {"undecided"} if undecided else features
        if key not in self._index:
            self._index[key] = _Index.of(self.slices, features, undecided)
        return self._index[key]


@attrs.frozen(eq=False)
class _Index:
    """The slices that these features let through, by node and by pool, in order."""

    on_node: dict[str, list[ResourceSlice]]
    elsewhere: list[ResourceSlice]  # not bound to a node by name
    in_pool: dict[tuple[str, str], list[ResourceSlice]]  # all there are
    all: list[ResourceSlice]

    @classmethod
    def of(cls, slices: Iterable[ResourceSlice], features: AbstractSet[str], undecided: bool) -> _Index:
        index = cls({}, [], {}, [])
        for slice_ in slices:
            index.in_pool.setdefault(slice_.pool_id, []).append(slice_)
            grouped = _with_groups(slice_)
            if grouped and "CompatibilityGroups" not in features:
                if undecided:
                    raise UnsupportedFeature("compatibility groups of devices", grouped.at)
                continue  # without it the pool is incomplete, which is upstream's intention
            if "PartitionableDevices" not in features and (slice_.spec.per_device_node_selection or slice_.spec.shared_counters):
                continue
            index.all.append(slice_)
            if slice_.spec.node_name:
                index.on_node.setdefault(slice_.spec.node_name, []).append(slice_)
            else:
                index.elsewhere.append(slice_)
        return index


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


def _gather(index: _Index, node: Node, features: AbstractSet[str], stable: bool, builder: _Builder) -> list[Pool]:
    groups: dict[tuple[str, str], list[ResourceSlice]] = {}
    for slice_ in index.all if stable else index.on_node.get(node.name, []) + index.elsewhere:
        if not (stable and slice_.spec.shared_counters) and not _relevant(slice_, node):
            continue
        group = groups.setdefault(slice_.pool_id, [])
        generation = slice_.spec.pool.generation
        if group and generation > group[0].spec.pool.generation:
            group.clear()
        if not group or generation == group[0].spec.pool.generation:
            group.append(slice_)
    pools = []
    for (driver, name), group in sorted(groups.items()):
        newest, expected = group[0].spec.pool.generation, group[0].spec.pool.resource_slice_count
        everything = group
        if len(group) != expected:
            # perhaps the rest is meant for other nodes
            same_pool = index.in_pool.get((driver, name), [])
            if any(s.spec.pool.generation > newest for s in same_pool):
                continue  # obsolete
            groups_count = "CompatibilityGroups" in features
            everything = [s for s in same_pool if s.spec.pool.generation == newest and (groups_count or not _with_groups(s))]
            if len(everything) != expected:
                text = f"pool {driver}/{name} is incomplete: it has {len(everything)} of {expected} slices of generation {newest}"
                pools.append(Pool(driver, name, problem=text))
                continue
        pools.append(builder.pool(group if stable else sorted(group, key=lambda s: s.name), everything, features))
    if stable:
        return pools
    return [p for p in pools if not p.has_binding_conditions] + [p for p in pools if p.has_binding_conditions]


def _with_groups(slice_: ResourceSlice) -> Device | None:
    """The first device with compatibility groups."""
    return next((d for d in slice_.spec.devices if any(c.compatibility_groups for c in d.consumes_counters)), None)


def _relevant(slice_: ResourceSlice, node: Node) -> bool:
    spec = slice_.spec
    if spec.node_name or spec.all_nodes or spec.node_selector is not None:
        return node_matches(node, spec)
    return spec.per_device_node_selection and any(node_matches(node, d) for d in spec.devices)


@attrs.frozen(eq=False)
class _Builder:
    """Builds pools. What several nodes see alike is built once; the slices live as long as the inventory, so their ids tell them apart."""

    known: dict[tuple[tuple[int, ...], tuple[int, ...], bool], Pool] = attrs.field(factory=dict)

    def pool(self, group: Sequence[ResourceSlice], everything: Sequence[ResourceSlice], features: AbstractSet[str]) -> Pool:
        partitions = "PartitionableDevices" in features
        key = (tuple(map(id, group)), tuple(map(id, everything)), partitions)
        if key not in self.known:
            self.known[key] = _build(*group[0].pool_id, group, everything, partitions)
        return self.known[key]


def _build(driver: str, name: str, group: Sequence[ResourceSlice], everything: Sequence[ResourceSlice], partitions: bool) -> Pool:
    """A complete pool. A slice with counters gives no devices, unless the feature is off (`partitions`)."""
    pool = Pool(driver, name)
    here = {s.name for s in group}
    found = [*group, *(s for s in everything if s.name not in here)]
    for slice_ in found:
        if partitions and slice_.spec.shared_counters:
            continue
        if slice_.name not in here:
            pool.others += slice_.spec.devices
            continue
        for device in slice_.spec.devices:
            pool.devices.append(PoolDevice(f"{driver}/{name}/{device.name}", driver, pool, device, slice_))
    problems = list(_twice("devices are", (d.device.name for d in pool.devices)))
    if partitions:
        sets = [s for slice_ in found for s in slice_.spec.shared_counters]
        problems += _twice("counter sets are", (s.name for s in sets))
        pool.counters.update({(s.name, counter): q.value for s in sets for counter, q in s.counters.items()})
        known = {s.name for s in sets}
        for device in [d.device for d in pool.devices] + pool.others:
            problems += [
                f"device {device.name} uses the unknown counter {use.counter_set}/{counter or '(none)'}"
                for use in device.consumes_counters
                for counter in use.counters or [""]
                if (use.counter_set, counter) not in pool.counters and (counter or use.counter_set not in known)
            ]
    if problems:
        pool.problem, pool.invalid = f"pool {pool.label} is invalid: {problems[0]}", True
    return pool


def _twice(what: str, names: Iterable[str]) -> Iterator[str]:
    """A text for the first name that occurs twice."""
    seen: set[str] = set()
    for name in names:
        if name in seen:
            yield f"two {what} called {name}"
            return
        seen.add(name)


def consumed(device: Device) -> Counters:
    """What the device draws from its pool's counters while it is allocated."""
    total: Counters = {}
    for use in device.consumes_counters:
        for name, q in use.counters.items():
            total[use.counter_set, name] = total.get((use.counter_set, name), Fraction(0)) + q.value
    return total
