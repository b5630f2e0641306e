"""The ResourceClaim controller on small clusters, most of them without a scheduler: the claim is allocated from the start."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import attrs
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dra_spec.allocation.errors import DoesNotFit
from dra_spec.explorer import Limits, Result, explore
from dra_spec.explorer.model import Action, AlwaysPossible, Model, Property, Slot, StateInvariant, StepInvariant, Truth, View
from dra_spec.explorer.semantics import Semantics, State
from dra_spec.protocol.apiserver import Api
from dra_spec.protocol.assembly import Replacement, assemble
from dra_spec.protocol.claim_controller_state import ClaimStep, Controller, PodStep, SeenClaim, SeenPod
from dra_spec.protocol.instance import ClaimRef, ClaimSpec, DeviceSpec, Instance, PodSpec
from dra_spec.protocol.objects import Allocation, Claim, DeviceResult, Phase, Pod
from dra_spec.variants.base import variant

DEVICE = "gpu.example.com/n1/gpu-0"
WRITERS = frozenset({"apiserver", "claim-controller", "workload"})
BY_NAME = (ClaimRef("gpu", "c1"),)
TEMPLATE = (ClaimRef("gpu", "g1", template="t"),)
Start = Mapping[Slot[Any], Any]
ENGINES_AGREE_ON = (351, 946, 16)  # states, transitions, depth


def never_allocates(claims: tuple[str, ...], node: str, used: frozenset[str]) -> tuple[Allocation, ...]:
    raise AssertionError("no scheduler takes part")


def cluster(*pods: PodSpec, claims: Iterable[ClaimSpec] = (ClaimSpec("c1"),), lag: int = 2, **budgets: int) -> Instance:
    return Instance(
        pods=pods,
        claims=tuple(claims),
        nodes=("n1",),
        devices=(DeviceSpec(DEVICE, "n1"),),
        allocate=never_allocates,
        writers=WRITERS,
        lag=lag,
        budgets={name.replace("_", "-"): n for name, n in budgets.items()},
    )


def allocated(instance: Instance, claim: str, *consumers: str, **changes: Any) -> Start:
    """The claim is allocated and reserved from the start, and the controller has seen that."""
    slot = Api.of(instance).claim[claim]
    stored = attrs.evolve(
        slot.initial,
        finalizer=True,
        allocation=Allocation((DeviceResult("gpu", DEVICE),), frozenset({"n1"})),
        reserved_for=frozenset(consumers),
    )
    stored = attrs.evolve(stored, **changes)
    return {slot: stored, Controller.of(instance).claims[claim]: SeenClaim.of(stored)}


def model(instance: Instance, start: Start | None = None, *properties: Property, variants: Iterable[Replacement] = ()) -> Model:
    parts = assemble(instance, variants)
    return Model("test", parts.slots, parts.actions, properties, (start or {},))


def search(made: Model) -> Result:
    result = explore(made, Limits(max_states=100_000, expand_violating=True), engine="plain")
    assert result.stopped is None
    return result


def truth(value: bool) -> Truth:
    return Truth.TRUE if value else Truth.FALSE


def always(promise: str, fn: Callable[[View], bool]) -> StateInvariant:
    return StateInvariant(promise, lambda v: truth(fn(v)))


def can_always(promise: str, fn: Callable[[View], bool]) -> AlwaysPossible:
    return AlwaysPossible(promise, lambda v: truth(fn(v)), lambda _: True)


def on_step(promise: str, names: Iterable[str], fn: Callable[[View, View, Action, str], bool]) -> StepInvariant:
    wanted = frozenset(names)
    return StepInvariant(promise, lambda a: a.name in wanted, lambda b, a, act, label: truth(fn(b, a, act, label)))


def taken(result: Result) -> dict[str, int]:
    return {a.name.removeprefix("claim-controller."): a.taken for a in result.actions}


def reachable(made: Model) -> list[State]:
    """All reachable states."""
    semantics = Semantics(made)
    todo = semantics.initial_states()
    seen = set(todo)
    for state in todo:
        for move in semantics.moves(state):
            if move.after not in seen:
                seen.add(move.after)
                todo.append(move.after)
    return todo


def labels(made: Model, name: str) -> set[str]:
    """The labels with which an action ends in some reachable state."""
    semantics = Semantics(made)
    return {move.label for state in reachable(made) for move in semantics.moves(state) if move.action.name == name}


def story(result: Result, promise: str) -> list[str]:
    trace = result.property(promise).trace
    assert trace is not None
    return [f"{step.action.type.step} {step.label}" for step in trace.steps]


# -- claim keys


def finalizer_order(instance: Instance) -> StateInvariant:
    claim = Api.of(instance).claim["c1"]
    return always("finalizer-while-allocated", lambda v: not v[claim].allocated or v[claim].finalizer)


def no_premature_release(instance: Instance) -> StepInvariant:
    """A consumer goes only if its pod is terminal or has left the API server."""
    api = Api.of(instance)

    def fine(before: View, after: View, act: Action, label: str) -> bool:
        gone = before[api.claim["c1"]].reserved_for - after[api.claim["c1"]].reserved_for
        return all(not before[api.pod[p]].exists or before[api.pod[p]].terminal for p in gone)

    return on_step("no-premature-release", ["claim-controller.release_consumers"], fine)


def deallocation_edge(instance: Instance) -> StepInvariant:
    """The allocation goes only with the last consumer, or from a deleting claim without one."""
    claim = Api.of(instance).claim["c1"]

    def fine(before: View, after: View, act: Action, label: str) -> bool:
        if not before[claim].allocated or after[claim].allocated:
            return True
        return not after[claim].reserved_for and (bool(before[claim].reserved_for) or before[claim].deleting)

    writes = ["claim-controller.release_consumers", "claim-controller.clear_allocation", "claim-controller.drop_finalizer"]
    return on_step("deallocation-edge", writes, fine)


def released(instance: Instance) -> AlwaysPossible:
    api = Api.of(instance)
    return can_always("claim-is-freed", lambda v: not v[api.claim["c1"]].allocated)


def two_pods(**budgets: int) -> Instance:
    pods = (PodSpec("p1", BY_NAME, node="n1"), PodSpec("p2", BY_NAME, node="n1"))
    return cluster(*pods, **budgets)


def test_shared_claim_is_freed_after_the_last_consumer() -> None:
    instance = two_pods(finish_pod=-1)
    properties = (finalizer_order(instance), no_premature_release(instance), deallocation_edge(instance), released(instance))
    result = search(model(instance, allocated(instance, "c1", "p1", "p2"), *properties))
    assert {p.promise: p.verdict for p in result.properties} == dict.fromkeys([p.promise for p in properties], "holds")
    assert result.states == 341
    assert taken(result)["drop_finalizer"] > 0


def test_deallocation_is_two_writes_and_the_finalizer_goes_last() -> None:
    instance = cluster(PodSpec("p1", BY_NAME, node="n1"), finish_pod=1)
    claim = Api.of(instance).claim["c1"]
    unfinalized = always("finalizer-stays", lambda v: v[claim].finalizer)
    result = search(model(instance, allocated(instance, "c1", "p1"), unfinalized))
    assert story(result, "finalizer-stays")[-3:] == ["RC-30 ok", "RC-33 ok", "RC-34 ok"]
    (last,) = result.property("finalizer-stays").trace.states[-1:]  # type: ignore[union-attr]
    stored = last[list(claim_slots(instance)).index(claim)]
    assert stored == Claim(stored.rv, stored.uid)  # unallocated, unreserved, no finalizer


def claim_slots(instance: Instance) -> Iterable[Slot[Any]]:
    return assemble(instance).slots


def test_claim_without_finalizer_keeps_its_allocation() -> None:
    instance = cluster(PodSpec("p1", BY_NAME, node="n1"), finish_pod=1)
    claim = Api.of(instance).claim["c1"]
    kept = always("allocation-stays", lambda v: v[claim].allocated)
    unreserved = can_always("reservation-goes", lambda v: not v[claim].reserved_for)
    result = search(model(instance, allocated(instance, "c1", "p1", finalizer=False), kept, unreserved))
    assert result.verdict == "holds"


def test_unused_allocation_stays_until_the_claim_is_deleted() -> None:
    instance = cluster(PodSpec("p1", BY_NAME), delete_claim=1)
    claim = Api.of(instance).claim["c1"]
    undeleted = always("kept-unless-deleted", lambda v: v[claim].allocated or v[claim].deleting or not v[claim].exists)
    completes = can_always("deletion-completes", lambda v: not v[claim].exists)
    result = search(model(instance, allocated(instance, "c1"), undeleted, completes, finalizer_order(instance)))
    assert result.verdict == "holds"
    assert story_to_removal(instance) == ["AS-6 ok", "RC-1 ok", "RC-30 ok", "RC-35 ok", "RC-36 ok"]


def story_to_removal(instance: Instance) -> list[str]:
    claim = Api.of(instance).claim["c1"]
    return story(search(model(instance, allocated(instance, "c1"), always("exists", lambda v: v[claim].exists))), "exists")


def test_stale_copies_conflict_and_the_sync_comes_back() -> None:
    instance = cluster(PodSpec("p1", BY_NAME, node="n1"), finish_pod=1, touch_claim=2)
    made = model(instance, allocated(instance, "c1", "p1"), released(instance), finalizer_order(instance))
    assert labels(made, "claim-controller.release_consumers") == {"ok", "conflict"}
    assert labels(made, "claim-controller.drop_finalizer") == {"ok", "conflict"}
    result = search(made)
    assert result.property("finalizer-while-allocated").verdict == "holds"
    # A conflict between the two writes leaves an unallocated claim with its finalizer, which is legal.
    assert result.property("claim-is-freed").verdict == "holds"


def test_faults_of_writes_end_the_sync() -> None:
    instance = cluster(PodSpec("p1", BY_NAME, node="n1"), finish_pod=1, api_refused=1, api_applied_error=1)
    made = model(instance, allocated(instance, "c1", "p1"), released(instance), finalizer_order(instance), no_premature_release(instance))
    for name in ("release_consumers", "drop_finalizer"):
        assert {"refused", "applied-error"} <= labels(made, f"claim-controller.{name}")
    assert search(made).verdict == "holds"


def test_a_consumer_unknown_to_the_cache_is_asked_for_live() -> None:
    """The reservation is seen before the pod is: without the live GET the pod would lose its claim."""
    instance = cluster(PodSpec("p1", BY_NAME, node="n1"), finish_pod=1)
    controller, api = Controller.of(instance), Api.of(instance)
    channel = controller.pod_channel
    late = {
        controller.pods["p1"]: SeenPod(),
        channel.order: ("p1",),
        channel.events["p1"]: (Pod(node="n1"),),
    }
    made = model(instance, {**allocated(instance, "c1", "p1"), **late}, no_premature_release(instance), released(instance))
    result = search(made)
    assert result.verdict == "holds"
    assert labels(made, "claim-controller.get_pod") == {"ok"}
    assert api.pod["p1"].initial.exists


def test_after_a_restart_pods_that_went_meanwhile_are_asked_for() -> None:
    instance = cluster(PodSpec("p1", BY_NAME, node="n1"), force_delete_pod=1, claim_controller_crash=1)
    made = model(instance, allocated(instance, "c1", "p1"), released(instance), no_premature_release(instance), finalizer_order(instance))
    assert search(made).verdict == "holds"
    assert labels(made, "claim-controller.get_pod") == {"not-found"}


def test_deleted_generated_claim_of_a_finished_pod() -> None:
    """RC-37 follows the release in the same sync, and also when the finalizer has already removed the object."""
    instance = cluster(PodSpec("p1", TEMPLATE, node="n1"), claims=(ClaimSpec("g1", pod="p1"),), finish_pod=1)
    api = Api.of(instance)
    named = Pod(node="n1", claim_names=(("gpu", "g1"),))
    start = {
        **allocated(instance, "g1", "p1", exists=True, owner="p1"),
        api.pod["p1"]: named,
        Controller.of(instance).pods["p1"]: SeenPod.of(named),
    }
    exists = always("exists", lambda v: v[api.claim["g1"]].exists)
    result = search(model(instance, start, exists))
    own = [step for step in story(result, "exists") if not step.startswith("RC-1 ")]
    assert own == ["K12 ok", "K23 ok", "RC-30 ok", "RC-33 ok", "RC-34 ok", "RC-37 ok"]


# -- pod keys


def template_cluster(*entries: str, **budgets: int) -> Instance:
    refs = tuple(ClaimRef(entry, f"p1-{entry}", template="t") for entry in entries)
    return cluster(PodSpec("p1", refs), claims=tuple(ClaimSpec(ref.claim, pod="p1") for ref in refs), **budgets)


def instantiated(instance: Instance) -> AlwaysPossible:
    api = Api.of(instance)
    refs = instance.pods[0].claims

    def goal(v: View) -> bool:
        names = {(r.entry, r.claim) for r in refs}
        complete = set(v[api.pod["p1"]].claim_names) == names and all(v[api.claim[r.claim]].exists for r in refs)
        return complete or not v[api.pod["p1"]].exists

    return can_always("claims-are-generated", goal)


def generated_claims_have_their_owner(instance: Instance) -> StateInvariant:
    api = Api.of(instance)
    return always("owner", lambda v: all(v[slot].owner == ("p1" if v[slot].exists else None) for slot in api.claim.values()))


@pytest.mark.parametrize(("entries", "states"), [(("a",), 16), (("a", "b"), 31)])
def test_claims_of_templates_are_created_and_named(entries: tuple[str, ...], states: int) -> None:
    instance = template_cluster(*entries)
    result = search(model(instance, {}, instantiated(instance), generated_claims_have_their_owner(instance)))
    assert result.verdict == "holds"
    assert result.states == states
    assert taken(result)["get_claim"] == 0  # mutCache knows what this process created


def test_refused_creation_is_repeated_and_finds_what_it_has_created() -> None:
    instance = template_cluster("a", "b", api_refused=1)
    result = search(model(instance, {}, instantiated(instance)))
    assert result.verdict == "holds"


def test_lost_answer_to_a_creation_may_end_in_a_second_claim() -> None:
    """The retry may come before the Add of the orphan; upstream then generates another name, which is outside of these bounds."""
    instance = template_cluster("a", api_applied_error=1)
    result = explore(model(instance), Limits(max_states=10_000), engine="plain")
    assert result.stopped is not None
    assert "a second claim generated for entry a of pod p1" in result.stopped


def test_deleted_generated_claim_is_not_always_created_again() -> None:
    """Variant V5: mutCache keeps the deleted claim, unless a look-up dropped the entry in time; only a restart helps."""
    instance = template_cluster("a", delete_claim=1)
    result = search(model(instance, {}, instantiated(instance)))
    assert result.property("claims-are-generated").verdict == "violated"
    assert taken(result)["get_claim"] > 0  # it is created again where the look-up came in time
    restarting = template_cluster("a", delete_claim=1, claim_controller_crash=-1)
    assert search(model(restarting, {}, instantiated(restarting))).verdict == "holds"


def test_generated_claim_goes_with_its_pod() -> None:
    instance = template_cluster("a", delete_pod=1)
    api = Api.of(instance)
    gone = can_always("gone", lambda v: not v[api.claim["p1-a"]].exists and not v[api.pod["p1"]].exists)
    result = search(model(instance, {}, gone))
    assert result.verdict == "holds"
    assert {a.name for a in result.actions if a.taken} >= {"apiserver.collect_claim"}


def runs(instance: Instance, pod: str) -> AlwaysPossible:
    api = Api.of(instance)
    return can_always("pod-eventually-runs", lambda v: v[api.pod[pod]].phase is not Phase.PENDING)


def test_pod_that_has_a_node_already_gets_its_reservation() -> None:
    instance = cluster(PodSpec("p1", BY_NAME, node="n1"), touch_claim=1)
    made = model(instance, allocated(instance, "c1"), runs(instance, "p1"))
    assert search(made).verdict == "holds"
    assert labels(made, "claim-controller.reserve_for_pod") == {"ok", "conflict"}


def test_no_new_reservation_while_the_claim_is_deleted() -> None:
    instance = cluster(PodSpec("p1", BY_NAME, node="n1"), delete_claim=1)
    made = model(instance, allocated(instance, "c1"))
    assert labels(made, "claim-controller.reserve_for_pod") == {"ok", "conflict", "not-found"} | {"invalid"}


def reserves_for_terminal_pods(instance: Instance) -> StepInvariant:
    controller = Controller.of(instance)

    def fine(before: View, after: View, act: Action, label: str) -> bool:
        return not before[controller.pods[act.params["pod"]]].terminal

    return on_step("terminal-pods-get-no-reservation", ["claim-controller.load_pod"], fine)


def test_terminal_pod_is_reserved_again_while_another_consumer_runs() -> None:
    """Variant V1 in 1.37.2: the two kinds of keys undo each other's writes."""
    instance = two_pods(finish_pod=1)
    start = allocated(instance, "c1", "p1", "p2")
    result = search(model(instance, start, reserves_for_terminal_pods(instance), released(instance)))
    assert result.property("terminal-pods-get-no-reservation").verdict == "violated"
    assert "RC-33 ok" in story(result, "terminal-pods-get-no-reservation")


