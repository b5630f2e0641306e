"""The kubelet: what it does without a fault, what each fault leads to in 1.37.2, its defects, and its repairs."""

from __future__ import annotations

import functools
import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from node_models import check, instance, model

from dra_spec.explorer import explore
from dra_spec.explorer.model import Kind
from dra_spec.explorer.semantics import Semantics
from dra_spec.explorer.values import key
from dra_spec.variants.base import variant

ONE: dict[str, Any] = {"pods": {"p1": ["c1"]}, "drivers": {"c1": ["gpu"]}}
TWO_DRIVERS: dict[str, Any] = {"pods": {"p1": ["c1"]}, "drivers": {"c1": ["gpu", "nic"]}}
TWO_CLAIMS: dict[str, Any] = {"pods": {"p1": ["c1", "c2"]}, "drivers": {"c1": ["gpu"], "c2": ["gpu"]}, "devices": 2}
SHARED: dict[str, Any] = {"pods": {"p1": ["c1"], "p2": ["c1"]}, "drivers": {"c1": ["gpu"]}}
STALE: dict[str, Any] = {"pods": {"p1": ["c1"], "p2": ["c1"], "p3": ["c2"]}, "drivers": {"c1": ["gpu"], "c2": ["gpu"]}, "devices": 2}
LATE, WAITS, HOLDERS = (variant(name) for name in ("plugin-looks-at-client", "kubelet-loop-waits", "kubelet-checks-holders"))


def broken(verdicts: dict[str, str]) -> set[str]:
    assert set(verdicts.values()) <= {"holds", "violated"}, verdicts
    return {promise for promise, verdict in verdicts.items() if verdict == "violated"}


@pytest.mark.parametrize(
    ("cluster", "budgets", "states"),
    [
        (ONE, {}, 18),
        (ONE, {"delete_pod": 1, "finish_pod": -1}, 101),
        (ONE, {"delete_pod": 1, "rpc_failed": 1}, 142),
        (ONE, {"delete_pod": 1, "rpc_lost": 1}, 142),
        (ONE, {"delete_pod": 1, "node_reboot": 1}, 302),
        (TWO_DRIVERS, {"delete_pod": 1, "rpc_failed": 1}, 630),
        (TWO_CLAIMS, {"delete_pod": 1, "rpc_failed": 1}, None),
        (SHARED, {"delete_pod": 2}, 3992),
    ],
)
def test_the_kubelet_of_1_37_keeps_all_promises(cluster: dict[str, Any], budgets: dict[str, int], states: int | None) -> None:
    result, verdicts = check(instance(**cluster, **budgets))
    assert broken(verdicts) == set()
    assert states is None or result.states == states


def test_no_action_is_dead() -> None:
    """Each action is taken with one fault or another."""
    taken: dict[str, bool] = {}
    for fault in ("kubelet_crash", "rpc_timeout", "node_reboot", "force_delete_pod"):
        result, _ = check(instance(**TWO_CLAIMS, **{fault: 1}, delete_pod=1, finish_pod=1), only=["none"])
        for act in result.actions:
            taken[act.name] = taken.get(act.name, False) or act.taken > 0
    orphans, _ = check(instance(**ONE, kubelet_crash=1, force_delete_pod=1), only=["none"])
    taken |= {act.name: True for act in orphans.actions if act.taken}
    assert {name for name, was in taken.items() if not was} == set()


@pytest.mark.parametrize(
    ("cluster", "budgets", "promises", "repairs"),
    [
        (ONE, {"delete_pod": 1, "kubelet_crash": 1}, {"checkpoint-covers-prepared", "no-orphan-prepared"}, [LATE]),
        (ONE, {"delete_pod": 1, "rpc_timeout": 1}, {"checkpoint-covers-prepared", "no-orphan-prepared"}, [LATE]),
        (
            ONE,
            {"force_delete_pod": 1},
            {"checkpoint-covers-prepared", "no-orphan-prepared", "no-unprepare-while-shared", "container-needs-prepared"},
            [WAITS],
        ),
    ],
)
def test_hazards_of_1_37_and_their_repairs(
    cluster: dict[str, Any], budgets: dict[str, int], promises: set[str], repairs: list[Any]
) -> None:
    assert broken(check(instance(**cluster, **budgets))[1]) == promises
    assert broken(check(instance(**cluster, **budgets), repairs)[1]) == set()


def test_an_unprepare_of_a_dead_kubelet_frees_a_device_that_is_in_use() -> None:
    cluster = instance(**SHARED, delete_pod=2, kubelet_crash=1)
    only = ["no-unprepare-while-shared", "container-needs-prepared"]
    assert broken(check(cluster, only=only)[1]) == set(only)
    assert broken(check(cluster, [LATE])[1]) == set()


