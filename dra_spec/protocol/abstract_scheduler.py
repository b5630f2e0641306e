"""Stands for the scheduler, and for the claim controller, in models of what happens on a node.

**An abstraction, for node-side promises only.** A model without the writer "scheduler" (but with a kubelet, a plugin or a driver
controller) gets one atomic step that allocates a pod's claims, reserves them and binds the pod: no cache, no request of its own for
each write, no conflict, no binding condition. If the claim controller does not take part either, one atomic step each generates a pod's
claims from its templates, and takes pods that are done off a claim, deallocates it when none is left, and removes it if it is to go.
What these steps do together the real writers can do one after another with nobody in between; so a violation that is found here is one of
the protocol, while the races of the writers that were replaced are not seen.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import attrs

from dra_spec.explorer.model import Action, Outcome, PartView, View, action
from dra_spec.protocol.apiserver import Api
from dra_spec.protocol.choices import answers
from dra_spec.protocol.instance import Instance
from dra_spec.protocol.objects import Claim, Pod
from dra_spec.protocol.watch import Channel


@attrs.frozen(eq=False)
class World:
    """What the abstract steps work with."""

    instance: Instance
    api: Api


def _make(instance: Instance) -> World:
    return World(instance, Api.of(instance))


def _more_order(p: PartView, channel: Channel, names: tuple[str, ...]) -> None:
    p.write(channel.order, p.value(channel.order) + names)


def _more_event(p: PartView, channel: Channel, name: str, event: Claim | Pod) -> None:
    waiting = p.value(channel.events[name])
    if waiting is not None:
        p.write(channel.events[name], (*waiting, event))


def _write(v: View, api: Api, outcome: Outcome, claims: Mapping[str, Claim], pods: Mapping[str, Pod]) -> bool:
    """Stores several objects at once, with their watch events; false if a watcher has no room for them."""
    for name, claim in claims.items():
        outcome[api.claim[name]] = claim
    for name, pod in pods.items():
        outcome[api.pod[name]] = pod
    return _publish(v, outcome, api.claim_channels, claims) and _publish(v, outcome, api.pod_channels, pods)


def _publish(v: View, outcome: Outcome, channels: Mapping[str, Channel], new: Mapping[str, Claim] | Mapping[str, Pod]) -> bool:
    for channel in channels.values():
        heard = tuple(name for name in new if name in channel.events and v.value(channel.events[name]) is not None)
        if heard and len(v.value(channel.order)) + len(heard) > max(channel.lag, len(heard)):
            return False
        for name in heard:
            outcome.part(_more_event, channel, name, new[name])
        if heard:
            outcome.part(_more_order, channel, heard)
    return True


@action("scheduler.place", writer="scheduler", step="E1", source="abstraction of scheduling and binding of one pod")
def place(v: View, world: World, pod: str, node: str) -> Iterator[Outcome]:
    """Allocates the pod's unallocated claims, reserves all its claims and binds the pod, in one step.

    First fit, as upstream; with `any_allocation` each feasible allocation is an outcome.
    """
    api = world.api
    spec = world.instance.pod(pod)
    if not v[api.pod[pod]].exists or v[api.pod[pod]].deleting or v[api.pod[pod]].terminal or v[api.pod[pod]].node is not None:
        return
    names = tuple(dict.fromkeys(ref.claim for ref in spec.claims))
    for ref in spec.claims:
        claim = v[api.claim[ref.claim]]
        if not claim.exists or claim.deleting:
            return
        if ref.template is not None and (claim.owner != pod or (ref.entry, ref.claim) not in v[api.pod[pod]].claim_names):
            return
        if claim.allocation is not None and claim.allocation.nodes is not None and node not in claim.allocation.nodes:
            return
    todo = tuple(name for name in names if v[api.claim[name]].allocation is None)
    used = frozenset(device for other in api.claim.values() for device in v[other].devices) if todo else frozenset[str]()
    found = answers(world.instance, todo, node, used)
    for chosen in [*([found.upstream] if found.upstream is not None else []), *found.others]:
        allocations = dict(zip(todo, chosen.allocations, strict=True))
        claims = {}
        for name in names:
            old = v.value(api.claim[name])
            claims[name] = attrs.evolve(
                old,
                rv=old.rv.next(),
                finalizer=True,
                allocation=allocations.get(name, old.allocation),
                reserved_for=old.reserved_for | {pod},
            )
        ok = v.outcome(chosen.label)
        if _write(v, api, ok, claims, {pod: attrs.evolve(v.value(api.pod[pod]), node=node)}):
            yield ok
    if found.beyond:
        yield v.outcome("more").beyond_bounds(found.beyond)


@action("claim-controller.generate", writer="claim-controller", step="RC-1", source="abstraction of template instantiation")
def generate(v: View, world: World, pod: str) -> Iterator[Outcome]:
    """Creates the claims of a pod's templates and notes their names in its status, in one step."""
    api = world.api
    if not v[api.pod[pod]].exists or v[api.pod[pod]].deleting or v[api.pod[pod]].terminal or v[api.pod[pod]].claim_names:
        return
    refs = [ref for ref in world.instance.pod(pod).claims if ref.template is not None]
    claims = {}
    for ref in refs:
        old = v.value(api.claim[ref.claim])
        if not old.exists:
            claims[ref.claim] = Claim(old.rv.next(), old.uid.next(), owner=pod)
    ok = v.outcome()
    if _write(v, api, ok, claims, {pod: attrs.evolve(v.value(api.pod[pod]), claim_names=tuple((r.entry, r.claim) for r in refs))}):
        yield ok


def _done(v: View, api: Api, pod: str) -> bool:
    return pod not in api.pod or not v[api.pod[pod]].exists or v[api.pod[pod]].terminal


@action("claim-controller.release", writer="claim-controller", step="RC-33", source="abstraction of reservedFor clean-up and deallocation")
def release(v: View, world: World, claim: str) -> Iterator[Outcome]:
    """Takes pods that are done off a claim; an unreserved claim is deallocated and loses its finalizer, and is removed if it is deleting
    or if the pod that it was generated for is done, in one step."""
    api = world.api
    slot = api.claim[claim]
    if not v[slot].exists:
        return
    kept = frozenset(pod for pod in v[slot].reserved_for if not _done(v, api, pod))
    owner = v[slot].owner
    last = not kept
    goes = last and (v[slot].deleting or (owner is not None and _done(v, api, owner)))
    if kept == v[slot].reserved_for and not (last and (goes or v[slot].finalizer or v[slot].allocation is not None)):
        return
    old = v.value(slot)
    new = attrs.evolve(old, rv=old.rv.next(), reserved_for=kept)
    if last:
        new = attrs.evolve(new, allocation=None, conditions=frozenset(), finalizer=False)
    ok = v.outcome()
    if _write(v, api, ok, {claim: Claim(new.rv, new.uid, exists=False) if goes else new}, {}):
        yield ok


def actions(instance: Instance) -> Sequence[Action]:
    """The abstract steps that this model needs."""
    if "scheduler" in instance.writers or not instance.writers & {"kubelet", "plugin", "driver-controller"}:
        return ()
    world = instance.memo(_make)
    rooms = world.api.rooms
    made = [Action(place, {"pod": p.name, "node": node}, rooms, world) for p in instance.pods if p.node is None for node in instance.nodes]
    if "claim-controller" not in instance.writers:
        templates = [p.name for p in instance.pods if any(ref.template is not None for ref in p.claims)]
        made += [Action(generate, {"pod": pod}, rooms, world) for pod in templates]
        made += [Action(release, {"claim": c.name}, rooms, world) for c in instance.claims]
    return made
