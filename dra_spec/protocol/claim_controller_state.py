"""What the ResourceClaim controller (kube-controller-manager) remembers; all of it is lost when the process dies.

Its informer caches lag behind the API server, each on its own, and hold here only what some step decides by. A worker holds what it has
read across its API calls and never refreshes it: that is where the races are. There is one worker for each key, as a key is never processed
twice at once and there are more workers than keys.

**The work queue** is not a variable. A key may be synced whenever the caches show something to do for it. The real queue holds a key from
the event that shows it until a sync finds nothing to do, and syncs it at any time from then on (workers are busy, failures are repeated
after a delay), so each real sync with an effect is one of the model's. The model has more: a sync may be repeated before the event of its
own write arrives. That costs a conflict and nothing else; for the delete without precondition see `delete_generated`. A sync whose reason
has gone when it starts has one effect, on `created`, and `load_pod` allows it for that.

Not modelled: reads that fail (they end the sync without effect), the size and age limits of `created` and of the set of deleted UIDs, lost
wake-ups (no event of this world is lost), templates that are missing or refused, claims of pod groups, claims that the scheduler makes for
extended resources.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import Any

import attrs

from dra_spec.explorer.model import Outcome, Slot, View
from dra_spec.explorer.values import Version
from dra_spec.protocol.apiserver import CLAIM_CONTROLLER, Api
from dra_spec.protocol.instance import ClaimRef, Instance
from dra_spec.protocol.objects import Claim, Pod
from dra_spec.protocol.watch import Channel, room

ROOM = CLAIM_CONTROLLER
WRITER = CLAIM_CONTROLLER
SOURCE = "pkg/controller/resourceclaim/controller.go:"

Names = tuple[tuple[str, str], ...]  # pairs (entry of spec.resourceClaims, generated claim), sorted


@attrs.frozen
class SeenClaim:
    """An entry of the claim cache; `exists` false: none, all else at its default."""

    rv: Version | None = None
    uid: Version | None = None
    exists: bool = False
    finalizer: bool = False
    deleting: bool = False
    allocated: bool = False
    reserved_for: frozenset[str] = frozenset()

    @staticmethod
    def of(claim: Claim) -> SeenClaim:
        """The cache entry that an object makes."""
        if not claim.exists:
            return NO_CLAIM
        return SeenClaim(claim.rv, claim.uid, True, claim.finalizer, claim.deleting, claim.allocated, claim.reserved_for)


NO_CLAIM = SeenClaim()


@attrs.frozen
class SeenPod:
    """An entry of the pod cache, and whether the pod's UID is in `deletedObjects` (`gone`); `terminal`: phase Succeeded or Failed."""

    exists: bool = False
    deleting: bool = False
    bound: bool = False
    terminal: bool = False
    names: Names = ()
    gone: bool = False

    @staticmethod
    def of(pod: Pod) -> SeenPod:
        """The cache entry that an object makes."""
        return SeenPod(pod.exists, pod.deleting, pod.node is not None, pod.terminal, pod.claim_names)

    @property
    def done(self) -> bool:
        """Whether the pod needs its claims no longer. Source: controller.go:isPodDone."""
        return self.terminal or (self.deleting and not self.bound)


GONE = SeenPod(gone=True)


class ClaimStep(enum.Enum):
    """Which API call the worker of a claim key makes next."""

    IDLE = "idle"
    ASK = "RC-31"  # live GET of a pod that the cache does not know
    RELEASE = "RC-33"  # reservedFor, and the allocation with the last entry
    DROP_FINALIZER = "RC-34"  # after RC-33
    CLEAR = "RC-35"  # the allocation of a deleting claim
    DROP_LAST = "RC-36"  # the finalizer of a deleting claim
    DELETE = "RC-37"  # a generated claim of a finished pod


@attrs.frozen
class ClaimWork:
    """The local variables of a claim key's worker.

    `rv`: version of the copy that it works on (a write from an older copy conflicts, one from the current copy needs no other content);
    `uid`: the claim's incarnation, None where it cannot matter; `keep`: the consumers that stay, as far as decided; `ask`: the pods to be
    looked up live, next one first; `dropped`: whether some consumer goes.
    """

    step: ClaimStep = ClaimStep.IDLE
    rv: Version | None = None
    uid: Version | None = None
    keep: frozenset[str] = frozenset()
    ask: tuple[str, ...] = ()
    dropped: bool = False

    @property
    def next_asked(self) -> str | None:
        return self.ask[0] if self.ask else None


