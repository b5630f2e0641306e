"""Repair of H16: Reserve fails if the claim that it is to put in flight has been allocated meanwhile.

In 1.37.2 Reserve then stores nothing, but the pod goes on carrying the allocation that it was given, and nobody counts it: if the claim is
deallocated before the pod's PreBind, another pod gets the devices, and PreBind writes them too. Here the attempt fails; the next one finds
the claim allocated and only joins it.

Source: own proposal; upstream pkg/scheduler/framework/plugins/dynamicresources/dra_manager.go:SignalClaimPendingAllocation, read at
v1.37.2.
"""

from __future__ import annotations

from collections.abc import Iterator

from dra_spec.explorer.model import Outcome, View
from dra_spec.protocol.scheduler import is_published, reserve
from dra_spec.protocol.scheduler_state import Attempt, Binding, Scheduler, Step
from dra_spec.variants.base import Variant, VariantKind


def _reserve(v: View, s: Scheduler, scheduler: str, pod: str, index: int) -> Iterator[Outcome]:
    """As Reserve, but a claim that the cache shows as allocated ends the attempt."""
    if v.value(s.attempt) == Attempt(Step.RESERVE, pod, index) and is_published(v, s, pod, index):
        out = v.outcome("published")
        out[s.attempt] = Attempt(Step.UNRESERVING, pod)
        out[s.binding[pod]] = Binding(Step.RELEASE, 0)
        yield out
        return
    yield from reserve.fn(v, s, scheduler, pod, index)


VARIANT = Variant(
    name="reserve-rejects-published",
    bug="H16",
    kind=VariantKind.REPAIR,
    summary="Reserve fails if the claim was allocated meanwhile, instead of carrying an allocation that nobody counts",
    source="own proposal; kubernetes v1.37.2, dra_manager.go:SignalClaimPendingAllocation",
    found_by=("no-double-allocation",),
    replaces={reserve.name: _reserve},
)
