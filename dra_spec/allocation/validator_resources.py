"""Are the extended resources of an allocation right? Checked from the pods' containers, without the code that made the special claims.

Source of the rules: KEP-5004 (who serves a resource), KEP-753 (what containers need at once).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dra_spec.allocation.extended import Ask, PodAsks
from dra_spec.allocation.z3_problem import Problem, Solution, WantedClaim


def broken_resources(problem: Problem, solution: Solution) -> Iterator[tuple[str, str]]:
    """What containers lack of devices that DRA serves, and what device plugins have not."""
    spent: dict[tuple[str, str], int] = {}
    for i, call in enumerate(problem.calls):
        node = solution.nodes[i]
        for pod in call.pods:
            for resource in sorted({a.resource for a in pod.asks}):
                asks = [a for a in pod.asks if a.resource == resource]
                if _by_class(problem, node, resource):
                    yield from _devices(problem, solution, node, pod, resource, asks)
                else:
                    spent[node, resource] = spent.get((node, resource), 0) + _at_once(asks)
    for (node, resource), amount in spent.items():
        amount += sum(p.of(resource) for p in problem.running if p.node == node)
        given = problem.node(node).status.allocatable.get(resource)
        if given is None or amount > given.value:
            yield "resource", f"node {node} has {given or 0} of {resource}, pods use {amount}"


def exists(problem: Problem, claim: WantedClaim, node: str) -> bool:
    """Whether there is such a claim on the node: the scheduler makes one for all that classes serve there."""
    if claim.special is None:
        return True
    return {r for r in claim.special.asked if _by_class(problem, node, r)} == claim.special.served


def _by_class(problem: Problem, node: str, resource: str) -> bool:
    plugin = problem.node(node).status.allocatable.get(resource)
    return resource in problem.backing and (plugin is None or plugin.value <= 0)


def _at_once(asks: Sequence[Ask]) -> int:
    """The most that is in use at any time: while each init container runs, and when all others do."""
    stays = [a for a in asks if a.kind != "init container"]
    moments = [sum(a.amount for a in stays)]
    moments += [a.amount + sum(s.amount for s in stays if s.kind == "sidecar" and s.index < a.index) for a in asks if a not in stays]
    return max(moments)


def _devices(
    problem: Problem, solution: Solution, node: str, pod: PodAsks, resource: str, asks: Sequence[Ask]
) -> Iterator[tuple[str, str]]:
    found = [(i, c.special) for i, c in enumerate(problem.claims) if c.special and c.special.pod == pod.pod and exists(problem, c, node)]
    if len(found) != 1:
        yield "special", f"{pod.pod} has {len(found)} claims for extended resources on node {node}, expected one"
        return
    index, special = found[0]
    got: dict[str, int] = {}
    for pick in solution.picks:
        if pick.claim == index:
            got[pick.request] = got.get(pick.request, 0) + 1
    classes = {r.name: r.exactly.device_class_name for r in problem.claims[index].spec.requests if r.exactly}
    users: dict[str, list[Ask]] = {}
    for ask in asks:
        mine = {u.request for u in special.uses if (u.container, u.resource) == (ask.container, resource)}
        if any(classes.get(name) != problem.backing[resource] for name in mine):
            yield "special", f"{pod.pod}: {ask.kind} {ask.container} uses devices of another class than {problem.backing[resource]}"
        if sum(got.get(name, 0) for name in mine) < ask.amount:
            yield "special", f"{pod.pod}: {ask.kind} {ask.container} has too few devices for {ask.amount} of {resource}"
        for name in mine:
            users.setdefault(name, []).append(ask)
    for name, sharing in users.items():
        lasting = [a for a in sharing if a.kind != "init container"]
        if len(lasting) > 1 or any(a.index < b.index for a in lasting for b in sharing if b not in lasting):
            yield "special", f"{pod.pod}: containers that run at the same time share the devices of request {name}"
    if sum(got.get(name, 0) for name in users) != _at_once(asks):
        yield "special", f"{pod.pod} has {sum(got.get(name, 0) for name in users)} devices for {resource}, expected {_at_once(asks)}"