# -- all actions


@functools.cache
def rich() -> tuple[Model, list[State]]:
    """Two pods, a shared claim and a generated one, all events and faults; some thousand states."""
    pods = (PodSpec("p1", (*BY_NAME, *TEMPLATE), node="n1"), PodSpec("p2", BY_NAME, present=False))
    claims = (ClaimSpec("c1"), ClaimSpec("g1", pod="p1"))
    budgets = {"finish_pod": 1, "delete_claim": 1, "delete_pod": 1, "api_refused": 1, "claim_controller_crash": 1, "force_delete_pod": 1}
    made = model(instance := cluster(*pods, claims=claims, lag=1, **budgets), allocated(instance, "c1", "p1"))
    semantics = Semantics(made)
    states, seen = semantics.initial_states(), set(semantics.initial_states())
    for state in states:
        for move in semantics.moves(state):
            if move.after not in seen and len(states) < 3000:
                seen.add(move.after)
                states.append(move.after)
    return made, states


@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_actions_are_total_on_any_combination_of_slot_values(data: st.DataObject) -> None:
    made, states = rich()
    sources = data.draw(st.lists(st.integers(0, len(states) - 1), min_size=2, max_size=6))
    choice = data.draw(st.lists(st.integers(0, len(sources) - 1), min_size=len(made.slots), max_size=len(made.slots)))
    mixed = tuple(states[sources[which]][i] for i, which in enumerate(choice))
    semantics = Semantics(made)
    for action in made.actions:
        for outcome in semantics.observe(action, mixed).outcomes:
            assert outcome.beyond is not None or len(semantics.apply(action, outcome, mixed)) == len(made.slots)


