"""The depth-first search over claims, requests, alternatives and devices. The first complete solution wins.

Source: k8s.io/dynamic-resource-allocation v0.37.2, structured/internal/experimental, allocateOne, allocateDevice, rollbackDevice.
"""

from __future__ import annotations

import enum
from collections.abc import Generator, Sequence

import attrs

from dra_spec.allocation.constraints import Tracker, tolerated
from dra_spec.allocation.counters import Company, CounterBook, GroupBook
from dra_spec.allocation.errors import FatalAllocation, UnsupportedFeature
from dra_spec.allocation.inventory import Pool, PoolDevice
from dra_spec.allocation.judge import DeviceJudge
from dra_spec.allocation.plan import MAX_RESULTS, ClaimPlan, Leaf
from dra_spec.allocation.state import AllocatedState, Amounts, added

MAX_TRIALS = 500_000  # upstream stops after ten seconds
NODE_FEATURE = "DRAOptionalNodeOperations"  # what a node must declare to be given devices that skip its operations


class Outcome(enum.Enum):
    """How a part of the search ended. LIMIT: with any devices, the claim would get more than MAX_RESULTS results; so the search goes
    back to the nearest alternative at once."""

    FITS = 1
    FAILS = 2
    LIMIT = 3


Step = Generator["Step", Outcome, Outcome]  # yields the part to be searched next, is sent how that ended


@attrs.define(eq=False)
class Choice:
    """A device chosen for a leaf request of a claim (by index), and what to undo if it is given up.

    `consumed`: the amounts of each capacity if the device is shared, else None.
    """

    claim: int
    leaf: Leaf
    device: PoolDevice
    consumed: Amounts | None = None
    drawn: bool = False
    companies: dict[tuple[str, str], Company] | None = None
    constraints: int = 0  # how many of the leaf's constraints remember the device


