"""B42: a finished pod keeps its reservation, and its generated claim, until somebody deletes the pod.

Only pods that are gone count as finished: the claim stays allocated, and its devices are of no use to anybody.

Source: kubernetes/kubernetes#118817, issue #113890.
"""

from __future__ import annotations

from collections.abc import Iterator

from dra_spec.explorer.model import Outcome, View
from dra_spec.protocol.claim_controller_claims import load, load_claim
from dra_spec.protocol.claim_controller_state import Controller, SeenPod
from dra_spec.variants.base import Variant, VariantKind


def _never(pod: SeenPod) -> bool:
    return False


def _load_claim(v: View, c: Controller, claim: str) -> Iterator[Outcome]:
    """A worker takes the claim's key; a pod that exists is never finished."""
    yield from load(v, c, claim, _never)


VARIANT = Variant(
    name="claim-controller-keeps-finished",
    bug="B42",
    kind=VariantKind.DEFECT,
    summary="A finished pod keeps its reservation until the pod object is gone",
    source="kubernetes/kubernetes#118817",
    found_by=("no-orphan-allocation",),
    replaces={load_claim.name: _load_claim},
)
