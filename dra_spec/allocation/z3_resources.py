"""The rule about extended resources that device plugins serve: what pods on a node ask for together is no more than the node has left.

Source: NodeResourcesFit (noderesources/fit.go, Kubernetes 1.37.2), which leaves to DRA what a class provides and no plugin of the node.
"""

from __future__ import annotations

import attrs
import z3

from dra_spec.allocation.extended_nodes import by_plugin, shortage_text, stock
from dra_spec.allocation.z3_encoding import Encoding
from dra_spec.allocation.z3_leaf import Reason


def resource_rules(e: Encoding) -> None:
    """Adds it for every node and resource."""
    wanted: dict[tuple[str, str], list[tuple[z3.BoolRef, int]]] = {}
    asking: dict[tuple[str, str], list[int]] = {}
    for i, call in enumerate(e.problem.calls):
        if not call.pods:
            continue
        for node, there in e.at[i].items():
            here = z3.And(there, e.wanted[i]) if e.optional else there
            for resource, amount in by_plugin(e.problem, call, node).items():
                wanted.setdefault((node, resource), []).append((here, amount))
                asking.setdefault((node, resource), []).append(i)
    for (node, resource), terms in wanted.items():
        calls = [e.problem.calls[i] for i in asking[node, resource]]
        call = calls[0]
        if len(calls) > 1:
            call = attrs.evolve(call, label="all together", pods=tuple(p for c in calls for p in c.pods))
        ask = next(a for pod in call.pods for a in pod.asks if a.resource == resource)
        there = stock(e.problem, node, resource)
        # equal on nodes that are equally short, so that what is said of one holds for all
        reason = Reason("resource", (resource, there), shortage_text(e.problem, call, node, resource), ask.at)
        left = there.left
        fits = z3.PbLe(terms, left) if left >= 0 else z3.Not(z3.Or([here for here, _ in terms]))
        e.rule(reason, fits)
