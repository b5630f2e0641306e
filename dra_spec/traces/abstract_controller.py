"""The concrete ResourceClaim controller as the model's slots."""

from __future__ import annotations

from dra_spec.explorer.values import Version
from dra_spec.protocol.claim_controller_state import (
    GONE,
    NO_CLAIM_WORK,
    NO_POD_WORK,
    ClaimStep,
    ClaimWork,
    PodStep,
    PodWork,
    SeenClaim,
    SeenPod,
)
from dra_spec.reference.controller import ClaimController, ClaimSync
from dra_spec.reference.controller_pods import PodSync
from dra_spec.reference.shapes import name_of, node_name, rv_of, uid_of
from dra_spec.traces import abstract_objects as objects
from dra_spec.traces.abstract_objects import Values

ROOM = "claim-controller"
CLAIM_STEPS = {
    "get_pod": ClaimStep.ASK,
    "release_consumers": ClaimStep.RELEASE,
    "drop_finalizer": ClaimStep.DROP_FINALIZER,
    "clear_allocation": ClaimStep.CLEAR,
    "drop_last_finalizer": ClaimStep.DROP_LAST,
    "delete_generated": ClaimStep.DELETE,
}
POD_STEPS = {
    "get_claim": PodStep.ASK,
    "create_claim": PodStep.CREATE,
    "apply_pod_status": PodStep.APPLY,
    "reserve_for_pod": PodStep.RESERVE,
}


def controller(c: ClaimController) -> Values:
    """All slots of the controller and its channels."""
    found: Values = {}
    for name in c.claim_names:
        cached = c.claims.get(name)
        seen = objects.claim(cached) if cached else objects.removed_claim(name, c.removed.get(name))
        found[f"{ROOM}/claim/{name}"] = SeenClaim.of(seen)
        found[f"{ROOM}/claim-work/{name}"] = _claim_work(c, name)
        if name in c.templates:
            written = c.mutations.get(name)
            found[f"{ROOM}/created/{name}"] = objects.rv_version(name, rv_of(written)) if written else None
    for name, entries in c.pod_entries.items():
        gone = name in c.deleted_pods.values()
        found[f"{ROOM}/pod/{name}"] = SeenPod.of(objects.pod(c.pods[name])) if name in c.pods else GONE if gone else SeenPod()
        if entries:
            found[f"{ROOM}/pod-work/{name}"] = _pod_work(c, name)
    found.update(objects.channel(f"watch/{ROOM}", "claim", c.claim_watch, c.claim_names, c.done_claims))
    found.update(objects.channel(f"watch/{ROOM}", "pod", c.pod_watch, c.pod_entries, c.done_pods))
    return found


def _claim_work(c: ClaimController, name: str) -> ClaimWork:
    if name not in c.claim_work:
        return NO_CLAIM_WORK
    work, thread = c.claim_work[name]
    step = CLAIM_STEPS[thread.at.partition(".")[2]]
    deciding = step in (ClaimStep.ASK, ClaimStep.RELEASE)
    return ClaimWork(
        step,
        None if step is ClaimStep.DELETE else objects.rv_version(name, rv_of(work.copy)),
        _incarnation(c, name, work),
        frozenset(entry["name"] for entry in work.keep) if deciding else frozenset(),
        tuple(entry["name"] for entry in work.ask),
        work.dropped and (step is ClaimStep.ASK or (step is ClaimStep.RELEASE and not work.asked)),
    )


def _incarnation(c: ClaimController, name: str, work: ClaimSync) -> Version | None:
    return objects.uid_version(uid_of(work.copy)) if name in c.templates else None


def _pod_work(c: ClaimController, name: str) -> PodWork:
    if name not in c.pod_work:
        return NO_POD_WORK
    work, thread = c.pod_work[name]
    step = POD_STEPS[thread.at.partition(".")[2]]
    reserving = step is PodStep.RESERVE
    return PodWork(
        step,
        0 if step is PodStep.APPLY else work.index,
        tuple(sorted(c.recorded(work.pod).items())),
        node_name(work.pod) is not None,
        () if reserving else tuple(sorted(work.found.items())),
        _copy_version(work) if reserving else None,
    )


def _copy_version(work: PodSync) -> Version | None:
    return objects.rv_version(name_of(work.claim), rv_of(work.claim)) if work.claim else None
