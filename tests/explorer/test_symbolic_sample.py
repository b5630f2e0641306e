"""The look ahead of the symbolic engine, and the order of variables that it makes of the states seen there."""

from __future__ import annotations

from itertools import product

import attrs
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from random_models import Maker, agree

from benchmarks import toy
from dra_spec.explorer import Limits, ModelError, explore, symbolic
from dra_spec.explorer.control import Control
from dra_spec.explorer.model import Action, ActionType, Model, Outcome, Slot
from dra_spec.explorer.result import Stopped
from dra_spec.explorer.symbolic_sample import ahead
from dra_spec.explorer.symbolic_sift import Rests, sifted


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(symbolic, "NODES", 1 << 21)
    monkeypatch.setattr(symbolic, "CACHE", 1 << 17)


@pytest.mark.parametrize("versions", [False, True])
@given(
    seed=st.integers(0, 10**9),
    beyond=st.booleans(),
    expand=st.booleans(),
    depth=st.one_of(st.none(), st.integers(0, 8)),
    most=st.sampled_from([1, 5, 10_000]),
)
@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
def test_a_look_ahead_changes_nothing(versions: bool, seed: int, beyond: bool, expand: bool, depth: int | None, most: int) -> None:
    """Trees and an order from a sample of the states, be it one state or all of them; each model is large enough here."""
    model = Maker(seed, versions, beyond).model()
    plain = explore(model, Limits(depth=depth, expand_violating=expand, max_states=3000), "plain")
    if plain.stopped == "max-states":
        return
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(symbolic, "LARGE", 0)
        patch.setattr(symbolic, "SAMPLE", most)
        result = explore(model, Limits(depth=depth, expand_violating=expand), "symbolic")
    agree(plain, attrs.evolve(result, depth=plain.depth) if result.depth == symbolic.UNKNOWN_DEPTH else result)


def test_the_first_states_are_seen_and_learned() -> None:
    model = toy.toy("g")
    lesson = ahead(model, Control(Limits()), 300)
    assert 300 <= len(lesson.rows) < 3000
    assert len(np.unique(lesson.rows, axis=0)) == len(lesson.rows)
    assert lesson.trees.learned > 100
    everything = ahead(model, Control(Limits()), 10**6)
    assert len(everything.rows) == toy.CONFIGS["g"].states


def test_a_limit_of_the_search_ends_the_look_ahead() -> None:
    with pytest.raises(Stopped, match="time"):
        ahead(toy.toy("g"), Control(Limits(time_limit=1e-9)), 300)


def test_an_error_in_the_model_is_one_in_the_look_ahead(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(symbolic, "LARGE", 0)
    slot = Slot("n", 0, "room")

    def wrong(v: object, context: None) -> list[Outcome]:
        raise ModelError("not total")

    with pytest.raises(ModelError, match="not total"):
        explore(Model("m", [slot], [Action(ActionType("wrong", wrong, "writer"), {}, frozenset({"room"}))]), engine="symbolic")


@given(seed=st.integers(0, 10**9), slots=st.integers(1, 6), values=st.integers(1, 4))
@settings(max_examples=40, deadline=None)
def test_rests_are_counted(seed: int, slots: int, values: int) -> None:
    """As many nodes per slot as there are different sets of what may follow behind the slots in front."""
    dice = np.random.default_rng(seed)
    rows = np.unique(dice.integers(0, values, (int(dice.integers(1, 60)), slots), np.int32), axis=0)
    order = [int(slot) for slot in dice.permutation(slots)]
    nodes = 0
    for place in range(slots):
        ahead_of: dict[tuple[int, ...], set[tuple[int, ...]]] = {}
        for row in rows.tolist():
            ahead_of.setdefault(tuple(row[s] for s in order[:place]), set()).add(tuple(row[s] for s in order[place:]))
        nodes += len({frozenset(rest) for rest in ahead_of.values()})
    rests = Rests(rows)
    assert rests.total(order) == nodes
    slot, others = order[0], order[1:]
    place, cost = rests.best_place(slot, others)
    assert cost == min(Rests(rows).total([*others[:i], slot, *others[i:]]) for i in range(slots))
    assert cost == rests.total([*others[:place], slot, *others[place:]])


def test_slots_that_depend_on_each_other_come_together() -> None:
    """Six pairs of equal slots, all first ones before all second ones: 2^6 nodes in the middle, and 3 per pair when sorted out."""
    rows = np.array([[*half, *half, 0] for half in product(range(2), repeat=6)], np.int32)
    start = list(range(13))
    order = sifted(rows, start)
    assert sorted(order) == start
    assert order[-1] == 12  # never varies
    assert Rests(rows).total(order) <= 6 * 3 + 1 < Rests(rows).total(start)
    assert sifted(rows, start) == order
