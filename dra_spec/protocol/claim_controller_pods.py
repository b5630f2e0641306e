"""The pod keys of the ResourceClaim controller: claims from templates, their names in the pod's status, reservations for pods with a node.

A sync works on the copy of the pod that it loaded, to its end. What it finds in the caches between two API calls it finds right after the
first of the two.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import attrs

from dra_spec.explorer.model import Action, Outcome, View, action
from dra_spec.protocol.claim_controller_state import NO_POD_WORK, SOURCE, WRITER, Controller, Names, PodStep, PodWork, SeenClaim
from dra_spec.protocol.instance import ClaimRef


def lacks_reservation(claim: SeenClaim, pod: str) -> bool:
    """For `View.project`: whether the cached claim is allocated and not reserved for the pod."""
    return claim.exists and claim.allocated and pod not in claim.reserved_for


def needs_work(v: View, c: Controller, pod: str) -> bool:
    """Whether the caches show something to do for the pod. The phase is not looked at (hazard V1). Source: controller.go:podNeedsWork."""
    if not v[c.pods[pod]].exists or v[c.pods[pod]].deleting:
        return False
    for ref in c.refs[pod]:
        if ref.template is not None and ((ref.entry, ref.claim) not in v[c.pods[pod]].names or not v[c.claims[ref.claim]].exists):
            return True
    return v[c.pods[pod]].bound and any(v.project(c.claims[ref.claim], lacks_reservation, pod) for ref in c.refs[pod])


def outdated(v: View, c: Controller, pod: str) -> bool:
    """Whether a sync would drop a `mutCache` entry. It may have been queued for a reason that has gone since."""
    exists = v[c.pods[pod]].exists and not v[c.pods[pod]].deleting
    return exists and any(c.outdated(v, ref.claim) for ref in c.refs[pod] if ref.template is not None)


def load(v: View, c: Controller, pod: str) -> Iterator[Outcome]:
    """The whole of RC-20."""
    if v[c.pod_work[pod]].step is not PodStep.IDLE or not (needs_work(v, c, pod) or outdated(v, c, pod)):
        return
    out = v.outcome()
    work = PodWork(names=v[c.pods[pod]].names, bound=v[c.pods[pod]].bound)
    work = find_claims(v, c, out, pod, work)
    if work.step is PodStep.IDLE and not out.updates:
        return  # a sync that makes no call and changes nothing
    out[c.pod_work[pod]] = work
    yield out


def find_claims(v: View, c: Controller, out: Outcome, pod: str, work: PodWork) -> PodWork:
    """Goes through the entries from `work.index` on, up to one that needs an API call. Source: controller.go:handleClaim."""
    for index, ref in list(enumerate(c.refs[pod]))[work.index :]:
        if ref.template is None:
            continue
        named = (ref.entry, ref.claim) in work.names
        if c.look_up(v, out, ref.claim):
            if not named:
                work = attrs.evolve(work, found=_with(work.found, ref))
        else:
            return attrs.evolve(work, step=PodStep.ASK if named else PodStep.CREATE, index=index)
    if work.found:
        return attrs.evolve(work, step=PodStep.APPLY, index=0)
    return find_reservation(v, c, pod, attrs.evolve(work, index=0))


def find_reservation(v: View, c: Controller, pod: str, work: PodWork) -> PodWork:
    """Goes through the entries from `work.index` on, up to one whose claim is to be reserved. Source: controller.go:syncPod.

    The copy of the pod is the one that was loaded, so a name that has only just been recorded is not in it: the sync fails, and comes back.
    """
    if not work.bound:
        return NO_POD_WORK
    for index, ref in list(enumerate(c.refs[pod]))[work.index :]:
        unnamed = ref.template is not None and (ref.entry, ref.claim) not in work.names
        if unnamed or not v[c.claims[ref.claim]].exists:
            return NO_POD_WORK
        if v.project(c.claims[ref.claim], lacks_reservation, pod):
            return PodWork(PodStep.RESERVE, index, work.names, bound=True, rv=v[c.claims[ref.claim]].rv)
    return NO_POD_WORK


def _with(names: Names, ref: ClaimRef) -> Names:
    return merged(names, ((ref.entry, ref.claim),))


def merged(names: Names, more: Names) -> Names:
    """Both lists as one, sorted; `more` wins."""
    return tuple(sorted({**dict(names), **dict(more)}.items()))


def current(v: View, c: Controller, pod: str, step: PodStep) -> tuple[PodWork, ClaimRef] | None:
    """The worker's local variables and its entry, if it is about to make this call."""
    if v[c.pod_work[pod]].step is not step:
        return None
    work = v.value(c.pod_work[pod])
    return (work, c.refs[pod][work.index]) if work.index < len(c.refs[pod]) else None


