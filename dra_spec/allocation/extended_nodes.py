"""Extended resources on the nodes of a problem: which special claims exist there, what device plugins have left, what is short and why."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import attrs

from dra_spec.allocation.extended import PodAsks, offered, served_by_dra, special_claim, totals
from dra_spec.allocation.z3_problem import Call, Problem, WantedClaim
from dra_spec.resources.core import Node
from dra_spec.resources.problems import NOWHERE, Where


@attrs.frozen
class Stock:
    """What the device plugins of a node have of a resource, and the pods that use some of it."""

    offered: int
    holders: tuple[tuple[str, int], ...]

    @property
    def left(self) -> int:
        return self.offered - sum(n for _, n in self.holders)


@attrs.frozen
class Shortage:
    """A resource that the device plugins of a node have not enough of for a call."""

    resource: str
    wanted: int
    stock: Stock
    text: str
    where: Where = attrs.field(default=NOWHERE, eq=False)


def wanted_on(problem: Problem, claim: WantedClaim, node: str) -> bool:
    """Whether the claim exists if its pod is on the node; a claim that the scheduler makes depends on what DRA serves there."""
    special = claim.special
    return special is None or served_by_dra(problem.node(node), special.asked, problem.backing) == special.served


def needs(pods: Iterable[PodAsks]) -> dict[str, int]:
    """What the pods need together of each resource."""
    found: dict[str, int] = {}
    for pod in pods:
        for resource, amount in totals(pod.asks).items():
            found[resource] = found.get(resource, 0) + amount
    return found


def by_plugin(problem: Problem, call: Call, node: str) -> dict[str, int]:
    """What the call needs of the node's device plugins: all that DRA does not serve there."""
    wanted = needs(call.pods)
    served = served_by_dra(problem.node(node), wanted, problem.backing)
    return {r: n for r, n in wanted.items() if r not in served}


def stock(problem: Problem, node: str, resource: str) -> Stock:
    """Pods count with all that they ask for, as in the scheduler's cache, also if DRA served them when they came."""
    holders = tuple((p.pod, p.of(resource)) for p in problem.running if p.node == node and p.of(resource))
    return Stock(offered(problem.node(node), resource), holders)


def shortages(problem: Problem, call: Call, node: str) -> tuple[Shortage, ...]:
    """What NodeResourcesFit misses on the node, were the call alone there with the pods that have it already."""
    found = []
    for resource, wanted in by_plugin(problem, call, node).items():
        there = stock(problem, node, resource)
        if wanted > there.left:
            ask = next(a for pod in call.pods for a in pod.asks if a.resource == resource)
            found.append(Shortage(resource, wanted, there, shortage_text(problem, call, node, resource), ask.at))
    return tuple(found)


def shortage_text(problem: Problem, call: Call, node: str, resource: str) -> str:
    """Who serves the resource on the node, and what is left of it there."""
    there = stock(problem, node, resource)
    wanted = needs(call.pods)[resource]
    if not there.offered:
        off = problem.unbacked.get(resource)
        why = f"DeviceClass {off} would provide it, but DRAExtendedResource is off" if off else "no DeviceClass provides it"
        return f"node {node} has no {resource}: no device plugin offers it there, and {why}"
    left = f"{max(there.left, 0)} of {there.offered} left"
    text = f"node {node} serves {resource} by a device plugin and has {left}; {call.label} wants {wanted}"
    if resource in problem.backing:
        text += f" (devices of class {problem.backing[resource]} do not serve it on a node whose device plugin does)"
    return text


def with_specials(call: Call, nodes: Iterable[Node], classes: Mapping[str, str]) -> Call:
    """The call with the claims that the scheduler would make for its pods on these nodes; they come after the pods' own."""
    claims = list(call.claims)
    known = {(c.special.pod, c.special.served) for c in claims if c.special is not None}
    for pod in call.pods:
        for node in nodes:
            served = served_by_dra(node, pod.resources, classes)
            if served and (pod.pod, served) not in known:
                known.add((pod.pod, served))
                spec, special = special_claim(pod, served, classes)
                claims.append(WantedClaim(f"the extended resource claim of {pod.pod}", spec, special))
    return attrs.evolve(call, claims=tuple(claims))
