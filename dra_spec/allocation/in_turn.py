"""One pod after the other, as kube-scheduler takes them: each on the first node where it fits, unless its attempt is aborted.

A fatal error on one node ends the attempt on all nodes, also on those that fit (KEP-4381; kube-scheduler, findNodesThatPassFilters), so all
nodes are looked at, up to the number of fitting ones at which the scheduler stops in a large cluster.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

import attrs

from dra_spec.allocation.allocator import Allocator
from dra_spec.allocation.errors import DoesNotFit, FatalAllocation
from dra_spec.allocation.explain_upstream import ENOUGH_NODES
from dra_spec.allocation.extended_manifests import pod_label
from dra_spec.allocation.extended_nodes import shortages, wanted_on
from dra_spec.allocation.ledger import Charge, ClaimDevices, Ledger, allocated, references
from dra_spec.allocation.nodeallocatable import Held
from dra_spec.allocation.results import ClaimResult
from dra_spec.allocation.state import AllocatedState
from dra_spec.allocation.z3_problem import Call, Problem
from dra_spec.resources.core import Pod
from dra_spec.resources.reader import Loaded


@attrs.frozen(eq=False)
class User:
    """A pod of a call. `entries`: the label of each of its claims that have no devices yet, and how many containers refer to it;
    `already`: its claims that have."""

    pod: Pod
    entries: tuple[tuple[str, int], ...]
    already: tuple[ClaimDevices, ...] = ()

    @classmethod
    def of(cls, loaded: Loaded, call: Call, pod: Pod) -> User:
        """Claims have the labels that waiting pods give them: the claim's name, or pod and entry for one made from a template."""
        labels = {c.label for c in call.claims}
        entries = []
        for entry in pod.spec.resource_claims:
            label = f"claim {entry.resource_claim_name or f'{pod.name}-{entry.name}'}"
            if label in labels:
                entries.append((label, references(pod, entry.name)))
        for claim in call.claims:
            if claim.special is not None and claim.special.pod == pod_label(loaded, pod):
                entries.append((claim.label, len({use.container for use in claim.special.uses})))
        return cls(pod, tuple(entries), tuple(allocated(loaded, pod)))

    def devices(self, chosen: Mapping[str, Sequence[Held]]) -> tuple[ClaimDevices, ...]:
        """All devices of the pod. `chosen`: by label of the claim."""
        return (*(ClaimDevices(label, chosen[label], n) for label, n in self.entries if label in chosen), *self.already)


@attrs.frozen(eq=False)
class Placed:
    """`results`: by index of the claim in the call; `charges`: what the pods' devices cost the node; `reason`: why it does not fit."""

    kind: Literal["fits", "no-fit", "fatal"]
    node: str | None = None
    results: dict[int, ClaimResult] = attrs.field(factory=dict)
    charges: tuple[Charge, ...] = ()
    reason: str = ""


def place_call(allocator: Allocator, problem: Problem, call: Call, in_use: AllocatedState, ledger: Ledger, users: Sequence[User]) -> Placed:
    """Where the call goes. Raises UnsupportedFeature."""
    fitting: Placed | None = None
    number = 0
    why: list[str] = []
    for node in call.nodes:
        short = shortages(problem, call, node)
        if short:  # NodeResourcesFit comes before DynamicResources
            why += [s.text for s in short]
            continue
        wanted = {i: c.spec for i, c in enumerate(call.claims) if wanted_on(problem, c, node)}
        try:
            found = dict(zip(wanted, allocator.allocate(list(wanted.values()), node, in_use), strict=True))
            charges = charged(ledger, node, users, {call.claims[i].label: r.results for i, r in found.items()})
        except DoesNotFit as error:
            why.append(str(error))
            continue
        except FatalAllocation as error:
            return Placed("fatal", reason=str(error))
        refused = [c.refused for c in charges if c.refused]
        if refused:
            why += refused
            continue
        fitting = fitting or Placed("fits", node, found, charges)
        number += 1
        if number == ENOUGH_NODES:
            break
    if fitting is not None:
        return fitting
    reason = why[0] if len(set(why)) == 1 else f"no node has room: {'; '.join(dict.fromkeys(why))}"
    return Placed("no-fit", reason=reason)


def charged(ledger: Ledger, node: str, users: Sequence[User], chosen: Mapping[str, Sequence[Held]]) -> tuple[Charge, ...]:
    """What the devices cost each pod; for claims without pods, what they would cost one. Raises FatalAllocation."""
    if not ledger.matters:
        return ()
    if users:
        return ledger.charge(node, [(u.pod, u.devices(chosen)) for u in users])
    return tuple(Charge("", ledger.cost(node, [ClaimDevices(label, devices, 0)])) for label, devices in chosen.items())
