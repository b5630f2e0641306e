"""The scheduler with the DynamicResources plugin of Kubernetes 1.37.2: the scheduling goroutine, from PreFilter to Reserve.

There is one scheduling goroutine per scheduler; it takes one pod at a time through C1 to R1 and then hands it to a binding goroutine
(scheduler_binding.py). Between any two of its steps informers and binding goroutines run.

Chosen for the model:

- *When an attempt starts.* At any time, for any pod that the pod cache shows as pending and that is in no attempt. The real queue wakes a
  pod by events, backoff (1 to 10 s) and a flush after five minutes; so the model has all that the queue can do, and more. What PreEnqueue
  would reject is rejected as C1 does it, with the same checks.
- An attempt that fails before Reserve leaves nothing behind. One that would fail in its first step is therefore not shown at all.
- *Which node.* The first that fits, in the order of the instance (`any_node`: each that fits, as scores may choose any).
- *Which devices.* Those that upstream's search finds (`any_allocation`: also every other feasible allocation, an outcome each).
- Filter is one step, as its inputs are frozen. Permit (R2) only waits; it is part of the last step before it, as the binding goroutine may
  wait at any time. The five-second limit on C3 to C5 is not modelled.

Left out: pod groups, extended resources, preemption, nominated nodes, Score.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import attrs

from dra_spec.explorer.model import Action, LiveWhen, Outcome, PartView, Slot, View, action
from dra_spec.protocol import scheduler_binding, scheduler_cache, scheduler_state, scheduler_unreserve
from dra_spec.protocol.choices import Answers, Chosen, answers
from dra_spec.protocol.instance import ClaimRef, Instance
from dra_spec.protocol.objects import Claim, Pod
from dra_spec.protocol.scheduler_binding import conditions_failed, conditions_pending, first_step
from dra_spec.protocol.scheduler_cache import WRITER, clear_attempt, devices_in_flight, entry, has_entry, signal
from dra_spec.protocol.scheduler_state import (
    NO_ATTEMPT,
    Attempt,
    Binding,
    Cached,
    InFlight,
    Pending,
    Scheduler,
    Step,
)

PLUGIN = "pkg/scheduler/framework/plugins/dynamicresources/dynamicresources.go"
TRACKER = "pkg/scheduler/framework/plugins/dynamicresources/dra_manager.go"
MOST_IN_FLIGHT = 3  # entries of one claim name, one for each object of that name that pods were given; a bound of the model


def unallocated(claim: Claim | None) -> bool:
    """Whether the copy of a cycle is of a claim that needs an allocation."""
    return claim is not None and claim.allocation is None


def _schedulable(pod: Pod) -> bool:
    return pod.exists and not pod.deleting and pod.node is None


def _resolved(pod: Pod, ref: ClaimRef) -> bool:
    """Whether the pod says which claim the entry means: by name, or by the recorded name of the generated one."""
    return ref.template is None or (ref.entry, ref.claim) in pod.claim_names


def _fail(v: View, s: Scheduler, pod: str, label: str) -> Outcome:
    """The attempt ends before Reserve: the goroutine is idle, and nothing of the attempt is left."""
    out = v.outcome(label)
    out[s.attempt] = NO_ATTEMPT
    out[s.gathered], out[s.changed] = frozenset(), False
    clear_attempt(out, s, pod)
    return out


def _next_unallocated(v: View, s: Scheduler, pod: str, start: int) -> int | None:
    """The first claim from `start` on that needs an allocation, as the cycle sees it."""
    return next((i for i in range(start, len(s.cycle[pod])) if v.project(s.cycle[pod][i], unallocated)), None)


def _copy_latest(p: PartView, cached: Slot[Cached], cycle: Slot[Claim | None]) -> None:
    p.write(cycle, p.value(cached).latest)


def _usable(v: View, s: Scheduler, pod: str, ref: ClaimRef) -> bool:
    """What PreEnqueue and PreFilter demand of a claim: there, not being deleted, and a generated one is the pod's own."""
    cached = v[s.assumed[ref.claim]]
    return cached.known and not cached.deleting and (ref.template is None or cached.owner == pod)


