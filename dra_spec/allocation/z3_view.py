"""The devices that can be allocated on a node, and why others cannot, as the encoding reads the slices.

Source: k8s.io/dynamic-resource-allocation v0.37.2, GatherPools (pools of a node, generations, completeness), resourceslice/tracker
(taints of rules). Written apart from the reference allocator, so that the two can disagree.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence
from fractions import Fraction

import attrs

from dra_spec.allocation.z3_problem import Problem
from dra_spec.resources.core import Node
from dra_spec.resources.meta import NodeSelector, NodeSelectorTerm, Requirement
from dra_spec.resources.slices import Device, DeviceTaintRule, ResourceSlice, SliceSpec, Taint
from dra_spec.selectors import SelectorDevice

CounterName = tuple[str, str]  # counter set, counter


@attrs.frozen(eq=False)
class Candidate:
    """A device of a slice. `order`: its place in upstream's search order on this node."""

    name: str  # driver/pool/device
    pool: str  # driver/pool
    device: Device
    slice: ResourceSlice
    taints: tuple[Taint, ...]
    order: tuple[object, ...] = ()

    @property
    def driver(self) -> str:
        return self.slice.spec.driver

    @property
    def view(self) -> SelectorDevice:
        return SelectorDevice.of(self.driver, self.slice.spec.pool.name, self.device)


@attrs.define(eq=False)
class PoolFacts:
    """A pool as a node sees it: its counters, all devices that draw on them, and why it gives no devices ("" if it does)."""

    label: str
    counters: dict[CounterName, Fraction] = attrs.field(factory=dict)
    listed: list[Device] = attrs.field(factory=list)
    problem: str = ""


@attrs.frozen(eq=False)
class NodeView:
    """`candidates` in search order, also those of broken pools; `away`: devices for other nodes, each with the reason; `outdated`: those
    of them that are for this node, by name, in a generation that is not used any more."""

    node: Node
    candidates: tuple[Candidate, ...]
    pools: dict[str, PoolFacts]
    away: tuple[tuple[Candidate, str], ...]
    outdated: frozenset[str] = frozenset()

    def broken(self) -> list[PoolFacts]:
        return [p for p in self.pools.values() if p.problem]


def view(problem: Problem, node: Node) -> NodeView:
    """What the node sees."""
    slices = [s for s in sorted(problem.slices, key=lambda s: s.name) if not _hidden(problem, s.spec)]
    candidates: list[Candidate] = []
    away: list[tuple[Candidate, str]] = []
    outdated: set[str] = set()
    pools: dict[str, PoolFacts] = {}
    for (driver, name), group in itertools.groupby(sorted(slices, key=lambda s: s.pool_id), key=lambda s: s.pool_id):
        members = list(group)
        label = f"{driver}/{name}"
        relevant = [s for s in members if _relevant(problem, s.spec, node)]
        newest = max((s.spec.pool.generation for s in relevant), default=-1)
        current = [s for s in relevant if s.spec.pool.generation == newest]
        facts, obsolete = _facts(problem, label, members, current)
        if current and not obsolete:
            pools[label] = facts
        late = any(d.binding_conditions for s in current for d in s.spec.devices)
        for each in members:
            for index, device in enumerate(each.spec.devices):
                found = Candidate(
                    f"{label}/{device.name}",
                    label,
                    device,
                    each,
                    device.taints + tuple(r.spec.taint for r in problem.taint_rules if _selected(r, each, device)),
                    (late, driver, name, each.name, index),
                )
                reason = _elsewhere(each, device, node)
                if reason:
                    away.append((found, reason))
                elif each in current and not obsolete:
                    candidates.append(found)
                else:
                    away.append((found, _outdated(each, facts, obsolete)))
                    outdated.add(found.name)
    return NodeView(node, tuple(sorted(candidates, key=lambda c: c.order)), pools, tuple(away), frozenset(outdated))


def _hidden(problem: Problem, spec: SliceSpec) -> bool:
    """While the feature is off, slices with compatibility groups do not exist, so that their pool is incomplete."""
    groups = any(c.compatibility_groups for d in spec.devices for c in d.consumes_counters)
    return groups and "CompatibilityGroups" not in problem.features


def _facts(problem: Problem, label: str, members: Sequence[ResourceSlice], current: Sequence[ResourceSlice]) -> tuple[PoolFacts, bool]:
    """The pool, and whether it is obsolete: the node's slices are few, and newer ones are elsewhere."""
    facts = PoolFacts(label)
    if not current:
        return facts, False
    generation, wanted = current[0].spec.pool.generation, current[0].spec.pool.resource_slice_count
    whole: Sequence[ResourceSlice] = current
    if len(current) != wanted:
        if any(s.spec.pool.generation > generation for s in members):
            return facts, True
        whole = [s for s in members if s.spec.pool.generation == generation]
        if len(whole) != wanted:
            facts.problem = f"pool {label} is incomplete: it has {len(whole)} of {wanted} slices of generation {generation}"
    facts.listed = [d for s in whole for d in s.spec.devices]
    sets = [c for s in whole for c in s.spec.shared_counters]
    facts.counters = {(c.name, counter): q.value for c in sets for counter, q in c.counters.items()}
    facts.problem = facts.problem or next(_invalid(problem, facts, [c.name for c in sets], current), "")
    return facts, False


