"""B02: the decision to allocate is kept in the assume cache only, where any newer event of the claim throws it away.

Reserve assumes the claim with its allocation at the version of the copy instead of putting the allocation in flight. The event of the pod's
own finalizer write, or of a label that somebody edits, is newer and replaces it by a claim without allocation; the device looks free until
the status write. Unreserve goes back by Restore.

Source: kubernetes/kubernetes#118612 (the in-flight map came with its fix).
"""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from dra_spec.explorer.model import Outcome, View
from dra_spec.protocol.scheduler import after_reserve, reserve
from dra_spec.protocol.scheduler_cache import assumed, store
from dra_spec.protocol.scheduler_state import Attempt, Binding, Scheduler, Step, at
from dra_spec.protocol.scheduler_unreserve import release_in_flight
from dra_spec.variants.base import Variant, VariantKind


def _reserve_in_cache(v: View, s: Scheduler, scheduler: str, pod: str, index: int) -> Iterator[Outcome]:
    """Reserve assumes the claim with the allocation that is to be written; it fails if the cache has a newer claim."""
    pending, copy = v.value(s.pending[pod][index]), v.value(s.cycle[pod][index])
    if v.value(s.attempt) != Attempt(Step.RESERVE, pod, index) or pending is None or copy is None:
        return
    claim = s.refs(pod)[index].claim
    before = v.value(s.assumed[claim])
    after = assumed(before, attrs.evolve(copy, allocation=pending.allocation, finalizer=True))
    out = v.outcome("ok" if after is not before else "out-of-sync")
    if after is before:
        out[s.attempt] = Attempt(Step.UNRESERVING, pod)
        out[s.binding[pod]] = Binding(Step.RELEASE, 0)
    else:
        store(out, s, claim, after)
        after_reserve(v, out, s, pod, index)
    yield out


def _restore_always(v: View, s: Scheduler, scheduler: str, pod: str, index: int) -> Iterator[Outcome]:
    """Unreserve has no entry in flight to look at; it restores the cache for each claim that the pod was to allocate."""
    if not at(v, s, pod, Step.RELEASE, index):
        return
    out = v.outcome()
    out[s.binding[pod]] = Binding(Step.RESTORE, index)
    yield out


VARIANT = Variant(
    name="allocation-only-assumed",
    bug="B02",
    kind=VariantKind.DEFECT,
    summary="Reserve keeps a tentative allocation in the assume cache, where any newer event of the claim replaces it",
    source="kubernetes/kubernetes#118612",
    found_by=("no-double-allocation",),
    replaces={reserve.name: _reserve_in_cache, release_in_flight.name: _restore_always},
)