@action("scheduler.resolve_claim", writer=WRITER, step="C1", source=f"{PLUGIN}:PreFilter, foreachPodResourceClaim")
def resolve_claim(v: View, s: Scheduler, scheduler: str, pod: str, index: int) -> Iterator[Outcome]:
    """PreFilter takes the pod's next claim from the assume cache; the pointer is kept for the whole attempt.

    For the first claim, this is also the start of the attempt (the pod is popped).
    """
    attempt = v.value(s.attempt)
    starting = index == 0
    if starting:
        if attempt.step is not Step.IDLE or v[s.binding[pod]].step is not Step.IDLE or not v.project(s.pod[pod], _schedulable):
            return
    elif attempt != Attempt(Step.RESOLVE, pod, index):
        return
    ref = s.refs(pod)[index]
    if starting and not all(v.project(s.pod[pod], _resolved, other) for other in s.refs(pod)):
        return  # the names of generated claims are those of the pod object that is popped
    if not _usable(v, s, pod, ref):
        if not starting:
            yield _fail(v, s, pod, "unschedulable")
        return
    out = v.outcome()
    out.part(_copy_latest, s.assumed[ref.claim], s.cycle[pod][index])
    if index + 1 < len(s.cycle[pod]):
        out[s.attempt] = Attempt(Step.RESOLVE, pod, index + 1)
    else:
        first = next((i for i in range(index) if v.project(s.cycle[pod][i], unallocated)), None)
        if first is None and not v[s.assumed[ref.claim]].allocated:
            first = index
        out[s.attempt] = Attempt(Step.FILTER, pod) if first is None else Attempt(Step.PENDING, pod, first)
    yield out


@action("scheduler.skip_claims", writer=WRITER, step="C1", source=f"{PLUGIN}:PreFilter")
def skip_claims(v: View, s: Scheduler, scheduler: str, pod: str) -> Iterator[Outcome]:
    """A pod without claims fits the first node, as the rest of the scheduler is not modelled; it is bound next."""
    idle = v[s.attempt].step is Step.IDLE and v[s.binding[pod]].step is Step.IDLE
    if not idle or not s.instance.nodes or not v.project(s.pod[pod], _schedulable):
        return
    out = v.outcome()
    out[s.node[pod]] = s.instance.nodes[0]
    out[s.binding[pod]] = Binding(Step.BIND)
    yield out


@action("scheduler.check_in_flight", writer=WRITER, step="C2", source=f"{PLUGIN}:PreFilter; {TRACKER}:GetPendingAllocation")
def check_in_flight(v: View, s: Scheduler, scheduler: str, pod: str, index: int) -> Iterator[Outcome]:
    """PreFilter gives up if a claim without allocation is just being allocated, for whichever pod."""
    if v.value(s.attempt) != Attempt(Step.PENDING, pod, index):
        return
    uid = v.project(s.cycle[pod][index], uid_of)
    if uid is not None and v.project(s.in_flight[s.refs(pod)[index].claim], has_entry, uid):
        yield _fail(v, s, pod, "in-flight")
        return
    out = v.outcome()
    following = _next_unallocated(v, s, pod, index + 1)
    out[s.attempt] = Attempt(Step.ALLOCATED, pod) if following is None else Attempt(Step.PENDING, pod, following)
    yield out


def uid_of(claim: Claim | None) -> Any:
    """The UID of a copy, None if there is none."""
    return claim.uid if claim else None


@action("scheduler.read_allocated", writer=WRITER, step="C3", source=f"{TRACKER}:GatherAllocatedState; allocateddevices.go:Get")
def read_allocated(v: View, s: Scheduler, scheduler: str, pod: str) -> Iterator[Outcome]:
    """PreFilter reads the set of allocated devices, and its revision."""
    if v.value(s.attempt) != Attempt(Step.ALLOCATED, pod):
        return
    out = v.outcome()
    out[s.attempt] = Attempt(Step.IN_FLIGHT, pod)
    out[s.gathered] = v.value(s.allocated)
    out[s.changed] = False
    yield out


