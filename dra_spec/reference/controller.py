"""The ResourceClaim controller (kubernetes v1.37.2 `pkg/controller/resourceclaim/controller.go`): informer caches, mutation cache, workers.

One worker per key, as a key is never processed twice at once. The work queue is reduced to what it can do in the end: a key may be synced
whenever the caches show something to do for it. Claim keys: here; pod keys: `controller_pods`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import attrs

from dra_spec.reference.apiserver import CLAIM, POD, ApiServer, Watch, without_finalizer
from dra_spec.reference.controller_pods import PodKeys, PodSync
from dra_spec.reference.errors import NotFound
from dra_spec.reference.shapes import (
    Object,
    allocation,
    clone,
    consumers,
    deleting,
    finalizer,
    name_of,
    node_name,
    owner_pod,
    terminal,
    uid_of,
)
from dra_spec.reference.steps import Body, Move, Moves, Step, Thread, Turn

if TYPE_CHECKING:
    from dra_spec.reference.world import World

CRASH = "claim-controller-crash"


@attrs.define(eq=False)
class ClaimSync:
    """The local variables of a claim key's worker: its copy, the consumers that stay, those to be looked up live, whether some go."""

    copy: Object
    keep: list[Object] = attrs.field(factory=list)
    ask: list[Object] = attrs.field(factory=list)
    dropped: bool = False
    asked: bool = False


