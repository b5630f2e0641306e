"""The claim keys of the ResourceClaim controller: releasing finished consumers, deallocating, dropping the finalizer, early deletion.

Deallocation takes two writes, as one request cannot change status and finalizers: the status without reservation and allocation, then the
object without finalizer, chained by the version that the first write returned.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import attrs

from dra_spec.explorer.model import Action, Outcome, View, action
from dra_spec.explorer.values import Version
from dra_spec.protocol.claim_controller_state import NO_CLAIM_WORK, SOURCE, WRITER, ClaimStep, ClaimWork, Controller, SeenPod
from dra_spec.protocol.objects import Claim

Finished = Callable[[SeenPod], bool]


def pod_done(pod: SeenPod) -> bool:
    """Whether a cached pod needs its claims no longer: terminal, or deleted before it got a node."""
    return pod.done


def verdict(pod: SeenPod, finished: Finished) -> str:
    """What the caches say of a consumer: drop, keep, or ask the API server. Source: controller.go:syncClaim."""
    if pod.gone:
        return "drop"
    if not pod.exists:
        return "ask"
    return "drop" if finished(pod) else "keep"


def load(v: View, c: Controller, claim: str, finished: Finished = pod_done) -> Iterator[Outcome]:
    """The whole of RC-30; `finished` is what a variant replaces.

    Consumers that need a live GET are looked up last, all others are judged now. The real order is that of the list, which is a set here.
    """
    if v[c.claim_work[claim]].step is not ClaimStep.IDLE or not v[c.claims[claim]].exists:
        return
    consumers = sorted(v[c.claims[claim]].reserved_for)
    verdicts = {pod: v.project(c.pods[pod], verdict, finished) if pod in c.pods else "keep" for pod in consumers}
    ask = tuple(pod for pod in consumers if verdicts[pod] == "ask")
    keep = frozenset(pod for pod in consumers if verdicts[pod] == "keep")
    work = ClaimWork(keep=keep, ask=ask, dropped=len(keep) + len(ask) < len(consumers))
    if ask:
        step = ClaimStep.ASK
    elif work.dropped:
        step = ClaimStep.RELEASE
    elif keep:
        return
    elif v[c.claims[claim]].deleting and v[c.claims[claim]].finalizer:
        step = ClaimStep.CLEAR if v[c.claims[claim]].allocated else ClaimStep.DROP_LAST
    elif owner_done(v, c, claim, finished):
        step = ClaimStep.DELETE
    else:
        return
    out = v.outcome()
    rv = None if step is ClaimStep.DELETE else v[c.claims[claim]].rv
    out[c.claim_work[claim]] = attrs.evolve(work, step=step, rv=rv, uid=_uid(v, c, claim))
    yield out


def _uid(v: View, c: Controller, claim: str) -> Version | None:
    """The incarnation is needed only by the delete of a generated claim."""
    return v[c.claims[claim]].uid if claim in c.owners else None


def owner_done(v: View, c: Controller, claim: str, finished: Finished = pod_done) -> bool:
    """Whether the pod that owns a generated claim is in the cache and finished; one that is not cached is left to the garbage collector."""
    owner = c.owners.get(claim)
    return owner is not None and v[c.pods[owner]].exists and v.project(c.pods[owner], finished)


def then_delete(v: View, c: Controller, claim: str) -> ClaimWork:
    """How a sync that left no consumer goes on: early deletion of a generated claim, or the end. Source: controller.go:syncClaim."""
    if owner_done(v, c, claim):
        return ClaimWork(ClaimStep.DELETE, uid=v[c.claim_work[claim]].uid)
    return NO_CLAIM_WORK


def at(v: View, c: Controller, claim: str, step: ClaimStep) -> bool:
    """Whether the worker of the claim is about to make this call."""
    return v[c.claim_work[claim]].step is step


@action("claim-controller.load_claim", writer=WRITER, step="RC-30", source=SOURCE + "syncClaim")
def load_claim(v: View, c: Controller, claim: str) -> Iterator[Outcome]:
    """A worker takes the claim's key and decides, by its caches, which consumers are finished and what to write."""
    yield from load(v, c, claim)


@action("claim-controller.get_pod", writer=WRITER, step="RC-31", source=SOURCE + "syncClaim")
def get_pod(v: View, c: Controller, claim: str) -> Iterator[Outcome]:
    """A consumer that the pod cache does not know is looked up in the API server; one that exists is kept, whatever its phase."""
    if not at(v, c, claim, ClaimStep.ASK):
        return
    work = v.value(c.claim_work[claim])
    pod = work.next_asked
    if pod is None or pod not in c.api.pod:
        return
    found = v[c.api.pod[pod]].exists
    keep = work.keep | {pod} if found else work.keep
    dropped = work.dropped or not found
    rest = work.ask[1:]
    out = v.outcome("ok" if found else "not-found")
    if rest:
        out[c.claim_work[claim]] = attrs.evolve(work, keep=keep, ask=rest, dropped=dropped)
    elif dropped:
        out[c.claim_work[claim]] = ClaimWork(ClaimStep.RELEASE, work.rv, work.uid, keep)
    else:
        out[c.claim_work[claim]] = NO_CLAIM_WORK
    yield out


