"""The kubelet takes a pod for the last user of a claim because the entry has one reference, whosever it is (B58)."""

from __future__ import annotations

from collections.abc import Iterator

from dra_spec.explorer.model import Outcome, View
from dra_spec.protocol.kubelet_site import Sites
from dra_spec.protocol.kubelet_state import Do
from dra_spec.protocol.kubelet_termination import drop
from dra_spec.variants.base import Variant, VariantKind


def drop_reference(v: View, sites: Sites, node: str, pod: str, kind: str) -> Iterator[Outcome]:
    """Unprepare: one claim; whether the entry refers to this pod at all is not looked at."""
    me = sites[node].kubelet
    slot = me.task(kind, pod)
    if v[slot].do is not Do.DROP or not me.free(v):
        return
    task = v.value(slot)
    if task.index < len(task.names):
        yield from drop(v, slot, task, me.cache[task.names[task.index]], pod, member=True)


VARIANT = Variant(
    name="kubelet-counts-references",
    bug="B58",
    kind=VariantKind.DEFECT,
    summary="The kubelet takes a pod for the last user of a claim because the entry has one reference, whosever it is",
    replaces={"kubelet.drop_reference": drop_reference},
    source="kubernetes/kubernetes#140212",
    found_by=("no-unprepare-while-shared",),
)
