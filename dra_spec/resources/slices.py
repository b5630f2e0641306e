"""ResourceSlice and DeviceClass. Field tables and limits: k8s.io/api resource/v1 types, resource validation (Kubernetes 1.37.2)."""

# ruff: noqa: RUF009 - f() and at() make attrs fields, they do not give defaults

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import attrs

from dra_spec.resources import names
from dra_spec.resources.decode import Context, Failed, at, boolean, checked, f, integer, items, mapping, obj, quantity, string
from dra_spec.resources.meta import CelSelector, DeviceConfig, Metadata, NodeSelector, Source, selector
from dra_spec.resources.problems import NOWHERE, Where
from dra_spec.resources.quantity import Quantity
from dra_spec.resources.semver import SemVer
from dra_spec.resources.tree import Node

MAX_DEVICES = 128
MAX_DEVICES_SPECIAL = 64  # if any device has taints, consumes counters or has list attributes
MAX_KEYS = 32
MAX_ATTRIBUTE_VALUES = 48


@attrs.frozen(kw_only=True)
class ApiObject:
    """What all kinds have. `source` is None for objects made in code."""

    KIND: ClassVar[str] = ""
    NAMESPACED: ClassVar[bool] = True
    KNOWN: ClassVar[tuple[str, ...]] = ("apiVersion", "kind")

    metadata: Metadata = f(obj(Metadata), default=attrs.Factory(Metadata))
    source: Source | None = attrs.field(default=None, eq=False, repr=False)

    @property
    def name(self) -> str:
        return self.metadata.name

    @property
    def namespace(self) -> str:
        """The namespace; "default" if none is given, "" for cluster-wide kinds."""
        return (self.metadata.namespace or "default") if self.NAMESPACED else ""

    def where(self, path: str = "") -> Where:
        """Where the object, or a field path of it, stands."""
        return self.source.where(path) if self.source else NOWHERE

    @property
    def label(self) -> str:
        """`ResourceClaim ns/name`, for messages."""
        return f"{self.KIND} {self.namespace + '/' if self.namespace else ''}{self.name}"


def string_or_version(node: Node, path: str, ctx: Context) -> str:
    text: str = string(max_bytes=64)(node, path, ctx)
    return text


def version(node: Node, path: str, ctx: Context) -> str:
    text = string_or_version(node, path, ctx)
    try:
        SemVer.parse(text)
    except ValueError as error:
        ctx.report("DRA116", str(error), node, path, text[:64], "a semantic version")
        raise Failed from None
    return text


_VALUES: dict[str, Any] = {"int": integer(None), "bool": boolean, "string": string_or_version, "version": version}


@attrs.frozen
class AttributeValue:
    """The value of a device attribute. kind: int, bool, string, version, or with an s at the end for a list (a tuple here).

    A version is kept as its text.
    """

    kind: str
    value: int | bool | str | tuple[int, ...] | tuple[bool, ...] | tuple[str, ...]

    @property
    def is_list(self) -> bool:
        return self.kind.endswith("s")

    @property
    def size(self) -> int:
        return len(self.value) if isinstance(self.value, tuple) else 1


def attribute(node: Node, path: str, ctx: Context) -> AttributeValue:
    """{int: 3}, {strings: [a, b]}, ...: exactly one key."""
    if node.kind != "map":
        raise ctx.mismatch("a mapping with one of int, bool, string, version, ints, bools, strings, versions", node, path)
    known = [k for base in _VALUES for k in (base, base + "s")]
    if len(node.value) != 1 or (key := next(iter(node.value))) not in known:
        found = ", ".join(repr(k) for k in node.value) or "nothing"
        ctx.report("DRA118", f"found {found}, expected exactly one of {', '.join(known)}", node, path, found, "exactly one value")
        raise Failed
    read = _VALUES[key] if key in _VALUES else items(_VALUES[key[:-1]], low=1)
    return AttributeValue(key, read(node.value[key], f"{path}.{key}", ctx))


@attrs.frozen(kw_only=True)
class ValidRange:
    min: Quantity = f(quantity, required=True)
    max: Quantity | None = f(quantity)
    step: Quantity | None = f(quantity)


@attrs.frozen(kw_only=True)
class RequestPolicy:
    """How much of a capacity one allocation consumes."""

    default: Quantity | None = f(quantity)
    valid_values: tuple[Quantity, ...] = f(items(quantity, high=10), default=())
    valid_range: ValidRange | None = f(obj(ValidRange))


def policy_rule(policy: RequestPolicy) -> str | tuple[str, str] | None:
    """Source: resource validation, validateRequestPolicy."""
    if policy.valid_values and policy.valid_range:
        return "found both of validValues and validRange, expected at most one"
    if (policy.valid_values or policy.valid_range) and policy.default is None:
        return "default", "a policy with validValues or validRange needs a default"
    return None


@attrs.frozen(kw_only=True)
class Capacity:
    value: Quantity = f(quantity, required=True)
    request_policy: RequestPolicy | None = f(checked(obj(RequestPolicy), policy_rule))


