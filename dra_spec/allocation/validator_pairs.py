"""The validator's rules across devices: nothing twice, what others hold, capacity, counters, compatibility groups, constraints."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction

import attrs

from dra_spec.allocation.errors import UnsupportedFeature
from dra_spec.allocation.validator_view import SeenPool
from dra_spec.allocation.validator_worth import Taken, consumption, shareable
from dra_spec.allocation.z3_problem import Problem
from dra_spec.resources.claims import Constraint
from dra_spec.resources.slices import Device
from dra_spec.selectors import SelectorDevice, SelectorError, compile_derived


def broken_across(problem: Problem, taken: Sequence[Taken]) -> Iterator[tuple[str, str]]:
    """(rule, text) for each rule about several devices that is broken."""
    yield from _exclusive(problem, taken)
    yield from _capacity(problem, taken)
    for label, pool in {t.pool.label: t.pool for t in taken}.items():
        yield from _counters(problem, pool, [t for t in taken if t.pool.label == label])
        yield from _groups(problem, pool, [t for t in taken if t.pool.label == label])
    for index, claim in enumerate(problem.claims):
        for constraint in claim.spec.devices.constraints:
            covered = [t for t in taken if t.pick.claim == index and covers(constraint, t.pick.request)]
            text = _constraint(problem, constraint, covered)
            if text:
                yield "constraint", f"{claim.label}: {text}"


def _exclusive(problem: Problem, taken: Sequence[Taken]) -> Iterator[tuple[str, str]]:
    held = {h.device: h.claim for h in problem.holdings if not h.shared}
    for i, one in enumerate(taken):
        if not one.pick.admin and one.seen.name in held:
            yield "in-use", f"{one.seen.name} is held by {held[one.seen.name] or 'a claim'}"
        if shareable(problem, one.device):
            continue
        for other in taken[i + 1 :]:
            if other.seen.name != one.seen.name:
                continue
            if one.call != other.call:
                if not one.pick.admin and not other.pick.admin:
                    yield "once", f"{one.seen.name} is given to two pods"
            elif one.pick.claim == other.pick.claim or not other.pick.admin:
                yield "once", f"{one.seen.name} is given to {one.pick.request} and then to {other.pick.request}"


def _live(problem: Problem, name: str) -> bool:
    return any(h.shared and h.device == name for h in problem.holdings)


def _capacity(problem: Problem, taken: Sequence[Taken]) -> Iterator[tuple[str, str]]:
    if "ConsumableCapacity" not in problem.features:
        return
    used: dict[tuple[str, str], Fraction] = {}
    for held in problem.holdings:
        for capacity, amount in held.consumed:
            used[held.device, capacity] = used.get((held.device, capacity), Fraction(0)) + amount
    for each in taken:
        for capacity, amount in consumption(problem, each.request, each.device).items():
            before = used.get((each.seen.name, capacity), Fraction(0))
            if before + amount > each.device.capacity[capacity].value.value:
                yield "capacity", f"{each.seen.name}: {capacity} has {each.device.capacity[capacity].value}, {before + amount} are taken"
            if shareable(problem, each.device):
                used[each.seen.name, capacity] = before + amount


def _counters(problem: Problem, pool: SeenPool, taken: Sequence[Taken]) -> Iterator[tuple[str, str]]:
    """Every counter of the pool must cover what is drawn, as soon as one of the new devices draws on any. Admin access draws too."""
    left = dict(pool.counters)
    holders = {h.device for h in problem.holdings}
    for device in pool.listed:
        if f"{pool.label}/{device.name}" in holders:
            _draw(left, device)
    charged = set()
    drawing = False
    for each in taken:
        if not each.device.consumes_counters:
            continue
        if shareable(problem, each.device):
            if each.seen.name in charged or _live(problem, each.seen.name):
                continue
            charged.add(each.seen.name)
        drawing = True
        _draw(left, each.device)
    for (counter_set, counter), rest in left.items() if drawing else ():
        if rest < 0:
            yield "counter", f"pool {pool.label}: counter {counter_set}/{counter} is overdrawn by {-rest}"


def _draw(left: dict[tuple[str, str], Fraction], device: Device) -> None:
    for use in device.consumes_counters:
        for counter, amount in use.counters.items():
            if (use.counter_set, counter) in left:
                left[use.counter_set, counter] -= amount.value


def _groups(problem: Problem, pool: SeenPool, taken: Sequence[Taken]) -> Iterator[tuple[str, str]]:
    """All that draws on a counter set has a compatibility group in common, or none of it has any."""
    if "CompatibilityGroups" not in problem.features:
        return
    holders = {h.device for h in problem.holdings}
    for counter_set in sorted({s for s, _ in pool.counters}):
        chosen = [_groups_of(d, counter_set) for d in pool.listed if f"{pool.label}/{d.name}" in holders]
        common = _Common()
        for groups in chosen:
            if groups is not None:
                common.add(groups)
        for each in taken:
            mine = _groups_of(each.device, counter_set)
            if mine is None or (shareable(problem, each.device) and _live(problem, each.seen.name)):
                continue
            if not common.admits(mine):
                yield "compatibility", f"{each.seen.name} has no group in common with the others on counter set {counter_set}"
            common.add(mine)


@attrs.define
class _Common:
    """What the devices on a counter set have in common: nothing yet, that none has groups (`empty`), or some groups."""

    groups: frozenset[str] | None = None
    empty: bool = False

    def admits(self, groups: frozenset[str]) -> bool:
        if self.groups is None and not self.empty:
            return True
        return not groups if self.empty else bool(groups & (self.groups or frozenset()))

    def add(self, groups: frozenset[str]) -> None:
        if self.groups is None and not self.empty:
            self.empty, self.groups = not groups, groups or None
        elif self.empty:
            self.empty, self.groups = not groups, None if not groups else frozenset()
        else:
            self.groups = (self.groups or frozenset()) & groups


def _groups_of(device: Device, counter_set: str) -> frozenset[str] | None:
    return next((frozenset(c.compatibility_groups) for c in device.consumes_counters if c.counter_set == counter_set), None)


def covers(constraint: Constraint, request: str) -> bool:
    """Whether the constraint speaks of the request (main or main/sub)."""
    return not constraint.requests or request in constraint.requests or request.partition("/")[0] in constraint.requests


def _constraint(problem: Problem, constraint: Constraint, covered: Sequence[Taken]) -> str:
    name = constraint.match_attribute or constraint.distinct_attribute
    sets = []
    for each in covered:
        values = _values(problem, each, name, len(covered), bool(constraint.match_attribute))
        if not values:
            return f"{each.seen.name} has no attribute {name}"
        sets.append(values)
    if constraint.match_attribute:
        return "" if not sets or frozenset.intersection(*sets) else f"the devices have no value of {name} in common"
    for i, values in enumerate(sets):
        for other in range(i):
            if values & sets[other]:
                return f"{covered[other].seen.name} and {covered[i].seen.name} have the same {name}"
    return ""


def _values(problem: Problem, each: Taken, name: str, covered: int, match: bool) -> frozenset[tuple[str, object]]:
    domain, _, ident = name.partition("/")
    for derived in each.request.derived_attributes:
        if derived.name == name:
            spec = each.seen.slice.spec
            compiled = compile_derived(derived.expression, environment=problem.environment)
            value = compiled.value(SelectorDevice.of(spec.driver, spec.pool.name, each.device))
            if isinstance(value, SelectorError):
                return frozenset()
            return frozenset(_like_attribute(v) for v in (value if isinstance(value, tuple) else (value,)))
    found = each.device.attributes.get(name)
    if found is None and domain == each.seen.slice.spec.driver:
        found = each.device.attributes.get(ident)
    if found is None:
        return frozenset()
    if not found.is_list:
        return frozenset({(found.kind, found.value)})
    if "ListTypeAttributes" not in problem.features:
        if not match:
            raise UnsupportedFeature(f"distinctAttribute on the list attribute {name} while its feature is off", each.device.at)
        # while the feature is off, a list is equal to nothing, not even to itself: it passes where it is alone
        return frozenset({("list", each.seen.name if covered == 1 else id(each))})
    values = found.value if isinstance(found.value, tuple) else (found.value,)
    return frozenset((found.kind[:-1], v) for v in values)


def _like_attribute(value: object) -> tuple[str, object]:
    """The kind and the value that an attribute of a slice has for it."""
    kinds: dict[type, str] = {bool: "bool", int: "int", str: "string"}
    return (kinds[type(value)], value) if type(value) in kinds else ("version", str(value))
