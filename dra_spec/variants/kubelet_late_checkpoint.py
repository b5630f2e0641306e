"""The kubelet writes its checkpoint only after the prepare calls have returned (B50)."""

from __future__ import annotations

from collections.abc import Iterator

from dra_spec.explorer.model import Outcome, View
from dra_spec.protocol.kubelet import after_reference
from dra_spec.protocol.kubelet_site import Sites
from dra_spec.protocol.kubelet_state import Do
from dra_spec.variants.base import Variant, VariantKind


def checkpoint_reference(v: View, sites: Sites, node: str, pod: str, index: int) -> Iterator[Outcome]:
    """Prepare, phase B: nothing is written; K9 is the first to write the checkpoint."""
    me = sites[node].kubelet
    if v[me.workers[pod]].do is not Do.CHECKPOINT or v[me.workers[pod]].index != index:
        return
    ok = v.outcome()
    after_reference(me, ok, pod, v.value(me.workers[pod]))
    yield ok


VARIANT = Variant(
    name="kubelet-late-checkpoint",
    bug="B50",
    kind=VariantKind.DEFECT,
    summary="The kubelet writes its checkpoint only after the prepare calls have returned",
    replaces={"kubelet.checkpoint_reference": checkpoint_reference},
    source="kubernetes/kubernetes#116411, #115912",
    found_by=("checkpoint-covers-prepared", "no-orphan-prepared"),
)
