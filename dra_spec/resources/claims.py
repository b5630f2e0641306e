"""ResourceClaim (spec and status) and ResourceClaimTemplate. Field tables and limits: k8s.io/api resource/v1 types, resource validation."""

# ruff: noqa: RUF009 - f() and at() make attrs fields, they do not give defaults

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import attrs

from dra_spec.resources import names
from dra_spec.resources.decode import at, boolean, checked, f, integer, items, mapping, obj, quantity, raw, string
from dra_spec.resources.meta import CelSelector, DeviceConfig, Metadata, NodeSelector, Toleration, selector, toleration
from dra_spec.resources.problems import Where
from dra_spec.resources.quantity import Quantity
from dra_spec.resources.slices import ApiObject


@attrs.frozen(kw_only=True)
class CapacityRequirements:
    requests: Mapping[str, Quantity] = f(mapping(quantity, key=names.qualified_name), default=attrs.Factory(dict))


@attrs.frozen(kw_only=True)
class DerivedAttribute:
    """KEP-6080 (alpha)."""

    name: str = f(string(), required=True)
    expression: str = f(string(), default="")


@attrs.frozen(kw_only=True)
class ExactRequest:
    """A request for `count` devices of a class, or for all of them (allocation_mode "All", count 0)."""

    device_class_name: str = f(string(names.dns_subdomain), required=True)
    selectors: tuple[CelSelector, ...] = f(items(selector, high=32), default=())
    allocation_mode: str = f(string(choices=("ExactCount", "All", "")), default="ExactCount")
    count: int | None = f(integer(None))
    admin_access: bool | None = f(boolean)
    tolerations: tuple[Toleration, ...] = f(items(toleration, high=16), default=())
    capacity: CapacityRequirements | None = f(obj(CapacityRequirements))
    derived_attributes: tuple[DerivedAttribute, ...] = f(items(obj(DerivedAttribute), high=32), default=())
    at: Where = at()

    @property
    def all_devices(self) -> bool:
        return self.allocation_mode == "All"

    @property
    def number(self) -> int:
        """How many devices an ExactCount request wants (the default is 1)."""
        return 1 if self.count is None or (self.count == 0 and not self.all_devices) else self.count


@attrs.frozen(kw_only=True)
class SubRequest(ExactRequest):
    """One alternative of a prioritized list; it cannot ask for admin access."""

    name: str = f(string(names.dns_label), required=True)


def count_rule(request: ExactRequest) -> tuple[str, str] | None:
    """Source: resource validation, validateDeviceAllocationMode, after defaulting."""
    if request.all_devices and request.count:
        return "count", f"found count {request.count} with allocationMode All, expected no count"
    if not request.all_devices and request.count is not None and request.count < 0:
        return "count", f"found count {request.count}, expected at least 1"
    return None


def _subrequest_rule(request: SubRequest) -> str | tuple[str, str] | None:
    if request.admin_access is not None:
        return "a subrequest cannot have adminAccess"
    return count_rule(request)


@attrs.frozen(kw_only=True)
class DeviceRequest:
    name: str = f(string(names.dns_label), required=True)
    exactly: ExactRequest | None = f(checked(obj(ExactRequest), count_rule))
    first_available: tuple[SubRequest, ...] = f(items(checked(obj(SubRequest), _subrequest_rule), low=1, high=8, unique="name"), default=())
    at: Where = at()

    @property
    def leaves(self) -> tuple[tuple[str, ExactRequest], ...]:
        """(name in results, request): the request itself, or `main/sub` for each alternative in order."""
        if self.exactly:
            return ((self.name, self.exactly),)
        return tuple((f"{self.name}/{sub.name}", sub) for sub in self.first_available)


def _request_rule(request: DeviceRequest) -> str | None:
    if bool(request.exactly) == bool(request.first_available):
        return f"found {'both' if request.exactly else 'neither'} of exactly and firstAvailable, expected exactly one"
    return None


def main_request(name: str) -> str:
    """The request of a name in results, constraints or configuration: `main` of `main` and of `main/sub`. Source: resourceclaim,
    BaseRequestRef."""
    return name.partition("/")[0]


@attrs.frozen(kw_only=True)
class Constraint:
    """`requests` empty: all requests of the claim."""

    requests: tuple[str, ...] = f(items(string(), high=32, unique=""), default=())
    match_attribute: str = f(string(names.fully_qualified_name), default="")
    distinct_attribute: str = f(string(names.fully_qualified_name), default="")
    at: Where = at()


def _constraint_rule(constraint: Constraint) -> str | None:
    if bool(constraint.match_attribute) == bool(constraint.distinct_attribute):
        return f"found {'both' if constraint.match_attribute else 'neither'} of matchAttribute and distinctAttribute, expected exactly one"
    return None


@attrs.frozen(kw_only=True)
class DeviceClaim:
    requests: tuple[DeviceRequest, ...] = f(items(checked(obj(DeviceRequest), _request_rule), high=32, unique="name"), default=())
    constraints: tuple[Constraint, ...] = f(items(checked(obj(Constraint), _constraint_rule), high=32), default=())
    config: tuple[DeviceConfig, ...] = f(items(obj(DeviceConfig), high=32), default=())
    at: Where = at()


