"""The scheduler's caches: informers, the assume cache with its allocated-device set, the map of in-flight allocations, and a crash.

The assume cache keeps two pointers per claim. An event of the informer counts only if its version is above the latest; `assume` puts an
object beside what the informer stored; `restore` goes back to it. So after `assume` the event of that very write is dropped, and a later
`restore` goes back to the object *before* the write.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dra_spec.explorer.model import Action, Kind, Outcome, PartView, Slot, View, action
from dra_spec.explorer.values import Version
from dra_spec.protocol.budgets import Budgets
from dra_spec.protocol.objects import NO_POD, Claim, Pod
from dra_spec.protocol.scheduler_state import NO_ATTEMPT, NO_BINDING, NOT_CACHED, Cached, InFlight, InFlights, Scheduler, Step
from dra_spec.protocol.watch import Events

WRITER = "scheduler"


# -- the assume cache, as functions of an entry


def informed(cached: Cached, event: Claim) -> Cached:
    """The entry after an event of the informer; the same entry if the event is dropped. Source: assume_cache.go:add, delete."""
    if not event.exists:
        return NOT_CACHED
    if cached.latest is not None and event.rv <= cached.latest.rv:
        return cached
    return Cached(event)


def assumed(cached: Cached, claim: Claim) -> Cached:
    """The entry after Assume; the same entry if it is refused (no entry, or out of sync). Source: assume_cache.go:Assume."""
    if cached.latest is None or claim.rv < cached.latest.rv:
        return cached
    before = cached.api or cached.latest
    return Cached(claim, None if before == claim else before)


def restored(cached: Cached) -> Cached:
    """The entry after Restore: what the informer stored. Source: assume_cache.go:Restore."""
    return Cached(cached.api) if cached.api is not None else cached


# -- the set of allocated devices


def _handle(p: PartView, s: Scheduler, claim: str, new: frozenset[str] | None) -> None:
    """Follows a change of the cached claim: nil to set inserts, set to nil removes, set to set does nothing; a set, not a count."""
    old = p[s.assumed[claim]].devices
    if old is None and new:
        p.write(s.allocated, p.value(s.allocated) | new)
    elif old and new is None:
        p.write(s.allocated, p.value(s.allocated) - old)


def _mark(p: PartView, s: Scheduler, claim: str, new: frozenset[str] | None) -> None:
    """The revision moves with each effective change; all that anybody asks later is whether it moved."""
    old = p[s.assumed[claim]].devices
    if ((old is None and new) or (old and new is None)) and p[s.attempt].gathering:
        p.write(s.changed, True)


def store(outcome: Outcome, s: Scheduler, claim: str, new: Cached) -> None:
    """Sets the entry of a claim and delivers the event to the handler of the allocated devices.

    Storing and delivering are two critical sections upstream, but nobody combines the two across the gap, except Reserve, which then only
    stores less. Source: assume_cache.go:emitEvents, allocateddevices.go:handlers.
    """
    outcome[s.assumed[claim]] = new
    outcome.part(_handle, s, claim, new.devices).part(_mark, s, claim, new.devices)


# -- allocations in flight


def entry(entries: InFlights, uid: Version) -> InFlight | None:
    """The entry of a claim's UID."""
    return next((e for e in entries if e.uid == uid), None)


def signal(entries: InFlights, uid: Version, new: InFlight) -> InFlights:
    """SignalClaimPendingAllocation: one sharer more, and the passed allocation ignored, or a new entry. Source: dra_manager.go."""
    if entry(entries, uid) is None:
        return tuple(sorted((*entries, new), key=lambda e: e.uid.n))
    return tuple(InFlight(e.uid, e.allocation, e.sharers + 1) if e.uid == uid else e for e in entries)


def maybe_remove(entries: InFlights, uid: Version, *, force: bool) -> tuple[InFlights, bool]:
    """MaybeRemoveClaimPendingAllocation: the entries left, and whether the entry went. Source: dra_manager.go."""
    found = entry(entries, uid)
    if found is None:
        return entries, False
    if force or found.sharers <= 1:
        return tuple(e for e in entries if e.uid != uid), True
    return tuple(InFlight(e.uid, e.allocation, e.sharers - 1) if e.uid == uid else e for e in entries), False


def devices_in_flight(entries: InFlights) -> frozenset[str]:
    """The devices of a claim's entries."""
    return frozenset(device for e in entries for device in e.devices)


def has_entry(entries: InFlights, uid: Version) -> bool:
    """Whether there is an entry of the UID."""
    return entry(entries, uid) is not None


# -- informers


@action("scheduler.observe_claim", writer=WRITER, step="E1", source="pkg/scheduler/util/assumecache/assume_cache.go:add")
def observe_claim(v: View, s: Scheduler, scheduler: str, claim: str) -> Iterator[Outcome]:
    """The claim informer delivers the next write of a claim to the assume cache."""
    event: Claim | None = s.claims.next(v, claim)
    if event is None or not event.exists:
        return
    latest = v[s.assumed[claim]].rv
    newer = latest is None or latest < event.rv
    out = v.outcome("ok" if newer else "dropped")
    s.claims.take(out, claim)
    if newer:
        store(out, s, claim, informed(NOT_CACHED, event))
    yield out


