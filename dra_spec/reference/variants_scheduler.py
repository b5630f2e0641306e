"""Variants of the scheduler."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from dra_spec.reference.apiserver import CLAIM, POD
from dra_spec.reference.binding import TRIES
from dra_spec.reference.cycle import Cycle, listed, with_allocation
from dra_spec.reference.scheduler import Scheduler
from dra_spec.reference.shapes import Object, allocation, consumers, deleting, name_of, node_name, uid_of
from dra_spec.reference.steps import Turn

Registry = dict[str, dict[str, Mapping[str, Callable[..., Any]]]]

UNKNOWN = ("refused", "applied-error")


# -- allocation-only-assumed


def _assume_intended(self: Scheduler, turn: Turn, cycle: Cycle, i: int) -> bool:
    """Reserve assumes the claim with the allocation that is to be written; nothing is in flight."""
    pending = cycle.pending[i]
    assert pending is not None
    answer = self.cache.assume(with_allocation(cycle.claim(i), pending.allocation))
    turn.took("ok" if answer == "ok" else "out-of-sync")
    return answer == "ok"


def _restore_always(self: Scheduler, cycle: Cycle, i: int) -> Any:
    """There is no entry in flight to look at: the cache is restored for each claim."""
    turn: Turn = yield self.step("release_in_flight", cycle, index=i)
    turn.took("ok")
    yield from self.restore(cycle, i)
    yield from self.give_back(cycle, i)


# -- bind-verifies-pod


def _bind_and_look(self: Scheduler, cycle: Cycle) -> Any:
    """After an answer that leaves it open, a GET of the pod decides whether it is bound; unbound: once more."""
    while True:
        cycle.repeats = 0
        turn: Turn = yield self.step("bind", cycle)
        if self.post_binding(turn, cycle):
            self.bound(cycle)
            return True
        if turn.label not in (*UNKNOWN, "conflict"):
            return False
        cycle.repeats = 1
        turn = yield self.step("bind", cycle)
        pod = self.api.find(POD, name_of(cycle.pod))
        if pod is not None and node_name(pod) == cycle.node:
            turn.took("bound")
            self.bound(cycle)
            return True
        if pod is None or node_name(pod) is not None or deleting(pod):
            turn.took("gone")
            return False
        turn.took("unbound")


# -- prebind-verifies-claim


def _read_and_compare(self: Scheduler, cycle: Cycle, i: int) -> Any:
    """The claim must be the one that was scheduled, with the allocation that Filter saw or the pod's own; its own write is recognised."""
    turn: Turn = yield self.step("get_claim", cycle, index=i)
    seen, pending = cycle.claim(i), cycle.pending[i]
    found = self.api.find(CLAIM, name_of(seen))
    if found is None:
        turn.took("not-found")
        return "not-found", None
    turn.took("ok")
    if uid_of(found) != uid_of(seen):
        return "another", None
    now = allocation(found)
    if listed(found, cycle.pod) and now is not None and (pending is None or now == pending.allocation):
        turn.took("applied")
        return "applied", found
    if pending is None and now != allocation(seen):
        return "another", None
    return "ok", found


def _any_error(self: Scheduler, label: str) -> bool:
    """An error leaves open whether the write was applied."""
    return label in (*UNKNOWN, "conflict")


# -- reserve-rejects-published, unchecked-revision


def _reject_published(self: Scheduler, turn: Turn, cycle: Cycle, i: int) -> bool:
    """A claim that was allocated meanwhile ends the attempt."""
    return Scheduler.signal(self, turn, cycle, i) and turn.label != "published"


def _believe(self: Scheduler, cycle: Cycle) -> bool:
    """Whatever has changed since."""
    return False


# -- Unreserve


def _assume_answer(self: Scheduler, cycle: Cycle, i: int) -> Any:
    """The answer of the patch is assumed; a patch that was answered with an error is sent again, five times in all."""
    if not self.gives_back(cycle, i):
        return
    for cycle.repeats in range(TRIES):
        turn: Turn = yield self.step("give_back_reservation", cycle, index=i)
        stored = self.patch_away(turn, cycle, i)
        if stored is not None:
            cycle.written = stored
            turn = yield self.step("give_back_reservation", cycle, index=i)
            turn.took("assumed" if self.cache.assume(stored) == "ok" else "ignored")
            cycle.written = None
            break
        if turn.label not in UNKNOWN:
            break
    cycle.repeats = 0


def _keep_reservation(self: Scheduler, cycle: Cycle, i: int) -> Any:
    """The pod stays among the claim's consumers."""
    if self.gives_back(cycle, i):
        turn: Turn = yield self.step("give_back_reservation", cycle, index=i)
        turn.took("kept")


def _only_unreserved(self: Scheduler, claim: Object, pod: Object) -> bool:
    """PostFilter frees no reserved claim, the pod's own included."""
    return not consumers(claim)


def _no_restore(self: Scheduler, cycle: Cycle, i: int) -> Any:
    """The assume cache is left alone."""
    yield from ()


SCHEDULER: Registry = {
    "allocation-only-assumed": {"Scheduler": {"signal": _assume_intended, "unreserve_claim": _restore_always}},
    "bind-verifies-pod": {"Scheduler": {"bind": _bind_and_look}},
    "prebind-verifies-claim": {"Scheduler": {"read_again": _read_and_compare, "tries_again": _any_error}},
    "reserve-rejects-published": {"Scheduler": {"signal": _reject_published}},
    "unchecked-revision": {"Scheduler": {"moved_on": _believe}},
    "unreserve-assumes-answer": {"Scheduler": {"give_back": _assume_answer}},
    "unreserve-keeps-reservation": {"Scheduler": {"give_back": _keep_reservation, "may_free": _only_unreserved}},
    "unreserve-no-restore": {"Scheduler": {"restore": _no_restore}},
}