def _invalid(problem: Problem, facts: PoolFacts, sets: Sequence[str], current: Sequence[ResourceSlice]) -> Iterator[str]:
    names = [d.name for s in current for d in s.spec.devices]
    for twice in sorted({n for n in names if names.count(n) > 1} if len(set(names)) < len(names) else ()):
        yield f"pool {facts.label} is invalid: two devices are called {twice}"
    for twice in sorted({n for n in sets if sets.count(n) > 1}):
        yield f"pool {facts.label} is invalid: two counter sets are called {twice}"
    if "PartitionableDevices" in problem.features:
        for device in facts.listed:
            for use in device.consumes_counters:
                if not use.counters and use.counter_set not in sets:
                    yield f"pool {facts.label} is invalid: device {device.name} uses the unknown counter set {use.counter_set}"
            for counter in draws(device):
                if counter not in facts.counters:
                    yield f"pool {facts.label} is invalid: device {device.name} uses the unknown counter {'/'.join(counter)}"


def _elsewhere(each: ResourceSlice, device: Device, node: Node) -> str:
    """Why the device is not for this node, "" if it is."""
    spec = each.spec
    where: SliceSpec | Device = device if spec.per_device_node_selection else spec
    if not matches(where, node):
        if where.node_name:
            return f"devices are on node {where.node_name}, not on {node.name}"
        return f"node {node.name} is not what the devices' node selector asks for: {_shown(where.node_selector)}"
    return ""


def _outdated(each: ResourceSlice, facts: PoolFacts, obsolete: bool) -> str:
    """Why a device of the node is not to be had: its generation is not the pool's newest."""
    generation = each.spec.pool.generation
    if obsolete:
        return f"pool {facts.label} has a generation newer than {generation} on other nodes"
    return f"generation {generation} of pool {facts.label} is outdated{facts.problem and f', and {facts.problem}'}"


def _shown(selector: NodeSelector | None) -> str:
    terms = [
        " and ".join(f"{r.key} {r.operator} {', '.join(r.values)}".strip() for r in t.match_expressions + t.match_fields)
        for t in (selector.terms if selector else ())
    ]
    return " or ".join(terms) or "none"


def draws(device: Device) -> dict[CounterName, Fraction]:
    """What the device takes from its pool's counters while it is allocated."""
    return {(use.counter_set, counter): q.value for use in device.consumes_counters for counter, q in use.counters.items()}


def _selected(rule: DeviceTaintRule, each: ResourceSlice, device: Device) -> bool:
    wanted = rule.spec.device_selector
    if wanted is None:
        return False
    pairs = [(wanted.driver, each.spec.driver), (wanted.pool, each.spec.pool.name), (wanted.device, device.name)]
    return all(left == right for left, right in pairs if left)


def _relevant(problem: Problem, spec: SliceSpec, node: Node) -> bool:
    if "PartitionableDevices" not in problem.features and (spec.per_device_node_selection or spec.shared_counters):
        return False  # it still counts as a slice of its pool
    return any(matches(d, node) for d in spec.devices) if spec.per_device_node_selection else matches(spec, node)


def matches(where: SliceSpec | Device, node: Node) -> bool:
    """Whether the node selection of a slice or a device means the node."""
    if where.node_name or where.all_nodes:
        return where.node_name in ("", node.name)
    return where.node_selector is not None and any(_term(t, node) for t in where.node_selector.terms)


def _term(term: NodeSelectorTerm, node: Node) -> bool:
    checks = [(r, node.labels.get(r.key)) for r in term.match_expressions]
    checks += [(r, {"metadata.name": node.name}.get(r.key)) for r in term.match_fields]
    return bool(checks) and all(_holds(r, v) for r, v in checks)


def _holds(requirement: Requirement, value: str | None) -> bool:
    values = requirement.values
    if requirement.operator in ("Gt", "Lt"):
        if value is None or not re.fullmatch(r"[-+]?[0-9]+", value) or not values or not re.fullmatch(r"[-+]?[0-9]+", values[0]):
            return False
        difference = int(value) - int(values[0])
        return difference > 0 if requirement.operator == "Gt" else difference < 0
    positive = value is not None if requirement.operator in ("Exists", "DoesNotExist") else value is not None and value in values
    return positive == (requirement.operator in ("Exists", "In"))
