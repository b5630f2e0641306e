"""B01: the allocated devices are gathered from two places without noticing that a claim moves between them.

PreFilter reads the set that the assume cache feeds and then the allocations in flight. Without the revision check, a claim that is
published and leaves the in-flight map between the two reads is in neither.

Source: kubernetes/kubernetes#136269, issue #133602 (fixed in 1.34.4, 1.35.4 and later).
"""

from __future__ import annotations

from collections.abc import Iterator

from dra_spec.explorer.model import Outcome, View
from dra_spec.protocol.scheduler import check_revision
from dra_spec.protocol.scheduler_state import Attempt, Scheduler, Step
from dra_spec.variants.base import Variant, VariantKind


def _believe(v: View, s: Scheduler, scheduler: str, pod: str) -> Iterator[Outcome]:
    """PreFilter takes what it has read, whatever has changed meanwhile."""
    if v.value(s.attempt) != Attempt(Step.REVISION, pod):
        return
    out = v.outcome()
    out[s.attempt] = Attempt(Step.FILTER, pod)
    out[s.changed] = False
    yield out


VARIANT = Variant(
    name="unchecked-revision",
    bug="B01",
    kind=VariantKind.DEFECT,
    summary="PreFilter does not read again when the set of allocated devices changed while it was reading",
    source="kubernetes/kubernetes#136269",
    found_by=("no-double-allocation",),
    replaces={check_revision.name: _believe},
)
