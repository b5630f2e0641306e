"""The API server: claims and pods, the rules of each request, the watch events it causes, and the garbage collector.

Each request is one atomic step. The other writers' actions make requests through `Api`: a request is a method that yields one `Answer` (an
`Outcome` with the server's effects already in it) for each way it can end, and the caller adds what it does with the answer:

    for answer in api.update_status(v, "c1", copy, reserved_for=copy.reserved_for | {pod}):
        answer[my.pc] = ... answer.label, answer.claim ...
        yield answer

Labels: `ok`; `not-found` (404); `conflict` (409: version, UID, already bound, name taken); `invalid` (422: a rule of the object is broken);
`refused` (fault "api-refused": an error and nothing applied); `applied-error` (fault "api-applied-error": applied, but the caller sees an
error). No answer at all is yielded for a request that would be applied while a watch channel is full: it waits (see watch.py).

Not modelled: a request that reaches the server after its sender died (each request is one step), several namespaces, authorization,
server-side apply's ownership of fields, foreground deletion.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import attrs

from dra_spec.explorer.model import Action, Outcome, Slot, Storage, View, action
from dra_spec.explorer.values import Version
from dra_spec.protocol import budgets
from dra_spec.protocol.budgets import Budgets
from dra_spec.protocol.instance import Instance
from dra_spec.protocol.objects import NO_POD, Allocation, Claim, Phase, Pod
from dra_spec.protocol.watch import Channel, room

ROOM = "api"
CLAIM_CONTROLLER = "claim-controller"
RESERVED_FOR_LIMIT = 256  # resourcev1.ResourceClaimReservedForMaxSize


class Answer(Outcome):
    """How a request ended. `claim`: the stored object that comes back with `ok`; None for pods and with every other label."""

    __slots__ = ("claim",)

    def __init__(self, label: str, claim: Claim | None = None) -> None:
        super().__init__(label)
        self.claim = claim


@attrs.frozen(eq=False)
class Api:
    """The objects in the API server, the channels to its watchers, and the requests."""

    claim: Mapping[str, Slot[Claim]]
    pod: Mapping[str, Slot[Pod]]
    claim_channels: Mapping[str, Channel]  # by watcher: a scheduler's name, or "claim-controller"
    pod_channels: Mapping[str, Channel]
    budgets: Budgets

    @staticmethod
    def of(instance: Instance) -> Api:
        """The one `Api` object of the instance."""
        return instance.memo(_make_api)

    @property
    def slots(self) -> tuple[Slot[Any], ...]:
        channels = (*self.claim_channels.values(), *self.pod_channels.values())
        return (*self.claim.values(), *self.pod.values(), *(slot for channel in channels for slot in channel.slots))

    @property
    def rooms(self) -> frozenset[str]:
        """The rooms that an action which makes requests must enter, beside its writer's own."""
        return frozenset({ROOM, budgets.ROOM, *map(room, self.claim_channels), *map(room, self.pod_channels)})

    # -- claims

    def get_claim(self, v: View, name: str) -> Claim | None:
        """A live GET; None: 404."""
        return v.value(self.claim[name]) if v[self.claim[name]].exists else None

    def create_claim(self, v: View, name: str, owner: str | None = None, *, faults: bool = True) -> Iterator[Answer]:
        """AS-1. `conflict`: the name is taken."""
        if v[self.claim[name]].exists:
            return self._claim_answers(v, name, "conflict", faults=faults)
        old = v.value(self.claim[name])
        return self._claim_answers(v, name, "ok", Claim(old.rv.next(), old.uid.next(), owner=owner), faults=faults)

    def update(self, v: View, name: str, base: Claim, *, finalizer: bool, faults: bool = True) -> Iterator[Answer]:
        """AS-2, AS-3: PUT of the main resource that sets the DRA finalizer; `base` is the copy that is sent (its UID and version count).

        A finalizer cannot be added while deleting; without the last one, a deleting object is removed.
        """
        verdict = self._precondition(v, name, base)
        if verdict == "ok" and base.deleting and finalizer and not base.finalizer:
            verdict = "invalid"
        return self._claim_answers(v, name, verdict, _after_write(base, attrs.evolve(base, finalizer=finalizer)), faults=faults)

    def update_status(
        self, v: View, name: str, base: Claim, *, faults: bool = True, repeats: bool = False, **changes: Any
    ) -> Iterator[Answer]:
        """AS-4: PUT of the status; `base` as in `update`, `changes`: allocation, reserved_for, conditions. `repeats`: the list of consumers
        that is sent names one of them twice, which the set `reserved_for` cannot show."""
        new = _without_lost_devices(base, attrs.evolve(base, **changes))
        verdict = self._precondition(v, name, base)
        if verdict == "ok" and (repeats or not valid_status(base, new)):
            verdict = "invalid"
        return self._claim_answers(v, name, verdict, _after_write(base, new), faults=faults)

    def patch_status(
        self, v: View, name: str, change: Callable[[Claim], Claim], *, uid: Version | None = None, faults: bool = True
    ) -> Iterator[Answer]:
        """AS-5: a patch, or an apply, of the newest status, without a version and so without a conflict.

        `change` gives the claim with the new allocation, reserved_for or conditions. Another UID than `uid`: invalid.
        """
        if not v[self.claim[name]].exists:
            return self._claim_answers(v, name, "not-found", faults=faults)
        if uid is not None and v[self.claim[name]].uid != uid:
            return self._claim_answers(v, name, "invalid", faults=faults)
        old = v.value(self.claim[name])
        new = _without_lost_devices(old, change(old))
        verdict = "ok" if valid_status(old, new) else "invalid"
        return self._claim_answers(v, name, verdict, _after_write(old, new), faults=faults)

    def touch_claim(self, v: View, name: str, *, faults: bool = False) -> Iterator[Answer]:
        """AS-2: somebody edits a label: a new version, nothing that the protocol looks at."""
        if not v[self.claim[name]].exists:
            return self._claim_answers(v, name, "not-found", faults=faults)
        old = v.value(self.claim[name])
        return self._claim_answers(v, name, "ok", attrs.evolve(old, rv=old.rv.next()), faults=faults)

    def delete_claim(self, v: View, name: str, *, uid: Version | None = None, faults: bool = True) -> Iterator[Answer]:
        """AS-6: with a finalizer the claim becomes deleting, without one it is removed. Precondition: the UID, if given."""
        if not v[self.claim[name]].exists:
            return self._claim_answers(v, name, "not-found", faults=faults)
        if uid is not None and v[self.claim[name]].uid != uid:
            return self._claim_answers(v, name, "conflict", faults=faults)
        old = v.value(self.claim[name])
        return self._claim_answers(v, name, "ok", _after_write(old, attrs.evolve(old, deleting=True)), faults=faults)

    def _precondition(self, v: View, name: str, base: Claim) -> str:
        if not v[self.claim[name]].exists:
            return "not-found"
        same = v[self.claim[name]].uid == base.uid and v[self.claim[name]].rv == base.rv
        return "ok" if same else "conflict"

    def _claim_answers(self, v: View, name: str, verdict: str, new: Claim | None = None, *, faults: bool) -> Iterator[Answer]:
        """`new` None with verdict "ok" does not occur; equal to the stored version: a write that changes nothing."""
        changes = new is not None and verdict == "ok" and v[self.claim[name]].rv != new.rv
        yield from self._answers(v, name, verdict, self.claim[name] if changes else None, new, self.claim_channels.values(), faults)

    # -- pods

    def create_pod(self, v: View, name: str, *, node: str | None = None, faults: bool = False) -> Iterator[Answer]:
        """AS-9. A name is used once in a run: whoever creates sees to that."""
        if v[self.pod[name]].exists:
            return self._pod_answers(v, name, "conflict", faults=faults)
        return self._pod_answers(v, name, "ok", Pod(node=node), faults=faults)

    def bind(self, v: View, name: str, node: str, *, watcher: str | None = None, faults: bool = True) -> Iterator[Answer]:
        """AS-10: POST of the binding subresource; refused if the pod is bound already or being deleted. Claims are not looked at.

        `watcher`: who binds and, with `ok`, will never look at the pod again; its channel of the pod is closed.
        """
        if not v[self.pod[name]].exists:
            return self._pod_answers(v, name, "not-found", faults=faults)
        old = v.value(self.pod[name])
        verdict = "conflict" if old.deleting or old.node is not None else "ok"
        closing = self.pod_channels[watcher] if watcher else None
        return self._pod_answers(v, name, verdict, attrs.evolve(old, node=node), faults=faults, closing=closing)

    def patch_pod_status(
        self,
        v: View,
        name: str,
        *,
        phase: Phase | None = None,
        claim_names: tuple[tuple[str, str], ...] | None = None,
        faults: bool = True,
    ) -> Iterator[Answer]:
        """AS-11: a patch of pods/status without precondition. What is None stays."""
        if not v[self.pod[name]].exists:
            return self._pod_answers(v, name, "not-found", faults=faults)
        old = v.value(self.pod[name])
        new = attrs.evolve(old, phase=phase or old.phase, claim_names=old.claim_names if claim_names is None else claim_names)
        return self._pod_answers(v, name, "ok", new, faults=faults)

    def delete_pod(self, v: View, name: str, *, force: bool = False, faults: bool = False) -> Iterator[Answer]:
        """AS-12, AS-14: with a node and not terminal the pod becomes deleting, else, and always with `force`, it is removed."""
        if not v[self.pod[name]].exists:
            return self._pod_answers(v, name, "not-found", faults=faults)
        old = v.value(self.pod[name])
        graceful = not force and old.node is not None and not old.terminal
        return self._pod_answers(v, name, "ok", attrs.evolve(old, deleting=True) if graceful else NO_POD, faults=faults)

    def remove_pod(self, v: View, name: str, *, faults: bool = True) -> Iterator[Answer]:
        """AS-13: the kubelet's final delete, with grace 0; the caller checks that the pod is deleting and its containers are gone."""
        return self.delete_pod(v, name, force=True, faults=faults)

    def _pod_answers(
        self, v: View, name: str, verdict: str, new: Pod | None = None, *, faults: bool, closing: Channel | None = None
    ) -> Iterator[Answer]:
        changes = new is not None and verdict == "ok" and v.value(self.pod[name]) != new
        yield from self._answers(v, name, verdict, self.pod[name] if changes else None, new, self.pod_channels.values(), faults, closing)

    # -- both

    def _answers(
        self,
        v: View,
        name: str,
        verdict: str,
        target: Slot[Any] | None,
        new: Any,
        channels: Iterable[Channel],
        faults: bool,
        closing: Channel | None = None,
    ) -> Iterator[Answer]:
        """The outcomes of a request that the server would answer with `verdict`; `target` None: nothing changes."""
        ends = [verdict]
        if faults and verdict == "ok" and self.budgets.left(v, "api-applied-error"):
            ends.append("applied-error")
        if faults and self.budgets.left(v, "api-refused"):
            ends.append("refused")
        for label in ends:
            answer = Answer(label, new if label == "ok" and isinstance(new, Claim) else None)
            if label in ("refused", "applied-error"):
                self.budgets.spend(answer, f"api-{label}")
            if label in ("ok", "applied-error") and target is not None:
                closed = closing if label == "ok" else None
                if any(channel is not closed and channel.blocks(v, name) for channel in channels):
                    continue
                answer[target] = new
                for channel in channels:
                    if channel is closed:
                        channel.close(answer, name)
                    else:
                        channel.push(answer, name, new)
            yield answer


