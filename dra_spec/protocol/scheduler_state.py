"""What a scheduler process with the DynamicResources plugin remembers; all of it is lost when the process dies.

One scheduler has one scheduling goroutine (slot `attempt`), a binding goroutine for each pod between Reserve and the end of its attempt
(slot `binding`), and caches that its informers fill. The names in brackets are those of scheduler.md's sources in Kubernetes 1.37.2:
`assumed` is the assume cache, `allocated` the set in allocateddevices.go, `in_flight` the claim tracker's map in dra_manager.go, `cycle`
and `pending` are the plugin's per-pod state data.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from functools import partial
from typing import Any

import attrs

from dra_spec.explorer.model import LiveWhen, Slot, View
from dra_spec.explorer.values import Version
from dra_spec.protocol.apiserver import Api
from dra_spec.protocol.instance import ClaimRef, Instance
from dra_spec.protocol.objects import NO_POD, Allocation, Claim, Pod
from dra_spec.protocol.watch import Channel, room


class Step(enum.Enum):
    """Where a goroutine stands: the step that it takes next."""

    IDLE = "idle"
    # the scheduling goroutine
    RESOLVE = "C1"
    PENDING = "C2"
    ALLOCATED = "C3"
    IN_FLIGHT = "C4"
    REVISION = "C5"
    FILTER = "F1"
    POST_FILTER = "PF1"
    RESERVE = "R1"
    UNRESERVING = "U"  # waits for the Unreserve that it runs itself, after a failed Reserve
    # a binding goroutine
    GET = "P2"
    FINALIZER = "P3"
    STATUS = "P4"
    ASSUME = "P5"
    CONDITIONS = "P8"
    CLEAR = "P9"
    BIND = "B2"
    RELEASE = "U1"
    RESTORE = "U2"
    GIVE_BACK = "U3"
    END = "U5"


@attrs.frozen
class Attempt:
    """The scheduling goroutine: which pod, which step, for which claim (`index`). `unavailable`: the claims, by index, that PostFilter may
    deallocate."""

    step: Step = Step.IDLE
    pod: str | None = None
    index: int = 0
    unavailable: frozenset[int] = frozenset()

    @property
    def gathering(self) -> bool:
        """Between the read of the allocated devices and the check of their revision."""
        return self.step in (Step.IN_FLIGHT, Step.REVISION)


@attrs.frozen
class Binding:
    """A binding goroutine: which step, for which claim (`index`), in which try of the loop that a conflict repeats (1 to 5)."""

    step: Step = Step.IDLE
    index: int = 0
    tries: int = 0


NO_ATTEMPT = Attempt()
NO_BINDING = Binding()


@attrs.frozen
class Cached:
    """An entry of the assume cache. `latest`: what readers get, None: no entry. `api`: the last object that the informer was allowed to
    store, None if it is the same as `latest`."""

    latest: Claim | None = None
    api: Claim | None = None

    @property
    def known(self) -> bool:
        return self.latest is not None

    @property
    def uid(self) -> Version | None:
        return self.latest.uid if self.latest else None

    @property
    def rv(self) -> Version | None:
        return self.latest.rv if self.latest else None

    @property
    def deleting(self) -> bool:
        return self.latest is not None and self.latest.deleting

    @property
    def owner(self) -> str | None:
        return self.latest.owner if self.latest else None

    @property
    def allocated(self) -> bool:
        return self.latest is not None and self.latest.allocated

    @property
    def devices(self) -> frozenset[str] | None:
        """The exclusive devices of the latest object; None: no entry, or not allocated."""
        return self.latest.allocation.devices if self.latest and self.latest.allocation else None

    @property
    def assumed(self) -> bool:
        """Whether an Assume, or something newer that replaced it, is not yet what the informer stored."""
        return self.api is not None


NOT_CACHED = Cached()


@attrs.frozen
class InFlight:
    """An allocation that is decided and perhaps not yet in the assume cache; `sharers`: how many pods count on it."""

    uid: Version
    allocation: Allocation
    sharers: int = 1

    @property
    def devices(self) -> frozenset[str]:
        return self.allocation.devices


InFlights = tuple[InFlight, ...]  # the entries of one claim name, by UID: more than one only after delete and create


@attrs.frozen
class Pending:
    """The allocation that a pod is to publish for a claim, and the UID under which Reserve signalled it."""

    uid: Version
    allocation: Allocation


@attrs.frozen(eq=False)
class Scheduler:
    """The slots of one scheduler. Per-claim slots of a pod are listed in the order of its spec.resourceClaims."""

    name: str
    instance: Instance
    api: Api
    assumed: Mapping[str, Slot[Cached]]
    allocated: Slot[frozenset[str]]
    in_flight: Mapping[str, Slot[InFlights]]
    attempt: Slot[Attempt]
    gathered: Slot[frozenset[str]]  # devices in use, as far as the attempt has read them
    changed: Slot[bool]  # the revision of `allocated` has moved since the attempt read it
    pod: Mapping[str, Slot[Pod]]  # the pod cache
    binding: Mapping[str, Slot[Binding]]
    node: Mapping[str, Slot[str | None]]  # where the pod is assumed to run
    copy: Mapping[str, Slot[Claim | None]]  # what bindClaim works on; None: still the copy of the cycle
    written: Mapping[str, Slot[Claim | None]]  # what the status write returned, until it is assumed
    cycle: Mapping[str, tuple[Slot[Claim | None], ...]]  # the claims as PreFilter found them, or as bindClaim left them
    pending: Mapping[str, tuple[Slot[Pending | None], ...]]

    @staticmethod
    def all(instance: Instance) -> Mapping[str, Scheduler]:
        """The schedulers of the instance by name; always the same objects."""
        return instance.memo(_make)

    @property
    def slots(self) -> tuple[Slot[Any], ...]:
        single = (self.allocated, self.attempt, self.gathered, self.changed)
        maps: tuple[Mapping[str, Slot[Any]], ...]
        maps = (self.assumed, self.in_flight, self.pod, self.binding, self.node, self.copy, self.written)
        lists: tuple[Mapping[str, tuple[Slot[Any], ...]], ...] = (self.cycle, self.pending)
        return (*single, *(s for m in maps for s in m.values()), *(s for m in lists for row in m.values() for s in row))

    @property
    def rooms(self) -> frozenset[str]:
        """For a step without a request: the scheduler's memory and its own channels."""
        return frozenset({self.name, room(self.name)})

    @property
    def request_rooms(self) -> frozenset[str]:
        """For a step that makes a request."""
        return self.rooms | self.api.rooms

    @property
    def claims(self) -> Channel:
        return self.api.claim_channels[self.name]

    @property
    def pods(self) -> Channel:
        return self.api.pod_channels[self.name]

    def refs(self, pod: str) -> tuple[ClaimRef, ...]:
        """The pod's spec.resourceClaims."""
        return self.instance.pod(pod).claims