@action("scheduler.read_in_flight", writer=WRITER, step="C4", source=f"{TRACKER}:GatherAllocatedState")
def read_in_flight(v: View, s: Scheduler, scheduler: str, pod: str) -> Iterator[Outcome]:
    """PreFilter adds the devices of all allocations in flight, under one lock."""
    if v.value(s.attempt) != Attempt(Step.IN_FLIGHT, pod):
        return
    found = v.value(s.gathered)
    for entries in s.in_flight.values():
        found |= v.project(entries, devices_in_flight)
    out = v.outcome()
    out[s.attempt] = Attempt(Step.REVISION, pod)
    out[s.gathered] = found
    yield out


@action("scheduler.check_revision", writer=WRITER, step="C5", source=f"{TRACKER}:GatherAllocatedState")
def check_revision(v: View, s: Scheduler, scheduler: str, pod: str) -> Iterator[Outcome]:
    """PreFilter starts reading again if the set of allocated devices has changed since it read it."""
    if v.value(s.attempt) != Attempt(Step.REVISION, pod):
        return
    if v.value(s.changed):
        out = v.outcome("retry")
        out[s.attempt] = Attempt(Step.ALLOCATED, pod)
        out[s.gathered], out[s.changed] = frozenset(), False
    else:
        out = v.outcome()
        out[s.attempt] = Attempt(Step.FILTER, pod)
    yield out


def misfit(claim: Claim | None, node: str) -> bool:
    """Whether an allocated claim is unavailable on a node: its selector does not match, or a binding failure condition is set."""
    if claim is None or claim.allocation is None:
        return False
    return (claim.allocation.nodes is not None and node not in claim.allocation.nodes) or conditions_failed(claim)


def eligible(claim: Claim | None, pod: str) -> bool:
    """Whether PostFilter may deallocate the claim for the pod: nobody else has it reserved, judged on the copy of the cycle."""
    return claim is not None and claim.allocation is not None and claim.reserved_for <= {pod}


@attrs.frozen
class Fit:
    """What Filter says of one node: allocations for the claims that need one, if any, and the claims that are unavailable there."""

    answers: Answers
    unavailable: frozenset[int] = frozenset()


def _filter_node(v: View, s: Scheduler, pod: str, node: str, timed_out: frozenset[int]) -> Fit:
    """Filter for one node."""
    cycle = s.cycle[pod]
    unavailable = frozenset(i for i in range(len(cycle)) if i in timed_out or v.project(cycle[i], misfit, node))
    wanted = tuple(ref.claim for i, ref in enumerate(s.refs(pod)) if v.project(cycle[i], unallocated))
    found = answers(s.instance, wanted, node, v.value(s.gathered) if wanted else frozenset())
    if not unavailable:
        return Fit(found)
    # no allocation would help; a search that fails comes before what is unavailable is recorded
    return Fit(Answers(None, fatal=found.fatal), unavailable if found.upstream is not None else frozenset())


@action("scheduler.filter", writer=WRITER, step="F1", source=f"{PLUGIN}:Filter; structured/allocator.go:Allocate")
def filter_nodes(v: View, s: Scheduler, scheduler: str, pod: str) -> Iterator[Outcome]:
    """Filter looks for a node where all claims are, or can be made, available.

    If there is none, PostFilter has its turn for a claim that makes nodes unavailable and that nobody else has reserved. An allocation
    whose binding conditions are pending may have passed its time limit or not: two outcomes, the second labelled "timed-out".
    """
    if v.value(s.attempt) != Attempt(Step.FILTER, pod):
        return
    yield from filtered(v, s, pod, eligible)


def filtered(v: View, s: Scheduler, pod: str, may_free: Callable[[Claim | None, str], bool]) -> Iterator[Outcome]:
    """F1; `may_free`: which unavailable claims PostFilter may deallocate. For `filter_nodes` and its variants."""
    yield from _filtered(v, s, pod, may_free, frozenset(), "")
    late = frozenset(i for i, cycle in enumerate(s.cycle[pod]) if v.project(cycle, conditions_pending))
    if late:
        yield from _filtered(v, s, pod, may_free, late, "timed-out")