class PodStep(enum.Enum):
    """Which API call the worker of a pod key makes next."""

    IDLE = "idle"
    ASK = "RC-20a"  # live GET of the claim that the pod's status names
    CREATE = "RC-21"
    APPLY = "RC-22"
    RESERVE = "RC-23"


@attrs.frozen
class PodWork:
    """The local variables of a pod key's worker: its copy of the pod (`names`, `bound`), what it found, and where it is.

    `index`: the entry of spec.resourceClaims that it works on; `found`: generated claims that are not yet in the copy's status;
    `rv`: version of the cached claim to which it is about to add a reservation.
    """

    step: PodStep = PodStep.IDLE
    index: int = 0
    names: Names = ()
    bound: bool = False
    found: Names = ()
    rv: Version | None = None


NO_CLAIM_WORK = ClaimWork()
NO_POD_WORK = PodWork()


@attrs.frozen(eq=False)
class Controller:
    """The slots of the controller.

    `created`: for each generated claim, the version that `mutCache` holds since this process created it. An entry goes only when a look-up
    finds an equal or newer object in the claim cache; a removal of the claim does not take it out (hazard V5).
    """

    instance: Instance
    api: Api
    claims: Mapping[str, Slot[SeenClaim]]
    pods: Mapping[str, Slot[SeenPod]]
    created: Mapping[str, Slot[Version | None]]
    claim_work: Mapping[str, Slot[ClaimWork]]
    pod_work: Mapping[str, Slot[PodWork]]
    owners: Mapping[str, str]  # generated claim -> its pod
    refs: Mapping[str, tuple[ClaimRef, ...]]  # pod -> spec.resourceClaims

    @staticmethod
    def of(instance: Instance) -> Controller:
        """The one `Controller` object of the instance; it must take part."""
        return instance.memo(_make)

    @property
    def slots(self) -> tuple[Slot[Any], ...]:
        maps: tuple[Mapping[str, Slot[Any]], ...] = (self.claims, self.pods, self.created, self.claim_work, self.pod_work)
        return tuple(slot for of in maps for slot in of.values())

    @property
    def rooms(self) -> frozenset[str]:
        """For a step without a request: the controller's memory and its channels."""
        return frozenset({ROOM, room(CLAIM_CONTROLLER)})

    @property
    def request_rooms(self) -> frozenset[str]:
        """For a step that makes a request."""
        return self.rooms | self.api.rooms

    @property
    def claim_channel(self) -> Channel:
        return self.api.claim_channels[CLAIM_CONTROLLER]

    @property
    def pod_channel(self) -> Channel:
        return self.api.pod_channels[CLAIM_CONTROLLER]

    def copy(self, v: View, claim: str, rv: Version | None) -> Claim:
        """The object that a PUT sends: the copy of version `rv`. If that is not the current one its content is of no account."""
        stored = self.api.claim[claim]
        if rv is None or (v[stored].exists and v[stored].rv == rv):
            return v.value(stored)
        return Claim(rv, v[stored].uid)

    def look_up(self, v: View, outcome: Outcome, claim: str) -> bool:
        """Looks a generated claim up in `mutCache`: whether it, or the cache below, has it. An entry that has become old is dropped.

        Source: client-go tools/cache/mutation_cache.go:GetByKey, ByIndex.
        """
        exists = v[self.claims[claim]].exists
        if exists and self.outdated(v, claim):
            outcome[self.created[claim]] = None
        return exists or v.value(self.created[claim]) is not None

    def outdated(self, v: View, claim: str) -> bool:
        """Whether `mutCache` holds an entry that the next look-up drops."""
        entry = v.value(self.created[claim])
        if entry is None:
            return False
        rv = v[self.claims[claim]].rv
        return rv is not None and entry <= rv


def _make(instance: Instance) -> Controller:
    api = Api.of(instance)
    owners = {spec.name: spec.pod for spec in instance.claims if spec.pod is not None}

    def slot(what: str, name: str, initial: Any) -> Slot[Any]:
        return Slot(f"{ROOM}/{what}/{name}", initial, ROOM)

    return Controller(
        instance,
        api,
        claims={name: slot("claim", name, SeenClaim.of(stored.initial)) for name, stored in api.claim.items()},
        pods={name: slot("pod", name, SeenPod.of(stored.initial)) for name, stored in api.pod.items()},
        created={name: slot("created", name, None) for name in owners},
        claim_work={name: slot("claim-work", name, NO_CLAIM_WORK) for name in api.claim},
        pod_work={pod.name: slot("pod-work", pod.name, NO_POD_WORK) for pod in instance.pods if pod.claims},
        owners=owners,
        refs={pod.name: pod.claims for pod in instance.pods},
    )
