"""Variants of the ResourceClaim controller."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from dra_spec.reference.controller import ClaimController
from dra_spec.reference.controller_pods import PodSync
from dra_spec.reference.shapes import Object, name_of, rv_of, terminal
from dra_spec.reference.steps import Turn

Registry = dict[str, dict[str, Mapping[str, Callable[..., Any]]]]


def _forget_created(self: ClaimController, claim: Object) -> None:
    """The removal of a claim takes it out of the mutation cache, unless that has a newer one."""
    written = self.mutations.get(name_of(claim))
    if written is not None and rv_of(written) <= rv_of(claim):
        del self.mutations[name_of(claim)]


def _never_done(self: ClaimController, pod: Object) -> bool:
    """A pod that exists is never finished."""
    return False


def _skip_reservation(self: ClaimController, turn: Turn, work: PodSync, claim: Object) -> bool:
    """Nobody reserves for a pod that has a node already."""
    turn.took("skip")
    return False


def _only_found(self: ClaimController, work: PodSync) -> dict[str, str]:
    """The apply contains only the names found in this sync."""
    return dict(work.found)


def _not_if_terminal(self: ClaimController, name: str) -> bool:
    """A terminal pod gives no work."""
    pod = self.pods.get(name)
    return (pod is None or not terminal(pod)) and ClaimController.pod_needs_work(self, name)


CONTROLLER: Registry = {
    "claim-controller-forgets-deleted": {"ClaimController": {"claim_removed": _forget_created}},
    "claim-controller-keeps-finished": {"ClaimController": {"pod_done": _never_done}},
    "claim-controller-no-reservation": {"ClaimController": {"reserve": _skip_reservation}},
    "claim-controller-partial-status": {"ClaimController": {"names_to_apply": _only_found}},
    "terminal-pod-guard": {"ClaimController": {"pod_needs_work": _not_if_terminal}},
}