def _references_rule(devices: DeviceClaim) -> tuple[str, str] | None:
    known = {r.name for r in devices.requests} | {name for r in devices.requests for name, _ in r.leaves}
    listed = ", ".join(sorted(known)) or "none: there is no request"
    users: tuple[tuple[str, str, Sequence[Constraint | DeviceConfig]], ...] = (
        ("constraint", "constraints", devices.constraints),
        ("config entry", "config", devices.config),
    )
    for kind, field, entries in users:
        for number, entry in enumerate(entries):
            for place, name in enumerate(entry.requests):
                if name not in known:
                    return f"{field}[{number}].requests[{place}]", f"a {kind} names request {name!r}, expected one of {listed}"
    return None


@attrs.frozen(kw_only=True)
class ClaimSpec:
    devices: DeviceClaim = f(checked(obj(DeviceClaim), _references_rule), default=attrs.Factory(DeviceClaim))
    at: Where = at()

    @property
    def requests(self) -> tuple[DeviceRequest, ...]:
        return self.devices.requests


@attrs.frozen(kw_only=True)
class AllocatedDevice:
    """One entry of `status.allocation.devices.results`."""

    request: str = f(string(), required=True)
    driver: str = f(string(names.driver_name), required=True)
    pool: str = f(string(names.pool_name), required=True)
    device: str = f(string(names.dns_label), required=True)
    admin_access: bool = f(boolean, default=False)
    tolerations: tuple[Toleration, ...] = f(items(toleration), default=())
    binding_conditions: tuple[str, ...] = f(items(string(), high=4), default=())
    binding_failure_conditions: tuple[str, ...] = f(items(string(), high=4), default=())
    share_id: str = f(string(), key="shareID", default="")
    consumed_capacity: Mapping[str, Quantity] = f(mapping(quantity), default=attrs.Factory(dict))
    skip_node_operations: tuple[str, ...] = f(items(string()), default=())


@attrs.frozen(kw_only=True)
class AllocationDevices:
    results: tuple[AllocatedDevice, ...] = f(items(obj(AllocatedDevice), high=32), default=())
    config: tuple[DeviceConfig, ...] = f(items(obj(DeviceConfig), high=64), default=())


@attrs.frozen(kw_only=True)
class AllocationResult:
    """`status.allocation`; `node_selector` None: usable everywhere."""

    KNOWN: ClassVar[tuple[str, ...]] = ("controller",)

    devices: AllocationDevices = f(obj(AllocationDevices), default=attrs.Factory(AllocationDevices))
    node_selector: NodeSelector | None = f(obj(NodeSelector))
    allocation_timestamp: str = f(string(), default="")
    at: Where = at()


@attrs.frozen(kw_only=True)
class ConsumerReference:
    """An entry of `status.reservedFor`."""

    api_group: str = f(string(), default="")
    resource: str = f(string(), required=True)
    name: str = f(string(), required=True)
    uid: str = f(string(), default="")  # real files sometimes lack it


@attrs.frozen(kw_only=True)
class Condition:
    type: str = f(string(), required=True)
    status: str = f(string(choices=("True", "False", "Unknown")), required=True)
    reason: str = f(string(), default="")
    message: str = f(string(), default="")
    last_transition_time: str = f(string(), default="")
    observed_generation: int = f(integer(0), default=0)


@attrs.frozen(kw_only=True)
class NetworkData:
    interface_name: str = f(string(max_bytes=256), default="")
    ips: tuple[str, ...] = f(items(string(), high=16), default=())
    hardware_address: str = f(string(max_bytes=128), default="")


@attrs.frozen(kw_only=True)
class DeviceStatus:
    """An entry of `status.devices`: what a driver reports about an allocated device."""

    driver: str = f(string(), required=True)
    pool: str = f(string(), required=True)
    device: str = f(string(), required=True)
    share_id: str = f(string(), key="shareID", default="")
    conditions: tuple[Condition, ...] = f(items(obj(Condition), high=8, unique="type"), default=())
    data: Any = f(raw)
    network_data: NetworkData | None = f(obj(NetworkData))


@attrs.frozen(kw_only=True)
class ClaimStatus:
    KNOWN: ClassVar[tuple[str, ...]] = ("deallocationRequested",)

    allocation: AllocationResult | None = f(obj(AllocationResult))
    reserved_for: tuple[ConsumerReference, ...] = f(items(obj(ConsumerReference), high=256), default=())
    devices: tuple[DeviceStatus, ...] = f(items(obj(DeviceStatus)), default=())


@attrs.frozen(kw_only=True)
class ResourceClaim(ApiObject):
    KIND: ClassVar[str] = "ResourceClaim"

    spec: ClaimSpec = f(obj(ClaimSpec), required=True)
    status: ClaimStatus = f(obj(ClaimStatus), default=attrs.Factory(ClaimStatus))


@attrs.frozen(kw_only=True)
class TemplateSpec:
    """`metadata`: labels and annotations of the claims made from the template."""

    metadata: Metadata = f(obj(Metadata), default=attrs.Factory(Metadata))
    spec: ClaimSpec = f(obj(ClaimSpec), required=True)
    at: Where = at()


@attrs.frozen(kw_only=True)
class ResourceClaimTemplate(ApiObject):
    KIND: ClassVar[str] = "ResourceClaimTemplate"

    spec: TemplateSpec = f(obj(TemplateSpec), required=True)
