"""Repair of O-LOOP and O-ABA: the reconcile loop leaves a pod alone while its containers run or its worker is busy with it."""

from __future__ import annotations

from collections.abc import Iterator

from dra_spec.explorer.model import Outcome, View
from dra_spec.protocol.kubelet_site import Sites
from dra_spec.protocol.kubelet_state import Life
from dra_spec.protocol.kubelet_termination import loop_may_take, loop_takes
from dra_spec.protocol.node import Sandbox
from dra_spec.variants.base import Variant, VariantKind


def _runs(sandbox: Sandbox | None) -> bool:
    return sandbox is not None and sandbox.running


def loop_scan(v: View, sites: Sites, node: str, pod: str) -> Iterator[Outcome]:
    """The reconcile loop finds references of a pod that is not active, that no worker is terminating, and whose containers do not run."""
    site = sites[node]
    if v.value(site.kubelet.lives[pod]) is Life.GONE or v.project(site.node.sandboxes[pod], _runs):
        return
    if loop_may_take(v, site, pod):
        yield from loop_takes(v, site, pod)


VARIANT = Variant(
    name="kubelet-loop-waits",
    bug="O-LOOP",
    kind=VariantKind.REPAIR,
    summary="The reconcile loop leaves a pod alone while its containers run or its worker is busy with it",
    replaces={"kubelet.loop_scan": loop_scan},
    source="pkg/kubelet/cm/dra/manager.go:reconcileLoop",
    found_by=("no-unprepare-while-shared",),
)
