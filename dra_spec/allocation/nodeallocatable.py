"""What allocated devices cost of a node's ordinary resources, cpu and memory among them (KEP-5517, alpha).

The allocator does not look at this when it chooses devices: a node that has too little left is given up, another device is not tried.
Source: kube-scheduler v1.37.2, dynamicresources, nodeallocatabledynamicresources.go.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Protocol

import attrs

from dra_spec.allocation.errors import FatalAllocation
from dra_spec.allocation.inventory import Inventory
from dra_spec.allocation.nodes import node_matches
from dra_spec.allocation.results import ClaimResult
from dra_spec.resources.core import Node
from dra_spec.resources.quantity import Quantity
from dra_spec.resources.slices import AllocatableMapping, Device

ZERO = Quantity.of(0)


class Held(Protocol):
    """An allocated device, as in a claim's status."""

    @property
    def driver(self) -> str: ...
    @property
    def pool(self) -> str: ...
    @property
    def device(self) -> str: ...
    @property
    def consumed_capacity(self) -> Mapping[str, Quantity]: ...


@attrs.frozen
class Cost:
    """`mapped`: devices that stand for the resource itself, so a claim with one cannot be shared by pods; `overhead`: what using devices
    costs besides, once per pod."""

    mapped: Mapping[str, Quantity]
    overhead: Mapping[str, Quantity]

    @property
    def total(self) -> Mapping[str, Quantity]:
        """Both, by resource."""
        return {name: self.mapped.get(name, ZERO) + self.overhead.get(name, ZERO) for name in {**self.mapped, **self.overhead}}


def claimed_resources(inventory: Inventory, node: Node, claims: Sequence[ClaimResult], containers: Sequence[int]) -> Cost:
    """What the claims of one pod cost on the node. `containers`: for each claim how many containers of the pod refer to it.

    Raises FatalAllocation for a device that is in no slice of the node any more while another one of the claim costs something, and for a
    mapping from capacity of a device that is not shared.
    """
    return cost_of(inventory, node, [c.results for c in claims], containers)


def cost_of(inventory: Inventory, node: Node, claims: Sequence[Sequence[Held]], containers: Sequence[int]) -> Cost:
    """The same for devices that anybody allocated. Raises FatalAllocation."""
    mapped: dict[str, Quantity] = {}
    overhead: dict[str, Quantity] = {}
    for claim, references in zip(claims, containers, strict=True):
        found = [(r, _device(inventory, node, r)) for r in claim]
        if not any(device and device.node_allocatable_resources for _, device in found):
            continue
        for result, device in found:
            if device is None:
                raise FatalAllocation(f"device {_name(result)} is in no slice for node {node.name}")
            for resource, each in device.node_allocatable_resources.items():
                if each.mapping:
                    mapped[resource] = mapped.get(resource, ZERO) + _mapped(result, each.mapping)
                if each.overhead:
                    more = (each.overhead.per_pod or ZERO).value + (each.overhead.per_container or ZERO).value * references
                    overhead[resource] = overhead.get(resource, ZERO) + Quantity(more)
    return Cost(mapped, overhead)


def _name(result: Held) -> str:
    return f"{result.driver}/{result.pool}/{result.device}"


def _device(inventory: Inventory, node: Node, result: Held) -> Device | None:
    for slice_ in inventory.slices:
        if slice_.pool_id != (result.driver, result.pool):
            continue
        for device in slice_.spec.devices:
            if device.name == result.device and node_matches(node, device if slice_.spec.per_device_node_selection else slice_.spec):
                return device
    return None


def _mapped(result: Held, mapping: AllocatableMapping) -> Quantity:
    """By consumed capacity, if a capacity is named, else per device. A capacity that the share does not consume gives nothing."""
    if not mapping.capacity_key:
        return mapping.device_multiplier or ZERO
    if not result.consumed_capacity:
        raise FatalAllocation(f"device {_name(result)} consumes no capacity, but its {mapping.capacity_key} counts as a node resource")
    domain, slash, ident = mapping.capacity_key.rpartition("/")
    names = [mapping.capacity_key] + ([ident] if domain == result.driver else [] if slash else [f"{result.driver}/{ident}"])
    amount = next((result.consumed_capacity[n] for n in names if n in result.consumed_capacity), ZERO)
    factor = mapping.capacity_multiplier
    return Quantity(amount.value * factor.value, amount.style) if factor else amount


def resources_missing(node: Node, used: Iterable[Mapping[str, Quantity]]) -> dict[str, Quantity]:
    """How much of each resource the node lacks for everything in `used`: the pod's own requests and those of others, and the costs of
    devices. A resource that the node does not have counts as none."""
    total: dict[str, Fraction] = {}
    for each in used:
        for name, amount in each.items():
            total[name] = total.get(name, Fraction(0)) + amount.value
    left = {name: amount - node.status.allocatable.get(name, ZERO).value for name, amount in total.items()}
    return {name: Quantity(amount) for name, amount in left.items() if amount > 0}
