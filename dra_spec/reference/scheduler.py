"""A scheduler with the DynamicResources plugin (kubernetes v1.37.2): informers, caches and the scheduling goroutine.

One scheduling goroutine, one binding goroutine per pod (`binding`), and the informers' handlers, which are moves of their own. The queue
is reduced to what it can do in the end: a pod that PreEnqueue would let pass may be tried at any time (events, backoff and the flush
after five minutes all lead there).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from dra_spec.allocation.errors import DoesNotFit, FatalAllocation
from dra_spec.reference.apiserver import CLAIM, POD, Watch
from dra_spec.reference.assume import AllocatedDevices, AssumeCache, InFlight
from dra_spec.reference.binding import BindingGoroutine
from dra_spec.reference.choice import accepted, injected, name_of_choice
from dra_spec.reference.cycle import (
    Cycle,
    Pending,
    binding_failed,
    binding_pending,
    deallocatable,
    fits,
    with_allocation,
    without_all,
)
from dra_spec.reference.errors import Divergence
from dra_spec.reference.shapes import Object, allocation, allocation_object, claim_name, deleting, is_for, name_of, node_name, uid_of
from dra_spec.reference.steps import Body, Move, Moves, Step, Thread, Turn

if TYPE_CHECKING:
    from dra_spec.reference.world import World


class Scheduler(BindingGoroutine):
    """One scheduler process. `start` is called at the beginning and after a crash: all memory is new, the caches are listed."""

    def __init__(self, world: World, name: str) -> None:
        self.world, self.name, self.api = world, name, world.api
        first = world.instance.schedulers[0]
        specs = [pod for pod in world.instance.pods if (pod.scheduler or first) == name and pod.node is None]
        self.mine = [pod.name for pod in specs]
        self._late = {pod.name for pod in specs if not pod.present}
        self._entries = {pod.name: [ref.entry for ref in pod.claims] for pod in specs}
        self.claim_names = [claim.name for claim in world.instance.claims]
        self.done: set[str] = set()  # pods that no step will look at again
        self._watches: list[Watch] = []
        self.start()

    def start(self) -> None:
        """Lists and watches claims and pods; nothing is in flight, no attempt runs."""
        for watch in self._watches:
            self.api.unwatch(watch)
        self.claim_watch, self.pod_watch = self.api.watch(CLAIM, self.name), self.api.watch(POD, self.name)
        self._watches = [self.claim_watch, self.pod_watch]
        self.cache = AssumeCache()
        self.allocated = AllocatedDevices()
        self.cache.handlers.append(self.allocated.handle)
        self.in_flight = InFlight(self.cache)
        self.goroutine: Thread | None = None
        self.cycle: Cycle | None = None
        self.bindings: dict[str, tuple[Cycle, Thread]] = {}
        for claim in self.api.list(CLAIM):
            self.cache.deliver(claim)
        self.pods: dict[str, Object] = {name_of(pod): pod for pod in self.api.list(POD)}

    def restart(self, turn: Turn) -> None:
        """The process dies and another one becomes ready (E4)."""
        turn.spend("scheduler-crash")
        self.start()
        for name in self.mine:
            pod = self.pods.get(name)
            awaited = name in self._late and pod is None and name not in self.done
            if (pod is not None and node_name(pod) is None) or awaited:
                self.done.discard(name)
            else:
                self.done.add(name)
        turn.took("ok")

    def entries_of(self, pod: str) -> list[str]:
        """The names of the entries of a pod's spec.resourceClaims."""
        return self._entries[pod]

    # -- moves

    def moves(self) -> Moves:
        found: Moves = {}
        if self.claim_watch.pending:
            event = self.claim_watch.pending[0]
            kind = "observe_claim_removal" if event.type == "DELETED" else "observe_claim"
            found[self._move(kind, claim=name_of(event.object))] = self._observe_claim
        if self.pod_watch.pending:
            found[self._move("observe_pod", pod=name_of(self.pod_watch.pending[0].object))] = self._observe_pod
        for pod in self._waiting():
            first = {"index": 0} if self._entries[pod] else {}
            found[self._move("resolve_claim" if first else "skip_claims", pod=pod, **first)] = self._begin
        if self.goroutine is not None:
            found.update(dict.fromkeys(self.goroutine.moves(), self._take))
        for _, thread in self.bindings.values():
            found.update(thread.moves())
        if self.world.left("scheduler-crash"):
            found[self._move("restart")] = self.restart
        return found

    def _move(self, verb: str, **params: str | int) -> Move:
        return Move.of(f"scheduler.{verb}", {"scheduler": self.name, **params})

    def step(self, verb: str, cycle: Cycle, **params: str | int) -> Step:
        """The announcement of a step of an attempt."""
        return Step(f"scheduler.{verb}", scheduler=self.name, pod=name_of(cycle.pod), **params)

    # -- informers

    def _observe_claim(self, turn: Turn) -> None:
        event = self.claim_watch.take()
        if event.type == "DELETED":
            self.cache.remove(name_of(event.object))
            turn.took("ok")
        else:
            turn.took("ok" if self.cache.deliver(event.object) else "dropped")

    def _observe_pod(self, turn: Turn) -> None:
        name = self._deliver_pod()
        if not self._schedulable_later(name) and name not in self.bindings and not self._trying(name):
            self.done.add(name)
        turn.took("ok")

    def _deliver_pod(self) -> str:
        event = self.pod_watch.take()
        name = name_of(event.object)
        if event.type == "DELETED":
            self.pods.pop(name, None)
        else:
            self.pods[name] = event.object
        return name

    def settle(self) -> None:
        """Pods of others, and pods that are done with, reach the cache unnoticed."""
        while self.pod_watch.pending and self.ignores(name_of(self.pod_watch.pending[0].object)):
            self._deliver_pod()
        if self.deaf:
            self.claim_watch.pending.clear()

    @property
    def deaf(self) -> bool:
        """Whether no step will look at any pod, and so at any claim, again; claims then need not reach the cache."""
        return bool(self.mine) and self.done.issuperset(self.mine)

    def ignores(self, pod: str) -> bool:
        """Whether no step will look at the pod again, or it is not this scheduler's."""
        return pod not in self.mine or pod in self.done

    def _schedulable_later(self, name: str) -> bool:
        pod = self.pods.get(name)
        return pod is not None and node_name(pod) is None

    def _trying(self, name: str) -> bool:
        return self.cycle is not None and name_of(self.cycle.pod) == name

    # -- the scheduling goroutine

    def _waiting(self) -> Iterator[str]:
        """Pods that may be popped now: pending, in no attempt, and not held back by PreEnqueue for a missing name or their first claim."""
        if self.goroutine is not None:
            return
        for name in self.mine:
            pod = self.pods.get(name)
            if pod is None or name in self.bindings or deleting(pod) or node_name(pod) is not None:
                continue
            cycle = Cycle.of(pod)
            named = all(claim_name(pod, entry) is not None for entry in cycle.entries)
            if not self._entries[name] or (named and self.usable_claim(cycle, 0) is not None):
                yield name

    def _begin(self, turn: Turn) -> None:
        self.cycle = Cycle.of(self.pods[str(turn.params["pod"])])
        self.goroutine = Thread(self._attempt(self.cycle))
        self._take(turn)

    def _take(self, turn: Turn) -> None:
        thread = self.goroutine
        assert thread is not None
        thread.take(turn)
        if thread.ended:
            self.goroutine = self.cycle = None

    def _attempt(self, cycle: Cycle) -> Body:
        """PreFilter, Filter, Reserve; ends with a binding goroutine, or with nothing left."""
        if not cycle.claims:
            yield from self._skip_claims(cycle)
            return
        if not (yield from self._resolve_claims(cycle)):
            return
        if not (yield from self._check_in_flight(cycle)):
            return
        yield from self._gather(cycle)
        if not (yield from self._filter(cycle)):
            return
        yield from self._reserve(cycle)

    def _skip_claims(self, cycle: Cycle) -> Any:
        """A pod without claims fits the first node, as nothing else of the scheduler is here."""
        turn: Turn = yield self.step("skip_claims", cycle)
        cycle.node = self.world.instance.nodes[0]
        turn.took("ok")
        self.fork(cycle)

    def usable_claim(self, cycle: Cycle, index: int) -> Object | None:
        """The claim of an entry in the assume cache, None if PreEnqueue or PreFilter would reject the pod for it."""
        entry = cycle.entries[index]
        name = claim_name(cycle.pod, entry)  # as the pod was when it was popped
        claim = self.cache.get(name) if name is not None else None
        if claim is None or deleting(claim):
            return None
        if "resourceClaimTemplateName" in entry and not is_for(claim, cycle.pod):
            return None
        return claim

    def _resolve_claims(self, cycle: Cycle) -> Any:
        """C1: one look at the assume cache per claim; the pointers are kept."""
        for i in range(len(cycle.claims)):
            turn: Turn = yield self.step("resolve_claim", cycle, index=i)
            cycle.claims[i] = self.usable_claim(cycle, i)
            if cycle.claims[i] is None:
                turn.took("unschedulable")
                return False
            turn.took("ok")
        return True

    def _check_in_flight(self, cycle: Cycle) -> Any:
        """C2: a claim that somebody is allocating right now makes the pod unschedulable."""
        for i in cycle.unallocated:
            turn: Turn = yield self.step("check_in_flight", cycle, index=i)
            if self.in_flight.get(uid_of(cycle.claim(i))) is not None:
                turn.took("in-flight")
                return False
            turn.took("ok")
        return True

    def _gather(self, cycle: Cycle) -> Any:
        """C3 to C5: allocated devices, devices in flight, and again if the former have changed meanwhile."""
        while cycle.unallocated:
            turn: Turn = yield self.step("read_allocated", cycle)
            cycle.in_use, cycle.revision = set(self.allocated.ids), self.allocated.revision
            turn.took("ok")
            turn = yield self.step("read_in_flight", cycle)
            cycle.in_use |= self.in_flight.devices()
            turn.took("ok")
            turn = yield self.step("check_revision", cycle)
            if not self.moved_on(cycle):
                turn.took("ok")
                return
            cycle.in_use = None
            turn.took("retry")

    def moved_on(self, cycle: Cycle) -> bool:
        """C5: whether the allocated devices have changed since they were read."""
        return self.allocated.revision != cycle.revision

    def _filter(self, cycle: Cycle) -> Any:
        """F1 and, if no node is left, PF1."""
        turn: Turn = yield self.step("filter", cycle)
        expired = turn.asked == "timed-out"
        blocked: set[int] = set()
        choices: dict[str, Sequence[Any]] = {}
        choice = injected(self.world, turn.asked)
        try:
            for node in self.world.instance.nodes:
                if choice is not None and choice.node == node:
                    if self.blocked(cycle, node, expired):
                        raise Divergence(str(turn.move), str(choice), "its refusal", "a claim of the pod is unavailable on the node")
                    names, in_use = self._question(cycle)
                    self._take_node(cycle, turn, node, accepted(self.world, str(turn.move), choice, names, in_use))
                    return True
                found, unavailable = self.filter_node(cycle, node, expired)
                blocked |= unavailable
                if found is not None:
                    choices[node] = found
                    if not self.world.instance.any_node:
                        break
        except FatalAllocation:
            turn.took("error")
            return False
        if choices:
            any_node = self.world.instance.any_node
            chosen = turn.asked if any_node and turn.asked in choices else next(iter(choices))
            self._take_node(cycle, turn, chosen, choices[chosen])
            return True
        cycle.in_use = None
        late = any(claim is not None and allocation(claim) is not None and binding_pending(claim) for claim in cycle.claims)
        label = "timed-out" if expired and late else ""
        cycle.unavailable = tuple(i for i in sorted(blocked) if self.may_free(cycle.claim(i), cycle.pod))
        if not cycle.unavailable:
            turn.took(label or "no-fit")
            return False
        turn.took(label or "unavailable")
        turn = yield [self.step("deallocate_unavailable", cycle, index=i) for i in cycle.unavailable]
        wanted = without_all(cycle.claim(int(turn.params["index"])))
        turn.request(lambda: self.api.update_status(CLAIM, wanted))
        return False

    def may_free(self, claim: Object, pod: Object) -> bool:
        """Whether PostFilter may deallocate a claim that is unavailable."""
        return deallocatable(claim, pod)

    def blocked(self, cycle: Cycle, node: str, expired: bool) -> set[int]:
        """The allocated claims that are unavailable on the node. `expired`: binding conditions have waited too long."""
        unavailable = set()
        for i, claim in enumerate(cycle.claims):
            if claim is None or allocation(claim) is None:
                continue
            if not fits(allocation(claim), node) or binding_failed(claim) or (expired and binding_pending(claim)):
                unavailable.add(i)
        return unavailable

    @staticmethod
    def _question(cycle: Cycle) -> tuple[tuple[str, ...], frozenset[str]]:
        """What the allocator is asked: the claims that need an allocation, and the devices in use."""
        return tuple(name_of(cycle.claim(i)) for i in cycle.unallocated), frozenset(cycle.in_use or ())

    def filter_node(self, cycle: Cycle, node: str, expired: bool) -> tuple[Sequence[Any] | None, set[int]]:
        """Filter on one node: allocations for the claims that need one (None: unschedulable), and the claims unavailable there.

        An allocator failure comes before what is unavailable is recorded.
        """
        unavailable = self.blocked(cycle, node, expired)
        found: Sequence[Any] = ()
        names, in_use = self._question(cycle)
        if names:
            try:
                found = self.world.allocate(names, node, in_use)
            except DoesNotFit:
                return None, set()
        return (None, unavailable) if unavailable else (found, set())

    def _take_node(self, cycle: Cycle, turn: Turn, node: str, made: Sequence[Any]) -> None:
        """The node is chosen, with these allocations for the claims that need one."""
        label = name_of_choice(self.world, node, *self._question(cycle), made)
        cycle.node, cycle.in_use = node, None
        for i, found in zip(cycle.unallocated, made, strict=True):
            cycle.pending[i] = Pending(uid_of(cycle.claim(i)), allocation_object(found))
        turn.took(node if self.world.instance.any_node and label == "ok" else label)
        if not cycle.unallocated:
            self.fork(cycle)

    def _reserve(self, cycle: Cycle) -> Any:
        """R1 for each claim that needs an allocation; then the binding goroutine starts. A failure runs Unreserve right here."""
        for i in cycle.unallocated:
            turn: Turn = yield self.step("reserve", cycle, index=i)
            if not self.signal(turn, cycle, i):
                yield from self.unreserve(cycle)
                return
        if cycle.unallocated:
            self.fork(cycle)

    def signal(self, turn: Turn, cycle: Cycle, i: int) -> bool:
        """R1: puts one allocation in flight. False: the attempt fails."""
        pending = cycle.pending[i]
        assert pending is not None
        answer = self.in_flight.signal(with_allocation(cycle.claim(i), pending.allocation))
        turn.took({"missing": "not-found", "published": "published"}.get(answer, "ok"))
        return answer != "missing"

    def fork(self, cycle: Cycle) -> None:
        """Starts the binding goroutine of an attempt (R2)."""
        self.bindings[name_of(cycle.pod)] = (cycle, Thread(self.bind_pod(cycle)))
