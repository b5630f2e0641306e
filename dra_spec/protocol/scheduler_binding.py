"""The binding goroutine of a pod: PreBind, Bind, and Unreserve if one of them fails.

bindClaim (P2 to P5) runs for each claim that the cycle's copy does not show as reserved for the pod: the finalizer, then allocation and
reservation in one status write, then Assume. A conflict is tried again with a live GET, five tries in all. The in-flight entries go only
when all of PreBind has succeeded (P9). Whatever fails leads to Unreserve (U1 to U3, claim by claim) and to the end of the attempt (U5).

Pure computation belongs to the step before it: `binding` names the next access to something shared.

Left out: a bind that the client repeats by itself within milliseconds (a repeated refusal is a later bind; a repeated success ends in the
same failure), parallel PreBind plugins, cancellation by preemption, the time of the allocation (H4 needs an upgrade).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dra_spec.explorer.model import Action, Kind, Outcome, PartView, Slot, View, action
from dra_spec.explorer.values import Version
from dra_spec.protocol.apiserver import Answer, claim_rv
from dra_spec.protocol.objects import NO_POD, Allocation, Claim
from dra_spec.protocol.scheduler_cache import WRITER, assumed, clear_attempt, close_claims, maybe_remove, store
from dra_spec.protocol.scheduler_state import NO_BINDING, Binding, Cached, InFlights, Pending, Scheduler, Step, at

PLUGIN = "pkg/scheduler/framework/plugins/dynamicresources/dynamicresources.go"
TRIES = 5  # retry.DefaultRetry
FAILED = Binding(Step.RELEASE, 0)


def holds(claim: Claim | None, pod: str) -> bool:
    """Whether the copy lists the pod as a consumer."""
    return claim is not None and pod in claim.reserved_for


def entry_step(claim: Claim | None, pending: bool) -> Step | None:
    """The first write of bindClaim for a copy of the claim; None: it fails without one.

    It fails if the claim is being deleted, if it has an allocation and this pod carries another ("allocated elsewhere"), or if it has none
    and this pod does not carry one ("deallocated elsewhere"). The UID is not looked at.
    """
    if claim is None or claim.deleting or pending == claim.allocated:
        return None
    return Step.FINALIZER if pending and not claim.finalizer else Step.STATUS


def copy_of(copy: Claim | None, name: str) -> Claim | None:
    """The copy if it is one of the claim of this name; a pod's working copies are of one claim after the other."""
    return copy if copy is not None and copy.rv.of == claim_rv(name) else None


def _carries(pending: Pending | None) -> bool:
    return pending is not None


def first_step(v: View, s: Scheduler, pod: str) -> Binding:
    """Where the binding goroutine starts."""
    return next_claim(v, s, pod, 0)


def next_claim(v: View, s: Scheduler, pod: str, start: int, index: int = -1, stored: Claim | None = None) -> Binding:
    """The next step when the claims before `start` are bound; claims that the cycle's copy shows as reserved are skipped, unlooked at.

    `stored`: as in `after_claims`.
    """
    for i in range(start, len(s.cycle[pod])):
        if not v.project(s.cycle[pod][i], holds, pod):
            step = v.project(s.cycle[pod][i], entry_step, _carries_now(v, s, pod, i))
            return FAILED if step is None else Binding(step, i, 1)
    return after_claims(v, s, pod, index, stored)


def _carries_now(v: View, s: Scheduler, pod: str, index: int) -> bool:
    return v.project(s.pending[pod][index], _carries)


def after_claims(v: View, s: Scheduler, pod: str, index: int = -1, stored: Claim | None = None) -> Binding:
    """The next step when all claims are bound: wait for binding conditions, clear the entries in flight, or bind.

    `stored` stands for the cycle's copy of the claim `index`, which the same step stores.
    """
    copies = range(len(s.cycle[pod]))
    if any(has_conditions(stored) if i == index else v.project(s.cycle[pod][i], has_conditions) for i in copies):
        return Binding(Step.CONDITIONS)
    return after_conditions(v, s, pod, 0)


