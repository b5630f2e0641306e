"""Which container of a placed pod gets which extended resources, and from whom."""

from __future__ import annotations

from collections.abc import Iterable

import attrs

from dra_spec.allocation.extended import Running, served_by_dra
from dra_spec.allocation.extended_nodes import needs, wanted_on
from dra_spec.allocation.z3_problem import Call, Pick, Problem


@attrs.frozen
class Served:
    """`kind`: container, sidecar or init container. Served by DRA: the requests of the pod's special claim that the container uses, and
    their devices (driver/pool/device); both empty if a device plugin serves it. An init container may use devices of later containers."""

    pod: str
    container: str
    kind: str
    resource: str
    amount: int
    by_dra: bool
    requests: tuple[str, ...] = ()
    devices: tuple[str, ...] = ()


def served(problem: Problem, call: Call, node: str, picks: Iterable[Pick]) -> tuple[Served, ...]:
    """All that the containers of the call's pods get on the node. `picks`: of the whole problem."""
    start = sum(len(c.claims) for c in problem.calls[: problem.calls.index(call)])
    special = {c.special.pod: (start + i, c.special) for i, c in enumerate(call.claims) if c.special and wanted_on(problem, c, node)}
    devices: dict[tuple[int, str], list[str]] = {}
    for pick in picks:
        devices.setdefault((pick.claim, pick.request), []).append(pick.device)
    found = []
    for pod in call.pods:
        by_dra = served_by_dra(problem.node(node), pod.resources, problem.backing)
        for ask in pod.asks:
            one = Served(pod.pod, ask.container, ask.kind, ask.resource, ask.amount, ask.resource in by_dra)
            if one.by_dra:
                index, claim = special[pod.pod]
                requests = tuple(u.request for u in claim.uses if (u.container, u.resource) == (ask.container, ask.resource))
                one = attrs.evolve(one, requests=requests, devices=tuple(d for r in requests for d in devices.get((index, r), ())))
            found.append(one)
    return tuple(found)


def placed(call: Call, node: str) -> tuple[Running, ...]:
    """What the call's pods count as for those that come after them, once they are on the node."""
    return tuple(Running(pod.pod, node, tuple(needs([pod]).items())) for pod in call.pods)
