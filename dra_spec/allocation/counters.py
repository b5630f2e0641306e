"""The counters that the devices of a pool share (partitionable devices), and the groups in which they may share them.

Source: k8s.io/dynamic-resource-allocation v0.37.2, structured/internal/experimental, checkAvailableCounters,
compatibilityGroupsBaselineForPool, compatibility_groups.go; KEP-4815, KEP-5963.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction

import attrs

from dra_spec.allocation.inventory import Counters, Pool, PoolDevice, consumed
from dra_spec.allocation.state import AllocatedState
from dra_spec.resources.slices import Device


@attrs.define(eq=False)
class CounterBook:
    """What is left of each pool's counters, and what the devices chosen so far draw. `key`: what a budget belongs to."""

    state: AllocatedState
    key: Callable[[Pool], str]
    available: dict[str, Counters] = attrs.field(factory=dict)
    drawn: dict[str, Counters] = attrs.field(factory=dict)

    def draw(self, device: PoolDevice) -> bool:
        """Charge the device if then every counter of the pool is within what is left, also those that the device does not use (so one
        overdrawn counter blocks all devices that consume counters)."""
        key = self.key(device.pool)
        if key not in self.available:
            self.available[key] = self._left(device.pool)
        total = self.drawn.setdefault(key, {})
        for counter, amount in consumed(device.device).items():
            total[counter] = total.get(counter, Fraction(0)) + amount
        if all(total.get(counter, 0) <= left for counter, left in self.available[key].items()):
            return True
        self.give_back(device)
        return False

    def give_back(self, device: PoolDevice) -> None:
        total = self.drawn[self.key(device.pool)]
        for counter, amount in consumed(device.device).items():
            total[counter] -= amount

    def _left(self, pool: Pool) -> Counters:
        """May be negative. A device that is allocated and no longer listed draws nothing."""
        left = dict(pool.counters)
        for device in allocated_devices(pool, self.state):
            for counter, amount in consumed(device).items():
                if counter in left:
                    left[counter] -= amount
        return left


def allocated_devices(pool: Pool, state: AllocatedState) -> Iterator[Device]:
    """The devices listed in the pool, for this node or not, that are allocated in any sense."""
    for device in [d.device for d in pool.devices] + pool.others:
        if device.consumes_counters and state.holds(f"{pool.driver}/{pool.name}/{device.name}"):
            yield device


@attrs.frozen
class Company:
    """Who draws from a counter set: nobody yet (`groups` None), only devices without groups (empty), or devices with these in common.

    `none_left`: devices with groups that have none in common, which only changed slices can bring about.
    """

    groups: frozenset[str] | None = None
    none_left: bool = False

    def admits(self, groups: frozenset[str]) -> bool:
        """Whether a device with these groups may draw from the set too."""
        if self.groups is None:
            return True
        if not groups or not self.groups:
            return not groups and not self.groups and not self.none_left
        return bool(groups & self.groups)

    def joined(self, groups: frozenset[str]) -> Company:
        """With one more device."""
        if self.groups is None:
            return Company(groups)
        if not groups or (not self.groups and not self.none_left):
            return self
        common = self.groups & groups
        return Company(common, not common)


@attrs.define(eq=False)
class GroupBook:
    """The company in each counter set of each pool, by (pool label, counter set)."""

    state: AllocatedState
    now: dict[tuple[str, str], Company] = attrs.field(factory=dict)
    before: dict[str, dict[str, Company]] = attrs.field(factory=dict)

    def join(self, device: PoolDevice) -> dict[tuple[str, str], Company] | None:
        """Let the device draw from its counter sets; the companies before that, to restore them, or None if one does not admit it."""
        label = device.pool.label
        if label not in self.before:
            self.before[label] = self._allocated(device.pool)
        saved: dict[tuple[str, str], Company] = {}
        for use in device.device.consumes_counters:
            key, groups = (label, use.counter_set), frozenset(use.compatibility_groups)
            company = self.now.get(key, self.before[label].get(use.counter_set, Company()))
            if not company.admits(groups):
                self.restore(saved)
                return None
            saved.setdefault(key, company)
            self.now[key] = company.joined(groups)
        return saved

    def restore(self, saved: dict[tuple[str, str], Company]) -> None:
        self.now.update(saved)

    def _allocated(self, pool: Pool) -> dict[str, Company]:
        """Groups of allocated devices are read from the slices as they are now."""
        found: dict[str, Company] = {}
        for device in allocated_devices(pool, self.state):
            for use in device.consumes_counters:
                found[use.counter_set] = found.get(use.counter_set, Company()).joined(frozenset(use.compatibility_groups))
        return found
