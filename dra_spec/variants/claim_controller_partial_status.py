"""B39: the pod's status is applied with the names found in this sync only.

The list has one field owner, so applying it without an entry removes the entry: the names of two generated claims take turns and are
never there together. It starts when one of the two claims has to be created again.

Source: kubernetes/kubernetes#138407 (fixed in 1.37.2).
"""

from __future__ import annotations

from collections.abc import Iterator

from dra_spec.explorer.model import Outcome, View
from dra_spec.protocol.claim_controller_pods import apply_names, apply_pod_status
from dra_spec.protocol.claim_controller_state import Controller, PodStep
from dra_spec.variants.base import Variant, VariantKind


def _apply_found(v: View, c: Controller, pod: str) -> Iterator[Outcome]:
    """Records the names found in this sync, and drops the others."""
    if v[c.pod_work[pod]].step is PodStep.APPLY:
        yield from apply_names(v, c, pod, v[c.pod_work[pod]].found)


VARIANT = Variant(
    name="claim-controller-partial-status",
    bug="B39",
    kind=VariantKind.DEFECT,
    summary="The pod's status is applied with only the newly found claim names, so that the others are removed",
    source="kubernetes/kubernetes#138407",
    found_by=("pod-eventually-scheduled",),
    replaces={apply_pod_status.name: _apply_found},
)