@action("claim-controller.release_consumers", writer=WRITER, step="RC-33", source=SOURCE + "syncClaim")
def release_consumers(v: View, c: Controller, claim: str) -> Iterator[Outcome]:
    """Writes reservedFor without the finished consumers; with the last one the allocation goes too, if the finalizer shows whose it is."""
    if not at(v, c, claim, ClaimStep.RELEASE):
        return
    keep = v[c.claim_work[claim]].keep
    copy = c.copy(v, claim, v[c.claim_work[claim]].rv)
    changes: dict[str, Any] = {"reserved_for": keep}
    if not keep and copy.finalizer:
        changes["allocation"] = None
    for answer in c.api.update_status(v, claim, copy, **changes):
        work = NO_CLAIM_WORK
        if answer.claim is not None:
            work = after_release(v, c, claim, answer.claim)
        answer[c.claim_work[claim]] = work
        yield answer


def after_release(v: View, c: Controller, claim: str, stored: Claim) -> ClaimWork:
    """What follows the write of reservedFor, by the object that came back."""
    if stored.finalizer and not stored.allocated:
        return ClaimWork(ClaimStep.DROP_FINALIZER, stored.rv, v[c.claim_work[claim]].uid)
    return then_delete(v, c, claim) if not stored.reserved_for else NO_CLAIM_WORK


@action("claim-controller.drop_finalizer", writer=WRITER, step="RC-34", source=SOURCE + "syncClaim")
def drop_finalizer(v: View, c: Controller, claim: str) -> Iterator[Outcome]:
    """After the deallocation: removes the finalizer, with the version that the deallocation returned."""
    yield from without_finalizer(v, c, claim, ClaimStep.DROP_FINALIZER)


@action("claim-controller.clear_allocation", writer=WRITER, step="RC-35", source=SOURCE + "syncClaim")
def clear_allocation(v: View, c: Controller, claim: str) -> Iterator[Outcome]:
    """Clears the allocation of a deleting claim that nobody uses."""
    if not at(v, c, claim, ClaimStep.CLEAR):
        return
    copy = c.copy(v, claim, v[c.claim_work[claim]].rv)
    for answer in c.api.update_status(v, claim, copy, allocation=None):
        work = NO_CLAIM_WORK
        if answer.claim is not None:
            work = ClaimWork(ClaimStep.DROP_LAST, answer.claim.rv, v[c.claim_work[claim]].uid)
        answer[c.claim_work[claim]] = work
        yield answer


@action("claim-controller.drop_last_finalizer", writer=WRITER, step="RC-36", source=SOURCE + "syncClaim")
def drop_last_finalizer(v: View, c: Controller, claim: str) -> Iterator[Outcome]:
    """Removes the finalizer of a deleting, unallocated claim: the API server removes the object."""
    yield from without_finalizer(v, c, claim, ClaimStep.DROP_LAST)


def without_finalizer(v: View, c: Controller, claim: str, step: ClaimStep) -> Iterator[Outcome]:
    """The write of RC-34 and RC-36."""
    if not at(v, c, claim, step):
        return
    copy = c.copy(v, claim, v[c.claim_work[claim]].rv)
    for answer in c.api.update(v, claim, copy, finalizer=False):
        answer[c.claim_work[claim]] = then_delete(v, c, claim) if answer.label == "ok" else NO_CLAIM_WORK
        yield answer


@action("claim-controller.delete_generated", writer=WRITER, step="RC-37", source=SOURCE + "syncClaim")
def delete_generated(v: View, c: Controller, claim: str) -> Iterator[Outcome]:
    """Deletes the generated claim of a finished pod, by name and without precondition.

    A new claim for the same entry has a new random name upstream, so that this delete cannot hit it; the model uses one name for all
    incarnations and therefore answers not-found.
    """
    if not at(v, c, claim, ClaimStep.DELETE):
        return
    if v[c.api.claim[claim]].exists and v[c.api.claim[claim]].uid != v[c.claim_work[claim]].uid:
        out = v.outcome("not-found")
        out[c.claim_work[claim]] = NO_CLAIM_WORK
        yield out
        return
    for answer in c.api.delete_claim(v, claim):
        answer[c.claim_work[claim]] = NO_CLAIM_WORK
        yield answer


def actions(c: Controller) -> Sequence[Action]:
    """The actions of the claim keys."""
    made = []
    for claim in c.claims:
        params = {"claim": claim}
        made.append(Action(load_claim, params, c.rooms, c))
        kinds = [get_pod, release_consumers, drop_finalizer, clear_allocation, drop_last_finalizer]
        if claim in c.owners:
            kinds.append(delete_generated)
        made += [Action(kind, params, c.request_rooms, c) for kind in kinds]
    return made
