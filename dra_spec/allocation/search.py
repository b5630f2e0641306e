"""The depth-first search over claims, requests, alternatives and devices. The first complete solution wins."""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet

import attrs

from dra_spec.allocation.constraints import accepts, tolerated
from dra_spec.allocation.errors import FatalAllocation, UnsupportedFeature
from dra_spec.allocation.inventory import Counters, Pool, PoolDevice, consumed
from dra_spec.allocation.plan import MAX_RESULTS, ClaimPlan, Leaf, Selectable

MAX_TRIALS = 500_000  # upstream stops after ten seconds


@attrs.frozen(eq=False)
class Choice:
    """A device chosen for a leaf request of a claim (by index)."""

    claim: int
    leaf: Leaf
    device: PoolDevice


@attrs.define(eq=False)
class Search:
    """One attempt on one node. `run` gives the choices in order, or None if nothing fits.

    Raises FatalAllocation, and UnsupportedFeature if the search is too long to tell.
    """

    pools: Sequence[Pool]
    plans: Sequence[ClaimPlan]
    in_use: AbstractSet[str]
    selectable: Selectable
    choices: list[Choice] = attrs.field(factory=list)
    running: dict[str, Counters] = attrs.field(factory=dict)  # pool -> what the choices draw
    available: dict[str, Counters] = attrs.field(factory=dict)
    answers: dict[tuple[int, str], bool] = attrs.field(factory=dict)
    trials: int = 0

    def __attrs_post_init__(self) -> None:
        self.devices = [d for p in self.pools if not p.problem for d in p.devices]

    devices: list[PoolDevice] = attrs.field(init=False, factory=list)

    def run(self) -> list[Choice] | None:
        return self.choices if self._request(0, 0) else None

    def _request(self, claim: int, request: int) -> bool:
        """Allocate everything from this request on."""
        if claim == len(self.plans):
            return True
        if request == len(self.plans[claim].requests):
            return self._request(claim + 1, 0)
        return any(self._leaf(claim, request, leaf, leaf.count, 0) for leaf in self.plans[claim].requests[request])

    def _leaf(self, claim: int, request: int, leaf: Leaf, missing: int, start: int) -> bool:
        """Choose the devices that a leaf request still misses, at positions from `start` on, and then all that follows."""
        if leaf.all_of is not None and not leaf.all_of:
            return False
        if missing == 0:
            return self._request(claim, request + 1)
        if sum(c.claim == claim for c in self.choices) + missing > MAX_RESULTS:
            return False
        devices = self.devices if leaf.all_of is None else leaf.all_of
        for position in range(start, len(devices)):
            if self._choose(claim, leaf, devices[position]):
                if self._leaf(claim, request, leaf, missing - 1, position + 1):
                    return True
                self._undo()
            if leaf.all_of is not None:
                return False  # every device of the list is needed
        return False

    def _choose(self, claim: int, leaf: Leaf, device: PoolDevice) -> bool:
        """Take the device if it may be taken. The order of the tests is upstream's: it decides which selector errors surface."""
        self.trials += 1
        if self.trials > MAX_TRIALS:
            raise UnsupportedFeature(f"an allocation that takes more than {MAX_TRIALS} steps to search")
        if self._taken(claim, leaf, device) or not self._selectable(leaf, device) or not self._draw(device):
            return False
        if not tolerated(device.device.taints, leaf.request.tolerations):
            self._give_back(device)
            return False
        for i in leaf.constraints:
            covered = [c.device for c in self.choices if c.claim == claim and i in c.leaf.constraints]
            if not accepts(self.plans[claim].constraints[i], covered, device):
                self._give_back(device)
                if leaf.all_of is not None:
                    raise FatalAllocation(f"request {leaf.name} asks for all devices, but a constraint refuses {device.name}")
                return False
        self.choices.append(Choice(claim, leaf, device))
        return True

    def _undo(self) -> None:
        self._give_back(self.choices.pop().device)

    def _taken(self, claim: int, leaf: Leaf, device: PoolDevice) -> bool:
        if leaf.admin:
            return any(c.device is device and c.claim == claim for c in self.choices)
        return device.name in self.in_use or any(c.device is device for c in self.choices)

    def _selectable(self, leaf: Leaf, device: PoolDevice) -> bool:
        if leaf.all_of is not None:
            return True  # decided when the list was made
        key = (id(leaf), device.name)
        if key not in self.answers:
            self.answers[key] = self.selectable(leaf.selectors, leaf.request, device)
        return self.answers[key]

    def _draw(self, device: PoolDevice) -> bool:
        """Charge the pool's counters; every counter of the pool must stay within what is left, also those that the device does not
        use (so one overdrawn counter blocks all devices that consume counters)."""
        use = consumed(device.device)
        if not use:
            return True
        pool = device.pool
        if pool.label not in self.available:
            self.available[pool.label] = self._left(pool)
        total = self.running.setdefault(pool.label, {})
        for counter, amount in use.items():
            total[counter] = total.get(counter, 0) + amount
        if all(total.get(counter, 0) <= left for counter, left in self.available[pool.label].items()):
            return True
        self._give_back(device)
        return False

    def _give_back(self, device: PoolDevice) -> None:
        for counter, amount in consumed(device.device).items():
            self.running[device.pool.label][counter] -= amount

    def _left(self, pool: Pool) -> Counters:
        left = dict(pool.counters)
        listed = [d.device for d in pool.devices] + pool.others
        for device in listed:
            if f"{pool.driver}/{pool.name}/{device.name}" in self.in_use:
                for counter, amount in consumed(device).items():
                    left[counter] -= amount
        return left
