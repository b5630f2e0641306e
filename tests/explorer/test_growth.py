"""What happens when room runs out: every array of the explicit engine grows, and no count changes."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_models import Maker, agree

from benchmarks import toy
from dra_spec.explorer import Limits, ModelError, explicit, explore, kernels_base, machine
from dra_spec.explorer.model import Action, ActionType, Model, Outcome, PartView, Slot, StateInvariant, Truth, View
from dra_spec.explorer.rows import Store
from dra_spec.explorer.values import Version


def act(name: str, fn: Any, **params: Any) -> Action:
    return Action(ActionType(name, fn, "writer"), params, frozenset({"room"}))


@pytest.fixture
def cramped(monkeypatch: pytest.MonkeyPatch) -> None:
    """All first sizes as small as they may be."""
    monkeypatch.setattr(machine, "_BUFFER", 2)
    monkeypatch.setattr(machine, "_RETRIES", 160)
    monkeypatch.setattr(machine, "_REQUESTS", 2)
    monkeypatch.setattr(machine, "_NAMES", 4)
    monkeypatch.setattr(explicit, "_CHUNK", 3)


@pytest.mark.usefixtures("cramped")
def test_toy_in_a_cramped_engine() -> None:
    config = toy.CONFIGS["g"]
    result = explore(toy.toy("g"))
    assert (result.states, result.transitions, result.depth + 1) == (config.states, config.transitions, config.depth)


@pytest.mark.usefixtures("cramped")
@pytest.mark.parametrize("seed", range(40))
def test_random_models_in_a_cramped_engine(seed: int) -> None:
    model = Maker(seed, versions=seed % 2 == 0, beyond=seed % 5 == 0).model()
    limits = Limits(depth=6, expand_violating=seed % 3 == 0)
    agree(explore(model, limits, "plain"), explore(model, limits))


def test_fields_widen_while_successors_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    """The list of retries is full, and what is learned then widens the fields: no successor may wait in the old layout."""
    monkeypatch.setattr(machine, "_RETRIES", 40)
    slots = [Slot(f"s{i}", 0, "room") for i in range(3)]

    def step(v: View, context: None, index: int) -> Iterator[Outcome]:
        if v.value(slots[index]) < 7:
            outcome = v.outcome("ok")
            outcome[slots[index]] = v.value(slots[index]) + 1
            yield outcome

    def name(v: View, context: None) -> Iterator[Outcome]:
        digits = [v.value(slot) for slot in slots]
        if sum(digits) > 4 and digits[0] < 100:
            outcome = v.outcome("ok")
            outcome[slots[0]] = 100 + 64 * digits[0] + 8 * digits[1] + digits[2]
            yield outcome

    model = Model("m", slots, [*(act(f"step{i}", step, index=i) for i in range(3)), act("name", name)])
    agree(explore(model, engine="plain"), explore(model))


def test_many_names_of_versions() -> None:
    """A queue of versions: many masks of live ones, so that the rename table grows several times."""
    api = Slot("api", Version("x", 0), "room")
    copies = [Slot(f"copy{i}", Version("x", 0), "room") for i in range(6)]

    def write(v: View, context: None) -> Iterator[Outcome]:
        outcome = v.outcome("ok")
        outcome[api] = v.value(api).next()
        yield outcome

    def read(v: View, context: None, index: int) -> Iterator[Outcome]:
        outcome = v.outcome("ok")
        outcome[copies[index]] = v.value(api)
        yield outcome

    model = Model("m", [api, *copies], [act("write", write), *(act(f"read{i}", read, index=i) for i in range(6))])
    result = explore(model)
    assert result.complete
    # each state is a weak order of seven copies in which `api` is among the newest: ordered partitions of 6 into
    # blocks, the newest block with or without copies of its own
    fubini = [1, 1, 3, 13, 75, 541, 4683]
    assert result.states == 2 * fubini[6]


def test_many_trees() -> None:
    """More actions, parts and promises than the first sizes have room for."""
    done = [Slot(f"done{i}", False, "room") for i in range(345)]

    def mark(p: PartView, i: int) -> None:
        p.write(done[i], True)

    def step(v: View, context: None, index: int) -> Iterator[Outcome]:
        if not v.value(done[index]) and (index == 0 or v.value(done[index - 1])):
            yield v.outcome("ok").part(mark, index)

    def in_order(v: View, i: int) -> Truth:
        return Truth(2 * (v.value(done[i - 1]) or not v.value(done[i])))

    promises = [StateInvariant("in-order", partial(in_order, i=i), {"i": str(i)}) for i in range(1, 345)]
    result = explore(Model("m", done, [act(f"step{i}", step, index=i) for i in range(345)], promises))
    assert (result.states, result.transitions, result.depth) == (346, 345, 345)
    assert result.verdict == "holds"


def test_wide_actions() -> None:
    """An outcome for each of 3,000 values: buffer, domain and children of the root grow far beyond their first sizes."""
    n = Slot("n", 0, "room")

    def jump(v: View, context: None) -> Iterator[Outcome]:
        if v.value(n) % 2 == 0:
            for to in range(v.value(n), v.value(n) + 3000 if v.value(n) == 0 else v.value(n) + 2):
                outcome = v.outcome(str(to))
                outcome[n] = to
                yield outcome

    result = explore(Model("m", [n], [act("jump", jump)]))
    assert result.states == 3000
    assert result.transitions == 3000 + 2 * 1499
    assert result.stuck == 1500
    assert result.depth == 1


def test_too_many_outcomes() -> None:
    n = Slot("n", 0, "room")

    def jump(v: View, context: None) -> Iterator[Outcome]:
        for to in range(5000):
            outcome = v.outcome(str(to))
            outcome[n] = to
            yield outcome

    with pytest.raises(ModelError, match=r"jump\(\): 5000 outcomes in one state; 4096 are possible"):
        explore(Model("m", [n], [act("jump", jump)]))


def test_rows_of_several_words() -> None:
    """Forty slots of four values are 80 bits; a token that goes round turns each a little further."""
    slots = [Slot(f"s{i}", 0, "room") for i in range(40)]
    token = Slot("token", 0, "room")

    def turn(v: View, context: None, index: int) -> Iterator[Outcome]:
        if v.value(token) == index:
            outcome = v.outcome("ok")
            outcome[slots[index]] = (v.value(slots[index]) + 1) % 4
            outcome[token] = (index + 1) % 40
            yield outcome

    first = StateInvariant("first", lambda v: Truth(2 * (v.value(slots[39]) < 3)))
    model = Model("m", [*slots, token], [act(f"turn{i}", turn, index=i) for i in range(40)], [first])
    result = explore(model, Limits(expand_violating=True))
    assert result.states == 160
    assert result.transitions == 160
    found = result.property("first").trace
    assert found is not None
    assert len(found) == 120
    assert explore(model, Limits(expand_violating=True), "plain").states == 160


@given(st.lists(st.integers(1, 5000), min_size=1, max_size=60), st.data())
@settings(max_examples=60, deadline=None)
def test_rows_keep_their_values_in_every_layout(sizes: list[int], data: st.DataObject) -> None:
    numbers = np.array([data.draw(st.integers(0, size - 1)) for size in sizes], np.int32)
    store = Store(np.array(sizes, np.int64), False, 4, lambda extra: True)
    assert store.layout.fits(np.array(sizes, np.int64))
    store.rows[0] = store.pack(numbers)
    assert list(store.numbers(0)) == list(numbers)
    larger = np.array(sizes, np.int64) * data.draw(st.integers(1, 9))
    assert store.repack(larger, 1)
    assert store.layout.fits(larger)
    assert list(store.numbers(0)) == list(numbers)
    assert list(store.rows[0]) == list(store.pack(numbers))
    at = int(kernels_base.hash_of(store.rows[0])) & (len(store.table) - 1)
    assert int(store.table[at]) & 0xFFFFFFFF == 1
