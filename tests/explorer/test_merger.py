"""The merged forest says what the trees say, however its rows are arranged and however little it may remember."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from benchmarks.toy import CONFIGS, toy
from dra_spec.explorer import Limits, explicit, explore, merger
from dra_spec.explorer import arrays as k
from dra_spec.explorer.control import Control
from dra_spec.explorer.explicit import ExplicitSearch
from dra_spec.explorer.growing import Ints
from dra_spec.explorer.model import Action, DeadlockFree, Model, Outcome, Slot, Truth, View, action
from dra_spec.explorer.scout import Walker


def searched(name: str) -> ExplicitSearch:
    search = ExplicitSearch(toy(name), Control(Limits()))
    search.run()
    return search


def pending(merged: k.Merged, what_is_seen: Ints, row: list[int]) -> Iterator[tuple[int, int]]:
    """The action and the leaf (or -1 - cell) of each entry that a row comes to, as the kernel goes."""
    entries, nodes = merged.entries.reshape(-1, 2), merged.nodes.reshape(-1, k.NODE)
    ranges = [(int(merged.first[0]), int(merged.first[1]))]
    for word, shift, mask, base, begin, end in merged.chunks.reshape(-1, k.CHUNK):
        at = int(base) + 2 * (row[word] >> int(shift) & int(mask))
        remembered = int(merged.memo[at]), int(merged.memo[at + 1])
        ranges.append(remembered if remembered[1] else (int(begin), int(end)))
    while ranges:
        for a, what in entries[slice(*ranges.pop())]:
            if a >= 0:
                yield int(a), int(what)
                continue
            word, shift, mask, seen_base, first, capacity, _, _ = (int(n) for n in nodes[what])
            seen = int(what_is_seen[seen_base + (row[word] >> shift & mask)])
            place = first + (seen if seen >= 0 else capacity)
            ranges.append((int(merged.first[place]), int(merged.first[place + 1])))


@pytest.mark.parametrize("name", ["g", "c"])
def test_it_leads_to_the_leaves_of_the_trees(name: str) -> None:
    machine = searched(name).machine
    walker = Walker(machine.trees)
    layout = machine.store.layout
    merged = machine._merger.forest(layout.arrays, layout.chunks)
    tell = np.random.default_rng(0)
    for number in tell.integers(0, machine.states, 300):
        numbers = machine.store.numbers(int(number))
        found = dict(pending(merged, machine.trees.seen.data, [int(word) for word in machine.store.rows[number]]))
        for a in range(len(machine.model.actions)):
            code = walker.path(a, numbers)[1]
            if walker.leaf(code):
                assert found.pop(a) in (k.LEAF - code, *range(-1 - machine.trees.child.used, 0))
        assert all(what < 0 for what in found.values()), "an action that is not enabled has an entry that leads to a leaf"


@pytest.mark.parametrize("name", ["g", "c"])
def test_what_does_not_fit_is_forgotten_and_worked_out_again(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setattr(merger, "_POOL", 0)
    result = explore(toy(name))
    assert (result.states, result.transitions, result.depth + 1) == (CONFIGS[name].states, CONFIGS[name].transitions, CONFIGS[name].depth)
    search = searched(name)
    layout = search.machine.store.layout
    merged = search.machine._merger.forest(layout.arrays, layout.chunks)
    assert merged.entries.size < 1 << 16, "the room was small enough to be used up"


@pytest.mark.parametrize("states", [1, 100])
def test_the_rows_may_be_arranged_at_any_time(monkeypatch: pytest.MonkeyPatch, states: int) -> None:
    monkeypatch.setattr(explicit, "_ARRANGED", states)
    search = searched("g")
    assert search.machine.store.groups is not None
    assert search.machine.states == CONFIGS["g"].states
    assert int(search.machine.work.taken.sum()) == CONFIGS["g"].transitions


MOST = 17_000  # more than a chunk may have
COUNTER: Slot[int] = Slot("counter", 0, "room")
FLAG: Slot[bool] = Slot("flag", False, "room")


@action("count", writer="w")
def count(v: View, context: None) -> Iterator[Outcome]:
    n = v.value(COUNTER)
    if n < MOST and not v.value(FLAG):
        outcome = v.outcome()
        outcome[COUNTER] = n + 1
        outcome[FLAG] = n % 5 == 0
        yield outcome


@action("lower", writer="w")
def lower(v: View, context: None) -> Iterator[Outcome]:
    if v.value(FLAG):
        outcome = v.outcome()
        outcome[FLAG] = False
        yield outcome


def test_a_slot_may_be_wider_than_a_chunk() -> None:
    rooms = frozenset({"room"})
    ends = DeadlockFree("ends", lambda v: Truth.TRUE if v.value(COUNTER) == MOST else Truth.FALSE)
    result = explore(Model("wide", [COUNTER, FLAG], [Action(count, {}, rooms), Action(lower, {}, rooms)], [ends]))
    assert result.verdict == "holds"
    assert result.states == MOST + 1 + MOST // 5
    assert result.stuck == 1
