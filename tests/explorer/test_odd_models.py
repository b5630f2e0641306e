"""Models that are unlike others: outcomes that differ in their labels only, and models without actions."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest

from dra_spec.explorer import EngineError, Limits, explore
from dra_spec.explorer.audit_independence import audit
from dra_spec.explorer.footprints import footprints
from dra_spec.explorer.independence import Independence
from dra_spec.explorer.model import (
    Action,
    ActionType,
    AlwaysPossible,
    DeadlockFree,
    LeadsTo,
    LiveWhen,
    Model,
    Outcome,
    Property,
    Slot,
    StateInvariant,
    StepInvariant,
    Truth,
    View,
)
from dra_spec.explorer.reductions import Reductions

ROOM = frozenset({"room"})


def labelled(wrong: str) -> Model:
    """One action decides by the label of the other what that one is called, and nothing else. No step may be called `wrong`."""
    gate, target = Slot("gate", False, "room"), Slot("target", False, "room")

    def close(v: View, context: Any) -> Iterator[Outcome]:
        """Shuts the gate."""
        if not v.value(gate):
            outcome = v.outcome()
            outcome[gate] = True
            yield outcome

    def hit(v: View, context: Any) -> Iterator[Outcome]:
        """Does the same with the gate open and shut, under another label."""
        if not v.value(target):
            outcome = v.outcome("shut" if v.value(gate) else "open")
            outcome[target] = True
            yield outcome

    actions = [Action(ActionType(fn.__name__, fn, "writer"), {}, ROOM) for fn in (close, hit)]
    called = StepInvariant("called", lambda act: act.name == "hit", lambda before, after, act, label: Truth(2 * (label != wrong)))
    return Model("labelled", [gate, target], actions, [called])


@pytest.mark.parametrize("wrong", ["open", "shut"])
@pytest.mark.parametrize("reduce", ["por", "merge", "merge,por", "por=stuck", "cone,merge,por"])
def test_a_label_that_hangs_on_another_step_counts(wrong: str, reduce: str) -> None:
    """Two steps do not accord if their order decides under which label one of them is taken: a promise about steps sees it."""
    assert explore(labelled(wrong), reductions=Reductions.parse(reduce)).verdict == "violated"


def test_the_audit_compares_labels() -> None:
    relations = Independence(footprints(labelled("shut")))
    assert relations.in_the_way == [frozenset({1}), frozenset({0})]
    relations.in_the_way = [frozenset(), frozenset()]
    state = tuple(slot.initial for slot in relations.model.slots)
    with pytest.raises(EngineError, match="one prevents or changes the other"):
        audit(relations, [state])


def _never(view: View, slot: Slot[int]) -> Truth:
    return Truth(2 * (view.value(slot) > 1))


@pytest.mark.parametrize("engine", ["plain", "explicit", "symbolic"])
def test_a_model_without_actions(engine: str) -> None:
    """Its runs end where they begin, several initial states included; each engine says so of all promises about runs."""
    slot = Slot("only", 0, "room")
    goal = partial(_never, slot=slot)
    runs: list[Property] = [
        LeadsTo("leads", lambda view: Truth.TRUE, goal, lambda act: True),
        AlwaysPossible("possible", goal, lambda act: True),
        DeadlockFree("stuck", goal),
    ]
    found = explore(Model("still", [slot], [], runs, [{}, {slot: 2}]), engine=engine)
    assert {p.promise: (p.verdict, -1 if p.trace is None else len(p.trace)) for p in found.properties} == {
        "leads": ("violated", 0),
        "possible": ("violated", 0),
        "stuck": ("violated", 0),
    }
    assert (found.states, found.stuck, found.transitions) == (2, 2, 0)


def two_parts() -> Model:
    """Two counters that have nothing to do with each other. Of the promises about the first one breaks, and one holds also behind that."""
    counters = [Slot(name, 0, "room") for name in ("one", "two")]

    def count(v: View, context: Any, number: int) -> Iterator[Outcome]:
        """Up to 3."""
        if v.value(counters[number]) < 3:
            outcome = v.outcome()
            outcome[counters[number]] = v.value(counters[number]) + 1
            yield outcome

    kind = ActionType("count", count, "writer")
    promises: list[Property] = [
        StateInvariant("not-two", lambda view: Truth(2 * (view.value(counters[0]) != 2))),
        StateInvariant("at-most-three", lambda view: Truth(2 * (view.value(counters[0]) <= 3))),
        StateInvariant("not-three", lambda view: Truth(2 * (view.value(counters[1]) != 3))),
        AlwaysPossible("three", lambda view: Truth(2 * (view.value(counters[1]) == 3)), lambda act: True),
    ]
    return Model("two parts", counters, [Action(kind, {"number": n}, ROOM) for n in (0, 1)], promises)


def test_a_sub_model_looks_behind_violations_as_the_model_does() -> None:
    """The promise that asks for it is not in each part."""
    full = explore(two_parts())
    parts = explore(two_parts(), reductions=Reductions.parse("cone"))
    verdicts = {"not-two": "violated", "at-most-three": "holds", "not-three": "violated", "three": "holds"}
    assert {p.promise: p.verdict for p in full.properties} == verdicts
    assert {p.promise: p.verdict for p in parts.properties} == verdicts
    assert [report.applied for report in parts.reductions] == [True]


@pytest.mark.parametrize("engine", ["plain", "explicit"])
@pytest.mark.parametrize("most", [1, 4, 5, 7, 8])
def test_a_limit_on_states_is_for_all_parts(engine: str, most: int) -> None:
    """It is what the run may store. A part that was searched before the limit was met is decided; for another one nothing may be left."""
    parts = explore(two_parts(), Limits(max_states=most), engine, reductions=Reductions.parse("cone"))
    assert parts.states == most
    assert parts.stopped == (None if most == 8 else "max-states")
    verdicts = [{p.verdict for p in parts.properties if p.promise in names} for names in (("not-two", "at-most-three"), ("three",))]
    assert any("undecided" in each for each in verdicts) == (most < 8)
    assert all("undecided" in each for each in verdicts) == (most < 4)


def test_an_interrupt_ends_the_search_of_all_parts() -> None:
    """One answer of `interrupted` is enough: nobody presses Ctrl-C once for each part."""
    model = two_parts()
    model = Model(model.name, model.slots, model.actions, model.properties[:3])
    asked: list[bool] = []

    def once() -> bool:
        asked.append(True)
        return len(asked) == 1

    found = explore(model, interrupted=once, reductions=Reductions.parse("cone"))
    assert found.stopped == "interrupted"
    assert {p.verdict for p in found.properties} == {"undecided"}


STEPS = 300  # more than the look ahead of a reduction takes


def late_reader() -> Model:
    """Counts to STEPS, and then reads a note of the first step, which a wrong declaration says is needed for four steps only."""
    count, note, read, other = Slot("count", 0, "room"), Slot("note", 0, "room"), Slot("read", False, "room"), Slot("other", 0, "room")

    def step(v: View, context: Any) -> Iterator[Outcome]:
        """Counts."""
        if v.value(count) < STEPS:
            outcome = v.outcome()
            outcome[count] = v.value(count) + 1
            if v.value(count) == 0:
                outcome[note] = 1
            yield outcome

    def use(v: View, context: Any) -> Iterator[Outcome]:
        """Reads the note at the end."""
        if v.value(count) == STEPS and v.value(note) == 1 and not v.value(read):
            outcome = v.outcome()
            outcome[read] = True
            yield outcome

    def tick(v: View, context: Any) -> Iterator[Outcome]:
        """Has nothing to do with it, and is not allowed on the way to the goal."""
        if v.value(other) < 3:
            outcome = v.outcome()
            outcome[other] = v.value(other) + 1
            yield outcome

    actions = [Action(ActionType(fn.__name__, fn, "writer"), {}, ROOM) for fn in (step, use, tick)]
    goal = AlwaysPossible("read", lambda view: Truth(2 * view.value(read)), lambda act: act.name != "tick")
    live = [LiveWhen([note], lambda view: view.value(count) < 5)]
    return Model("late reader", [count, note, read, other], actions, [goal], live=live)


def test_a_search_that_was_stopped_checks_its_reductions_too() -> None:
    """A goal that seems out of reach because a declaration of dead values is wrong, and a depth that ends the search before its end."""
    limits = Limits(depth=STEPS + 2)
    assert explore(late_reader(), limits).verdict == "undecided"
    reduced = explore(late_reader(), limits, reductions=Reductions.parse("dead"))
    assert reduced.verdict == "undecided"
    assert not reduced.reductions[0].applied
    assert "use() looks at note" in reduced.reductions[0].reason
