"""First fit with backtracking, in the order of upstream's allocator.

Source: k8s.io/dynamic-resource-allocation v0.37.2, structured/internal/incubating (Allocate, allocateOne, createNodeSelector), the
variant that Kubernetes 1.37 picks with default gates.
"""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet

import attrs

from dra_spec.allocation.errors import DoesNotFit, FatalAllocation, UnsupportedFeature
from dra_spec.allocation.inventory import Inventory, Pool, PoolDevice
from dra_spec.allocation.nodes import merged, node_matches, only_node, selector_matches
from dra_spec.allocation.plan import plan
from dra_spec.allocation.search import Choice, Search
from dra_spec.resources.claims import ClaimSpec, ExactRequest
from dra_spec.resources.core import Node
from dra_spec.resources.meta import CelSelector, NodeSelector, Toleration
from dra_spec.resources.slices import DeviceClass
from dra_spec.selectors import Selector, SelectorDevice, SelectorError, SelectorSyntaxError, compile_selector


@attrs.frozen
class Result:
    """One allocated device of a claim."""

    request: str  # main or main/sub
    driver: str
    pool: str
    device: str
    admin: bool = False
    binding_conditions: tuple[str, ...] = ()
    binding_failure_conditions: tuple[str, ...] = ()
    tolerations: tuple[Toleration, ...] = ()

    @property
    def name(self) -> str:
        """driver/pool/device."""
        return f"{self.driver}/{self.pool}/{self.device}"


@attrs.frozen
class ClaimResult:
    """The allocation of one claim. `node_selector` None: usable on every node; `nodes`: names of the inventory's nodes that the
    selector accepts, None if it is None."""

    results: tuple[Result, ...]
    node_selector: NodeSelector | None = None
    nodes: frozenset[str] | None = None


@attrs.frozen(eq=False)
class Allocator:
    """Allocates claims on an inventory. Selectors are compiled once and asked once per device."""

    inventory: Inventory
    _selectors: dict[str, Selector] = attrs.field(factory=dict, init=False, repr=False)
    _answers: dict[tuple[str, str], bool | SelectorError] = attrs.field(factory=dict, init=False, repr=False)

    def allocate(self, claims: Sequence[ClaimSpec], node: Node | str, in_use: AbstractSet[str] = frozenset()) -> tuple[ClaimResult, ...]:
        """The first allocation of all claims together, one result per claim in the order given.

        `in_use`: devices (driver/pool/device) that other claims hold, admin access apart.
        Raises DoesNotFit, FatalAllocation (the scheduling attempt aborts) and UnsupportedFeature (undecided).
        """
        if isinstance(node, str):
            node = self.inventory.node(node)
        here = node

        def selectable(selectors: tuple[CelSelector, ...], request: ExactRequest, device: PoolDevice) -> bool:
            return self._selectable(selectors, request, device, here)

        pools = self.inventory.pools(node)
        plans = [plan(self.inventory, pools, claim, selectable) for claim in claims]
        choices = Search(pools, plans, in_use, selectable).run()
        if choices is None:
            problems = "; ".join(p.problem for p in pools if p.problem)
            raise DoesNotFit(f"the claims do not fit on node {node.name}" + (f" ({problems})" if problems else ""))
        return tuple(self._result([c for c in choices if c.claim == i], node) for i in range(len(claims)))

    def classes_without_devices(self) -> tuple[str, ...]:
        """Classes that no device of any slice matches, in order; a class whose selectors fail on some device is not among them."""
        empty = []
        views = [
            PoolDevice(v.name, v.driver, Pool(v.driver, ""), d, s, v)
            for s in self.inventory.slices
            for d in s.spec.devices
            for v in [SelectorDevice.of(s.spec.driver, s.spec.pool.name, d)]
        ]
        for name, device_class in self.inventory.classes.items():
            if not any(self._may_match(device_class, view) for view in views):
                empty.append(name)
        return tuple(empty)

    def _may_match(self, device_class: DeviceClass, device: PoolDevice) -> bool:
        try:
            return all(self._matches(selector, device) for selector in device_class.spec.selectors)
        except (FatalAllocation, UnsupportedFeature):
            return True

    def _selectable(self, selectors: tuple[CelSelector, ...], request: ExactRequest, device: PoolDevice, node: Node) -> bool:
        """Class and request selectors, then the device's own node selection, then capacity: the order decides which errors surface."""
        if device.device.allow_multiple_allocations:
            raise UnsupportedFeature("devices with allowMultipleAllocations (consumable capacity)", device.device.at)
        for selector in selectors:
            if not self._matches(selector, device):
                return False
        if device.slice.spec.per_device_node_selection and not node_matches(node, device.device):
            return False
        wanted = request.capacity.requests if request.capacity else {}
        for name, amount in wanted.items():
            if amount.value < 0:
                raise FatalAllocation(f"a request asks for a negative amount of {name}: {amount}")
            found = device.device.capacity.get(name)
            if found is None or found.value < amount:
                return False
        return True

    def _matches(self, selector: CelSelector, device: PoolDevice) -> bool:
        key = (selector.expression, device.name)
        if key not in self._answers:
            if selector.expression not in self._selectors:
                try:
                    self._selectors[selector.expression] = compile_selector(selector.expression, selector.at)
                except SelectorSyntaxError as error:
                    raise FatalAllocation(str(error)) from None
            if device.view.ambiguous:
                raise UnsupportedFeature(
                    f"a name that is given both with and without its domain ({device.view.ambiguous[0]})", device.device.at
                )
            self._answers[key] = self._selectors[selector.expression].matches(device.view)
        answer = self._answers[key]
        if isinstance(answer, SelectorError):
            raise FatalAllocation(str(answer))
        return answer

    def _result(self, choices: Sequence[Choice], node: Node) -> ClaimResult:
        selector = _node_selector([c.device for c in choices], node)
        nodes = (
            None
            if selector is None
            else frozenset(n for n, o in self.inventory.nodes.items() if selector_matches(selector, o)) | _named(selector)
        )
        return ClaimResult(tuple(_one(c) for c in choices), selector, nodes)


def _one(choice: Choice) -> Result:
    device, leaf = choice.device, choice.leaf
    return Result(
        request=leaf.name,
        driver=device.driver,
        pool=device.pool.name,
        device=device.device.name,
        admin=leaf.admin,
        binding_conditions=device.device.binding_conditions,
        binding_failure_conditions=device.device.binding_failure_conditions,
        tolerations=leaf.request.tolerations,
    )


def _node_selector(devices: Sequence[PoolDevice], node: Node) -> NodeSelector | None:
    """The first node-local device (or one that binds to its node) pins the node; else what the devices' selectors ask for together."""
    selectors: list[NodeSelector] = []
    for device in devices:
        spec = device.slice.spec
        where = device.device if spec.per_device_node_selection else spec
        if where.node_name or device.device.binds_to_node:
            return only_node(where.node_name or node.name)
        if where.node_selector is not None:
            if len(where.node_selector.terms) > 1:
                raise FatalAllocation(f"device {device.name}: its node selector has {len(where.node_selector.terms)} terms, expected one")
            selectors.append(where.node_selector)
    return merged(selectors)


def _named(selector: NodeSelector) -> frozenset[str]:
    """Nodes that the selector names outright, whether or not the inventory has objects for them."""
    fields = [r for t in selector.terms for r in t.match_fields if r.operator == "In"]
    only = fields and not any(t.match_expressions for t in selector.terms)
    return frozenset(v for r in fields for v in r.values) if only else frozenset()
