"""From the devices that were chosen to the allocation results of the claims: devices, configuration, node selector.

Source: k8s.io/dynamic-resource-allocation v0.37.2, structured/internal/experimental, Allocate (second half) and createNodeSelector.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import attrs

from dra_spec.allocation.errors import FatalAllocation
from dra_spec.allocation.inventory import PoolDevice
from dra_spec.allocation.nodes import merged, only_node
from dra_spec.allocation.plan import Leaf
from dra_spec.allocation.search import Choice
from dra_spec.allocation.settings import Settings
from dra_spec.resources.claims import AllocatedDevice, AllocationDevices, AllocationResult, ClaimSpec, main_request
from dra_spec.resources.core import Node
from dra_spec.resources.meta import DeviceConfig, NodeSelector, Toleration
from dra_spec.resources.quantity import Quantity


@attrs.frozen
class Result:
    """One allocated device of a claim. `share_id` and `consumed_capacity` are for a share of a device."""

    request: str  # main or main/sub
    driver: str
    pool: str
    device: str
    admin: bool = False
    binding_conditions: tuple[str, ...] = ()
    binding_failure_conditions: tuple[str, ...] = ()
    tolerations: tuple[Toleration, ...] = ()
    share_id: str = ""
    consumed_capacity: Mapping[str, Quantity] = attrs.field(factory=dict, hash=False)
    skip_node_operations: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """driver/pool/device."""
        return f"{self.driver}/{self.pool}/{self.device}"


@attrs.frozen
class ClaimResult:
    """The allocation of one claim. `node_selector` None: usable on every node; `nodes`: names of the inventory's nodes that the
    selector accepts, None if it is None; `config`: of the classes, then of the claim, later entries override earlier ones."""

    results: tuple[Result, ...]
    node_selector: NodeSelector | None = None
    nodes: frozenset[str] | None = None
    config: tuple[DeviceConfig, ...] = ()

    @property
    def allocation(self) -> AllocationResult:
        """The same as it is written to the claim's status."""
        devices = tuple(
            AllocatedDevice(
                request=r.request,
                driver=r.driver,
                pool=r.pool,
                device=r.device,
                admin_access=r.admin,
                tolerations=r.tolerations,
                binding_conditions=r.binding_conditions,
                binding_failure_conditions=r.binding_failure_conditions,
                share_id=r.share_id,
                consumed_capacity=r.consumed_capacity,
                skip_node_operations=r.skip_node_operations,
            )
            for r in self.results
        )
        return AllocationResult(devices=AllocationDevices(results=devices, config=self.config), node_selector=self.node_selector)


def result_of(choice: Choice, settings: Settings, share_id: str) -> Result:
    """The result for one device. `share_id` is used if the choice is a share."""
    device, leaf = choice.device, choice.leaf
    shared = choice.consumed is not None
    return Result(
        request=leaf.name,
        driver=device.driver,
        pool=device.pool.name,
        device=device.device.name,
        admin=leaf.admin,
        binding_conditions=device.device.binding_conditions,
        binding_failure_conditions=device.device.binding_failure_conditions,
        tolerations=leaf.request.tolerations,
        share_id=share_id if shared else "",
        consumed_capacity=choice.consumed or {},
        skip_node_operations=device.slice.spec.skip_node_operations if settings.variant == "experimental" else (),
    )


def config_of(claim: ClaimSpec, chosen: Sequence[Leaf], settings: Settings) -> tuple[DeviceConfig, ...]:
    """The configuration of a claim. `chosen`: for each request in order the leaf that was satisfied.

    Each class gives its entries once, for all requests that use it; then the claim's entries that are about a chosen request follow.
    """
    config: list[DeviceConfig] = []
    for name in dict.fromkeys(leaf.device_class.name for leaf in chosen):
        users = [leaf for leaf in chosen if leaf.device_class.name == name]
        requests = tuple(leaf.name for leaf in users)
        config += [DeviceConfig(requests=requests, opaque=c.opaque, source="FromClass") for c in users[0].device_class.spec.config]
    known = {leaf.main for leaf in chosen} | {leaf.name for leaf in chosen}
    for entry in claim.devices.config:
        if not entry.requests or known.intersection(entry.requests):
            config.append(DeviceConfig(requests=entry.requests, opaque=entry.opaque, source="FromClaim"))
    if not settings.rules.configs_for_all_requests:
        return tuple(config)
    # an entry without names is for all requests
    return tuple(attrs.evolve(c, requests=()) if all(_names(c, leaf) for leaf in chosen) else c for c in config)


def _names(config: DeviceConfig, leaf: Leaf) -> bool:
    return leaf.main in config.requests or leaf.name in config.requests


def configs_for_request(request: str, config: Sequence[DeviceConfig]) -> tuple[DeviceConfig, ...]:
    """The entries about a request of a result, in order, whatever their driver. Source: resourceclaim, ConfigForResult."""
    names = {request, main_request(request)}
    return tuple(c for c in config if c.opaque and (not c.requests or names.intersection(c.requests)))


def configs_for(result: Result, config: Sequence[DeviceConfig]) -> tuple[DeviceConfig, ...]:
    """The entries that a driver applies to a device, in order: those about its request that name the driver."""
    return tuple(c for c in configs_for_request(result.request, config) if c.opaque and c.opaque.driver == result.driver)


def node_selector_of(devices: Sequence[PoolDevice], node: Node, settings: Settings) -> NodeSelector | None:
    """The first node-local device (or one that binds to its node) pins the node; else what the devices' selectors ask for together.

    Raises FatalAllocation for a selector with several terms.
    """
    selectors: list[NodeSelector] = []
    for device in devices:
        spec = device.slice.spec
        where = device.device if spec.per_device_node_selection else spec
        if where.node_name or (device.device.binds_to_node and not settings.stable):
            return only_node(where.node_name or node.name)
        if where.node_selector is not None:
            if len(where.node_selector.terms) > 1:
                raise FatalAllocation(f"device {device.name}: its node selector has {len(where.node_selector.terms)} terms, expected one")
            selectors.append(where.node_selector)
    return merged(selectors)