def test_a_failed_sync_leaves_nothing_behind() -> None:
    """After any answer but ok the worker has exactly its idle value."""
    made, states = rich()
    semantics = Semantics(made)
    index = {slot.name: i for i, slot in enumerate(made.slots)}
    checked = set()
    for state in states[::5]:
        for move in semantics.moves(state):
            if move.label in ("conflict", "invalid", "refused", "applied-error") and move.action.type.writer == "claim-controller":
                key = "claim" if "claim" in move.action.params else "pod"
                work = move.after[index[f"claim-controller/{key}-work/{move.action.params[key]}"]]
                assert work == type(work)()
                checked.add(move.action.name)
    assert len(checked) >= 4


def test_every_step_of_the_worker_has_its_action() -> None:
    made, _ = rich()
    steps = {a.type.step for a in made.actions}
    assert {step.value for step in (*ClaimStep, *PodStep)} - {"idle"} <= steps


# -- variants


def finished_pods_stay_released(instance: Instance) -> StepInvariant:
    api = Api.of(instance)

    def fine(before: View, after: View, act: Action, label: str) -> bool:
        return label != "ok" or not before[api.pod[act.params["pod"]]].terminal

    return on_step("finished-pods-stay-released", ["claim-controller.reserve_for_pod"], fine)