def _after_write(old: Claim, new: Claim) -> Claim:
    """What a write stores: the old object if nothing changes, none if it is deleting without finalizer, else `new` with a new version."""
    if new == old:
        return old
    if new.deleting and not new.finalizer:
        return Claim(old.rv.next(), old.uid, exists=False)
    return attrs.evolve(new, rv=old.rv.next())


def _without_lost_devices(old: Claim, new: Claim) -> Claim:
    """Device conditions of devices that leave the allocation are dropped silently."""
    lost = _devices(old.allocation) - _devices(new.allocation)
    return attrs.evolve(new, conditions=frozenset(c for c in new.conditions if c[0] not in lost)) if lost else new


def _devices(allocation: Allocation | None) -> frozenset[str]:
    return frozenset(r.device for r in allocation.results) if allocation else frozenset()


def valid_status(old: Claim, new: Claim) -> bool:
    """The rules S1 to S6 of a status write that matter here.

    S1: at most 256 consumers; S2: consumers need an allocation; S3: no new consumer while deleting; S4: an allocation does not change
    while it is set; S6: conditions only of allocated devices. Nothing compares devices across claims, nothing wants the finalizer.
    Source: validation.go:validateResourceClaimStatusUpdate.
    """
    if len(new.reserved_for) > RESERVED_FOR_LIMIT or (new.reserved_for and new.allocation is None):
        return False
    if old.deleting and new.reserved_for - old.reserved_for:
        return False
    if old.allocation is not None and new.allocation is not None and new.allocation != old.allocation:
        return False
    return {device for device, _ in new.conditions} <= _devices(new.allocation)


