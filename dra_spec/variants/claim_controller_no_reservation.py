"""B44: nobody reserves an allocated claim for a pod that got its node without the scheduler.

Such a pod waits on its node for ever. The controller adds the reservation since the fix.

Source: kubernetes/kubernetes#118209, issue #114005.
"""

from __future__ import annotations

from collections.abc import Iterator

from dra_spec.explorer.model import Outcome, View
from dra_spec.protocol.claim_controller_pods import current, reserve_for_pod
from dra_spec.protocol.claim_controller_state import NO_POD_WORK, Controller, PodStep
from dra_spec.variants.base import Variant, VariantKind


def _leave(v: View, c: Controller, pod: str) -> Iterator[Outcome]:
    """The sync ends where it would reserve (`skip`)."""
    if current(v, c, pod, PodStep.RESERVE) is not None:
        out = v.outcome("skip")
        out[c.pod_work[pod]] = NO_POD_WORK
        yield out


VARIANT = Variant(
    name="claim-controller-no-reservation",
    bug="B44",
    kind=VariantKind.DEFECT,
    summary="Nobody reserves an allocated claim for a pod that already has a node",
    source="kubernetes/kubernetes#118209",
    found_by=("pod-eventually-runs",),
    replaces={reserve_for_pod.name: _leave},
)
