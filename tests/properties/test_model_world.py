"""The world over a model's slots: the same answers as the plain world, few reads, and the properties that the explorer gets."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import attrs
import pytest

from dra_spec.allocation.errors import DoesNotFit
from dra_spec.explorer.model import (
    AlwaysPossible,
    DeadlockFree,
    LeadsTo,
    Model,
    ModelError,
    Projection,
    Slot,
    StateInvariant,
    StepInvariant,
    Truth,
    View,
)
from dra_spec.explorer.semantics import Semantics, State
from dra_spec.properties.bind import bind, missing_writers, unmet_assumptions
from dra_spec.properties.errors import InvariantError
from dra_spec.properties.invariant import Invariant, Promise, find, load_all
from dra_spec.properties.judge import judge
from dra_spec.properties.model_world import ModelWorld, Sources, dump
from dra_spec.properties.world import problems
from dra_spec.protocol.apiserver import Api
from dra_spec.protocol.assembly import assemble
from dra_spec.protocol.instance import ClaimRef, ClaimSpec, DeviceSpec, Instance, PodSpec
from dra_spec.protocol.objects import Allocation, DeviceResult

DEVICES = ("gpu.example.com/n1/g0", "gpu.example.com/n1/g1")
WRITERS = frozenset({"scheduler", "claim-controller", "apiserver", "kubelet", "plugin", "workload", "driver-controller"})


def first_fit(claims: tuple[str, ...], node: str, used: frozenset[str]) -> tuple[Allocation, ...]:
    free = [device for device in DEVICES if device not in used]
    if len(free) < len(claims):
        raise DoesNotFit("no device is left")
    return tuple(Allocation((DeviceResult("r", device),), frozenset({"n1"})) for device in free[: len(claims)])


def instance(**changes: Any) -> Instance:
    """Two pods share a named claim; one of them has a generated one too."""
    pods = (PodSpec("p1", (ClaimRef("a", "c1"), ClaimRef("b", "p1-t", "t"))), PodSpec("p2", (ClaimRef("a", "c1"),)))
    fields: dict[str, Any] = {
        "pods": pods,
        "claims": (ClaimSpec("c1", None, ("r",)), ClaimSpec("p1-t", "p1", ("r",))),
        "nodes": ("n1",),
        "devices": tuple(DeviceSpec(device, "n1") for device in DEVICES),
        "allocate": first_fit,
        "writers": WRITERS,
        "budgets": {"finish-pod": -1, "delete-pod": 1, "force-delete-pod": 1, "kubelet-crash": 1},
    }
    return Instance(**{**fields, **changes})


def walk(semantics: Semantics, seed: int, length: int) -> Iterator[tuple[State, Any]]:
    """A random run: each state with the move taken from it."""
    chance = random.Random(seed)
    state = semantics.initial_states()[0]
    for _ in range(length):
        moves = [move for move in semantics.moves(state) if move.beyond is None]
        if not moves:
            return
        move = chance.choice(moves)
        yield state, move
        state = move.after


def test_the_properties_say_on_each_state_and_step_what_the_plain_world_says() -> None:
    cluster = instance()
    invariants = load_all()
    properties = [each for invariant in invariants.values() for each in bind(invariant, cluster)]
    parts = assemble(cluster)
    semantics = Semantics(Model("sample", parts.slots, parts.actions, properties))
    sources = Sources.of(cluster)
    told: dict[str, set[Truth]] = {}
    for state, move in (taken for seed in range(3) for taken in walk(semantics, seed, 80)):
        view, raw = semantics.view(state), semantics.view(move.raw)
        before, after = dump(ModelWorld(sources, view)), dump(ModelWorld(sources, raw))
        assert problems(before) == []
        step = dump(ModelWorld(sources, raw, view, (move.action, move.label)), step=True)["step"]
        for invariant in invariants.values():
            mine = [each for each in properties if each.promise == invariant.name]
            if invariant.kind is Promise.STATE:
                truths = [each.fn(view) for each in mine if isinstance(each, StateInvariant)]
                plain = judge(invariant, before).truth
            elif invariant.kind is Promise.STEP and invariant.applies_to(move.action.name):
                truths = [each.fn(view, raw, move.action, move.label) for each in mine if isinstance(each, StepInvariant)]
                plain = judge(invariant, after, before, step).truth
            else:
                continue
            together = Truth.FALSE if Truth.FALSE in truths else max(truths)
            assert together is plain, invariant.name
            told.setdefault(invariant.name, set()).add(together)
    assert Truth.TRUE in told["finalizer-while-allocated"]


EXPRESSIONS = [
    "claims.all(c, c.owner == '' || c.owner in pods.map(p, p.name))",
    "claims.exists(c, c.uid == claims[0].uid)",
    "size(pods.filter(p, size(p.claims) == 2)) == 0",
    "pods.all(p, p.claims.all(n, claims.exists(c, c.name == n && p.name in c.reservedFor)))",
    "claims.all(c, c.nodes == null || c.nodes == ['n1'])",
    "claims.map(c, c.devices) == [['gpu.example.com/n1/g0']]",
    "claims.all(c, c.results.all(r, r.driver == 'gpu.example.com' && r.device in c.devices && !r.admin))",
    "nodes.all(n, n.kubelet.running && n.plugins.all(l, l.running && size(l.cdi) <= 1))",
    "nodes.exists(n, n.kubelet.cache.exists(e, e.claim == 'c1' && e.prepared && !e.unpreparing && e.pods == ['p1']))",
    "nodes.all(n, n.plugins.all(l, l.checkpoint.all(r, r.state == 'Completed' || !(r.claim in l.cdi))))",
    "nodes.all(n, n.containers.all(k, pods.exists(p, p.name == k.pod && p.running)))",
    "schedulers.all(s, s.inFlight.all(f, f.sharers == 1 && f.devices.all(d, !(d in s.allocated))))",
]


def test_expressions_have_the_same_value_on_both_worlds() -> None:
    cluster = instance()
    parts = assemble(cluster)
    semantics = Semantics(Model("sample", parts.slots, parts.actions))
    sources = Sources.of(cluster)
    asserted = [Invariant.adhoc(text) for text in EXPRESSIONS]
    told: dict[str, set[Truth | None]] = {}
    for state, _ in walk(semantics, 5, 120):
        world = ModelWorld(sources, semantics.view(state))
        plain = dump(world)
        for text, invariant in zip(EXPRESSIONS, asserted, strict=True):
            try:
                found = judge(invariant, world).truth
            except InvariantError:
                with pytest.raises(InvariantError):
                    judge(invariant, plain)
                continue
            assert found is judge(invariant, plain).truth, text
            told.setdefault(text, set()).add(found)
    assert sum(len(truths) > 1 for truths in told.values()) >= len(EXPRESSIONS) // 2


def reads_of(prop: Any, state: dict[Slot[Any], Any]) -> tuple[Truth, list[str]]:
    """What a state property says of a state in which slots have these values or else their initial ones, and what it reads."""
    read: list[str] = []

    def look(slot: Slot[Any], what: Projection) -> Any:
        if f"{slot} {what}" not in read:
            read.append(f"{slot} {what}")
        return what.of(state.get(slot, slot.initial))

    return prop.fn(View(look)), read


def test_an_instance_reads_single_fields_of_few_slots() -> None:
    cluster = instance()
    api = Api.of(cluster)
    (only,) = bind(find("no-double-allocation"), cluster)
    assert only.binding == {"a": "c1", "b": "p1-t"}
    assert reads_of(only, {}) == (Truth.TRIVIAL, ["api/claim/c1 .exists", "api/claim/p1-t .exists"])
    allocated = {
        slot: attrs.evolve(slot.initial, exists=True, allocation=Allocation((DeviceResult("r", device),)))
        for slot, device in zip(api.claim.values(), DEVICES, strict=True)
    }
    truth, read = reads_of(only, allocated)
    assert truth is Truth.TRUE
    assert read[2:] == [
        "api/claim/c1 .allocated",
        "api/claim/p1-t .allocated",
        "api/claim/c1 devices()",
        f"api/claim/p1-t contains(devices, {DEVICES[0]})",
    ]
    same = {slot: attrs.evolve(value, allocation=Allocation((DeviceResult("r", DEVICES[0]),))) for slot, value in allocated.items()}
    assert reads_of(only, same)[0] is Truth.FALSE
    shared = Allocation((DeviceResult("r", DEVICES[0], admin=True),))
    assert reads_of(only, {slot: attrs.evolve(value, allocation=shared) for slot, value in allocated.items()})[0] is Truth.TRIVIAL


def test_what_is_fixed_is_decided_when_binding() -> None:
    cluster = instance()
    assert [p.binding for p in bind(find("node-consistent"), cluster)] == [
        {"p": "p1", "c": "c1"},
        {"p": "p1", "c": "p1-t"},
        {"p": "p2", "c": "c1"},  # p2 does not use p1-t
    ]
    assert [p.binding for p in bind(find("unreserve-deadlock-freedom"), cluster)] == [{"a": "p1", "b": "p2"}]


def test_the_kinds_of_properties() -> None:
    cluster = instance()
    kinds = {
        Promise.STATE: StateInvariant,
        Promise.STEP: StepInvariant,
        Promise.ALWAYS_POSSIBLE: AlwaysPossible,
        Promise.DEADLOCK_FREE: DeadlockFree,
        Promise.LEADS_TO: LeadsTo,
    }
    for invariant in load_all().values():
        properties = bind(invariant, cluster)
        assert properties
        assert all(type(each) is kinds[invariant.kind] and each.promise == invariant.name for each in properties)
    actions = {action.name: action for action in assemble(cluster).actions}
    (goal, *_) = bind(find("pod-eventually-runs"), cluster)
    assert isinstance(goal, AlwaysPossible)
    assert goal.allowed(actions["scheduler.bind"])
    assert goal.allowed(actions["workload.exit_containers"])
    assert not goal.allowed(actions["kubelet.crash"])
    (step, *_) = bind(find("prepare-only-when-reserved"), cluster)
    assert isinstance(step, StepInvariant)
    assert step.applies(actions["kubelet.prepare_send"])
    assert not step.applies(actions["scheduler.bind"])


def test_a_promise_about_objects_that_cannot_exist_is_trivial() -> None:
    cluster = instance(pods=(), claims=())
    for name in ("no-double-allocation", "allocated-while-reserved", "pod-eventually-runs", "no-dead-end"):
        (only,) = bind(find(name), cluster)
        truth = only.fn(View(lambda *_: None), View(lambda *_: None), None, "") if isinstance(only, StepInvariant) else None
        if isinstance(only, AlwaysPossible):
            truth = only.goal(View(lambda *_: None))
        elif isinstance(only, DeadlockFree):
            truth = only.final(View(lambda *_: None))
        elif isinstance(only, StateInvariant):
            truth = only.fn(View(lambda *_: None))
        assert truth is Truth.TRIVIAL


def test_a_goal_is_not_owed_for_an_object_that_is_absent() -> None:
    """Nothing is prepared at the beginning: the goal is there trivially, and it is not owed either, though `when` says nothing of that."""
    cluster = instance()
    view = View(lambda slot, what: what.of(slot.initial))
    promises = bind(find("prepared-leads-to-unprepared"), cluster)
    assert {"n", "l", "e"} == set(promises[0].binding)
    for promise in promises:
        assert isinstance(promise, LeadsTo)
        assert (promise.when(view), promise.goal(view)) == (Truth.FALSE, Truth.TRIVIAL)
    (deallocated, *_) = bind(find("unused-leads-to-deallocated"), cluster)
    assert isinstance(deallocated, LeadsTo)
    assert (deallocated.when(view), deallocated.goal(view)) == (Truth.FALSE, Truth.TRUE)


def test_writers_and_assumptions() -> None:
    small = instance(writers=frozenset({"scheduler", "apiserver"}), schedulers=("s1", "s2"))
    assert missing_writers(find("no-orphan-prepared"), small) == {"kubelet", "plugin"}
    with pytest.raises(InvariantError, match="no-orphan-prepared needs the writer kubelet"):
        bind(find("no-orphan-prepared"), small)
    with pytest.raises(InvariantError, match=r"reads n.*containers, which the model does not have"):
        bind(attrs.evolve(Invariant.adhoc("nodes.all(n, n.containers.all(k, true))"), needs=frozenset()), small)
    assert unmet_assumptions(find("no-double-allocation"), small) == ("single-scheduler",)
    assert unmet_assumptions(find("no-double-allocation"), instance()) == ()
    assert unmet_assumptions(find("no-unprepare-while-shared"), instance()) == ("no-force-delete",)


def test_an_expression_without_a_value_is_an_error_that_names_invariant_and_place() -> None:
    cluster = instance()
    (only,) = bind(Invariant.adhoc("claims.all(c, c.devices[0] != '')"), cluster)
    parts = assemble(cluster)
    semantics = Semantics(Model("sample", parts.slots, parts.actions, [only]))
    with pytest.raises(
        ModelError,
        match=r"(?s)invariant --assert has no value: --assert:1:15: index 0 of a list of 0.*\^\nin a state where\n  api/claim/c1 .exists",
    ):
        only.fn(semantics.view(semantics.initial_states()[0]))
