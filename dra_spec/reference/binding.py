"""The binding goroutine of a pod: PreBind with bindClaim, Bind, and Unreserve after a failure (kubernetes v1.37.2 dynamicresources.go)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dra_spec.reference.apiserver import CLAIM, ApiServer
from dra_spec.reference.assume import AssumeCache, InFlight
from dra_spec.reference.cycle import (
    Cycle,
    binding_failed,
    binding_pending,
    first_write,
    has_binding_conditions,
    listed,
    with_finalizer,
    with_reservation,
)
from dra_spec.reference.shapes import Object, allocation, name_of, node_name, uid_of
from dra_spec.reference.steps import Body, Step, Thread, Turn

if TYPE_CHECKING:
    from dra_spec.reference.world import World

TRIES = 5


class BindingGoroutine:
    """What a scheduler does for a pod after Reserve. The attributes belong to `Scheduler`."""

    world: World
    api: ApiServer
    cache: AssumeCache
    in_flight: InFlight
    pods: dict[str, Object]
    bindings: dict[str, tuple[Cycle, Thread]]
    done: set[str]
    cycle: Cycle | None

    def step(self, verb: str, cycle: Cycle, **params: str | int) -> Step:
        """The announcement of a step of an attempt."""
        raise NotImplementedError

    def bind_pod(self, cycle: Cycle) -> Body:
        """PreBind, Bind; Unreserve if one of them fails."""
        if not ((yield from self.pre_bind(cycle)) and (yield from self.bind(cycle))):
            yield from self.unreserve(cycle)

    def pre_bind(self, cycle: Cycle) -> Any:
        """bindClaim for each claim that the cycle's copy does not show as reserved, then binding conditions, then the in-flight entries."""
        for i in range(len(cycle.claims)):
            if not listed(cycle.claim(i), cycle.pod) and not (yield from self._bind_claim(cycle, i)):
                return False
        if any(has_binding_conditions(claim) for claim in cycle.claims) and not (yield from self._await_conditions(cycle)):
            return False
        for i, pending in enumerate(cycle.pending):
            if pending is not None:
                turn: Turn = yield self.step("clear_in_flight", cycle, index=i)
                self.in_flight.release(pending.uid, force=True)
                cycle.pending[i] = None
                turn.took("ok")
        return True

    def _bind_claim(self, cycle: Cycle, i: int) -> Any:
        """P2 to P5 for one claim; five tries, each but the first with a live GET by name. False: the attempt has failed."""
        claim, carries = cycle.claim(i), cycle.pending[i] is not None
        for cycle.tries in range(1, TRIES + 1):
            cycle.working = None
            if cycle.tries > 1:
                verdict, found = yield from self.read_again(cycle, i)
                if verdict == "applied":
                    return (yield from self._assume(cycle, i, found))
                if verdict != "ok":
                    break
                claim = cycle.working = found
            first = first_write(claim, carries)
            if first is None:
                break
            if first == "finalizer":
                turn: Turn = yield self.step("add_finalizer", cycle, index=i)
                stored = self._put_finalizer(turn, claim)
                if stored is None:
                    if turn.label == "conflict":
                        continue
                    break
                claim = cycle.working = stored
            turn = yield self.step("write_allocation", cycle, index=i)
            stored = self._put_status(turn, cycle, i, claim)
            if stored is not None:
                return (yield from self._assume(cycle, i, stored))
            if not self.tries_again(turn.label):
                break
        cycle.working = None
        return False

    def read_again(self, cycle: Cycle, i: int) -> Any:
        """P2: the claim that is stored under the name now; nobody compares its UID. Returns a verdict and the claim."""
        turn: Turn = yield self.step("get_claim", cycle, index=i)
        found = self.api.find(CLAIM, name_of(cycle.claim(i)))
        turn.took("ok" if found is not None else "not-found")
        return turn.label, found

    def tries_again(self, label: str) -> bool:
        """Whether bindClaim goes on after such an answer to the status write."""
        return label == "conflict"

    def _put_finalizer(self, turn: Turn, claim: Object) -> Object | None:
        """P3."""
        return turn.request(lambda: self.api.update(CLAIM, with_finalizer(claim)))

    def _put_status(self, turn: Turn, cycle: Cycle, i: int, claim: Object) -> Object | None:
        """P4: allocation, if the pod carries one, and reservation in one write."""
        pending = cycle.pending[i]
        wanted = with_reservation(claim, cycle.pod, pending.allocation if pending else None)
        return turn.request(lambda: self.api.update_status(CLAIM, wanted))

    def _assume(self, cycle: Cycle, i: int, stored: Object) -> Any:
        """P5: what was written goes into the assume cache; a refusal is only logged."""
        cycle.working, cycle.written = None, stored
        turn: Turn = yield self.step("assume", cycle, index=i)
        turn.took("ok" if self.cache.assume(stored) == "ok" else "ignored")
        cycle.claims[i], cycle.written = stored, None
        return True

    def _await_conditions(self, cycle: Cycle) -> Any:
        """P8: polls until the conditions of all claims are true, one has failed, a claim is missing, or the time is over."""

        def found() -> str:
            return self._poll(cycle)[0]

        turn: Turn = yield [
            self.gated("check_conditions", cycle, lambda: found() != "waiting"),
            self.gated("conditions_time_out", cycle, lambda: found() == "waiting"),
        ]
        label, fresh = self._poll(cycle)
        cycle.claims[: len(fresh)] = fresh
        turn.took({"ready": "ok", "waiting": "timeout"}.get(label, label))
        return label == "ready"

    def gated(self, verb: str, cycle: Cycle, needs: Any) -> Step:
        """A step that waits for a condition."""
        step = self.step(verb, cycle)
        step.needs = needs
        return step

    def _poll(self, cycle: Cycle) -> tuple[str, list[Object]]:
        """One round over the claims in order: what decides it, and the claims refreshed from the cache up to there."""
        fresh: list[Object] = []
        for claim in cycle.claims:
            latest = self.cache.get(name_of(claim)) if claim is not None else None
            if latest is None:
                return "missing", fresh
            fresh.append(latest)
            if binding_failed(latest):
                return "failed", fresh
            if allocation(latest) is None or binding_pending(latest):
                return "waiting", fresh
        return "ready", fresh

    def bind(self, cycle: Cycle) -> Any:
        """B2."""
        turn: Turn = yield self.step("bind", cycle)
        if not self.post_binding(turn, cycle):
            return False
        self.bound(cycle)
        return True

    def post_binding(self, turn: Turn, cycle: Cycle) -> bool:
        """The request; whether the answer was a success."""
        name, node = name_of(cycle.pod), cycle.node
        assert node is not None
        return turn.request(lambda: self.api.bind(name, node, uid_of(cycle.pod))) is not None

    def bound(self, cycle: Cycle) -> None:
        """The attempt has succeeded; no step will look at the pod again."""
        self.done.add(name_of(cycle.pod))
        self.bindings.pop(name_of(cycle.pod))

    # -- Unreserve

    def unreserve(self, cycle: Cycle) -> Any:
        """U1 to U3 for each claim, then the end of the attempt."""
        for i in range(len(cycle.claims)):
            yield from self.unreserve_claim(cycle, i)
        turn: Turn = yield self.step("end_attempt", cycle)
        name = name_of(cycle.pod)
        pod = self.pods.get(name)
        gone = pod is None or node_name(pod) is not None
        if gone:
            self.done.add(name)
        self.bindings.pop(name, None)
        turn.took("dropped" if gone else "ok")

    def unreserve_claim(self, cycle: Cycle, i: int) -> Any:
        """Counts the in-flight entry down, by the UID of the copy; restores the cache if that removed it; gives the reservation back."""
        turn: Turn = yield self.step("release_in_flight", cycle, index=i)
        removed = self.in_flight.release(uid_of(cycle.claim(i)))
        turn.took("ok" if removed else "kept")
        if removed:
            yield from self.restore(cycle, i)
        yield from self.give_back(cycle, i)

    def restore(self, cycle: Cycle, i: int) -> Any:
        """U2."""
        turn: Turn = yield self.step("restore", cycle, index=i)
        turn.took("ok" if self.cache.restore(name_of(cycle.claim(i))) else "unchanged")

    def give_back(self, cycle: Cycle, i: int) -> Any:
        """U3: only if the copy shows an allocation and lists the pod; errors are only logged, the answer is not assumed."""
        if self.gives_back(cycle, i):
            turn: Turn = yield self.step("give_back_reservation", cycle, index=i)
            self.patch_away(turn, cycle, i)

    def gives_back(self, cycle: Cycle, i: int) -> bool:
        """Whether the copy of the claim shows an allocation and lists the pod."""
        return allocation(cycle.claim(i)) is not None and listed(cycle.claim(i), cycle.pod)

    def patch_away(self, turn: Turn, cycle: Cycle, i: int) -> Object | None:
        """A patch with the UID and no version that takes the pod out of reservedFor."""
        claim, pod_uid = cycle.claim(i), uid_of(cycle.pod)

        def change(status: Object) -> None:
            status["reservedFor"] = [entry for entry in status.get("reservedFor", ()) if entry["uid"] != pod_uid]

        return turn.request(lambda: self.api.patch_status(CLAIM, name_of(claim), change, uid=uid_of(claim)))
