"""A device as selectors see it."""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from dra_spec.resources.quantity import Quantity
from dra_spec.resources.semver import SemVer
from dra_spec.resources.slices import AttributeValue, Device
from dra_spec.selectors.runtime import Map

# what an attribute is in CEL
CelAttribute = int | bool | str | SemVer | tuple[int, ...] | tuple[bool, ...] | tuple[str, ...] | tuple[SemVer, ...]


@attrs.frozen(eq=False)
class SelectorDevice:
    """`attributes` and `capacity` by domain, then by identifier. Source: k8s.io/dynamic-resource-allocation cel."""

    name: str  # driver/pool/device, for messages
    driver: str
    attributes: Mapping[str, Mapping[str, CelAttribute]]
    capacity: Mapping[str, Mapping[str, Quantity]]
    allow_multiple_allocations: bool = False
    # Both `x` and `driver/x` are set: 1.37 takes one of them at random. The qualified name wins here, as it does from 1.38.
    ambiguous: tuple[str, ...] = ()
    # the value of `device`: an absent domain is an empty map
    variables: Map = attrs.field(init=False, repr=False, default=attrs.Factory(lambda self: _variables(self), takes_self=True))

    @classmethod
    def of(cls, driver: str, pool: str, device: Device) -> SelectorDevice:
        attributes: dict[str, dict[str, CelAttribute]] = {}
        capacity: dict[str, dict[str, Quantity]] = {}
        ambiguous: list[str] = []
        # unqualified names first, so that a qualified one of the same meaning replaces them
        for key in sorted(device.attributes, key=lambda k: "/" in k):
            domain, ident = _split(key, driver)
            if ident in attributes.get(domain, {}):
                ambiguous.append(key)
            attributes.setdefault(domain, {})[ident] = _cel(device.attributes[key])
        for key in sorted(device.capacity, key=lambda k: "/" in k):
            domain, ident = _split(key, driver)
            if ident in capacity.get(domain, {}):
                ambiguous.append(key)
            capacity.setdefault(domain, {})[ident] = device.capacity[key].value
        name = f"{driver}/{pool}/{device.name}"
        return cls(name, driver, attributes, capacity, device.allow_multiple_allocations, tuple(ambiguous))


def _variables(device: SelectorDevice) -> Map:
    def domains(found: Mapping[str, Mapping[str, object]]) -> Map:
        inner = {d: Map({k: list(v) if isinstance(v, tuple) else v for k, v in ids.items()}) for d, ids in found.items()}
        return Map(inner, default=Map([]))

    return Map(
        {
            "driver": device.driver,
            "attributes": domains(device.attributes),
            "capacity": domains(device.capacity),
            "allowMultipleAllocations": device.allow_multiple_allocations,
        }
    )


def _split(key: str, driver: str) -> tuple[str, str]:
    domain, slash, ident = key.partition("/")
    return (domain, ident) if slash else (driver, key)


def _cel(attribute: AttributeValue) -> CelAttribute:
    value = attribute.value
    if attribute.kind == "version" and isinstance(value, str):
        return SemVer.parse(value)
    if attribute.kind == "versions" and isinstance(value, tuple):
        return tuple(SemVer.parse(str(v)) for v in value)
    return value