def claim_rv(name: str) -> str:
    """What the versions of a claim are versions of."""
    return f"rv/claim/{name}"


def _make_api(instance: Instance) -> Api:
    claims = {}
    for spec in instance.claims:
        absent = spec.pod is not None
        first = Claim(Version(claim_rv(spec.name), 0), Version(f"uid/claim/{spec.name}", 0), exists=not absent)
        claims[spec.name] = Slot(f"api/claim/{spec.name}", first, ROOM, Storage.API)
    pods = {}
    for pod in instance.pods:
        first_pod = Pod(node=pod.node) if pod.present else NO_POD
        pods[pod.name] = Slot(f"api/pod/{pod.name}", first_pod, ROOM, Storage.API)
    claim_channels, pod_channels = {}, {}
    if "scheduler" in instance.writers:
        for scheduler in instance.schedulers:
            claim_channels[scheduler] = Channel.make(scheduler, "claim", claims, instance.lag)
            pod_channels[scheduler] = Channel.make(scheduler, "pod", instance.pods_for(scheduler), instance.lag)
    if CLAIM_CONTROLLER in instance.writers:
        claim_channels[CLAIM_CONTROLLER] = Channel.make(CLAIM_CONTROLLER, "claim", claims, instance.lag)
        pod_channels[CLAIM_CONTROLLER] = Channel.make(CLAIM_CONTROLLER, "pod", pods, instance.lag)
    return Api(claims, pods, claim_channels, pod_channels, Budgets.of(instance))


