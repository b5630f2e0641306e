"""Changes to extended resources that would help: fewer of them, without another pod, or by the name that only DRA serves."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

import attrs

from dra_spec.allocation.extended import IMPLICIT, Ask, PodAsks
from dra_spec.allocation.extended_nodes import needs, stock, with_specials
from dra_spec.allocation.relax_change import Change
from dra_spec.allocation.z3_problem import Call, Problem

MAX_PODS = 3


def options(problem: Problem, node: str, resource: str) -> Iterator[tuple[Change, ...]]:
    """Each way to make do with what the device plugins of the node have left; at most so many pods are freed together."""
    call = problem.calls[0]
    there = stock(problem, node, resource)
    for pod, ask in _asks(call, resource):
        for less in range(1, ask.amount + 1):
            change = fewer(pod, ask, less)
            if needs(_edited(call, [change])).get(resource, 0) <= there.left:
                yield (change,)
                break
    device_class = problem.backing.get(resource)
    if device_class and there.offered and not any(a.resource == IMPLICIT + device_class for _, a in _all(call)):
        pods = [p for p in call.pods if resource in p.resources]
        yield tuple(
            Change("rename", (p.pod, resource), f"ask for {IMPLICIT}{device_class}, which DRA serves, instead of {resource} in {p.pod}")
            for p in pods
        )
    for size in range(1, MAX_PODS + 1):
        sets = [s for s in itertools.combinations(there.holders, size) if there.left + sum(n for _, n in s) >= needs(call.pods)[resource]]
        yield from (tuple(Change("running", (p,), f"free {resource} of {p}, which has {n}") for p, n in each) for each in sets)
        if sets:
            break


def fewer(pod: PodAsks, ask: Ask, amount: int) -> Change:
    """The container asks for so much less of the resource."""
    left = ask.amount - amount
    whose = f"{ask.kind} {ask.container} of {pod.pod}"
    text = f"ask for {left} instead of {ask.amount} {ask.resource} in {whose}" if left else f"do without {ask.resource} in {whose}"
    return Change("ask", (pod.pod, ask.index, ask.resource), text, amount, ask.at)


def of_request(problem: Problem, claim: int, request: str, amount: int) -> Change | None:
    """What a user would change for a request of a special claim to want fewer devices; None for other claims."""
    special = problem.claims[claim].special
    if special is None:
        return None
    pod = next(p for p in problem.calls[problem.call_of[claim]].pods if p.pod == special.pod)
    ask = next(a for a in pod.asks if a.request == request)
    return fewer(pod, ask, min(amount, ask.amount))


def with_amount(problem: Problem, change: Change, amount: int) -> Change:
    """The same change by another amount."""
    for call in problem.calls:
        for pod, ask in _all(call):
            if (pod.pod, ask.index, ask.resource) == change.key:
                return fewer(pod, ask, amount)
    return change


def edit(problem: Problem, call: Call, changes: Sequence[Change]) -> Call:
    """The call with the changes made, and the special claims made anew."""
    own = tuple(c for c in call.claims if c.special is None)
    changed = attrs.evolve(call, claims=own, pods=_edited(call, changes, problem))
    return with_specials(changed, [problem.node(n) for n in call.nodes], problem.backing)


def _edited(call: Call, changes: Sequence[Change], problem: Problem | None = None) -> tuple[PodAsks, ...]:
    less = {c.key: c.amount for c in changes if c.kind == "ask"}
    renamed = {c.key for c in changes if c.kind == "rename"}
    pods = []
    for pod in call.pods:
        asks = []
        for ask in pod.asks:
            ask = attrs.evolve(ask, amount=ask.amount - less.get((pod.pod, ask.index, ask.resource), 0))
            if problem is not None and (pod.pod, ask.resource) in renamed:
                ask = attrs.evolve(ask, resource=IMPLICIT + problem.backing[ask.resource])
            if ask.amount > 0:
                asks.append(ask)
        pods.append(PodAsks(pod.pod, tuple(asks)))
    return tuple(pods)


def _all(call: Call) -> Iterator[tuple[PodAsks, Ask]]:
    return ((pod, ask) for pod in call.pods for ask in pod.asks)


def _asks(call: Call, resource: str) -> Iterator[tuple[PodAsks, Ask]]:
    return ((pod, ask) for pod, ask in _all(call) if ask.resource == resource)