def _filtered(
    v: View, s: Scheduler, pod: str, may_free: Callable[[Claim | None, str], bool], timed_out: frozenset[int], reason: str
) -> Iterator[Outcome]:
    unavailable: frozenset[int] = frozenset()
    fits: list[Chosen] = []  # upstream's
    others: list[Chosen] = []
    beyond, fatal = "", False
    for node in s.instance.nodes:
        fit = _filter_node(v, s, pod, node, timed_out)
        unavailable |= fit.unavailable
        others += fit.answers.others
        beyond = beyond or fit.answers.beyond
        fatal = fit.answers.fatal
        if fatal:
            break
        if fit.answers.upstream is not None:
            fits.append(fit.answers.upstream)
            if not s.instance.any_node:
                break
    if fatal:
        yield _fail(v, s, pod, "error")
    elif fits:
        yield from (_fitted(v, s, pod, chosen) for chosen in fits)
    else:
        freeable = frozenset(i for i in unavailable if v.project(s.cycle[pod][i], may_free, pod))
        yield _unfitted(v, s, pod, freeable, reason)
    yield from (_fitted(v, s, pod, chosen) for chosen in others)  # last, so that traces have upstream's where it makes no difference
    if beyond:
        yield v.outcome("more").beyond_bounds(beyond)


def _unfitted(v: View, s: Scheduler, pod: str, freeable: frozenset[int], reason: str) -> Outcome:
    """No node fits: PostFilter has its turn for the claims that it may deallocate, or the attempt ends."""
    if not freeable:
        return _fail(v, s, pod, reason or "no-fit")
    out = v.outcome(reason or "unavailable")
    out[s.attempt] = Attempt(Step.POST_FILTER, pod, 0, freeable)
    out[s.gathered] = frozenset()
    return out


def _fitted(v: View, s: Scheduler, pod: str, chosen: Chosen) -> Outcome:
    """The node is chosen. The allocations are kept as the pod's own until Reserve signals them, claim by claim."""
    out = v.outcome(chosen.node if s.instance.any_node and chosen.label == "ok" else chosen.label)
    out[s.node[pod]] = chosen.node
    out[s.gathered] = frozenset()
    wanted = [i for i in range(len(s.cycle[pod])) if v.project(s.cycle[pod][i], unallocated)]
    for i, allocation in zip(wanted, chosen.allocations, strict=False):
        uid = v.project(s.cycle[pod][i], uid_of)
        out[s.pending[pod][i]] = Pending(uid, allocation)
    if wanted:
        out[s.attempt] = Attempt(Step.RESERVE, pod, wanted[0])
    else:
        out[s.attempt] = NO_ATTEMPT
        out[s.binding[pod]] = first_step(v, s, pod)
    return out


@action("scheduler.deallocate_unavailable", writer=WRITER, step="PF1", source=f"{PLUGIN}:PostFilter, deallocateOrDeletePodClaims")
def deallocate_unavailable(v: View, s: Scheduler, scheduler: str, pod: str, index: int) -> Iterator[Outcome]:
    """PostFilter deallocates one claim that keeps the pod from every node, whichever comes first; the attempt ends with any answer.

    One status write with the version of the copy. The cache learns of it by the informer.
    """
    attempt = v.value(s.attempt)
    if attempt.step is not Step.POST_FILTER or attempt.pod != pod or index not in attempt.unavailable:
        return
    copy = v.value(s.cycle[pod][index])
    if copy is None:
        return
    name = s.refs(pod)[index].claim
    for answer in s.api.update_status(v, name, copy, allocation=None, reserved_for=frozenset(), conditions=frozenset()):
        answer[s.attempt] = NO_ATTEMPT
        clear_attempt(answer, s, pod)
        yield answer


def _signal(p: PartView, s: Scheduler, claim: str, new: InFlight) -> None:
    entries = p.value(s.in_flight[claim])
    if len(entries) < MOST_IN_FLIGHT or entry(entries, new.uid) is not None:  # `reserve` asked
        p.write(s.in_flight[claim], signal(entries, new.uid, new))