@action("claim-controller.load_pod", writer=WRITER, step="RC-20", source=SOURCE + "syncPod")
def load_pod(v: View, c: Controller, pod: str) -> Iterator[Outcome]:
    """A worker takes the pod's key, copies the cached pod and looks its claims up in the caches."""
    yield from load(v, c, pod)


@action("claim-controller.get_claim", writer=WRITER, step="RC-20a", source=SOURCE + "claimExists")
def get_claim(v: View, c: Controller, pod: str) -> Iterator[Outcome]:
    """A generated claim that the pod's status names and no cache knows is looked up in the API server, before another one is created."""
    found = current(v, c, pod, PodStep.ASK)
    if found is None:
        return
    work, ref = found
    exists = v[c.api.claim[ref.claim]].exists
    out = v.outcome("ok" if exists else "not-found")
    if not exists and not c.look_up(v, out, ref.claim):
        out[c.pod_work[pod]] = attrs.evolve(work, step=PodStep.CREATE)
    else:
        names = work.found if exists else _with(work.found, ref)
        out[c.pod_work[pod]] = find_claims(v, c, out, pod, attrs.evolve(work, index=work.index + 1, found=names))
    yield out


@action("claim-controller.create_claim", writer=WRITER, step="RC-21", source=SOURCE + "handleClaim")
def create_claim(v: View, c: Controller, pod: str) -> Iterator[Outcome]:
    """Creates the claim of an entry from its template, owned by the pod; `mutCache` knows it from the answer on.

    The name is random upstream and fixed here: where a second claim of the same entry would come up beside the first, the model's bounds
    end.
    """
    found = current(v, c, pod, PodStep.CREATE)
    if found is None:
        return
    work, ref = found
    if v[c.api.claim[ref.claim]].exists:
        yield v.outcome().beyond_bounds(f"a second claim generated for entry {ref.entry} of pod {pod} (one name per entry)")
        return
    for answer in c.api.create_claim(v, ref.claim, owner=pod):
        if answer.claim is not None:
            answer[c.created[ref.claim]] = answer.claim.rv
            done = attrs.evolve(work, index=work.index + 1, found=_with(work.found, ref))
            answer[c.pod_work[pod]] = find_claims(v, c, answer, pod, done)
        else:
            answer[c.pod_work[pod]] = NO_POD_WORK
        yield answer


def apply_names(v: View, c: Controller, pod: str, names: Names) -> Iterator[Outcome]:
    """Applies `names` as the list of the pod's status and goes on to the reservations."""
    work = v.value(c.pod_work[pod])
    for answer in c.api.patch_pod_status(v, pod, claim_names=names):
        rest = attrs.evolve(work, index=0, found=())
        answer[c.pod_work[pod]] = find_reservation(v, c, pod, rest) if answer.label == "ok" else NO_POD_WORK
        yield answer


@action("claim-controller.apply_pod_status", writer=WRITER, step="RC-22", source=SOURCE + "syncPod")
def apply_pod_status(v: View, c: Controller, pod: str) -> Iterator[Outcome]:
    """Records the names of the generated claims in the pod's status: those of the copy and those found, in one list, without
    precondition."""
    if v[c.pod_work[pod]].step is PodStep.APPLY:
        yield from apply_names(v, c, pod, merged(v[c.pod_work[pod]].names, v[c.pod_work[pod]].found))


@action("claim-controller.reserve_for_pod", writer=WRITER, step="RC-23", source=SOURCE + "reserveForPod")
def reserve_for_pod(v: View, c: Controller, pod: str) -> Iterator[Outcome]:
    """Reserves an allocated claim for a pod that has a node already, with the version of the cached claim."""
    found = current(v, c, pod, PodStep.RESERVE)
    if found is None:
        return
    work, ref = found
    copy = c.copy(v, ref.claim, work.rv)
    for answer in c.api.update_status(v, ref.claim, copy, reserved_for=copy.reserved_for | {pod}):
        rest = attrs.evolve(work, index=work.index + 1, rv=None)
        answer[c.pod_work[pod]] = find_reservation(v, c, pod, rest) if answer.label == "ok" else NO_POD_WORK
        yield answer


def actions(c: Controller) -> Sequence[Action]:
    """The actions of the pod keys; creation only where there are templates."""
    made = []
    for pod in c.pod_work:
        params = {"pod": pod}
        made.append(Action(load_pod, params, c.rooms, c))
        kinds = [get_claim, create_claim, apply_pod_status] if any(ref.template is not None for ref in c.refs[pod]) else []
        made += [Action(kind, params, c.request_rooms, c) for kind in (*kinds, reserve_for_pod)]
    return made