@action(
    "apiserver.collect_claim",
    writer="apiserver",
    step="AS-16",
    source="pkg/controller/garbagecollector/garbagecollector.go:attemptToDeleteItem",
)
def collect_claim(v: View, api: Api, claim: str) -> Iterator[Outcome]:
    """The garbage collector deletes a generated claim whose owner is gone.

    It reads claim and owner live, and deletes with the UID and the version just read, again and again until it succeeds or the owner
    turns out to exist; a pod's name does not return, so that one step is as good.
    """
    if not v[api.claim[claim]].exists or v[api.claim[claim]].deleting:
        return
    owner = v[api.claim[claim]].owner
    if owner is None or owner not in api.pod or v[api.pod[owner]].exists:
        return
    yield from api.delete_claim(v, claim, faults=False)


def slots(instance: Instance) -> Sequence[Slot[Any]]:
    """The slots of the API server: objects, channels, budgets."""
    api = Api.of(instance)
    return (*api.slots, *api.budgets.slots.values())


def actions(instance: Instance) -> Sequence[Action]:
    """The garbage collector, if the writer "apiserver" takes part."""
    if "apiserver" not in instance.writers:
        return ()
    api = Api.of(instance)
    generated = [spec.name for spec in instance.claims if spec.pod is not None]
    return tuple(Action(collect_claim, {"claim": name}, api.rooms, api) for name in generated)
