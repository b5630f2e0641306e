"""Users, containers, and the node where no kubelet takes part."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import attrs
import pytest

from dra_spec.explorer.model import Kind, Model, Slot
from dra_spec.explorer.semantics import Move, Semantics, State
from dra_spec.protocol import workload
from dra_spec.protocol.apiserver import Api
from dra_spec.protocol.assembly import assemble
from dra_spec.protocol.instance import ClaimRef, ClaimSpec, DeviceSpec, Instance, PodSpec
from dra_spec.protocol.objects import NO_POD, Allocation, Claim, DeviceResult, Phase, Pod

DEVICE = "gpu.example.com/n1/gpu-0"
CLAIM = (ClaimRef("gpu", "c1"),)
ON_N1 = Allocation((DeviceResult("gpu", DEVICE),), frozenset({"n1"}))


def never_allocates(claims: tuple[str, ...], node: str, used: frozenset[str]) -> tuple[Allocation, ...]:
    raise AssertionError("no scheduler takes part")


def cluster(*pods: PodSpec, writers: Iterable[str] = ("workload",), **budgets: int) -> Instance:
    return Instance(
        pods=pods,
        claims=(ClaimSpec("c1"), ClaimSpec("g1", pod="p1")),
        nodes=("n1", "n2"),
        devices=(DeviceSpec(DEVICE, "n1"),),
        allocate=never_allocates,
        writers=frozenset(writers),
        budgets={name.replace("_", "-"): n for name, n in budgets.items()},
    )


def world(instance: Instance, start: Mapping[Slot[Any], Any] | None = None) -> tuple[Semantics, State]:
    parts = assemble(instance)
    semantics = Semantics(Model("test", parts.slots, parts.actions, (), (start or {},)))
    return semantics, semantics.initial_states()[0]


def moves(semantics: Semantics, state: State) -> dict[str, Move]:
    return {move.action.name.removeprefix("workload."): move for move in semantics.moves(state)}


def usable_claim(instance: Instance, **changes: Any) -> Mapping[Slot[Any], Any]:
    slot = Api.of(instance).claim["c1"]
    stored = attrs.evolve(slot.initial, finalizer=True, allocation=ON_N1, reserved_for=frozenset({"p1"}))
    return {slot: attrs.evolve(stored, **changes)}


def count(instance: Instance, start: Mapping[Slot[Any], Any] | None = None) -> int:
    semantics, first = world(instance, start)
    todo, seen = [first], {first}
    for state in todo:
        for move in semantics.moves(state):
            if move.after not in seen:
                seen.add(move.after)
                todo.append(move.after)
    return len(todo)


def test_nothing_happens_without_budgets() -> None:
    semantics, state = world(cluster(PodSpec("p1", CLAIM)))
    assert moves(semantics, state) == {}
    assert {a.name for a in semantics.model.actions} == {"workload.start_pod"}


def test_a_pod_is_created_once() -> None:
    instance = cluster(PodSpec("p1", CLAIM, present=False, node="n1"), force_delete_pod=-1)
    semantics, state = world(instance)
    pod = Api.of(instance).pod["p1"]
    assert semantics.value(state, pod) == NO_POD
    created = moves(semantics, state)["create_pod"].after
    assert semantics.value(created, pod) == Pod(node="n1")
    gone = moves(semantics, created)["force_delete_pod"].after
    assert semantics.value(gone, pod) == NO_POD
    assert moves(semantics, gone) == {}  # the name is not used again


@pytest.mark.parametrize(
    ("pod", "left"),
    [
        (Pod(), NO_POD),
        (Pod(node="n1"), Pod(node="n1", deleting=True)),
        (Pod(node="n1", phase=Phase.SUCCEEDED), NO_POD),
    ],
)
def test_delete_is_graceful_only_for_a_pod_that_a_node_may_run(pod: Pod, left: Pod) -> None:
    instance = cluster(PodSpec("p1", CLAIM), delete_pod=1)
    slot = Api.of(instance).pod["p1"]
    semantics, state = world(instance, {slot: pod})
    assert semantics.value(moves(semantics, state)["delete_pod"].after, slot) == left


def test_force_delete_takes_a_running_pod_away() -> None:
    instance = cluster(PodSpec("p1", CLAIM), force_delete_pod=1)
    slot = Api.of(instance).pod["p1"]
    semantics, state = world(instance, {slot: Pod(node="n1", phase=Phase.RUNNING)})
    assert semantics.value(moves(semantics, state)["force_delete_pod"].after, slot) == NO_POD


def test_budgets_run_out() -> None:
    instance = cluster(PodSpec("p1", CLAIM), touch_claim=2)
    semantics, state = world(instance)
    for left in (True, True, False):
        assert ("touch_claim" in moves(semantics, state)) is left
        state = moves(semantics, state)["touch_claim"].after if left else state


def test_a_touched_claim_has_a_new_version_and_nothing_else() -> None:
    instance = cluster(PodSpec("p1", CLAIM), touch_claim=-1)
    slot = Api.of(instance).claim["c1"]
    semantics, state = world(instance)
    (raw,) = {move.raw for move in semantics.moves(state)}
    before, after = semantics.value(state, slot), semantics.value(raw, slot)
    assert after.rv > before.rv
    assert attrs.evolve(after, rv=before.rv) == before
    assert "budget" not in {s.room for s in semantics.model.slots}


def test_a_claim_is_deleted_at_once_or_waits_for_its_finalizer() -> None:
    instance = cluster(PodSpec("p1", CLAIM), delete_claim=1)
    slot = Api.of(instance).claim["c1"]
    semantics, state = world(instance)
    assert not semantics.value(moves(semantics, state)["delete_claim"].after, slot).exists
    semantics, state = world(instance, usable_claim(instance))
    waiting = semantics.value(moves(semantics, state)["delete_claim"].after, slot)
    assert waiting.exists
    assert waiting.deleting
    assert waiting.allocation == ON_N1


@pytest.mark.parametrize(
    ("changes", "node", "starts"),
    [
        ({}, "n1", True),
        ({}, "n2", False),  # allocated for another node
        ({"allocation": attrs.evolve(ON_N1, nodes=None)}, "n2", True),
        ({"reserved_for": frozenset()}, "n1", False),
        ({"reserved_for": frozenset({"p2"})}, "n1", False),
        ({"allocation": None}, "n1", False),
        ({"exists": False}, "n1", False),
        ({}, None, False),
    ],
)
def test_a_bound_pod_starts_when_its_claims_are_usable(changes: dict[str, Any], node: str | None, starts: bool) -> None:
    instance = cluster(PodSpec("p1", CLAIM, node=node))
    semantics, state = world(instance, usable_claim(instance, **changes))
    assert ("start_pod" in moves(semantics, state)) is starts


def test_a_pod_with_a_template_starts_when_its_status_names_the_claim() -> None:
    instance = cluster(PodSpec("p1", (ClaimRef("gpu", "g1", template="t"),)))
    api = Api.of(instance)
    first = api.claim["g1"].initial
    generated = Claim(first.rv, first.uid, finalizer=True, allocation=ON_N1, reserved_for=frozenset({"p1"}), owner="p1")
    for names, starts in (((), False), ((("gpu", "g1"),), True)):
        semantics, state = world(instance, {api.claim["g1"]: generated, api.pod["p1"]: Pod(node="n1", claim_names=names)})
        assert ("start_pod" in moves(semantics, state)) is starts


def test_the_life_of_a_pod_without_a_kubelet() -> None:
    """Pending, Running, then Succeeded, or deleting, terminal and gone: one after the other."""
    instance = cluster(PodSpec("p1", CLAIM, node="n1"), finish_pod=-1, delete_pod=-1)
    assert count(instance, usable_claim(instance)) == 7  # three phases, the same while deleting, and none
    semantics, state = world(instance, usable_claim(instance))
    for name in ("start_pod", "delete_pod", "stop_pod", "remove_pod"):
        state = moves(semantics, state)[name].after
    assert semantics.value(state, Api.of(instance).pod["p1"]) == NO_POD


def test_the_kubelet_reports_where_it_takes_part() -> None:
    instance = cluster(PodSpec("p1", CLAIM), writers=("workload", "kubelet"), finish_pod=1, delete_pod=1, force_delete_pod=1)
    assert {a.name for a in workload.actions(instance)} == {"workload.delete_pod", "workload.force_delete_pod"}


def test_who_acts() -> None:
    budgets = dict.fromkeys(("finish_pod", "delete_pod", "force_delete_pod", "delete_claim", "touch_claim"), 1)
    instance = cluster(PodSpec("p1", CLAIM, present=False), **budgets)
    kinds = {a.name.removeprefix("workload."): a.type.kind for a in workload.actions(instance)}
    users = {"create_pod", "delete_pod", "force_delete_pod", "delete_claim", "touch_claim"}
    assert {name for name, kind in kinds.items() if kind is Kind.USER} == users
    assert {name for name, kind in kinds.items() if kind is Kind.WORKLOAD} == {"finish_pod"}
    assert {name for name, kind in kinds.items() if kind is Kind.PROTOCOL} == {"start_pod", "stop_pod", "remove_pod"}
