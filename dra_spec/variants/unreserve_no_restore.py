"""Repair of H1: Unreserve leaves the assume cache alone.

In 1.37.2 the entry in flight of a published claim stays until all of PreBind has succeeded. So when a later claim fails, Unreserve finds
the entry, removes it, and sets the cache back to what the informer stored, which is the claim *before* its allocation was written: the
devices are in nobody's set, and the next pod gets them. Restore has nothing left to do since allocations are decided in the in-flight map
and enter the cache only when they are written; 1.38.0-beta.0 does not call it any more.

Source: kubernetes/kubernetes v1.38.0-beta.0, pkg/scheduler/framework/plugins/dynamicresources/dynamicresources.go:Unreserve.
"""

from __future__ import annotations

from collections.abc import Iterator

from dra_spec.explorer.model import Outcome, View
from dra_spec.protocol.scheduler_state import Scheduler
from dra_spec.protocol.scheduler_unreserve import after_restore, release, release_in_flight
from dra_spec.variants.base import Variant, VariantKind


def _release_and_go_on(v: View, s: Scheduler, scheduler: str, pod: str, index: int) -> Iterator[Outcome]:
    """Unreserve counts down the entry in flight of a claim and does not restore the cache."""
    released = release(v, s, pod, index)
    if released is None:
        return
    out, _ = released
    out[s.binding[pod]] = after_restore(v, s, pod, index)
    yield out


VARIANT = Variant(
    name="unreserve-no-restore",
    bug="H1",
    kind=VariantKind.REPAIR,
    summary="Unreserve does not restore the assume cache, so that a published allocation stays known",
    source="kubernetes/kubernetes v1.38.0-beta.0, dynamicresources.go:Unreserve",
    found_by=("no-double-allocation",),
    replaces={release_in_flight.name: _release_and_go_on},
)