def _make(instance: Instance) -> Mapping[str, Scheduler]:
    return {name: _make_one(instance, name) for name in instance.schedulers}


def _make_one(instance: Instance, name: str) -> Scheduler:
    api = Api.of(instance)
    pods = instance.pods_for(name)

    def per_pod(what: str, initial: Any) -> dict[str, Slot[Any]]:
        return {pod: Slot(f"{name}/{what}/{pod}", initial, name) for pod in pods}

    def per_claim_of_pod(what: str) -> dict[str, tuple[Slot[Any], ...]]:
        return {pod: tuple(Slot(f"{name}/{what}/{pod}/{ref.entry}", None, name) for ref in instance.pod(pod).claims) for pod in pods}

    def listed(claim: Claim) -> Cached:
        return Cached(claim) if claim.exists else NOT_CACHED

    return Scheduler(
        name=name,
        instance=instance,
        api=api,
        assumed={c: Slot(f"{name}/assumed/{c}", listed(slot.initial), name) for c, slot in api.claim.items()},
        allocated=Slot(f"{name}/allocated", frozenset(), name),
        in_flight={c: Slot(f"{name}/in-flight/{c}", (), name) for c in api.claim},
        attempt=Slot(f"{name}/attempt", NO_ATTEMPT, name),
        gathered=Slot(f"{name}/gathered", frozenset(), name),
        changed=Slot(f"{name}/changed", False, name),
        pod={pod: Slot(f"{name}/pod/{pod}", api.pod[pod].initial if instance.pod(pod).present else NO_POD, name) for pod in pods},
        binding=per_pod("binding", NO_BINDING),
        node=per_pod("node", None),
        copy=per_pod("copy", None),
        written=per_pod("written", None),
        cycle=per_claim_of_pod("cycle"),
        pending=per_claim_of_pod("pending"),
    )


# -- where the memory of a scheduler is needed: what nobody will read again makes no difference between states (explorer/dead.py)


def _busy(v: View, s: Scheduler) -> bool:
    """Whether an attempt runs, or may start."""
    if v[s.attempt].step is not Step.IDLE:
        return True
    return any(v[s.binding[pod]].step is not Step.IDLE or v[s.pod[pod]].exists for pod in s.binding)


def _claim_needed(v: View, s: Scheduler, claim: str) -> bool:
    return not s.claims.closed(v, claim) or _busy(v, s)


def _claims_needed(v: View, s: Scheduler) -> bool:
    return any(not s.claims.closed(v, claim) for claim in s.assumed) or _busy(v, s)


def live(s: Scheduler) -> list[LiveWhen]:
    """The assume cache and its set of devices are needed until the last pod is placed."""
    caches = [LiveWhen([slot], partial(_claim_needed, s=s, claim=claim)) for claim, slot in s.assumed.items()]
    return [*caches, LiveWhen([s.allocated], partial(_claims_needed, s=s))]


def at(v: View, s: Scheduler, pod: str, step: Step, index: int) -> bool:
    """Whether the pod's binding goroutine is to take the step for this claim."""
    return v[s.binding[pod]].step is step and v[s.binding[pod]].index == index
