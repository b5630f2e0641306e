"""Is this allocation right? A plain check of every rule, one after the other, that shares no code with either allocator.

It searches nothing: it takes devices that somebody chose and names, in words, each rule that they break. Source of the rules: the
structured allocator of Kubernetes 1.37 (k8s.io/dynamic-resource-allocation v0.37.2), KEP-4381, 4815, 4816, 5007, 5018, 5055, 5075.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping, Sequence

import attrs

from dra_spec.allocation.errors import FatalAllocation, UnsupportedFeature
from dra_spec.allocation.validator_pairs import broken_across
from dra_spec.allocation.validator_resources import broken_resources, exists
from dra_spec.allocation.validator_view import Seen, SeenPool, pools_seen
from dra_spec.allocation.validator_worth import Taken, refusal
from dra_spec.allocation.z3_problem import Pick, Problem, Solution
from dra_spec.resources.claims import ExactRequest
from dra_spec.resources.meta import CelSelector
from dra_spec.selectors import Environment, Selector, SelectorDevice, SelectorError, compile_selector

MOST_RESULTS = 32


@attrs.frozen
class Broken:
    """A rule that an allocation breaks. `rule`: a short stable name; `text`: which objects break it."""

    rule: str
    text: str

    def __str__(self) -> str:
        return f"{self.rule}: {self.text}"


def broken_rules(problem: Problem, solution: Solution) -> tuple[Broken, ...]:
    """What is wrong with the allocation; nothing if it is one. Raises UnsupportedFeature for what the rules here do not know."""
    return tuple(Broken(rule, text) for rule, text in _all(problem, solution))


def _all(problem: Problem, solution: Solution) -> Iterator[tuple[str, str]]:
    views: list[Mapping[str, SeenPool]] = []
    for asked, name in zip(problem.calls, solution.nodes, strict=True):
        if name not in asked.nodes:
            yield "node", f"{asked.label} is on node {name}, which is not open to it"
        views.append(pools_seen(problem, problem.node(name)))
    taken: list[Taken] = []
    for pick in solution.picks:
        request = _leaf(problem, pick)
        if request is None:
            yield "request", f"{_label(problem, pick)} is not a request of the claim"
            continue
        call = problem.call_of[pick.claim]
        pool = views[call].get(pick.device.rpartition("/")[0])
        seen = pool.devices.get(pick.device) if pool else None
        if pool is None or seen is None:
            yield "inventory", f"{_label(problem, pick)}: node {solution.nodes[call]} has no such device"
            continue
        if pool.broken:
            yield "pool", pool.broken
        taken.append(Taken(pick, call, request, pool, seen))
        for rule, text in _alone(problem, request, seen, pick):
            yield rule, f"{_label(problem, pick)}: {text}"
    yield from _counts(problem, solution, views)
    yield from broken_resources(problem, solution)
    yield from broken_across(problem, taken)


def _label(problem: Problem, pick: Pick) -> str:
    return f"{problem.claims[pick.claim].label}, request {pick.request}, device {pick.device}"


def _leaf(problem: Problem, pick: Pick) -> ExactRequest | None:
    for request in problem.claims[pick.claim].spec.requests:
        for name, leaf in request.leaves:
            if name == pick.request:
                return leaf
    return None


def _alone(problem: Problem, request: ExactRequest, seen: Seen, pick: Pick) -> Iterator[tuple[str, str]]:
    """What speaks against this device for this request, whatever else is allocated."""
    if pick.admin != bool(request.admin_access):
        yield "admin", "admin access is not what the request says"
    failed = selectors_refuse(problem, request, seen)
    if failed:
        yield "selector", failed
    if not seen.here:
        yield "node", "the device is for other nodes"
    yield from refusal(problem, request, seen, pick)


def selectors_refuse(problem: Problem, request: ExactRequest, seen: Seen) -> str:
    """The first selector of the class or the request that does not hold on the device; "" if all hold."""
    device_class = problem.classes.get(request.device_class_name)
    if device_class is None:
        return f"there is no class {request.device_class_name}"
    view = SelectorDevice.of(seen.slice.spec.driver, seen.slice.spec.pool.name, seen.device)
    for selector in device_class.spec.selectors + request.selectors:
        if not _holds(selector, view, problem.environment):
            return f"the selector {selector.expression!r} does not hold"
    return ""


@functools.lru_cache(maxsize=1024)
def _compiled(selector: CelSelector, environment: Environment) -> Selector:
    return compile_selector(selector.expression, selector.at, environment)


def _holds(selector: CelSelector, view: SelectorDevice, environment: Environment) -> bool:
    answer = _compiled(selector, environment).matches(view)
    return not isinstance(answer, SelectorError) and answer


def _counts(problem: Problem, solution: Solution, views: Sequence[Mapping[str, SeenPool]]) -> Iterator[tuple[str, str]]:
    """Each request has as many devices as it asks for, from one of its alternatives."""
    for index, claim in enumerate(problem.claims):
        mine = [p for p in solution.picks if p.claim == index]
        if not exists(problem, claim, solution.nodes[problem.call_of[index]]):
            if mine:
                yield "special", f"{claim.label} has devices on a node where there is no such claim"
            continue
        if len(mine) > MOST_RESULTS:
            yield "limit", f"{claim.label} has {len(mine)} devices, at most {MOST_RESULTS} are allowed"
        for request in claim.spec.requests:
            chosen = {name: [p for p in mine if p.request == name] for name, _ in request.leaves}
            active = [name for name, picks in chosen.items() if picks]
            if len(active) != 1:
                # a request that matches nothing is never satisfied, so exactly one alternative has devices
                yield "count", f"{claim.label}, request {request.name}: {len(active)} alternatives have devices, expected one"
                continue
            picks, leaf = chosen[active[0]], dict(request.leaves)[active[0]]
            devices = [p.device for p in picks]
            if len(set(devices)) != len(devices):
                yield "count", f"{claim.label}, request {active[0]}: a device counts twice"
            if leaf.all_devices:
                wanted = _everything(problem, views[problem.call_of[index]], leaf)
                if set(devices) != wanted:
                    missing = ", ".join(sorted(wanted ^ set(devices)))
                    yield "all", f"{claim.label}, request {active[0]} asks for all devices: {missing} is missing or too much"
            elif len(devices) != leaf.number:
                yield "count", f"{claim.label}, request {active[0]}: {len(devices)} devices, expected {leaf.number}"


def _everything(problem: Problem, view: Mapping[str, SeenPool], request: ExactRequest) -> set[str]:
    """The devices that a request for all must get."""
    found = set()
    for pool in view.values():
        if pool.broken:
            raise FatalAllocation(f"all devices are asked for, but {pool.broken}")
        for seen in pool.devices.values():
            fits = not any(rule == "capacity" for rule, _ in refusal(problem, request, seen, None))
            hidden = bool(seen.device.binding_conditions) and "DeviceBindingAndStatus" not in problem.features
            if seen.here and fits and not hidden and not selectors_refuse(problem, request, seen):
                found.add(seen.name)
    return found


__all__ = ["Broken", "UnsupportedFeature", "broken_rules"]
