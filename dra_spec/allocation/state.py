"""What other claims hold: the allocated state of the cluster by device names, independent of slices.

Source: k8s.io/dynamic-resource-allocation v0.37.2, structured/schedulerapi (AllocatedState); kube-scheduler, allocateddevices.go.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet

import attrs

from dra_spec.resources.claims import AllocationResult, ResourceClaim
from dra_spec.resources.quantity import Quantity

Amounts = Mapping[str, Quantity]  # capacity name -> amount


@attrs.frozen
class AllocatedState:
    """Devices are named driver/pool/device. `devices`: held as a whole; `shares`: (device, share id) of each live share; `consumed`:
    the sum of what the shares of a device took. Admin access holds nothing."""

    devices: AbstractSet[str] = frozenset()
    shares: AbstractSet[tuple[str, str]] = frozenset()
    consumed: Mapping[str, Amounts] = attrs.field(factory=dict)

    @classmethod
    def of(cls, allocations: Iterable[AllocationResult], *, shares: bool = True) -> AllocatedState:
        """The state that these allocations make. `shares` False: the gate of consumable capacity is off, a share holds the device."""
        devices: set[str] = set()
        ids: set[tuple[str, str]] = set()
        consumed: dict[str, dict[str, Quantity]] = {}
        for result in (r for a in allocations for r in a.devices.results if not r.admin_access):
            name = f"{result.driver}/{result.pool}/{result.device}"
            if not shares or not result.share_id:
                devices.add(name)
                continue
            ids.add((name, result.share_id))
            if result.consumed_capacity:
                consumed[name] = added(consumed.get(name, {}), result.consumed_capacity)
        return cls(frozenset(devices), frozenset(ids), consumed)

    @classmethod
    def of_claims(cls, claims: Iterable[ResourceClaim]) -> AllocatedState:
        """The state that the claims' status makes."""
        return cls.of(c.status.allocation for c in claims if c.status.allocation)

    def holds(self, device: str) -> bool:
        """Whether the device is allocated in any sense."""
        return device in self.devices or self.shared(device)

    def shared(self, device: str) -> bool:
        """Whether the device has a live share."""
        return device in self.consumed or device in self.shared_devices

    @property
    def shared_devices(self) -> frozenset[str]:
        """Devices with a share that has an id."""
        return frozenset(name for name, _ in self.shares)


def added(left: Amounts, right: Amounts) -> dict[str, Quantity]:
    """The sum, by name."""
    total = dict(left)
    for name, amount in right.items():
        total[name] = total[name] + amount if name in total else amount
    return total
