"""The kubelet deletes a claim's entry when the first of its drivers has unprepared it (B53)."""

from __future__ import annotations

from collections.abc import Iterator

from dra_spec.explorer.model import Outcome, View
from dra_spec.protocol.kubelet_site import Sites, answer_of, answered_by
from dra_spec.protocol.kubelet_state import Do
from dra_spec.protocol.kubelet_termination import aborted, delete_from, has_failed
from dra_spec.variants.base import Variant, VariantKind


def unprepare_answer(v: View, sites: Sites, node: str, pod: str, driver: str, kind: str) -> Iterator[Outcome]:
    """Unprepare: a driver has answered; its claims leave cache and checkpoint at once, whatever the other drivers will answer."""
    site = sites[node]
    me = site.kubelet
    slot = me.task(kind, pod)
    if v[slot].do is not Do.UNPREPARE:
        return
    call = answer_of(v, site, pod, driver, slot)
    if call is None:
        return
    failed = v.project(call, has_failed)
    if not failed and not me.free(v):
        return
    outcome = v.outcome("failed" if failed else "ok")
    outcome[call] = None
    outcome[slot] = aborted(kind) if failed else answered_by(v.value(slot), driver, Do.DELETE)
    if not failed:
        delete_from(me, outcome, v.value(slot).for_driver(driver))
    yield outcome


VARIANT = Variant(
    name="kubelet-forgets-after-first-driver",
    bug="B53",
    kind=VariantKind.DEFECT,
    summary="The kubelet deletes a claim's entry when the first of its drivers has unprepared it",
    replaces={"kubelet.unprepare_answer": unprepare_answer},
    source="kubernetes/kubernetes#124323",
    found_by=("no-orphan-prepared",),
)