def test_a_claim_allocated_anew_before_it_was_unprepared_gives_the_old_device() -> None:
    only = ["cdi-matches-allocation"]
    assert broken(check(instance(**STALE, force_delete_pod=1), [WAITS], only)[1]) == set(only)
    assert broken(check(instance(**STALE, force_delete_pod=1), [WAITS, HOLDERS], only)[1]) == set()


def test_another_driver_than_the_entry_names_kills_the_kubelet() -> None:
    cluster = {**STALE, "drivers": {"c1": ["gpu|nic"], "c2": ["gpu"]}, "devices": 1}
    only = ["kubelet-survives"]
    assert broken(check(instance(**cluster, force_delete_pod=1, rpc_failed=1), [WAITS], only)[1]) == set(only)
    assert broken(check(instance(**cluster, force_delete_pod=1, rpc_failed=1), [WAITS, HOLDERS], only)[1]) == set()


@pytest.mark.parametrize(
    ("name", "cluster", "budgets"),
    [
        ("kubelet-late-checkpoint", ONE, {"delete_pod": 1, "kubelet_crash": 1}),
        ("kubelet-forgets-after-first-driver", TWO_DRIVERS, {"delete_pod": 1, "rpc_failed": 1}),
        ("kubelet-counts-references", SHARED, {"delete_pod": 1}),
    ],
)
def test_each_defect_breaks_the_promises_that_it_names(name: str, cluster: dict[str, Any], budgets: dict[str, int]) -> None:
    defect = variant(name)
    assert broken(check(instance(**cluster, **budgets), [LATE])[1]) == set()
    assert set(defect.found_by) <= broken(check(instance(**cluster, **budgets), [LATE, defect])[1])


def test_a_terminated_pod_leaves_nothing_behind() -> None:
    """A run that is over is back at the idle values: nothing stays in the kubelet, the plugins or the runtime."""
    checked = model(instance(**TWO_DRIVERS, delete_pod=1, rpc_failed=1))
    semantics = Semantics(checked)
    ends = [state for state in reachable(semantics) if not list(semantics.moves(state))]
    gone = [state for state in ends if not semantics.value(state, slot(checked, "api/pod/p1")).exists]
    assert gone
    for state in gone:
        left = [s.name for s, value in zip(checked.slots, state, strict=True) if value != s.initial]
        assert all(name.startswith(("api/", "budget/")) for name in left), left


def slot(checked: Any, name: str) -> Any:
    return next(s for s in checked.slots if s.name == name)


def reachable(semantics: Semantics, limit: int = 3_000) -> list[Any]:
    states = semantics.initial_states()
    seen = {key(state) for state in states}
    for state in states:
        for move in semantics.moves(state):
            if move.beyond is None and key(move.after) not in seen and len(states) < limit:
                seen.add(key(move.after))
                states.append(move.after)
    return states


EVERY_FAULT = dict.fromkeys(("kubelet_crash", "plugin_crash", "rpc_failed", "rpc_lost", "rpc_timeout", "node_reboot", "device_vanishes"), 1)
WIDE = Semantics(model(instance({"p1": ["c1", "t:a"]}, {"c1": ["gpu", "nic"], "t:a": ["gpu"]}, 2, force_delete_pod=1, **EVERY_FAULT)))


@functools.cache
def domains() -> list[list[Any]]:
    """For each slot the values that it has on some random runs."""
    chance, states = random.Random(1), []
    for _ in range(25):
        state: Any = WIDE.initial_states()[0]
        for _ in range(60):
            state = one_step(state, chance) or state
            states.append(state)
    return [list({key(s[i]): s[i] for s in states}.values()) for i in range(len(WIDE.model.slots))]


def one_step(state: Any, chance: random.Random) -> Any:
    """A successor by an action that is enabled; faults are tried last, most of the time."""
    order = chance.sample(list(WIDE.model.actions), len(WIDE.model.actions))
    if chance.random() < 0.95:
        order.sort(key=lambda a: a.type.kind in (Kind.FAULT, Kind.USER))
    for act in order:
        outcomes = [o for o in WIDE.observe(act, state).outcomes if o.beyond is None]
        if outcomes:
            return WIDE.apply(act, chance.choice(outcomes), state)
    return None


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_actions_are_total(data: st.DataObject) -> None:
    """Any combination of slot values, most of them never reached together: outcomes or nothing, never an exception."""
    state = tuple(data.draw(st.sampled_from(domain)) for domain in domains())
    for action in WIDE.model.actions:
        for outcome in WIDE.observe(action, state).outcomes:
            assert outcome.beyond is not None or len(WIDE.apply(action, outcome, state)) == len(state)


def test_both_engines_see_the_same_model() -> None:
    checked = model(instance(**ONE, delete_pod=1, kubelet_crash=1))
    fast, slow = explore(checked), explore(checked, engine="plain")
    assert (fast.states, fast.transitions, fast.depth) == (slow.states, slow.transitions, slow.depth)
    assert [(p.promise, p.verdict) for p in fast.properties] == [(p.promise, p.verdict) for p in slow.properties]