def no_write_livelock(instance: Instance, *variants: Replacement) -> AlwaysPossible:
    """The controller can always come to rest by its own steps."""
    own = [a for a in assemble(instance, variants).actions if a.type.writer == "claim-controller"]
    names = {a.name for a in own}
    return AlwaysPossible("no-write-livelock", lambda v: truth(not any(a.run(v) for a in own)), lambda a: a.name in names)


def verdicts(instance: Instance, start: Start, *properties: Property, variants: Iterable[str] = ()) -> dict[str, str]:
    applied = [variant(name) for name in variants]
    result = search(model(instance, start, *properties, variants=applied))
    return {p.promise: p.verdict for p in result.properties}


def test_repair_terminal_pod_guard() -> None:
    instance = two_pods(finish_pod=1)
    start = allocated(instance, "c1", "p1", "p2")
    guard = variant("terminal-pod-guard")
    plain = verdicts(instance, start, finished_pods_stay_released(instance), no_write_livelock(instance))
    assert set(plain.values()) == {"violated"}
    repaired = [finished_pods_stay_released(instance), no_write_livelock(instance, guard), released_by(instance, "p1")]
    assert set(verdicts(instance, start, *repaired, variants=[guard.name]).values()) == {"holds"}


def released_by(instance: Instance, pod: str) -> AlwaysPossible:
    api = Api.of(instance)
    return can_always("released", lambda v: not v[api.pod[pod]].terminal or pod not in v[api.claim["c1"]].reserved_for)


