"""Repair of O-STALE and O-NIL: prepare refuses a claim whose cache entry refers to a pod that the claim is not reserved for any more.

A claim gets another allocation only when nobody is left in its reservedFor, and a pod that left does not come back. So an entry whose pods
are all in reservedFor belongs to the allocation that prepare has just read; unless the old pod enters the cache only after that, from what
it had read before: then the drivers of entry and claim are compared (the same drivers do no harm, their plugins read the claim themselves).
The pod is tried again until the old pod is unprepared.
"""

from __future__ import annotations

from collections.abc import Iterator

from dra_spec.explorer.model import Outcome, View
from dra_spec.protocol.kubelet import get_claim, reference
from dra_spec.protocol.kubelet_site import MANAGER, Sites
from dra_spec.protocol.kubelet_state import IDLE
from dra_spec.variants.base import Variant, VariantKind


def _get_claim(v: View, sites: Sites, node: str, pod: str, index: int) -> Iterator[Outcome]:
    """Prepare, phase A: a live GET of one claim and the checks, among them that the entry's pods still hold the claim (`left-behind`)."""
    outcomes = list(get_claim.fn(v, sites, node, pod, index))
    if not any(outcome.label == "ok" for outcome in outcomes):
        yield from outcomes
        return
    site = sites[node]
    name = site.refs[pod][index].claim
    entry = v.value(site.kubelet.cache[name])
    if entry is None or entry.pods <= v[site.api.claim[name]].reserved_for:
        yield from outcomes
    elif index > 0:
        refused = v.outcome("left-behind")
        refused[site.kubelet.workers[pod]] = IDLE
        yield refused


def _reference(v: View, sites: Sites, node: str, pod: str, index: int) -> Iterator[Outcome]:
    """Prepare, phase B: enters the pod in the entry, unless its drivers are others than those of the claim (`left-behind`)."""
    outcomes = list(reference.fn(v, sites, node, pod, index))
    if not any(outcome.label == "ok" for outcome in outcomes):
        yield from outcomes
        return
    me = sites[node].kubelet
    want = v[me.workers[pod]].seen[index]
    entry = v.value(me.cache[want.claim])
    if entry is None or entry.drivers == want.drivers:
        yield from outcomes
        return
    refused = v.outcome("left-behind")
    refused[me.workers[pod]] = IDLE
    refused[me.lock] = None
    yield refused


VARIANT = Variant(
    name="kubelet-checks-holders",
    bug="O-STALE",
    kind=VariantKind.REPAIR,
    summary="Prepare refuses a claim whose cache entry refers to a pod that the claim is not reserved for any more",
    source=f"{MANAGER}:prepareResources",
    found_by=("cdi-matches-allocation",),
    replaces={get_claim.name: _get_claim, reference.name: _reference},
)
