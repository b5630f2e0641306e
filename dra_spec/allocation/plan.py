"""The checks before the search: each claim's requests as a plan, or the first fatal error.

Source: k8s.io/dynamic-resource-allocation v0.37.2, structured/internal/incubating and experimental, Allocate and validateDeviceRequest.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import attrs

from dra_spec.allocation.constraints import covers
from dra_spec.allocation.errors import AllocatorCrash, FatalAllocation, UnsupportedFeature
from dra_spec.allocation.inventory import Inventory, Pool, PoolDevice
from dra_spec.allocation.settings import Settings
from dra_spec.allocation.state import Amounts
from dra_spec.resources.claims import ClaimSpec, Constraint, DeviceRequest, ExactRequest
from dra_spec.resources.meta import CelSelector
from dra_spec.resources.slices import DeviceClass

MAX_RESULTS = 32


@attrs.frozen(eq=False)
class Leaf:
    """A request, or one alternative of a prioritized list. `all_of`: the devices of allocationMode All, None for a counted request."""

    name: str  # as in results: main or main/sub
    main: str
    request: ExactRequest
    device_class: DeviceClass
    selectors: tuple[CelSelector, ...]  # of the class, then of the request
    count: int
    all_of: tuple[PoolDevice, ...] | None
    constraints: tuple[int, ...]  # indices of the claim's constraints that cover it

    @property
    def admin(self) -> bool:
        return bool(self.request.admin_access)

    @property
    def wanted(self) -> Amounts:
        """The capacity that the request asks for, by name."""
        return self.request.capacity.requests if self.request.capacity else {}


@attrs.frozen(eq=False)
class ClaimPlan:
    """A claim's requests in order, each as its alternatives in order."""

    requests: tuple[tuple[Leaf, ...], ...]
    constraints: tuple[Constraint, ...]


class Judge(Protocol):
    """Decides about one device at a time."""

    def selectable(self, leaf: Leaf, device: PoolDevice) -> bool:
        """Selectors and the device's own node selection. Raises FatalAllocation and UnsupportedFeature."""

    def has_capacity_in_all(self, leaf: Leaf, device: PoolDevice) -> bool:
        """Whether the device counts for a request for all devices, by its capacity. Raises FatalAllocation."""


@attrs.frozen(eq=False)
class Planner:
    """Plans the claims of one attempt on the pools of one node."""

    inventory: Inventory
    pools: Sequence[Pool]
    settings: Settings
    judge: Judge

    def plan(self, claim: ClaimSpec) -> ClaimPlan:
        """Raises FatalAllocation and UnsupportedFeature."""
        requests = []
        needed = 0
        for request in claim.requests:
            self._check_request(request)
            leaves = tuple(self._leaf(claim, request, name, leaf) for name, leaf in request.leaves)
            if not leaves:
                raise FatalAllocation(f"request {request.name} has neither exactly nor firstAvailable")
            least = min(leaf.count for leaf in leaves)
            if self.settings.rules.checked_total and least > MAX_RESULTS - needed:
                raise FatalAllocation(f"the claim needs at least {needed + least} devices, more than {MAX_RESULTS}")
            needed += least
            requests.append(leaves)
        total = (needed + 2**63) % 2**64 - 2**63
        if total < 0:
            raise AllocatorCrash(f"the number of devices, {needed}, overflows 64 bits")
        if total > MAX_RESULTS:
            raise FatalAllocation(f"the claim needs at least {needed} devices, more than {MAX_RESULTS}")
        for i, constraint in enumerate(claim.devices.constraints):
            if not constraint.match_attribute and (self.settings.stable or not constraint.distinct_attribute):
                raise FatalAllocation(f"constraint {i} has no kind that the allocator knows")
        return ClaimPlan(tuple(requests), claim.devices.constraints)

    def _check_request(self, request: DeviceRequest) -> None:
        if request.first_available and not self.settings.has("PrioritizedList"):
            raise FatalAllocation(f"request {request.name} has subrequests, and DRAPrioritizedList is off")
        if self.settings.stable or self.settings.has("ConsumableCapacity"):
            return
        for name, leaf in request.leaves:
            if leaf.capacity is not None:
                raise FatalAllocation(f"request {name} asks for capacity, and DRAConsumableCapacity is off")

    def _leaf(self, claim: ClaimSpec, request: DeviceRequest, name: str, leaf: ExactRequest) -> Leaf:
        settings = self.settings
        if leaf.derived_attributes and not settings.has("DerivedAttributes"):
            if settings.undecided:
                raise UnsupportedFeature("derived attributes", leaf.at)
            raise FatalAllocation(f"request {name} has derived attributes, and DRADerivedAttributes is off")
        if any(not s.expression for s in leaf.selectors):
            raise FatalAllocation(f"request {name} has a selector that is no CEL expression")
        if leaf.admin_access is not None and not settings.has("AdminAccess"):
            raise FatalAllocation(f"request {name} speaks of admin access, and DRAAdminAccess is off")
        device_class = self.inventory.classes.get(leaf.device_class_name)
        if device_class is None:
            raise FatalAllocation(f"request {name}: there is no DeviceClass {leaf.device_class_name!r}")
        if leaf.allocation_mode not in ("ExactCount", "All", ""):
            raise FatalAllocation(f"request {name}: unknown allocationMode {leaf.allocation_mode!r}")
        covering = tuple(i for i, c in enumerate(claim.devices.constraints) if covers(c, request.name, name))
        count = (leaf.count or 0) if settings.as_written else leaf.number
        found = Leaf(name, request.name, leaf, device_class, device_class.spec.selectors + leaf.selectors, count, None, covering)
        if not leaf.all_devices:
            return found
        devices = self._all_devices(found)
        return attrs.evolve(found, count=len(devices), all_of=devices)

    def _all_devices(self, leaf: Leaf) -> tuple[PoolDevice, ...]:
        """The devices of a request for all. Up to 1.37 any incomplete or invalid pool of the node, of whatever driver, is fatal here."""
        found = []
        for pool in self.pools:
            if pool.problem:
                raise FatalAllocation(f"request {leaf.name} asks for all devices, but {pool.problem}")
            found += [d for d in pool.devices if self.judge.selectable(leaf, d) and self.judge.has_capacity_in_all(leaf, d)]
        return tuple(found)