def test_defect_finished_pods_keep_their_reservation() -> None:
    instance = cluster(PodSpec("p1", BY_NAME, node="n1"), finish_pod=1)
    start = allocated(instance, "c1", "p1")
    assert verdicts(instance, start, released(instance)) == {"claim-is-freed": "holds"}
    assert verdicts(instance, start, released(instance), variants=["claim-controller-keeps-finished"]) == {"claim-is-freed": "violated"}


def test_defect_no_reservation_for_a_pod_with_a_node() -> None:
    instance = cluster(PodSpec("p1", BY_NAME, node="n1"))
    start = allocated(instance, "c1")
    promise = runs(instance, "p1")
    assert verdicts(instance, start, promise) == {"pod-eventually-runs": "holds"}
    assert verdicts(instance, start, promise, variants=["claim-controller-no-reservation"]) == {"pod-eventually-runs": "violated"}


def test_defect_status_with_new_names_only() -> None:
    """Both names are never there again once they have come apart. V5 is repaired, as it also keeps claims from being generated."""
    instance = template_cluster("a", "b", delete_claim=1, lag=1)
    repair = "claim-controller-forgets-deleted"
    promise = instantiated(instance)
    assert verdicts(instance, {}, promise, variants=[repair]) == {"claims-are-generated": "holds"}
    both = [repair, "claim-controller-partial-status"]
    assert verdicts(instance, {}, promise, variants=both) == {"claims-are-generated": "violated"}


