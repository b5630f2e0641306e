"""B46: Unreserve keeps what the failed attempt has reserved.

A pod with two claims gets the first, on one node; the second fails, and another pod takes the device that it needed there. In 1.37.2 the
failed attempt gives the reservation back, and PostFilter deallocates the first claim, so that both can be allocated on another node. Here
Unreserve leaves the pod in status.reservedFor, and PostFilter leaves alone whatever is reserved, the pod's own reservation included; so the
pod waits for ever, and with it every pod that shares the claim. (The classic form, two pods that each hold one of two claims, is from the
time when a claim had one consumer.)

Source: kubernetes/enhancements, keps/sig-node/4381-dra-structured-parameters, section Unreserve.
"""

from __future__ import annotations

from collections.abc import Iterator

from dra_spec.explorer.model import Outcome, View
from dra_spec.protocol.objects import Claim
from dra_spec.protocol.scheduler import filter_nodes, filtered
from dra_spec.protocol.scheduler_state import Attempt, Scheduler, Step, at
from dra_spec.protocol.scheduler_unreserve import after_give_back, give_back_reservation
from dra_spec.variants.base import Variant, VariantKind


def _keep(v: View, s: Scheduler, scheduler: str, pod: str, index: int) -> Iterator[Outcome]:
    """Unreserve leaves the pod among the claim's consumers."""
    if not at(v, s, pod, Step.GIVE_BACK, index):
        return
    out = v.outcome("kept")
    out[s.binding[pod]] = after_give_back(s, pod, index)
    yield out


def _unreserved(claim: Claim | None, pod: str) -> bool:
    return claim is not None and claim.allocated and not claim.reserved_for


def _filter(v: View, s: Scheduler, scheduler: str, pod: str) -> Iterator[Outcome]:
    """As Filter, but no reserved claim is left to PostFilter."""
    if v.value(s.attempt) == Attempt(Step.FILTER, pod):
        yield from filtered(v, s, pod, _unreserved)


VARIANT = Variant(
    name="unreserve-keeps-reservation",
    bug="B46",
    kind=VariantKind.DEFECT,
    summary="Unreserve leaves the pod in status.reservedFor, and PostFilter frees no reserved claim",
    source="kubernetes/enhancements keps/sig-node/4381-dra-structured-parameters, Unreserve",
    found_by=("pod-eventually-scheduled", "unreserve-deadlock-freedom"),
    replaces={give_back_reservation.name: _keep, filter_nodes.name: _filter},
)
