"""Repair of V5: the removal of a claim also removes it from the cache of created claims.

In 1.37.2 a claim that this process created stays in `mutCache` when it is deleted, unless a look-up has dropped the entry before. It then
counts as existing, and a pending pod never gets another one. The cache has the means (client-go since 0.37), the controller does not use
them. Alone it would let a finished pod create and lose its claim for ever; it belongs together with `terminal-pod-guard`.

Source: client-go tools/cache/mutation_cache.go. No public number known; seen on the unmodified controller of 1.37.2.
"""

from __future__ import annotations

from collections.abc import Iterator

from dra_spec.explorer.model import Outcome, View
from dra_spec.protocol.claim_controller import observe_claim, take_claim_event
from dra_spec.protocol.claim_controller_state import Controller
from dra_spec.variants.base import Variant, VariantKind


def _observe_claim(v: View, c: Controller, claim: str) -> Iterator[Outcome]:
    """The claim informer delivers the next event; a removal takes the claim out of `mutCache`, unless that has a newer one."""
    taken = take_claim_event(v, c, claim)
    if taken is None:
        return
    out, event = taken
    if claim in c.owners and not event.exists:
        created = v.value(c.created[claim])
        if created is not None and created <= event.rv:
            out[c.created[claim]] = None
    yield out


VARIANT = Variant(
    name="claim-controller-forgets-deleted",
    bug="V5",
    kind=VariantKind.REPAIR,
    summary="The removal of a generated claim removes it from the cache of created claims",
    source="client-go v0.37 tools/cache/mutation_cache.go:OnDelete",
    found_by=("pod-eventually-scheduled",),
    replaces={observe_claim.name: _observe_claim},
)
