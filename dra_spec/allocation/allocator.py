"""First fit with backtracking, in the order of upstream's allocator.

Source: k8s.io/dynamic-resource-allocation v0.37.2, structured/internal (the copies stable, incubating and experimental). Kubernetes 1.37
picks incubating with default gates.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from collections.abc import Set as AbstractSet

import attrs

from dra_spec.allocation.errors import DoesNotFit, FatalAllocation, InvalidPools, UnsupportedFeature
from dra_spec.allocation.inventory import Inventory, Pool, PoolDevice
from dra_spec.allocation.judge import Answers, DeviceJudge
from dra_spec.allocation.nodes import selector_matches
from dra_spec.allocation.plan import Leaf, Planner
from dra_spec.allocation.results import ClaimResult, Result, config_of, node_selector_of, result_of
from dra_spec.allocation.search import Choice, Search
from dra_spec.allocation.settings import FOR_PROTOCOL, Settings
from dra_spec.allocation.state import AllocatedState
from dra_spec.resources.claims import ClaimSpec
from dra_spec.resources.core import Node
from dra_spec.resources.meta import NodeSelector
from dra_spec.resources.slices import DeviceClass

__all__ = ["Allocator", "ClaimResult", "Result"]


def numbered_share_ids() -> Callable[[], str]:
    """Share IDs that are UUIDs in form and the same in every run; upstream's are random."""
    numbers: Iterator[int] = itertools.count(1)
    return lambda: f"{next(numbers):08x}-0000-4000-8000-000000000000"


@attrs.frozen(eq=False)
class Allocator:
    """Allocates claims on an inventory. Selectors are compiled once and asked once per device.

    Without settings: Kubernetes 1.37 with default gates for a caller that knows whole devices only (see Settings.undecided).
    """

    inventory: Inventory
    settings: Settings = FOR_PROTOCOL
    new_share_id: Callable[[], str] = attrs.field(factory=numbered_share_ids)
    _answers: Answers = attrs.field(factory=Answers, init=False, repr=False)
    _meant: dict[NodeSelector, frozenset[str]] = attrs.field(factory=dict, init=False, repr=False)

    def allocate(
        self, claims: Sequence[ClaimSpec], node: Node | str, in_use: AbstractSet[str] | AllocatedState = frozenset()
    ) -> tuple[ClaimResult, ...]:
        """The first allocation of all claims together, one result per claim in the order given.

        `in_use`: what other claims hold; a set of names (driver/pool/device) if all of them are whole devices.
        Raises DoesNotFit (InvalidPools if a pool of the node is invalid), FatalAllocation (the scheduling attempt aborts) and
        UnsupportedFeature (undecided).
        """
        if isinstance(node, str):
            node = self.inventory.node(node)
        known = in_use if isinstance(in_use, AllocatedState) else None
        state = known or AllocatedState(in_use if not isinstance(in_use, AllocatedState) else frozenset())
        if self.settings.stable:
            state = AllocatedState(state.devices)
        features = self.settings.features if self.settings.rules.knows_groups else self.settings.features | {"CompatibilityGroups"}
        pools = self.inventory.pools(node, features, undecided=self.settings.undecided, stable=self.settings.stable)
        pools = self.settings.pool_order(pools)
        judge = DeviceJudge(self.settings, node, known, self._answers)
        planner = Planner(self.inventory, pools, self.settings, judge)
        plans = [planner.plan(claim) for claim in claims]
        choices = Search(pools, plans, state, judge).run()
        if choices is None:
            raise _no_fit(node, pools)
        return tuple(
            self._result(claim, plan.requests, [c for c in choices if c.claim == i], node)
            for i, (claim, plan) in enumerate(zip(claims, plans, strict=True))
        )

    def classes_without_devices(self) -> tuple[str, ...]:
        """Classes that no device of any slice matches, in order; a class whose selectors fail on some device is not among them."""
        views = [
            PoolDevice(f"{s.spec.driver}/{s.spec.pool.name}/{d.name}", s.spec.driver, Pool(s.spec.driver, s.spec.pool.name), d, s)
            for s in self.inventory.slices
            for d in s.spec.devices
        ]
        judge = DeviceJudge(self.settings, Node(), None, self._answers)

        def may_match(device_class: DeviceClass, device: PoolDevice) -> bool:
            try:
                return all(judge.matches(selector, device) for selector in device_class.spec.selectors)
            except (FatalAllocation, UnsupportedFeature):
                return True

        return tuple(name for name, c in self.inventory.classes.items() if not any(may_match(c, view) for view in views))

    def _result(self, claim: ClaimSpec, requests: Sequence[Sequence[Leaf]], choices: Sequence[Choice], node: Node) -> ClaimResult:
        results = tuple(result_of(c, self.settings, self.new_share_id() if c.consumed is not None else "") for c in choices)
        used = {id(c.leaf) for c in choices}
        chosen = [next((leaf for leaf in leaves if id(leaf) in used), leaves[0]) for leaves in requests]
        selector = node_selector_of([c.device for c in choices], node, self.settings)
        return ClaimResult(results, selector, self._nodes(selector), config_of(claim, chosen, self.settings))

    def _nodes(self, selector: NodeSelector | None) -> frozenset[str] | None:
        """The nodes that a selector means; those that it names outright need no object."""
        if selector is None:
            return None
        if selector not in self._meant:
            named = _named(selector)
            self._meant[selector] = named or frozenset(n for n, o in self.inventory.nodes.items() if selector_matches(selector, o))
        return self._meant[selector]


def _no_fit(node: Node, pools: Sequence[Pool]) -> DoesNotFit:
    problems = "; ".join(p.problem for p in pools if p.problem)
    text = f"the claims do not fit on node {node.name}" + (f" ({problems})" if problems else "")
    return InvalidPools(text) if any(p.invalid for p in pools) else DoesNotFit(text)


def _named(selector: NodeSelector) -> frozenset[str]:
    """The nodes of a selector that does nothing but name them, whether or not the inventory has objects for them."""
    if len(selector.terms) != 1 or selector.terms[0].match_expressions:
        return frozenset()
    sets = [frozenset(r.values) for r in selector.terms[0].match_fields if r.operator == "In"]
    only = sets and len(sets) == len(selector.terms[0].match_fields)
    return frozenset.intersection(*sets) if only else frozenset()
