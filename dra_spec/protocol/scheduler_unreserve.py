"""Unreserve: what a binding goroutine does when something failed after Reserve (U1 to U3 claim by claim), and the end of the attempt (U5).

The scheduling goroutine runs it itself after a failed Reserve, and waits. The order matters: the entry in flight goes before the cache is
restored, and the reservation is given back last.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import attrs

from dra_spec.explorer.model import Action, Outcome, View, action
from dra_spec.explorer.values import Version
from dra_spec.protocol.apiserver import Answer
from dra_spec.protocol.objects import Claim
from dra_spec.protocol.scheduler_cache import WRITER, clear_attempt, forget_pod, maybe_remove, restored, store
from dra_spec.protocol.scheduler_state import NO_ATTEMPT, NO_BINDING, Binding, Scheduler, Step, at

PLUGIN = "pkg/scheduler/framework/plugins/dynamicresources/dynamicresources.go"


def gives_back(claim: Claim | None, pod: str) -> bool:
    """Whether Unreserve takes the pod out of the claim's consumers: the copy must be allocated and list it."""
    return claim is not None and claim.allocated and pod in claim.reserved_for


def _uid(claim: Claim | None) -> Version | None:
    return claim.uid if claim else None


def after_restore(v: View, s: Scheduler, pod: str, index: int) -> Binding:
    """The next step of Unreserve when the entry of claim `index` has been dealt with."""
    return Binding(Step.GIVE_BACK, index) if v.project(s.cycle[pod][index], gives_back, pod) else after_give_back(s, pod, index)


def after_give_back(s: Scheduler, pod: str, index: int) -> Binding:
    """The next step of Unreserve after claim `index`."""
    return Binding(Step.RELEASE, index + 1) if index + 1 < len(s.cycle[pod]) else Binding(Step.END)


def release(v: View, s: Scheduler, pod: str, index: int) -> tuple[Outcome, bool] | None:
    """U1 without what follows: the outcome, and whether the entry went; None: not now. For `release_in_flight` and its variants."""
    if not at(v, s, pod, Step.RELEASE, index):
        return None
    uid = v.project(s.cycle[pod][index], _uid)
    if uid is None:
        return None
    in_flight = s.in_flight[s.refs(pod)[index].claim]
    left, removed = maybe_remove(v.value(in_flight), uid, force=False)
    out = v.outcome("ok" if removed else "kept")
    out[in_flight] = left
    return out, removed


@action(
    "scheduler.release_in_flight", writer=WRITER, step="U1", source=f"{PLUGIN}:Unreserve; dra_manager.go:MaybeRemoveClaimPendingAllocation"
)
def release_in_flight(v: View, s: Scheduler, scheduler: str, pod: str, index: int) -> Iterator[Outcome]:
    """Unreserve counts down the entry in flight of a claim, by the UID of the cycle's copy, whoever made the entry; the last one removes
    it."""
    released = release(v, s, pod, index)
    if released is None:
        return
    out, removed = released
    out[s.binding[pod]] = Binding(Step.RESTORE, index) if removed else after_restore(v, s, pod, index)
    yield out


@action("scheduler.restore", writer=WRITER, step="U2", source=f"{PLUGIN}:Unreserve; pkg/scheduler/util/assumecache/assume_cache.go:Restore")
def restore(v: View, s: Scheduler, scheduler: str, pod: str, index: int) -> Iterator[Outcome]:
    """After the entry went, the cache goes back to what the informer stored; that may be from before an allocation that was written."""
    if not at(v, s, pod, Step.RESTORE, index):
        return
    claim = s.refs(pod)[index].claim
    back = v[s.assumed[claim]].assumed
    out = v.outcome("ok" if back else "unchanged")
    if back:
        store(out, s, claim, restored(v.value(s.assumed[claim])))
    out[s.binding[pod]] = after_restore(v, s, pod, index)
    yield out


@action("scheduler.give_back_reservation", writer=WRITER, step="U3", source=f"{PLUGIN}:Unreserve")
def give_back_reservation(v: View, s: Scheduler, scheduler: str, pod: str, index: int) -> Iterator[Outcome]:
    """Unreserve takes the pod out of the claim's consumers by a patch with the UID and no version; an error is only logged.

    The answer is not put into the cache.
    """
    for answer in give_back_request(v, s, pod, index):
        answer[s.binding[pod]] = after_give_back(s, pod, index)
        yield answer


def give_back_request(v: View, s: Scheduler, pod: str, index: int) -> Iterator[Answer]:
    """The answers to U3's request, nothing else; none if it is not U3's turn. For `give_back_reservation` and its variants."""
    uid = v.project(s.cycle[pod][index], _uid) if at(v, s, pod, Step.GIVE_BACK, index) else None

    def without_pod(claim: Claim) -> Claim:
        return attrs.evolve(claim, reserved_for=claim.reserved_for - {pod})

    if uid is not None:
        yield from s.api.patch_status(v, s.refs(pod)[index].claim, without_pod, uid=uid)


@action(
    "scheduler.end_attempt",
    writer=WRITER,
    step="U5",
    source="pkg/scheduler/schedule_one.go:handleBindingCycleError, handleSchedulingFailure",
)
def end_attempt(v: View, s: Scheduler, scheduler: str, pod: str) -> Iterator[Outcome]:
    """The failed attempt is over: nothing of it stays. The pod is queued again, unless the pod cache shows it as bound or gone."""
    if v[s.binding[pod]].step is not Step.END:
        return
    gone = v[s.pod[pod]].node is not None or not v[s.pod[pod]].exists
    out = v.outcome("dropped" if gone else "ok")
    clear_attempt(out, s, pod)
    out[s.binding[pod]] = NO_BINDING
    if v[s.attempt].step is Step.UNRESERVING and v[s.attempt].pod == pod:
        out[s.attempt] = NO_ATTEMPT
    if gone:
        forget_pod(out, s, pod)
    yield out


def actions(s: Scheduler) -> Sequence[Action]:
    """The actions of Unreserve."""
    made: list[Action] = []
    for pod in s.binding:
        who = {"scheduler": s.name, "pod": pod}
        for i in range(len(s.cycle[pod])):
            which = who | {"index": i}
            made += [Action(kind, which, s.rooms, s) for kind in (release_in_flight, restore)]
            made.append(Action(give_back_reservation, which, s.request_rooms, s))
        made.append(Action(end_attempt, who, s.rooms, s))
    return made
