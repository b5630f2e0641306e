"""The ResourceClaim controller: its informers, its restart, and the list of its slots and actions.

State and what is left out: `claim_controller_state`; claim keys: `claim_controller_claims`; pod keys: `claim_controller_pods`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from dra_spec.explorer.model import Action, Kind, Outcome, PartView, Slot, View, action
from dra_spec.protocol import claim_controller_claims, claim_controller_pods
from dra_spec.protocol.claim_controller_state import (
    GONE,
    NO_CLAIM_WORK,
    NO_POD_WORK,
    SOURCE,
    WRITER,
    Controller,
    SeenClaim,
    SeenPod,
)
from dra_spec.protocol.instance import Instance
from dra_spec.protocol.objects import Claim, Pod

CRASH = "claim-controller-crash"  # the budget of `restart`


def take_claim_event(v: View, c: Controller, claim: str) -> tuple[Outcome, Claim] | None:
    """Stores the next event in the claim cache, if it is one of this claim: the outcome and the event.

    A removed claim that no template can bring back is not watched any longer.
    """
    event: Claim | None = c.claim_channel.next(v, claim)
    if event is None:
        return None
    out = v.outcome()
    out[c.claims[claim]] = SeenClaim.of(event)
    if event.exists or claim in c.owners:
        c.claim_channel.take(out, claim)
    else:
        c.claim_channel.close(out, claim)
    return out, event


@action("claim-controller.observe_claim", writer=WRITER, step="RC-1", source=SOURCE + "enqueueResourceClaim")
def observe_claim(v: View, c: Controller, claim: str) -> Iterator[Outcome]:
    """The claim informer delivers the next write, or the removal, of a claim; `mutCache` is not told (hazard V5)."""
    taken = take_claim_event(v, c, claim)
    if taken is not None:
        yield taken[0]


@action("claim-controller.observe_pod", writer=WRITER, step="RC-1", source=SOURCE + "enqueuePod")
def observe_pod(v: View, c: Controller, pod: str) -> Iterator[Outcome]:
    """The pod informer delivers the next write of a pod, or its removal, whose UID is remembered (RC-2, RC-3)."""
    event: Pod | None = c.pod_channel.next(v, pod)
    if event is None:
        return
    out = v.outcome()
    if event.exists:
        out[c.pods[pod]] = SeenPod.of(event)
        c.pod_channel.take(out, pod)
    else:
        out[c.pods[pod]] = GONE
        c.pod_channel.close(out, pod)
    yield out


def _relist_claim(p: PartView, c: Controller, claim: str) -> None:
    p.write(c.claims[claim], SeenClaim.of(p.value(c.api.claim[claim])))


def _relist_pod(p: PartView, c: Controller, pod: str) -> None:
    p.write(c.pods[pod], SeenPod.of(p.value(c.api.pod[pod])))


@action("claim-controller.restart", writer=WRITER, step="RC-50", source=SOURCE + "Run", kind=Kind.FAULT)
def restart(v: View, c: Controller) -> Iterator[Outcome]:
    """The controller dies and starts again, or another instance becomes leader: all memory is lost, the caches are listed anew.

    One step, at the time of the list, before which no worker starts: until then the dead process does nothing and what it misses is in the
    list.
    """
    if not c.api.budgets.left(v, CRASH):
        return
    out = v.outcome()
    c.api.budgets.spend(out, CRASH)
    c.claim_channel.relist(out)
    c.pod_channel.relist(out)
    for claim, claim_work in c.claim_work.items():
        out.part(_relist_claim, c, claim)
        out[claim_work] = NO_CLAIM_WORK
    for pod in c.pods:
        out.part(_relist_pod, c, pod)
    for pod_work in c.pod_work.values():
        out[pod_work] = NO_POD_WORK
    for created in c.created.values():
        out[created] = None
    yield out


def slots(instance: Instance) -> Sequence[Slot[Any]]:
    """The slots of the controller, if it takes part."""
    return Controller.of(instance).slots if WRITER in instance.writers else ()


def actions(instance: Instance) -> Sequence[Action]:
    """The actions of the controller, if it takes part; the restart only if it has a budget."""
    if WRITER not in instance.writers:
        return ()
    c = Controller.of(instance)
    made = [Action(observe_claim, {"claim": claim}, c.rooms, c) for claim in c.claims]
    made += [Action(observe_pod, {"pod": pod}, c.rooms, c) for pod in c.pods]
    made += claim_controller_claims.actions(c)
    made += claim_controller_pods.actions(c)
    if instance.budget(CRASH):
        made.append(Action(restart, {}, c.request_rooms, c))
    return made
