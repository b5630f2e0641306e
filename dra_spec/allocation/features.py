"""Features that manifests use and this tool does not encode yet, each with the place: what depends on one ends undecided.

Nothing here is guessed away: a feature is named wherever leaving it out could change an allocation or a pod's life.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

import attrs

from dra_spec.allocation.errors import UnsupportedFeature
from dra_spec.allocation.extended import IMPLICIT
from dra_spec.allocation.settings import FOR_PROTOCOL, Settings
from dra_spec.resources.claims import ClaimSpec, ResourceClaim, ResourceClaimTemplate
from dra_spec.resources.core import Node, Pod, PodGroup
from dra_spec.resources.meta import CelSelector
from dra_spec.resources.problems import NOWHERE, Where
from dra_spec.resources.slices import ApiObject, Device, DeviceClass, DeviceTaintRule, ResourceSlice
from dra_spec.selectors import SelectorDevice, SelectorSyntaxError, compile_selector


@attrs.frozen(order=False)
class Feature:
    """A feature that is used and not encoded. `where`: the first place of an object that uses it."""

    name: str
    where: Where = NOWHERE

    def __str__(self) -> str:
        return f"{self.where}: {self.name}" if str(self.where) else self.name


def features_used(objects: Iterable[ApiObject], settings: Settings = FOR_PROTOCOL) -> tuple[Feature, ...]:
    """All features in use that are not encoded, once per name and object.

    `settings`: of the allocator that will be asked. What it decides is not named; by default that is what a model of the protocol can use,
    so shared devices are named, and fields whose gate is off. Raises SelectorSyntaxError for a selector that does not compile.
    """
    objects = tuple(objects)
    found: dict[tuple[str, int], Feature] = {}
    lists = frozenset[str]() if settings.has("ListTypeAttributes") else _list_attributes(objects)
    extended = {o.spec.extended_resource_name for o in objects if isinstance(o, DeviceClass) and o.spec.extended_resource_name}
    for i, o in enumerate(objects):
        for feature in _of(o, lists, extended, settings):
            found.setdefault((feature.name, i), feature)
    return tuple(found.values())


def check_selectors(objects: Iterable[ApiObject]) -> tuple[SelectorSyntaxError, ...]:
    """The selectors that do not compile, as errors with a place."""
    errors = []
    for selector in _selectors(objects):
        try:
            compile_selector(selector.expression, selector.at)
        except SelectorSyntaxError as error:
            errors.append(error)
        except UnsupportedFeature:
            pass
    return tuple(errors)


def _of(o: ApiObject, lists: frozenset[str], extended: set[str], settings: Settings) -> Iterator[Feature]:
    if isinstance(o, ResourceSlice):
        yield from _slice(o, settings)
    elif isinstance(o, (ResourceClaim, ResourceClaimTemplate)):
        yield from _claim(o.spec if isinstance(o, ResourceClaim) else o.spec.spec, lists, settings)
        if isinstance(o, ResourceClaim) and (o.status.allocation or o.status.reserved_for):
            yield Feature("claims that are allocated or reserved from the start", o.where("status"))
    elif isinstance(o, DeviceClass):
        yield from _cel(o.spec.selectors, lists, settings)
    elif isinstance(o, Pod):
        yield from _pod(o, extended)
    elif isinstance(o, DeviceTaintRule):
        if o.spec.taint.effect == "NoExecute":
            yield Feature("eviction by device taint rules", o.where("spec.taint"))
    elif isinstance(o, PodGroup):
        yield Feature("pod groups", o.where("spec.resourceClaims"))
    elif isinstance(o, Node) and (o.spec.unschedulable or any(t.effect in ("NoSchedule", "NoExecute") for t in o.spec.taints)):
        yield Feature("node taints", o.where("spec"))


def _slice(o: ResourceSlice, settings: Settings) -> Iterator[Feature]:
    if o.spec.skip_node_operations and not settings.has("OptionalNodeOperations"):
        yield Feature("skipNodeOperations (optional node operations)", o.where("spec.skipNodeOperations"))
    for device in o.spec.devices:
        yield from _device(o, device, settings)


def _device(o: ResourceSlice, device: Device, settings: Settings) -> Iterator[Feature]:
    if device.allow_multiple_allocations and (settings.undecided or not settings.shares):
        yield Feature("devices with allowMultipleAllocations (consumable capacity)", device.at)
    if any(c.compatibility_groups for c in device.consumes_counters) and not settings.has("CompatibilityGroups"):
        yield Feature("compatibility groups of devices", device.at)
    if device.node_allocatable_resources:
        yield Feature("nodeAllocatableResources of devices", device.at)
    view = SelectorDevice.of(o.spec.driver, o.spec.pool.name, device)
    if view.ambiguous:
        yield Feature(f"a name that is given both with and without its domain ({view.ambiguous[0]})", device.at)


def _claim(spec: ClaimSpec, lists: frozenset[str], settings: Settings) -> Iterator[Feature]:
    for request in spec.requests:
        for _, leaf in request.leaves:
            if leaf.derived_attributes and not settings.has("DerivedAttributes"):
                yield Feature("derived attributes", leaf.at)
            for toleration in leaf.tolerations:
                if toleration.toleration_seconds is not None:
                    yield Feature("eviction by device taints (tolerationSeconds)", toleration.at)
            yield from _cel(leaf.selectors, lists, settings)
    for constraint in spec.devices.constraints:
        name = constraint.match_attribute or constraint.distinct_attribute
        if name.rpartition("/")[2] in lists:
            yield Feature(f"list attributes (constraint on {name})", constraint.at)


def _cel(selectors: Iterable[CelSelector], lists: frozenset[str], settings: Settings) -> Iterator[Feature]:
    for selector in selectors:
        try:
            compile_selector(selector.expression, selector.at, settings.environment)
        except UnsupportedFeature as error:
            yield Feature(error.feature, selector.at)
        words = set(re.findall(r"\w+", selector.expression))
        for name in sorted(words & lists):
            yield Feature(f"list attributes (selector on {name})", selector.at)


def _pod(o: Pod, extended: set[str]) -> Iterator[Feature]:
    if o.spec.scheduling_group:
        yield Feature("pod groups", o.where("spec.schedulingGroup"))
    for container in o.spec.all_containers:
        for resource in {**container.resources.limits, **container.resources.requests}:
            if resource in extended or resource.startswith(IMPLICIT):
                yield Feature(f"extended resources backed by DRA ({resource})", container.resources.at)
    if o.spec.node_selector or (o.spec.affinity or {}).get("nodeAffinity"):
        yield Feature("node selectors and node affinity of pods", o.spec.at)
    if any((o.spec.affinity or {}).get(k) for k in ("podAffinity", "podAntiAffinity")):
        yield Feature("pod affinity", o.spec.at)
    if o.spec.scheduling_gates:
        yield Feature("scheduling gates", o.spec.at)
    if o.workload.startswith("DaemonSet "):
        yield Feature("placement of DaemonSet pods", o.where())


def _list_attributes(objects: Iterable[ApiObject]) -> frozenset[str]:
    """Identifiers of list attributes (their gate is off by default)."""
    devices = (d for o in objects if isinstance(o, ResourceSlice) for d in o.spec.devices)
    return frozenset(k.rpartition("/")[2] for d in devices for k, v in d.attributes.items() if v.is_list)


def _selectors(objects: Iterable[ApiObject]) -> Iterator[CelSelector]:
    for o in objects:
        if isinstance(o, DeviceClass):
            yield from o.spec.selectors
        elif isinstance(o, (ResourceClaim, ResourceClaimTemplate)):
            spec = o.spec if isinstance(o, ResourceClaim) else o.spec.spec
            for request in spec.requests:
                for _, leaf in request.leaves:
                    yield from leaf.selectors