def after_conditions(v: View, s: Scheduler, pod: str, start: int) -> Binding:
    """The next entry in flight to clear, from claim `start` on, or Bind."""
    following = next((i for i in range(start, len(s.pending[pod])) if _carries_now(v, s, pod, i)), None)
    return Binding(Step.BIND) if following is None else Binding(Step.CLEAR, following)


def _working_copy(v: View, s: Scheduler, pod: str, index: int) -> Claim | None:
    """What bindClaim works on: the cycle's copy, or what its last GET or Update returned."""
    return v.project(s.copy[pod], copy_of, s.refs(pod)[index].claim) or v.value(s.cycle[pod][index])


def give_up(out: Outcome, s: Scheduler, pod: str) -> None:
    """bindClaim fails: Unreserve is next."""
    out[s.binding[pod]] = FAILED
    out[s.copy[pod]] = None


def try_again(v: View, out: Outcome, s: Scheduler, pod: str, index: int) -> None:
    """The next try of bindClaim, which starts with a GET; after the last one, Unreserve."""
    tries = v[s.binding[pod]].tries
    if tries < TRIES:
        out[s.binding[pod]] = Binding(Step.GET, index, tries + 1)
        out[s.copy[pod]] = None
    else:
        give_up(out, s, pod)


def _not_ok(v: View, answer: Answer, s: Scheduler, pod: str, index: int) -> None:
    """A conflict is tried again, anything else leads to Unreserve."""
    if answer.label == "conflict":
        try_again(v, answer, s, pod, index)
    else:
        give_up(answer, s, pod)


@action("scheduler.get_claim", writer=WRITER, step="P2", source=f"{PLUGIN}:bindClaim")
def get_claim(v: View, s: Scheduler, scheduler: str, pod: str, index: int) -> Iterator[Outcome]:
    """After a conflict bindClaim reads the claim live, by name; nobody checks that it has the UID of the claim that was scheduled."""
    if not at(v, s, pod, Step.GET, index):
        return
    claim = s.api.get_claim(v, s.refs(pod)[index].claim)
    out = v.outcome("ok" if claim else "not-found")
    step = entry_step(claim, _carries_now(v, s, pod, index))
    if step is None:
        give_up(out, s, pod)
    else:
        out[s.binding[pod]] = Binding(step, index, v[s.binding[pod]].tries)
        out[s.copy[pod]] = claim
    yield out


@action("scheduler.add_finalizer", writer=WRITER, step="P3", source=f"{PLUGIN}:bindClaim")
def add_finalizer(v: View, s: Scheduler, scheduler: str, pod: str, index: int) -> Iterator[Outcome]:
    """bindClaim adds the finalizer that protects the allocation to come, with the version of its copy."""
    if not at(v, s, pod, Step.FINALIZER, index):
        return
    copy = _working_copy(v, s, pod, index)
    if copy is None:
        return
    for answer in s.api.update(v, s.refs(pod)[index].claim, copy, finalizer=True):
        if answer.label == "ok":
            answer[s.binding[pod]] = Binding(Step.STATUS, index, v[s.binding[pod]].tries)
            answer[s.copy[pod]] = answer.claim
        else:
            _not_ok(v, answer, s, pod, index)
        yield answer


@action("scheduler.write_allocation", writer=WRITER, step="P4", source=f"{PLUGIN}:bindClaim")
def write_allocation(v: View, s: Scheduler, scheduler: str, pod: str, index: int) -> Iterator[Outcome]:
    """bindClaim writes the allocation that the pod carries, if it does, and the reservation, in one status write with the version of its
    copy."""
    for answer in status_write(v, s, pod, index):
        if answer.label == "ok":
            written(answer, s, pod, index, answer.claim)
        else:
            _not_ok(v, answer, s, pod, index)
        yield answer


def status_write(v: View, s: Scheduler, pod: str, index: int) -> Iterator[Answer]:
    """The answers to P4's request, nothing else; none if it is not P4's turn. For `write_allocation` and its variants."""
    copy = _working_copy(v, s, pod, index) if at(v, s, pod, Step.STATUS, index) else None
    if copy is not None:
        pending = v.value(s.pending[pod][index])
        allocation: Allocation | None = pending.allocation if pending else copy.allocation
        name = s.refs(pod)[index].claim
        consumers = copy.reserved_for | {pod}
        again = pod in copy.reserved_for  # appended without a look whether the pod is there already; the server wants unique entries
        yield from s.api.update_status(v, name, copy, repeats=again, allocation=allocation, reserved_for=consumers)