class ClaimController(PodKeys):
    """One process of the controller. `start` is called at the beginning and after a crash."""

    def __init__(self, world: World) -> None:
        self.world, self.api = world, world.api
        self.templates = {claim.name: tuple(claim.requests) for claim in world.instance.claims if claim.pod is not None}
        self.claim_names = [claim.name for claim in world.instance.claims]
        self.pod_entries = {pod.name: [(r.entry, r.claim, r.template) for r in pod.claims] for pod in world.instance.pods}
        self.done_claims: set[str] = set()  # removed, and no template brings them back
        self.done_pods: set[str] = set()  # removed
        self._watches: list[Watch] = []
        self.start()

    def start(self) -> None:
        """Lists and watches claims and pods; nothing was created, no deletion was seen, no worker runs."""
        for watch in self._watches:
            self.api.unwatch(watch)
        self.claim_watch, self.pod_watch = self.api.watch(CLAIM, "claim-controller"), self.api.watch(POD, "claim-controller")
        self._watches = [self.claim_watch, self.pod_watch]
        self.claims: dict[str, Object] = {name_of(claim): claim for claim in self.api.list(CLAIM)}
        self.pods: dict[str, Object] = {name_of(pod): pod for pod in self.api.list(POD)}
        self.removed: dict[str, Object] = {name: obj for (kind, name), obj in self.api.removed.items() if kind == CLAIM}
        self.deleted_pods: dict[str, str] = {}  # UID -> name
        self.mutations: dict[str, Object] = {}
        self.claim_work: dict[str, tuple[ClaimSync, Thread]] = {}
        self.pod_work: dict[str, tuple[PodSync, Thread]] = {}

    def _restart(self, turn: Turn) -> None:
        turn.spend(CRASH)
        self.start()
        turn.took("ok")

    # -- moves

    def moves(self) -> Moves:
        found: Moves = {}
        if self.claim_watch.pending:
            found[self._move("observe_claim", claim=name_of(self.claim_watch.pending[0].object))] = self._observe_claim
        if self.pod_watch.pending:
            found[self._move("observe_pod", pod=name_of(self.pod_watch.pending[0].object))] = self._observe_pod
        for claim in self.claim_names:
            if claim in self.claim_work:
                found.update(dict.fromkeys(self.claim_work[claim][1].moves(), self._work_on_claim))
            elif self.claim_needs_work(claim):
                found[self._move("load_claim", claim=claim)] = self._load_claim
        for pod, entries in self.pod_entries.items():
            if pod in self.pod_work:
                found.update(dict.fromkeys(self.pod_work[pod][1].moves(), self._work_on_pod))
            elif entries and self.pod_needs_work(pod):
                found[self._move("load_pod", pod=pod)] = self._load_pod
        if self.world.left(CRASH):
            found[self._move("restart")] = self._restart
        return found

    @staticmethod
    def _move(verb: str, **params: str) -> Move:
        return Move.of(f"claim-controller.{verb}", params)

    # -- informers

    def _observe_claim(self, turn: Turn) -> None:
        name = self._deliver_claim()
        if name not in self.claims and name not in self.templates:
            self.done_claims.add(name)
        turn.took("ok")

    def _deliver_claim(self) -> str:
        event = self.claim_watch.take()
        name = name_of(event.object)
        if event.type == "DELETED":
            self.claims.pop(name, None)
            self.removed[name] = event.object
            self.claim_removed(event.object)
        else:
            self.claims[name] = event.object
        return name

    def claim_removed(self, claim: Object) -> None:
        """A claim's removal was seen. The mutation cache is not told (variant V5)."""

    def _observe_pod(self, turn: Turn) -> None:
        event = self.pod_watch.take()
        name = name_of(event.object)
        if event.type == "DELETED":
            self.pods.pop(name, None)
            self.deleted_pods[uid_of(event.object)] = name
            self.done_pods.add(name)
        else:
            self.pods[name] = event.object
        turn.took("ok")

    def settle(self) -> None:
        """Claims that are done with reach the cache unnoticed."""
        while self.claim_watch.pending and name_of(self.claim_watch.pending[0].object) in self.done_claims:
            self._deliver_claim()

    # -- claim keys

    def _load_claim(self, turn: Turn) -> None:
        name = str(turn.params["claim"])
        work = ClaimSync(self.claims[name])
        self.claim_work[name] = (work, Thread(self._sync_claim(name, work)))
        self._work_on_claim(turn)

    def _work_on_claim(self, turn: Turn) -> None:
        name = str(turn.params["claim"])
        thread = self.claim_work[name][1]
        thread.take(turn)
        if thread.ended:
            del self.claim_work[name]

    def pod_done(self, pod: Object) -> bool:
        """Whether a cached pod needs its claims no longer: terminal, or deleted before it got a node."""
        return terminal(pod) or (deleting(pod) and node_name(pod) is None)

    def claim_needs_work(self, name: str) -> bool:
        """Whether a sync of the claim would make an API call."""
        claim = self.claims.get(name)
        if claim is None:
            return False
        work = ClaimSync(claim)
        self.partition(work)
        if work.ask or work.dropped:
            return True
        if work.keep:
            return False
        return (deleting(claim) and finalizer(claim)) or self.owner_done(claim)

    def partition(self, work: ClaimSync) -> None:
        """Sorts the consumers by the caches. Those that need a live GET are looked up last, by name."""
        for entry in consumers(work.copy):
            verdict = self.verdict(entry)
            if verdict == "ask":
                work.ask.append(entry)
            elif verdict == "keep":
                work.keep.append(entry)
            else:
                work.dropped = True
        work.ask.sort(key=lambda entry: str(entry["name"]))

    def verdict(self, entry: Object) -> str:
        """What the caches say of one consumer: "drop", "keep" or "ask"."""
        if entry["resource"] != "pods":
            return "keep"
        if entry["uid"] in self.deleted_pods:
            return "drop"
        pod = self.pods.get(entry["name"])
        if pod is None:
            return "ask"
        return "drop" if uid_of(pod) != entry["uid"] or self.pod_done(pod) else "keep"

    def owner_done(self, claim: Object) -> bool:
        """Whether the pod that controls a generated claim is in the cache, and replaced or finished."""
        owner = owner_pod(claim)
        pod = self.pods.get(owner[0]) if owner is not None else None
        return pod is not None and owner is not None and (uid_of(pod) != owner[1] or self.pod_done(pod))

    def _call(self, verb: str, name: str) -> Step:
        return Step(f"claim-controller.{verb}", claim=name)

    def _sync_claim(self, name: str, work: ClaimSync) -> Body:
        """RC-30 to RC-37."""
        turn = yield self._call("load_claim", name)
        self.partition(work)
        turn.took("ok")
        while work.ask:
            turn = yield self._call("get_pod", name)
            self._ask(turn, work)
        if work.dropped:
            if not (yield from self.release(name, work)):
                return
        elif deleting(work.copy) and finalizer(work.copy) and not work.keep and not (yield from self._finish_deletion(name, work)):
            return
        if not work.keep and self.owner_done(work.copy):
            turn = yield self._call("delete_generated", name)
            turn.request(lambda: self._delete(name, uid_of(work.copy)))

    def _ask(self, turn: Turn, work: ClaimSync) -> None:
        """RC-31: a consumer that the pod cache lacks is kept if it exists, whatever its phase."""
        entry = work.ask.pop(0)
        work.asked = True
        pod = self.api.find(POD, entry["name"])
        alive = pod is not None and uid_of(pod) == entry["uid"]
        if alive:
            work.keep.append(entry)
        else:
            work.dropped = True
        turn.took("ok" if alive else "not-found")

    def release(self, name: str, work: ClaimSync) -> Any:
        """RC-33 and, if that left finalizer and no allocation, RC-34; chained by the version that came back."""
        turn: Turn = yield self._call("release_consumers", name)
        wanted = clone(work.copy)
        wanted["status"]["reservedFor"] = work.keep
        if not work.keep and finalizer(wanted):
            wanted["status"].pop("allocation", None)
        stored = turn.request(lambda: self.api.update_status(CLAIM, wanted))
        if stored is None:
            return False
        if finalizer(stored) and allocation(stored) is None:
            return (yield from self._drop_finalizer("drop_finalizer", name, work, stored))
        return True

    def _finish_deletion(self, name: str, work: ClaimSync) -> Any:
        """RC-35 if there is an allocation, and RC-36."""
        stored = work.copy
        if allocation(stored) is not None:
            turn: Turn = yield self._call("clear_allocation", name)
            wanted = clone(stored)
            del wanted["status"]["allocation"]
            found = turn.request(lambda: self.api.update_status(CLAIM, wanted))
            if found is None:
                return False
            stored = found
        return (yield from self._drop_finalizer("drop_last_finalizer", name, work, stored))

    def _drop_finalizer(self, verb: str, name: str, work: ClaimSync, stored: Object) -> Any:
        work.copy = stored
        turn: Turn = yield self._call(verb, name)
        return turn.request(lambda: self.api.update(CLAIM, without_finalizer(stored))) is not None

    def _delete(self, name: str, uid: str) -> None:
        """RC-37: by name, no precondition. A later claim of the entry would have another, random name; here it has the same, so the UID
        tells."""
        found = self.api.find(CLAIM, name)
        if found is not None and uid_of(found) != uid:
            raise NotFound(f"claim {name}: this one has another name upstream")
        self.api.delete(CLAIM, name)


__all__ = ["CRASH", "ApiServer", "ClaimController", "ClaimSync"]