def test_repair_of_deleted_created_claims() -> None:
    instance = template_cluster("a", delete_claim=2)
    promise = instantiated(instance)
    assert verdicts(instance, {}, promise) == {"claims-are-generated": "violated"}
    assert verdicts(instance, {}, promise, variants=["claim-controller-forgets-deleted"]) == {"claims-are-generated": "holds"}


def finished_pod_with_template(**budgets: int) -> tuple[Instance, Start]:
    """The pod is terminal, its generated claim exists and is unused."""
    instance = cluster(PodSpec("p1", TEMPLATE, node="n1"), claims=(ClaimSpec("g1", pod="p1"),), **budgets)
    controller = Controller.of(instance)
    pod = Pod(node="n1", phase=Phase.SUCCEEDED, claim_names=(("gpu", "g1"),))
    first = controller.api.claim["g1"].initial
    claim = Claim(first.rv, first.uid, owner="p1")
    return instance, {
        controller.api.pod["p1"]: pod,
        controller.pods["p1"]: SeenPod.of(pod),
        controller.api.claim["g1"]: claim,
        controller.claims["g1"]: SeenClaim.of(claim),
    }


def test_terminal_pod_creates_its_claim_once_more_after_each_start() -> None:
    """Bounded only because mutCache keeps the deleted claim: with that alone repaired it never ends, with the guard it never starts."""
    instance, start = finished_pod_with_template()
    created = always("not-again", lambda v: v.value(Controller.of(instance).created["g1"]) is None)
    alone, both = ["claim-controller-forgets-deleted"], ["claim-controller-forgets-deleted", "terminal-pod-guard"]

    def check(names: list[str]) -> dict[str, str]:
        applied = [variant(name) for name in names]
        return verdicts(instance, start, created, no_write_livelock(instance, *applied), variants=names)

    assert check([]) == {"not-again": "violated", "no-write-livelock": "holds"}
    assert check(alone) == {"not-again": "violated", "no-write-livelock": "violated"}
    assert check(both) == {"not-again": "holds", "no-write-livelock": "holds"}