def written(out: Outcome, s: Scheduler, pod: str, index: int, claim: Claim | None) -> None:
    """The status is written; the claim is to be assumed."""
    out[s.binding[pod]] = Binding(Step.ASSUME, index)
    out[s.copy[pod]] = None
    out[s.written[pod]] = claim


@action("scheduler.assume", writer=WRITER, step="P5", source=f"{PLUGIN}:bindClaim; pkg/scheduler/util/assumecache/assume_cache.go:Assume")
def assume(v: View, s: Scheduler, scheduler: str, pod: str, index: int) -> Iterator[Outcome]:
    """The object that the status write returned goes into the assume cache; a refusal is ignored. Then the next claim."""
    if not at(v, s, pod, Step.ASSUME, index):
        return
    claim = s.refs(pod)[index].claim
    stored = v.project(s.written[pod], copy_of, claim)
    if stored is None:
        return
    before = v.value(s.assumed[claim])
    after = assumed(before, stored)
    out = v.outcome("ok" if after is not before else "ignored")
    if after is not before:
        store(out, s, claim, after)
    out[s.cycle[pod][index]] = stored
    out[s.written[pod]] = None
    out[s.binding[pod]] = next_claim(v, s, pod, index + 1, index, stored)
    yield out


# -- binding conditions


def has_conditions(claim: Claim | None) -> bool:
    """Whether some allocated device has binding conditions."""
    return claim is not None and claim.allocation is not None and any(r.binding_conditions for r in claim.allocation.results)


def conditions_failed(claim: Claim) -> bool:
    """Whether some allocated device reports one of its binding failure conditions."""
    results = claim.allocation.results if claim.allocation else ()
    return any((r.device, condition) in claim.conditions for r in results for condition in r.binding_failure_conditions)


def conditions_pending(claim: Claim | None) -> bool:
    """Whether some allocated device has a binding condition that is not reported as true."""
    results = claim.allocation.results if claim and claim.allocation else ()
    return claim is not None and any((r.device, condition) not in claim.conditions for r in results for condition in r.binding_conditions)


def readiness(cached: Cached) -> str:
    """What a poll finds of a claim in the assume cache: missing, failed, waiting or ready. Without allocation: waiting."""
    if cached.latest is None:
        return "missing"
    if conditions_failed(cached.latest):
        return "failed"
    return "waiting" if cached.latest.allocation is None or conditions_pending(cached.latest) else "ready"


def _poll(v: View, s: Scheduler, pod: str) -> tuple[int, str]:
    """How many claims a poll takes from the cache, and what it finds: the first claim that is not ready decides."""
    for i, ref in enumerate(s.refs(pod)):
        found = v.project(s.assumed[ref.claim], readiness)
        if found != "ready":
            return (i if found == "missing" else i + 1), found
    return len(s.refs(pod)), "ready"


def _refresh(p: PartView, cached: Slot[Cached], cycle: Slot[Claim | None]) -> None:
    p.write(cycle, p.value(cached).latest)


def _refreshed(out: Outcome, s: Scheduler, pod: str, count: int) -> None:
    for ref, cycle in list(zip(s.refs(pod), s.cycle[pod], strict=True))[:count]:
        out.part(_refresh, s.assumed[ref.claim], cycle)


@action("scheduler.check_conditions", writer=WRITER, step="P8", source=f"{PLUGIN}:isPodReadyForBinding")
def check_conditions(v: View, s: Scheduler, scheduler: str, pod: str) -> Iterator[Outcome]:
    """A poll finds the binding conditions of all devices true, or one failed, or a claim missing in the cache; else the goroutine goes on
    waiting.

    A failure clears nothing: that is left to PostFilter of a later attempt.
    """
    if v[s.binding[pod]].step is not Step.CONDITIONS:
        return
    count, found = _poll(v, s, pod)
    if found == "waiting":
        return
    out = v.outcome("ok" if found == "ready" else found)
    _refreshed(out, s, pod, count)
    out[s.binding[pod]] = after_conditions(v, s, pod, 0) if found == "ready" else FAILED
    yield out