@attrs.frozen(kw_only=True)
class _Counter:
    value: Quantity = f(quantity, required=True)


def _counter(node: Node, path: str, ctx: Context) -> Quantity:
    counter: _Counter = obj(_Counter)(node, path, ctx)
    return counter.value


@attrs.frozen(kw_only=True)
class CounterSet:
    """Counters that the devices of a pool share."""

    name: str = f(string(names.dns_label), required=True)
    counters: Mapping[str, Quantity] = f(mapping(_counter, key=names.dns_label, low=1, high=32), required=True)
    at: Where = at()


@attrs.frozen(kw_only=True)
class CounterConsumption:
    counter_set: str = f(string(names.dns_label), required=True)
    counters: Mapping[str, Quantity] = f(mapping(_counter, key=names.dns_label, low=1, high=32), required=True)
    compatibility_groups: tuple[str, ...] = f(items(string(), high=2), default=())
    at: Where = at()


@attrs.frozen(kw_only=True)
class Taint:
    """A device taint. Effects None, NoSchedule, NoExecute; only the last two keep devices from being allocated."""

    key: str = f(string(names.label_key), required=True)
    value: str = f(string(names.label_value), default="")
    effect: str = f(string(), required=True)  # unknown effects are tolerated, they block nothing
    time_added: str = f(string(), default="")
    at: Where = at()


@attrs.frozen(kw_only=True)
class AllocatableMapping:
    capacity_key: str = f(string(), default="")
    capacity_multiplier: Quantity | None = f(quantity)
    device_multiplier: Quantity | None = f(quantity)


@attrs.frozen(kw_only=True)
class AllocatableOverhead:
    per_pod: Quantity | None = f(quantity)
    per_container: Quantity | None = f(quantity)


@attrs.frozen(kw_only=True)
class NodeAllocatable:
    """What a device costs of a node's ordinary resources (alpha)."""

    mapping: AllocatableMapping | None = f(obj(AllocatableMapping))
    overhead: AllocatableOverhead | None = f(obj(AllocatableOverhead))


@attrs.frozen(kw_only=True)
class Device:
    KNOWN: ClassVar[tuple[str, ...]] = ("nodeAllocatableResourceMappings",)

    name: str = f(string(names.dns_label), required=True)
    attributes: Mapping[str, AttributeValue] = f(mapping(attribute, key=names.qualified_name), default=attrs.Factory(dict))
    capacity: Mapping[str, Capacity] = f(mapping(obj(Capacity), key=names.qualified_name), default=attrs.Factory(dict))
    consumes_counters: tuple[CounterConsumption, ...] = f(items(obj(CounterConsumption), high=2, unique="counter_set"), default=())
    node_name: str = f(string(names.dns_subdomain), default="")
    node_selector: NodeSelector | None = f(obj(NodeSelector))
    all_nodes: bool = f(boolean, default=False)
    taints: tuple[Taint, ...] = f(items(obj(Taint), high=16), default=())
    binds_to_node: bool = f(boolean, default=False)
    binding_conditions: tuple[str, ...] = f(items(string(names.label_key), high=4, unique=""), default=())
    binding_failure_conditions: tuple[str, ...] = f(items(string(names.label_key), high=4, unique=""), default=())
    allow_multiple_allocations: bool = f(boolean, default=False)
    node_allocatable_resources: Mapping[str, NodeAllocatable] = f(mapping(obj(NodeAllocatable)), default=attrs.Factory(dict))
    at: Where = at()


def device_rule(device: Device) -> str | tuple[str, str] | None:
    """Rules over a whole device. Source: resource validation, validateDevice and validateDeviceBindingParameters."""
    if bool(device.binding_conditions) != bool(device.binding_failure_conditions):
        absent = "bindingFailureConditions" if device.binding_conditions else "bindingConditions"
        return absent, "bindingConditions and bindingFailureConditions must be set together"
    for place, condition in enumerate(device.binding_failure_conditions):
        if condition in device.binding_conditions:
            return f"bindingFailureConditions[{place}]", "bindingConditions and bindingFailureConditions must be disjoint"
    if len(device.attributes) + len(device.capacity) > MAX_KEYS:
        return f"found {len(device.attributes) + len(device.capacity)} attributes and capacities, expected at most {MAX_KEYS}"
    if sum(a.size for a in device.attributes.values()) > MAX_ATTRIBUTE_VALUES:
        return f"found more than {MAX_ATTRIBUTE_VALUES} attribute values"
    for name, capacity in device.capacity.items():
        if capacity.request_policy and not device.allow_multiple_allocations:
            return f"capacity[{name}].requestPolicy", "requestPolicy is only for devices with allowMultipleAllocations"
    return None


@attrs.frozen(kw_only=True)
class Pool:
    name: str = f(string(names.pool_name), required=True)
    generation: int = f(integer(0), default=0)
    resource_slice_count: int = f(integer(1), required=True)
    at: Where = at()


