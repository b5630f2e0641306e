"""Repair of H8, H2 and H3: bindClaim looks at what its live GET returned, and does a GET whenever it does not know how its write ended.

In 1.37.2 an error of the status write other than a conflict ends the attempt and drops the entry in flight, although the write may have
been applied; until the event arrives the device is in nobody's set (H8). And after a conflict nobody compares the claim that the GET
returned with the one that was scheduled: it may be another object of the same name (H3), or allocated anew, for another node (H2).

Here an error is tried again like a conflict, with a GET first. If the claim already has this pod's allocation and reservation, the write
was applied and the claim is assumed; if it has another UID, or an allocation that Filter did not look at, the attempt fails. The limit of
five tries stays: with five unknown answers in a row H8 is back.

Source: own proposal; upstream pkg/scheduler/framework/plugins/dynamicresources/dynamicresources.go:bindClaim, read at v1.37.2.
"""

from __future__ import annotations

from collections.abc import Iterator

from dra_spec.explorer.model import Outcome, View
from dra_spec.protocol.objects import Claim
from dra_spec.protocol.scheduler_binding import (
    entry_step,
    get_claim,
    give_up,
    status_write,
    try_again,
    write_allocation,
    written,
)
from dra_spec.protocol.scheduler_state import Binding, Pending, Scheduler, Step, at
from dra_spec.variants.base import Variant, VariantKind

UNKNOWN = ("conflict", "refused", "applied-error")  # the last two are one to the caller: an error


def _write(v: View, s: Scheduler, scheduler: str, pod: str, index: int) -> Iterator[Outcome]:
    """As P4; an error leaves open whether the write was applied, so that the next try looks."""
    for answer in status_write(v, s, pod, index):
        if answer.label == "ok":
            written(answer, s, pod, index, answer.claim)
        elif answer.label in UNKNOWN:
            try_again(v, answer, s, pod, index)
        else:
            give_up(answer, s, pod)
        yield answer


def _own_write(claim: Claim, pending: Pending | None, pod: str) -> bool:
    """Whether the claim is as this pod wanted to write it."""
    return pod in claim.reserved_for and claim.allocated and (pending is None or claim.allocation == pending.allocation)


def _get(v: View, s: Scheduler, scheduler: str, pod: str, index: int) -> Iterator[Outcome]:
    """As P2; the claim must be the one that was scheduled, with the allocation that Filter saw or the pod's own."""
    if not at(v, s, pod, Step.GET, index):
        return
    claim = s.api.get_claim(v, s.refs(pod)[index].claim)
    seen, pending = v.value(s.cycle[pod][index]), v.value(s.pending[pod][index])
    out = v.outcome("ok" if claim else "not-found")
    if claim is None or seen is None or claim.uid != seen.uid:
        give_up(out, s, pod)
    elif _own_write(claim, pending, pod):
        out = v.outcome("applied")
        written(out, s, pod, index, claim)
    else:
        same = pending is not None or claim.allocation == seen.allocation
        step = entry_step(claim, pending is not None) if same else None
        if step is None:
            give_up(out, s, pod)
        else:
            out[s.binding[pod]] = Binding(step, index, v[s.binding[pod]].tries)
            out[s.copy[pod]] = claim
    yield out


VARIANT = Variant(
    name="prebind-verifies-claim",
    bug="H8",
    kind=VariantKind.REPAIR,
    summary="After an error of the status write PreBind reads the claim, recognises its own write, and refuses another UID or allocation",
    source="own proposal; kubernetes v1.37.2, dynamicresources.go:bindClaim",
    found_by=("no-double-allocation",),
    replaces={write_allocation.name: _write, get_claim.name: _get},
)