@action("scheduler.conditions_time_out", writer=WRITER, step="P8", source=f"{PLUGIN}:isPodReadyForBinding", kind=Kind.TIMEOUT)
def conditions_time_out(v: View, s: Scheduler, scheduler: str, pod: str) -> Iterator[Outcome]:
    """A poll finds conditions still missing and the time (600 s by default) over."""
    if v[s.binding[pod]].step is not Step.CONDITIONS:
        return
    count, found = _poll(v, s, pod)
    if found != "waiting":
        return
    out = v.outcome("timeout")
    _refreshed(out, s, pod, count)
    out[s.binding[pod]] = FAILED
    yield out


# -- the end of PreBind, and Bind


def _clear(p: PartView, in_flight: Slot[InFlights], uid: Version) -> None:
    left, _ = maybe_remove(p.value(in_flight), uid, force=True)
    p.write(in_flight, left)


@action("scheduler.clear_in_flight", writer=WRITER, step="P9", source=f"{PLUGIN}:PreBind; dra_manager.go:MaybeRemoveClaimPendingAllocation")
def clear_in_flight(v: View, s: Scheduler, scheduler: str, pod: str, index: int) -> Iterator[Outcome]:
    """PreBind has succeeded: the entry of a claim that the pod carried an allocation for goes, however many share it.

    The entry is that of the UID at Reserve.
    """
    if not at(v, s, pod, Step.CLEAR, index):
        return
    pending = v.value(s.pending[pod][index])
    if pending is None:
        return
    out = v.outcome()
    out.part(_clear, s.in_flight[s.refs(pod)[index].claim], pending.uid)
    out[s.pending[pod][index]] = None
    out[s.binding[pod]] = after_conditions(v, s, pod, index + 1)
    yield out


@action("scheduler.bind", writer=WRITER, step="B2", source="pkg/scheduler/framework/plugins/defaultbinder/default_binder.go:Bind")
def bind(v: View, s: Scheduler, scheduler: str, pod: str) -> Iterator[Outcome]:
    """The pod is bound to the node; with success the attempt is over and the scheduler never looks at the pod again."""
    for answer in bind_request(v, s, pod):
        if answer.label == "ok":
            bound(answer, s, pod)
        else:
            answer[s.binding[pod]] = failed_bind(s, pod)
        yield answer


def bind_request(v: View, s: Scheduler, pod: str) -> Iterator[Answer]:
    """The answers to B2's request, nothing else; none if it is not B2's turn. For `bind` and its variants."""
    node = v.value(s.node[pod]) if v[s.binding[pod]].step is Step.BIND else None
    if node is not None:
        yield from s.api.bind(v, pod, node, watcher=s.name)


def bound(out: Outcome, s: Scheduler, pod: str) -> None:
    """The attempt has succeeded: nothing of it stays, and the pod is forgotten."""
    clear_attempt(out, s, pod)
    out[s.binding[pod]] = NO_BINDING
    out[s.pod[pod]] = NO_POD
    out.part(close_claims, s, pod)


def failed_bind(s: Scheduler, pod: str) -> Binding:
    """Unreserve, if the pod has claims."""
    return FAILED if s.cycle[pod] else Binding(Step.END)


def actions(s: Scheduler) -> Sequence[Action]:
    """The actions of the binding goroutines."""
    made: list[Action] = []
    for pod in s.binding:
        who = {"scheduler": s.name, "pod": pod}
        for i in range(len(s.cycle[pod])):
            which = who | {"index": i}
            made += [Action(kind, which, s.request_rooms, s) for kind in (get_claim, add_finalizer, write_allocation)]
            made += [Action(kind, which, s.rooms, s) for kind in (assume, clear_in_flight)]
        made.append(Action(bind, who, s.request_rooms, s))
        made += [Action(kind, who, s.rooms, s) for kind in (check_conditions, conditions_time_out)]
    return made
