"""Repair of V1: a pod with a terminal phase gives the controller no work.

In 1.37.2 the phase is not looked at. While another consumer keeps a shared claim allocated, the pod's key reserves the claim for the
finished pod and the claim's key takes the reservation off again, for ever. The guard also keeps a finished pod from getting its generated
claim once more.

Source: kubernetes/kubernetes#141274; the guard is in 1.38.0-beta.0, controller.go:podNeedsWork and syncPod.
"""

from __future__ import annotations

from collections.abc import Iterator

from dra_spec.explorer.model import Outcome, View
from dra_spec.protocol.claim_controller_pods import load, load_pod
from dra_spec.protocol.claim_controller_state import Controller
from dra_spec.variants.base import Variant, VariantKind


def _load_pod(v: View, c: Controller, pod: str) -> Iterator[Outcome]:
    """A worker takes the pod's key unless the pod is terminal."""
    if not v[c.pods[pod]].terminal:
        yield from load(v, c, pod)


VARIANT = Variant(
    name="terminal-pod-guard",
    bug="V1",
    kind=VariantKind.REPAIR,
    summary="A pod with a terminal phase gets neither reservations nor claims",
    source="kubernetes/kubernetes#141274",
    found_by=("finished-pods-stay-released",),
    replaces={load_pod.name: _load_pod},
)