@action("scheduler.reserve", writer=WRITER, step="R1", source=f"{PLUGIN}:Reserve; {TRACKER}:SignalClaimPendingAllocation")
def reserve(v: View, s: Scheduler, scheduler: str, pod: str, index: int) -> Iterator[Outcome]:
    """Reserve puts the allocation of one claim in flight, looking at the assume cache under the same lock.

    An entry of the claim that exists gets one sharer more. Without one, a claim that the cache shows as allocated meanwhile gets none: what
    this pod then carries is not in flight. After the last claim the binding goroutine starts (R2).
    """
    if v.value(s.attempt) != Attempt(Step.RESERVE, pod, index):
        return
    pending = v.value(s.pending[pod][index])
    if pending is None:
        return
    claim = s.refs(pod)[index].claim
    exists = v.project(s.in_flight[claim], has_entry, pending.uid)
    if not exists and not v[s.assumed[claim]].known:
        out = v.outcome("not-found")
        out[s.attempt] = Attempt(Step.UNRESERVING, pod)
        out[s.binding[pod]] = Binding(Step.RELEASE, 0)
        yield out
        return
    published = is_published(v, s, pod, index)
    out = v.outcome("published" if published else "ok")
    if not published and not exists and v.project(s.in_flight[claim], len) >= MOST_IN_FLIGHT:
        out.beyond_bounds(f"more than {MOST_IN_FLIGHT} entries in flight under the name of one claim")
    elif not published:
        out.part(_signal, s, claim, InFlight(pending.uid, pending.allocation))
    after_reserve(v, out, s, pod, index)
    yield out


def is_published(v: View, s: Scheduler, pod: str, index: int) -> bool:
    """Whether the claim is not in flight and the cache shows the same object as allocated. For `reserve` and its variants."""
    pending, claim = v.value(s.pending[pod][index]), s.refs(pod)[index].claim
    if pending is None or v.project(s.in_flight[claim], has_entry, pending.uid):
        return False
    cached = v[s.assumed[claim]]
    return cached.allocated and cached.uid == pending.uid


def after_reserve(v: View, out: Outcome, s: Scheduler, pod: str, index: int) -> None:
    """Reserve goes on with the next claim, or the binding goroutine starts. For `reserve` and its variants."""
    following = _next_unallocated(v, s, pod, index + 1)
    if following is not None:
        out[s.attempt] = Attempt(Step.RESERVE, pod, following)
    else:
        out[s.attempt] = NO_ATTEMPT
        out[s.binding[pod]] = first_step(v, s, pod)


def slots(instance: Instance) -> Sequence[Slot[Any]]:
    """The memory of all schedulers."""
    return [slot for s in Scheduler.all(instance).values() for slot in s.slots]


def live(instance: Instance) -> Sequence[LiveWhen]:
    """Where the memory of the schedulers is needed."""
    return [declared for s in Scheduler.all(instance).values() for declared in scheduler_state.live(s)]


def actions(instance: Instance) -> Sequence[Action]:
    """The actions of all schedulers, if the writer "scheduler" takes part."""
    if "scheduler" not in instance.writers:
        return ()
    made: list[Action] = []
    for s in Scheduler.all(instance).values():
        made += [*_goroutine(s), *scheduler_binding.actions(s), *scheduler_unreserve.actions(s), *scheduler_cache.actions(s)]
    return made


def _goroutine(s: Scheduler) -> Iterator[Action]:
    for pod in s.binding:
        who = {"scheduler": s.name, "pod": pod}
        claims = range(len(s.cycle[pod]))
        if not claims:
            yield Action(skip_claims, who, s.rooms, s)
            continue
        for kind in (resolve_claim, check_in_flight):
            yield from (Action(kind, who | {"index": i}, s.rooms, s) for i in claims)
        for kind in (read_allocated, read_in_flight, check_revision, filter_nodes):
            yield Action(kind, who, s.rooms, s)
        yield from (Action(deallocate_unavailable, who | {"index": i}, s.request_rooms, s) for i in claims)
        yield from (Action(reserve, who | {"index": i}, s.rooms, s) for i in claims)