@attrs.frozen(kw_only=True)
class SliceSpec:
    driver: str = f(string(names.driver_name), required=True)
    pool: Pool = f(obj(Pool), required=True)
    node_name: str = f(string(names.dns_subdomain), default="")
    node_selector: NodeSelector | None = f(obj(NodeSelector))
    all_nodes: bool = f(boolean, default=False)
    per_device_node_selection: bool = f(boolean, default=False)
    devices: tuple[Device, ...] = f(items(checked(obj(Device), device_rule), high=MAX_DEVICES, unique="name"), default=())
    shared_counters: tuple[CounterSet, ...] = f(items(obj(CounterSet), high=8, unique="name"), default=())
    partition_type_attribute: str = f(string(names.qualified_name), default="")
    skip_node_operations: tuple[str, ...] = f(items(string(choices=("NodePrepareResources", "NodeUnprepareResources", "*"))), default=())
    at: Where = at()


_SELECTIONS = ("nodeName", "nodeSelector", "allNodes", "perDeviceNodeSelection")


def slice_spec(node: Node, path: str, ctx: Context) -> SliceSpec:
    """A slice's spec. The rule about node selection looks at the tree, so that it speaks up beside missing fields."""
    if node.kind == "map":
        chosen = [key for key in _SELECTIONS if (value := node.get(key)) is not None and value.value not in (None, "", False)]
        if len(chosen) != 1:
            found = " and ".join(chosen) or "no node selection"
            ctx.report("DRA118", f"found {found}, expected exactly one of {', '.join(_SELECTIONS)}", node, path, found, "exactly one")
    spec: SliceSpec = checked(obj(SliceSpec), slice_rule)(node, path, ctx)
    return spec


def slice_rule(spec: SliceSpec) -> str | tuple[str, str] | None:
    """Rules over a whole slice. Source: resource validation, validateResourceSliceSpec."""
    if spec.node_selector and len(spec.node_selector.terms) != 1:
        return "nodeSelector.nodeSelectorTerms", f"nodeSelector has {len(spec.node_selector.terms)} terms, expected exactly one"
    if spec.devices and spec.shared_counters:
        return "found devices and sharedCounters in one slice, expected one of them (they go into different slices of the pool)"
    special = any(d.taints or d.consumes_counters or any(a.is_list for a in d.attributes.values()) for d in spec.devices)
    if special and len(spec.devices) > MAX_DEVICES_SPECIAL:
        limit = f"at most {MAX_DEVICES_SPECIAL} where taints, counters or list attributes are used"
        return "devices", f"found {len(spec.devices)} devices, expected {limit}"
    for number, device in enumerate(spec.devices):
        place = f"devices[{number}]"
        own = sum(map(bool, (device.node_name, device.node_selector, device.all_nodes)))
        if spec.per_device_node_selection and own != 1:
            return place, f"device {device.name!r} needs exactly one of nodeName, nodeSelector, allNodes, because of perDeviceNodeSelection"
        if not spec.per_device_node_selection and own:
            return place, f"device {device.name!r} selects nodes itself, which needs perDeviceNodeSelection: true"
    return None


@attrs.frozen(kw_only=True)
class ResourceSlice(ApiObject):
    KIND: ClassVar[str] = "ResourceSlice"
    NAMESPACED: ClassVar[bool] = False

    spec: SliceSpec = f(slice_spec, required=True)

    @property
    def pool_id(self) -> tuple[str, str]:
        """(driver, pool name)."""
        return (self.spec.driver, self.spec.pool.name)


@attrs.frozen(kw_only=True)
class ClassSpec:
    KNOWN: ClassVar[tuple[str, ...]] = ("suitableNodes",)

    selectors: tuple[CelSelector, ...] = f(items(selector, high=32), default=())
    config: tuple[DeviceConfig, ...] = f(items(obj(DeviceConfig), high=32), default=())
    extended_resource_name: str = f(string(names.label_key), default="")
    at: Where = at()


@attrs.frozen(kw_only=True)
class DeviceClass(ApiObject):
    KIND: ClassVar[str] = "DeviceClass"
    NAMESPACED: ClassVar[bool] = False

    spec: ClassSpec = f(obj(ClassSpec), default=attrs.Factory(ClassSpec))


@attrs.frozen(kw_only=True)
class DeviceTaintSelector:
    """All fields given must be equal; no field given: every device."""

    driver: str = f(string(names.driver_name), default="")
    pool: str = f(string(names.pool_name), default="")
    device: str = f(string(names.dns_label), default="")


@attrs.frozen(kw_only=True)
class TaintRuleSpec:
    """`device_selector` None selects no device."""

    device_selector: DeviceTaintSelector | None = f(obj(DeviceTaintSelector))
    taint: Taint = f(obj(Taint), required=True)
    at: Where = at()


@attrs.frozen(kw_only=True)
class DeviceTaintRule(ApiObject):
    KIND: ClassVar[str] = "DeviceTaintRule"
    NAMESPACED: ClassVar[bool] = False
    KNOWN: ClassVar[tuple[str, ...]] = ("apiVersion", "kind", "status")

    spec: TaintRuleSpec = f(obj(TaintRuleSpec), required=True)