@action("scheduler.observe_claim_removal", writer=WRITER, step="E2", source="pkg/scheduler/util/assumecache/assume_cache.go:delete")
def observe_claim_removal(v: View, s: Scheduler, scheduler: str, claim: str) -> Iterator[Outcome]:
    """The claim informer delivers the removal of a claim."""
    event: Claim | None = s.claims.next(v, claim)
    if event is None or event.exists:
        return
    out = v.outcome()
    s.claims.take(out, claim)
    store(out, s, claim, informed(NOT_CACHED, event))
    yield out


@action("scheduler.observe_pod", writer=WRITER, step="E3", source="pkg/scheduler/eventhandlers.go:addAllEventHandlers")
def observe_pod(v: View, s: Scheduler, scheduler: str, pod: str) -> Iterator[Outcome]:
    """The pod informer delivers the next write of a pod.

    A pod that is bound or gone, and in no attempt, will never be scheduled again: its channel is closed, the cache forgets it.
    """
    event: Pod | None = s.pods.next(v, pod)
    if event is None:
        return
    out = v.outcome()
    if (not event.exists or event.node is not None) and v[s.binding[pod]].step is Step.IDLE and v[s.attempt].pod != pod:
        forget_pod(out, s, pod)
    else:
        s.pods.take(out, pod)
        out[s.pod[pod]] = event
    yield out


def forget_pod(outcome: Outcome, s: Scheduler, pod: str) -> None:
    """No step will look at the pod again: closes its channel and drops it from the cache."""
    s.pods.close(outcome, pod)
    outcome[s.pod[pod]] = NO_POD
    outcome.part(close_claims, s, pod)


def close_claims(p: PartView, s: Scheduler, pod: str) -> None:
    """As a part: if the pod is the last one that the scheduler looks at, it looks at no claim again either, and closes their channel."""
    if all(s.pods.closed(p, other) for other in s.binding if other != pod):
        s.claims.close_all(p)


# -- crash


def _relist_claim(p: PartView, s: Scheduler, claim: str) -> None:
    p.write(s.assumed[claim], Cached(p.value(s.api.claim[claim])) if p[s.api.claim[claim]].exists else NOT_CACHED)


def _relist_devices(p: PartView, s: Scheduler) -> None:
    found: frozenset[str] = frozenset()
    for slot in s.api.claim.values():
        found |= p[slot].devices
    p.write(s.allocated, found)


def _schedulable(p: PartView, s: Scheduler, pod: str) -> bool:
    return p[s.api.pod[pod]].exists and p[s.api.pod[pod]].node is None


def _looked_at(p: PartView, s: Scheduler, pod: str) -> bool:
    """Whether a new process will look at the pod: it may be scheduled, or has yet to be created."""
    created_later = not s.instance.pod(pod).present and not p[s.api.pod[pod]].exists and not s.pods.closed(p, pod)
    return _schedulable(p, s, pod) or created_later


def _relist_pod(p: PartView, s: Scheduler, pod: str, events: Slot[Events]) -> None:
    p.write(s.pod[pod], p.value(s.api.pod[pod]) if _schedulable(p, s, pod) else NO_POD)
    p.write(events, () if _looked_at(p, s, pod) else None)


def _watch_claims(p: PartView, s: Scheduler) -> None:
    """The claims are listed anew, and watched if a pod will be looked at."""
    if any(_looked_at(p, s, pod) for pod in s.binding):
        s.claims.list_anew(p)
    else:
        s.claims.close_all(p)


@action("scheduler.restart", writer=WRITER, step="E4", source="cmd/kube-scheduler/app/server.go:Run", kind=Kind.FAULT)
def restart(v: View, s: Scheduler, scheduler: str) -> Iterator[Outcome]:
    """The scheduler dies and starts again, or another instance becomes leader.

    All memory is lost, the caches are listed from the API server. One step, at the time of the list: the dead process does nothing, and
    what it has not seen is in the list. The list is current (ordinary lists may be old; not modelled), and no request is on the wire (each
    request is one step).
    """
    budgets = Budgets.of(s.instance)
    if not budgets.left(v, "scheduler-crash"):
        return
    out = v.outcome()
    budgets.spend(out, "scheduler-crash")
    out[s.attempt], out[s.gathered], out[s.changed] = NO_ATTEMPT, frozenset(), False
    for claim, in_flight in s.in_flight.items():
        out[in_flight] = ()
        out.part(_relist_claim, s, claim)
    out.part(_relist_devices, s)
    out.part(_watch_claims, s)
    out[s.pods.order] = ()
    for pod in s.binding:
        clear_attempt(out, s, pod)
        out[s.binding[pod]] = NO_BINDING
        out.part(_relist_pod, s, pod, s.pods.events[pod])
    yield out


def clear_attempt(outcome: Outcome, s: Scheduler, pod: str) -> None:
    """Drops the pod's cycle state, so that a failed attempt leaves nothing behind. `binding` is the caller's."""
    outcome[s.node[pod]] = outcome[s.copy[pod]] = outcome[s.written[pod]] = None
    for cycle, pending in zip(s.cycle[pod], s.pending[pod], strict=True):
        outcome[cycle] = None
        outcome[pending] = None


def actions(s: Scheduler) -> Sequence[Action]:
    """The actions of the informers, and the crash if it has a budget."""
    who = {"scheduler": s.name}
    made = [Action(kind, who | {"claim": claim}, s.rooms, s) for claim in s.assumed for kind in (observe_claim, observe_claim_removal)]
    made += [Action(observe_pod, who | {"pod": pod}, s.rooms, s) for pod in s.binding]
    if s.instance.budget("scheduler-crash"):
        made.append(Action(restart, who, s.request_rooms, s))
    return made
