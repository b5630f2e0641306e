"""A concrete scheduler as the model's slots."""

from __future__ import annotations

from dra_spec.protocol.objects import NO_POD
from dra_spec.protocol.scheduler_state import NO_ATTEMPT, NO_BINDING, NOT_CACHED, Attempt, Binding, Cached, InFlight, Pending, Step
from dra_spec.reference.assume import Entry
from dra_spec.reference.cycle import Cycle
from dra_spec.reference.scheduler import Scheduler
from dra_spec.reference.shapes import allocation, name_of
from dra_spec.reference.steps import Thread
from dra_spec.traces import abstract_objects as objects
from dra_spec.traces.abstract_objects import Values

ATTEMPT = {
    "resolve_claim": Step.RESOLVE,
    "check_in_flight": Step.PENDING,
    "read_allocated": Step.ALLOCATED,
    "read_in_flight": Step.IN_FLIGHT,
    "check_revision": Step.REVISION,
    "filter": Step.FILTER,
    "deallocate_unavailable": Step.POST_FILTER,
    "reserve": Step.RESERVE,
}
BINDING = {
    "get_claim": Step.GET,
    "add_finalizer": Step.FINALIZER,
    "write_allocation": Step.STATUS,
    "assume": Step.ASSUME,
    "check_conditions": Step.CONDITIONS,
    "clear_in_flight": Step.CLEAR,
    "bind": Step.BIND,
    "release_in_flight": Step.RELEASE,
    "restore": Step.RESTORE,
    "give_back_reservation": Step.GIVE_BACK,
    "end_attempt": Step.END,
}
TRIED = (Step.GET, Step.FINALIZER, Step.STATUS)
REPEATED = (Step.BIND, Step.GIVE_BACK)


def scheduler(s: Scheduler) -> Values:
    """All slots of a scheduler and its channels."""
    found: Values = {
        f"{s.name}/allocated": frozenset(s.allocated.ids),
        f"{s.name}/attempt": _attempt(s),
        f"{s.name}/gathered": frozenset(s.cycle.in_use or ()) if s.cycle else frozenset(),
        f"{s.name}/changed": _changed(s),
    }
    for claim in s.claim_names:
        found[f"{s.name}/assumed/{claim}"] = _cached(s.cache.entries.get(claim))
        found[f"{s.name}/in-flight/{claim}"] = _in_flight(s, claim)
    for pod in s.mine:
        found.update(_pod(s, pod))
    watch = f"watch/{s.name}"
    found.update(objects.channel(watch, "claim", s.claim_watch, s.claim_names, s.claim_names if s.deaf else ()))
    found.update(objects.channel(watch, "pod", s.pod_watch, s.mine, s.done))
    return found


def _verb(thread: Thread) -> str:
    return thread.at.partition(".")[2]


def _attempt(s: Scheduler) -> Attempt:
    if s.goroutine is None or s.cycle is None:
        return NO_ATTEMPT
    verb, pod = _verb(s.goroutine), name_of(s.cycle.pod)
    if verb not in ATTEMPT:
        return Attempt(Step.UNRESERVING, pod)
    if verb == "deallocate_unavailable":
        return Attempt(Step.POST_FILTER, pod, 0, frozenset(s.cycle.unavailable))
    return Attempt(ATTEMPT[verb], pod, int(s.goroutine.params.get("index", 0)))


def _changed(s: Scheduler) -> bool:
    gathering = s.goroutine is not None and _verb(s.goroutine) in ("read_in_flight", "check_revision")
    return gathering and s.cycle is not None and s.cycle.revision != s.allocated.revision


def _cached(entry: Entry | None) -> Cached:
    if entry is None:
        return NOT_CACHED
    return Cached(objects.claim(entry.latest), None if entry.api == entry.latest else objects.claim(entry.api))


def _in_flight(s: Scheduler, claim: str) -> tuple[InFlight, ...]:
    found = []
    for uid, entry in s.in_flight.entries.items():
        carried = objects.allocation(allocation(entry.claim))
        if name_of(entry.claim) == claim and carried is not None:
            found.append(InFlight(objects.uid_version(uid), carried, entry.sharers))
    return tuple(sorted(found, key=lambda entry: entry.uid.n))


def _pod(s: Scheduler, pod: str) -> Values:
    cycle, thread = s.bindings.get(pod, (None, None))
    if cycle is None and s.cycle is not None and name_of(s.cycle.pod) == pod:
        cycle, thread = s.cycle, s.goroutine
    found: Values = {
        f"{s.name}/pod/{pod}": NO_POD if pod in s.done else objects.pod(s.pods.get(pod)),
        f"{s.name}/binding/{pod}": _binding(cycle, thread),
        f"{s.name}/node/{pod}": cycle.node if cycle else None,
        f"{s.name}/copy/{pod}": objects.claim(cycle.working) if cycle and cycle.working else None,
        f"{s.name}/written/{pod}": objects.claim(cycle.written) if cycle and cycle.written else None,
    }
    for i, entry in enumerate(s.entries_of(pod)):
        copy = cycle.claims[i] if cycle else None
        pending = cycle.pending[i] if cycle else None
        carried = objects.allocation(pending.allocation) if pending else None
        found[f"{s.name}/cycle/{pod}/{entry}"] = objects.claim(copy) if copy else None
        found[f"{s.name}/pending/{pod}/{entry}"] = Pending(objects.uid_version(pending.uid), carried) if pending and carried else None
    return found


def _binding(cycle: Cycle | None, thread: Thread | None) -> Binding:
    step = BINDING.get(_verb(thread)) if thread else None
    if cycle is None or thread is None or step is None:
        return NO_BINDING
    tries = cycle.tries if step in TRIED else cycle.repeats if step in REPEATED else 0
    return Binding(step, int(thread.params.get("index", 0)), tries)
