"""The checks before the search: each claim's requests as a plan, or the first fatal error.

Source: k8s.io/dynamic-resource-allocation v0.37.2, structured/internal/incubating, Allocate and validateDeviceRequest.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import attrs

from dra_spec.allocation.errors import FatalAllocation, UnsupportedFeature
from dra_spec.allocation.inventory import Inventory, Pool, PoolDevice
from dra_spec.resources.claims import ClaimSpec, Constraint, ExactRequest
from dra_spec.resources.meta import CelSelector

MAX_RESULTS = 32


@attrs.frozen(eq=False)
class Leaf:
    """A request, or one alternative of a prioritized list. `all_of`: the devices of allocationMode All, None for a counted request."""

    name: str  # as in results: main or main/sub
    main: str
    request: ExactRequest
    selectors: tuple[CelSelector, ...]  # of the class, then of the request
    count: int
    all_of: tuple[PoolDevice, ...] | None
    constraints: tuple[int, ...]  # indices of the claim's constraints that cover it

    @property
    def admin(self) -> bool:
        return bool(self.request.admin_access)


@attrs.frozen(eq=False)
class ClaimPlan:
    """A claim's requests in order, each as its alternatives in order."""

    requests: tuple[tuple[Leaf, ...], ...]
    constraints: tuple[Constraint, ...]


Selectable = Callable[[tuple[CelSelector, ...], ExactRequest, PoolDevice], bool]


def plan(inventory: Inventory, pools: Sequence[Pool], claim: ClaimSpec, selectable: Selectable) -> ClaimPlan:
    """Raises FatalAllocation and UnsupportedFeature. `selectable` decides selectors, node and capacity of one device."""
    for constraint in claim.devices.constraints:
        if not constraint.match_attribute and not constraint.distinct_attribute:
            raise FatalAllocation("a constraint has neither matchAttribute nor distinctAttribute")
    requests = []
    for request in claim.requests:
        leaves = []
        for name, leaf in request.leaves:
            if leaf.derived_attributes:
                raise UnsupportedFeature("derived attributes", leaf.at)
            device_class = inventory.classes.get(leaf.device_class_name)
            if device_class is None:
                raise FatalAllocation(f"request {name}: there is no DeviceClass {leaf.device_class_name!r}")
            if leaf.allocation_mode not in ("ExactCount", "All", ""):
                raise FatalAllocation(f"request {name}: unknown allocationMode {leaf.allocation_mode!r}")
            selectors = device_class.spec.selectors + leaf.selectors
            all_of = _all_devices(pools, selectors, leaf, selectable, name) if leaf.all_devices else None
            covering = tuple(
                i for i, c in enumerate(claim.devices.constraints) if not c.requests or request.name in c.requests or name in c.requests
            )
            count = leaf.number if all_of is None else len(all_of)
            leaves.append(Leaf(name, request.name, leaf, selectors, count, all_of, covering))
        requests.append(tuple(leaves))
    least = sum(min(leaf.count for leaf in leaves) for leaves in requests)
    if least > MAX_RESULTS:
        raise FatalAllocation(f"the claim needs at least {least} devices, more than {MAX_RESULTS}")
    return ClaimPlan(tuple(requests), claim.devices.constraints)


def _all_devices(
    pools: Sequence[Pool], selectors: tuple[CelSelector, ...], request: ExactRequest, selectable: Selectable, name: str
) -> tuple[PoolDevice, ...]:
    """The devices of a request for all. Up to 1.37 any incomplete or invalid pool of the node, of whatever driver, is fatal here."""
    found = []
    for pool in pools:
        if pool.problem:
            raise FatalAllocation(f"request {name} asks for all devices, but {pool.problem}")
        found += [d for d in pool.devices if selectable(selectors, request, d)]
    return tuple(found)
