"""Repair of H13: what Unreserve has written is put into the assume cache.

In 1.37.2 the answer of the patch that takes the pod out of status.reservedFor is dropped. Until its event arrives the cache goes on showing
the reservation; an attempt that starts before then copies it, PreBind skips the claim unlooked at, and the pod is bound without being a
consumer. The controller may then deallocate the claim under the running pod.

Here the answer is assumed, in a step of its own; a patch that was answered with an error is sent again, up to five times, as nobody knows
whether it was applied.

Source: own proposal; upstream pkg/scheduler/framework/plugins/dynamicresources/dynamicresources.go:Unreserve, read at v1.37.2.
"""

from __future__ import annotations

from collections.abc import Iterator

from dra_spec.explorer.model import Outcome, View
from dra_spec.protocol.scheduler_binding import TRIES, copy_of
from dra_spec.protocol.scheduler_cache import assumed, store
from dra_spec.protocol.scheduler_state import Binding, Scheduler, Step, at
from dra_spec.protocol.scheduler_unreserve import after_give_back, give_back_request, give_back_reservation
from dra_spec.variants.base import Variant, VariantKind


def _give_back(v: View, s: Scheduler, scheduler: str, pod: str, index: int) -> Iterator[Outcome]:
    """As U3, then Assume of the answer; `written` holds it in between."""
    if not at(v, s, pod, Step.GIVE_BACK, index):
        return
    claim = s.refs(pod)[index].claim
    answered = v.project(s.written[pod], copy_of, claim)
    if answered is not None:
        before = v.value(s.assumed[claim])
        after = assumed(before, answered)
        out = v.outcome("assumed" if after is not before else "ignored")
        if after is not before:
            store(out, s, claim, after)
        out[s.written[pod]] = None
        out[s.binding[pod]] = after_give_back(s, pod, index)
        yield out
        return
    tries = v[s.binding[pod]].tries
    for answer in give_back_request(v, s, pod, index):
        if answer.label == "ok":
            answer[s.written[pod]] = answer.claim
        elif answer.label in ("refused", "applied-error") and tries + 1 < TRIES:
            answer[s.binding[pod]] = Binding(Step.GIVE_BACK, index, tries + 1)
        else:
            answer[s.binding[pod]] = after_give_back(s, pod, index)
        yield answer


VARIANT = Variant(
    name="unreserve-assumes-answer",
    bug="H13",
    kind=VariantKind.REPAIR,
    summary="Unreserve puts the claim that its patch returned into the assume cache, and repeats a patch that failed",
    source="own proposal; kubernetes v1.37.2, dynamicresources.go:Unreserve",
    found_by=("bound-implies-reserved",),
    replaces={give_back_reservation.name: _give_back},
)