@attrs.define(eq=False)
class Search:
    """One attempt on one node. `run` gives the choices in order, or None if nothing fits.

    Raises FatalAllocation, and UnsupportedFeature if the search is too long to tell.
    """

    pools: Sequence[Pool]
    plans: Sequence[ClaimPlan]
    state: AllocatedState
    judge: DeviceJudge
    choices: list[Choice] = attrs.field(factory=list)
    trials: int = 0
    devices: list[PoolDevice] = attrs.field(init=False)
    counters: CounterBook = attrs.field(init=False)
    groups: GroupBook = attrs.field(init=False)
    trackers: list[list[Tracker]] = attrs.field(init=False)  # by claim, then by constraint
    results: list[int] = attrs.field(init=False)  # by claim: how many devices it has
    taken: dict[str, list[int]] = attrs.field(factory=dict)  # whole device -> claims that have it
    shares: dict[str, list[Amounts]] = attrs.field(factory=dict)  # shared device -> what each new share consumes
    answers: dict[tuple[int, str], bool] = attrs.field(factory=dict)
    permutes: bool = False  # one set of devices is tried in every order, which matters only if some bookkeeping stays by mistake

    def __attrs_post_init__(self) -> None:
        self.devices = [d for p in self.pools if not p.problem for d in p.devices]
        self.counters = CounterBook(self.state, self.judge.settings.rules.counter_key)
        self.groups = GroupBook(self.state)
        self.trackers = [self._trackers(p) for p in self.plans]
        self.results = [0] * len(self.plans)
        self.permutes = self.judge.settings.stable and bool(self.judge.settings.rules.kept)

    def _trackers(self, plan: ClaimPlan) -> list[Tracker]:
        rules, lists = self.judge.settings.rules, self.judge.settings.has("ListTypeAttributes")
        match = rules.list_match if lists else rules.scalar_match
        return [match() if c.match_attribute else rules.distinct(lists) for c in plan.constraints]

    def run(self) -> list[Choice] | None:
        """Drives the steps with a stack of its own, since a pod may ask for more devices than Python nests calls."""
        stack = [self._request(0, 0)]
        outcome: Outcome | None = None
        while stack:
            try:
                part = next(stack[-1]) if outcome is None else stack[-1].send(outcome)
            except StopIteration as stop:
                stack.pop()
                outcome = stop.value
            else:
                stack.append(part)
                outcome = None
        if outcome is Outcome.LIMIT:
            raise FatalAllocation(f"a claim needs more than {MAX_RESULTS} devices")
        return self.choices if outcome is Outcome.FITS else None

    def _request(self, claim: int, request: int) -> Step:
        """Allocate everything from this request on."""
        if claim == len(self.plans):
            return Outcome.FITS
        if request == len(self.plans[claim].requests):
            outcome = yield self._request(claim + 1, 0)
            # with other devices for this claim, the next one may get an alternative with fewer devices
            return Outcome.FAILS if outcome is Outcome.LIMIT else outcome
        alternatives = self.plans[claim].requests[request]
        outcomes = set()
        for leaf in alternatives:
            outcome = yield self._leaf(claim, request, leaf, 0, 0)
            if outcome is Outcome.FITS:
                return outcome
            outcomes.add(outcome)
        return Outcome.LIMIT if outcomes == {Outcome.LIMIT} else Outcome.FAILS

    def _leaf(self, claim: int, request: int, leaf: Leaf, chosen: int, start: int) -> Step:
        """Choose the devices that a leaf request still misses, at positions from `start` on, and then all that follows."""
        if leaf.all_of is not None and not leaf.all_of:
            return Outcome.FAILS  # all of nothing is not enough
        if chosen >= leaf.count:
            return (yield self._request(claim, request + 1))
        if leaf.count - chosen > MAX_RESULTS - self.results[claim]:
            return Outcome.LIMIT
        if leaf.all_of is not None:
            # every device of the list is needed, so there is nothing to choose
            if not self._take(claim, leaf, leaf.all_of[chosen]):
                return Outcome.FAILS
            outcome = yield self._leaf(claim, request, leaf, chosen + 1, 0)
            if outcome is not Outcome.FITS:
                self._give_up()
            return outcome
        for position in range(start, len(self.devices)):
            device = self.devices[position]
            if not self._candidate(claim, leaf, device) or not self._take(claim, leaf, device):
                continue
            outcome = yield self._leaf(claim, request, leaf, chosen + 1, 0 if self.permutes else position + 1)
            if outcome is Outcome.FITS:
                return outcome
            self._give_up()
            if outcome is Outcome.LIMIT:
                return outcome
        return Outcome.FAILS

    def _candidate(self, claim: int, leaf: Leaf, device: PoolDevice) -> bool:
        """The tests that need no bookkeeping. A device in use is passed over first, so its selectors cannot fail."""
        if self._in_use(claim, leaf, device):
            return False
        key = (id(leaf), device.name)
        if key not in self.answers:
            self.answers[key] = self.judge.selectable(leaf, device)
        return self.answers[key] and self._has_capacity(leaf, device)

    def _in_use(self, claim: int, leaf: Leaf, device: PoolDevice) -> bool:
        claims = self.taken.get(device.name, ())
        if leaf.admin:
            return claim in claims
        return bool(claims) or device.name in self.state.devices

    def _has_capacity(self, leaf: Leaf, device: PoolDevice) -> bool:
        chosen: Amounts = {}
        for amounts in self.shares.get(device.name, ()):
            chosen = added(chosen, amounts)
        return self.judge.has_capacity(leaf, device, self.state.consumed.get(device.name, {}), chosen)

    def _take(self, claim: int, leaf: Leaf, device: PoolDevice) -> bool:
        """Take the device if it may be taken. The order of the tests is upstream's: it decides which errors surface."""
        self.trials += 1
        if self.trials > MAX_TRIALS:
            raise UnsupportedFeature(f"an allocation that takes more than {MAX_TRIALS} steps to search")
        settings = self.judge.settings
        shared = settings.shares and device.device.allow_multiple_allocations
        if self._in_use(claim, leaf, device) or not self._node_can(device):
            return False
        uses_counters = bool(device.device.consumes_counters)
        if uses_counters and not settings.has("PartitionableDevices"):
            return False
        choice = Choice(claim, leaf, device)
        charged = shared and (device.name in self.shares or settings.rules.counters_charged(self.state, device.name))
        if uses_counters and not charged:
            if settings.has("CompatibilityGroups"):
                choice.companies = self.groups.join(device)
                if choice.companies is None:
                    return False
            if not self.counters.draw(device):
                return self._reject(choice, "counters")
            choice.drawn = True
        if settings.has("DeviceTaints") and not tolerated(device.device.taints, leaf.request.tolerations):
            return self._reject(choice, "taint")
        if not self._constraints_accept(choice):
            self._reject(choice, "constraint")
            if leaf.all_of is not None:
                raise FatalAllocation(f"request {leaf.name} asks for all devices, but a constraint refuses {device.name}")
            return False
        if not self._has_capacity(leaf, device):
            return self._reject(choice, "capacity")
        if shared:
            choice.consumed = self.judge.consumed(leaf, device)
            self.shares.setdefault(device.name, []).append(choice.consumed)
        else:
            self.taken.setdefault(device.name, []).append(claim)
        self.results[claim] += 1
        self.choices.append(choice)
        return True

    def _node_can(self, device: PoolDevice) -> bool:
        settings = self.judge.settings
        if not device.slice.spec.skip_node_operations:
            return True
        if settings.variant != "experimental":  # the other copies of the code do not read the field
            if settings.undecided:
                raise UnsupportedFeature("skipNodeOperations (optional node operations)", device.slice.spec.at)
            return True
        return settings.has("OptionalNodeOperations") and NODE_FEATURE in self.judge.node.status.declared_features

    def _constraints_accept(self, choice: Choice) -> bool:
        for i in choice.leaf.constraints:
            constraint = self.plans[choice.claim].constraints[i]
            value = self.judge.attribute(choice.leaf, choice.device, constraint.match_attribute or constraint.distinct_attribute)
            if value is None or not self.trackers[choice.claim][i].add(choice.leaf.main, value):
                return False
            choice.constraints += 1
        return True

    def _reject(self, choice: Choice, stage: str) -> bool:
        self._undo(choice, self.judge.settings.rules.kept.get(stage, frozenset()))
        return False

    def _give_up(self) -> None:
        """Undo the last choice."""
        choice = self.choices.pop()
        self.results[choice.claim] -= 1
        name = choice.device.name
        if choice.consumed is None:
            self.taken[name].remove(choice.claim)
        else:
            self.shares[name].pop()
            if not self.shares[name]:
                del self.shares[name]
        self._undo(choice, self.judge.settings.rules.kept.get("backtrack", frozenset()))

    def _undo(self, choice: Choice, kept: frozenset[str]) -> None:
        if "constraints" not in kept:
            for i in reversed(choice.leaf.constraints[: choice.constraints]):
                self.trackers[choice.claim][i].remove(choice.leaf.main)
        if choice.companies is not None:
            self.groups.restore(choice.companies)
        shared = choice.consumed is not None
        if choice.drawn and "counters" not in kept and not (shared and "shared-counters" in kept):
            self.counters.give_back(choice.device)