# -- with a scheduler


def scheduled(*pods: PodSpec, claims: Iterable[ClaimSpec], devices: int, **budgets: int) -> Instance:
    """One node; every claim takes the first free device."""
    names = tuple(f"gpu.example.com/n1/gpu-{i}" for i in range(devices))

    def first_free(wanted: tuple[str, ...], node: str, used: frozenset[str]) -> tuple[Allocation, ...]:
        free = [name for name in names if name not in used]
        if len(free) < len(wanted):
            raise DoesNotFit
        return tuple(Allocation((DeviceResult("gpu", name),), frozenset({node})) for name in free[: len(wanted)])

    made = cluster(*pods, claims=claims, lag=1, **budgets)
    return attrs.evolve(made, writers=WRITERS | {"scheduler"}, allocate=first_free, devices=tuple(DeviceSpec(name, "n1") for name in names))


def explored(instance: Instance, *names: str) -> tuple[int, str]:
    """States, and whether each pod can always still run."""
    properties = [runs(instance, pod.name) for pod in instance.pods]
    result = explore(model(instance, {}, *properties, variants=[variant(name) for name in names]))
    assert result.complete
    return result.states, result.property("pod-eventually-runs").verdict


def test_a_finished_pod_frees_its_device_for_the_next() -> None:
    pods = (PodSpec("p1", BY_NAME), PodSpec("p2", (ClaimRef("gpu", "c2"),)))
    instance = scheduled(*pods, claims=(ClaimSpec("c1"), ClaimSpec("c2")), devices=1, finish_pod=-1)
    assert explored(instance)[1] == "holds"
    assert explored(instance, "claim-controller-keeps-finished")[1] == "violated"


def test_a_pod_with_two_templates_runs_only_if_both_names_stay() -> None:
    refs = (ClaimRef("a", "g1", template="t"), ClaimRef("b", "g2", template="t"))
    instance = scheduled(PodSpec("p1", refs), claims=(ClaimSpec("g1", "p1"), ClaimSpec("g2", "p1")), devices=2, delete_claim=1)
    repair = "claim-controller-forgets-deleted"
    assert explored(instance)[1] == "violated"  # V5
    assert explored(instance, repair)[1] == "holds"
    assert explored(instance, repair, "claim-controller-partial-status")[1] == "violated"


@pytest.mark.parametrize("engine", ["plain", "explicit"])
def test_engines_agree_on_the_controller(engine: str) -> None:
    instance = template_cluster("a", delete_claim=1, delete_pod=1, claim_controller_crash=1, lag=1)
    result = explore(model(instance, {}, instantiated(instance)), engine=engine)
    assert (result.states, result.transitions, result.depth) == ENGINES_AGREE_ON
