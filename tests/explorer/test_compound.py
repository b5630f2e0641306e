"""Footprints of models whose slots hold compound values: every reachable value is covered, and what rests on them says what a full
search says."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import attrs
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from loose_models import same_verdicts
from queue_models import Item, Pair, Tag, queues

from dra_spec.explorer import EngineError, Limits, explore, known_values
from dra_spec.explorer.audit_independence import audit, walked
from dra_spec.explorer.completion import Run, TooWide
from dra_spec.explorer.compound import Counted, Hole, Number, Some, Unfit, Unseen, filled
from dra_spec.explorer.footprints import Footprints, footprints
from dra_spec.explorer.independence import Independence
from dra_spec.explorer.known_values import Choices, Values
from dra_spec.explorer.model import Action, Model, Outcome, Slot, View, action
from dra_spec.explorer.reductions import Reductions
from dra_spec.explorer.semantics import Semantics, State
from dra_spec.explorer.values import Version, key
from dra_spec.protocol import watch
from dra_spec.scenario.modelfile import Overrides
from dra_spec.scenario.targets import scenarios

SEEDS = st.integers(0, 10**9)
MOST = 600


def states(model: Model, most: int) -> list[State]:
    """The first reachable states of a model, by its plain semantics."""
    semantics = Semantics(model)
    found = {key(state): state for state in semantics.initial_states()}
    todo = list(found.values())
    while todo and len(found) < most:
        for move in semantics.moves(todo.pop(0)):
            if move.beyond is None and key(move.after) not in found:
                found[key(move.after)] = move.after
                todo.append(move.after)
    return list(found.values())


def uncovered(known: Footprints, reached: list[State]) -> list[str]:
    """What is not among the known values of a slot."""
    wide = known.values.wide
    return [
        f"{slot}: {value!r}"
        for state in reached
        for number, (slot, value) in enumerate(zip(known.model.slots, state, strict=True))
        if number not in wide and known.values.number(number, value) < 0
    ]


def check(seed: int) -> None:
    model = queues(seed)
    known = Footprints(model)
    reached = states(model, MOST)
    assert not uncovered(known, reached)
    audit(Independence(known), reached)


def check_reductions(seed: int) -> None:
    for reduce in ("por", "merge", "cone", "por=stuck"):
        model = queues(seed, runs=reduce in ("merge", "cone"))
        full = explore(model, Limits(max_states=3_000, expand_violating=True))
        if full.stopped == "max-states":
            return
        reduced = explore(model, Limits(expand_violating=True), reductions=Reductions.parse(reduce))
        if reduce == "por=stuck":
            assert reduced.stuck == full.stuck
        else:
            same_verdicts(full, reduced, lengths=reduce != "merge")


@given(seed=SEEDS)
@settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))
def test_reachable_values_are_known_and_footprints_hold(seed: int) -> None:
    check(seed)


@given(seed=SEEDS)
@settings(max_examples=8, deadline=None, suppress_health_check=list(HealthCheck))
def test_reductions_say_what_a_full_search_says(seed: int) -> None:
    check_reductions(seed)


@pytest.mark.nightly
@given(seed=SEEDS)
@settings(max_examples=1_000, deadline=None, suppress_health_check=list(HealthCheck))
def test_many_models_with_queues(seed: int) -> None:
    check(seed)
    check_reductions(seed)


# test doubles: what is not sound is found out


def caught() -> bool:
    for seed in range(12):
        try:
            check(seed)
        except (AssertionError, EngineError, StopIteration):
            return True
    return False


def test_values_that_do_not_flow_on_are_missed(monkeypatch: pytest.MonkeyPatch) -> None:
    def only_the_first(self: Values, edge: Any) -> bool:
        begun, edge.done = edge.done, 1
        return begun == 0 and self.add(edge.target, self.values[edge.source][0]) >= 0

    monkeypatch.setattr(Values, "_along", only_the_first)
    assert caught()


def test_objects_whose_versions_move_and_are_taken_to_stand_still_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Values, "moved", lambda self, of: None)
    assert caught()


# holes


def split() -> tuple[Values, int]:
    """One slot with queues of up to two items, kept as skeletons, and the number of the part for their items."""
    slot: Slot[tuple[Item, ...]] = Slot("queue", (), "room")
    choices = Choices(split={(tuple, True)}, moving={"rv"})
    values = Values([slot], choices)
    for tag, mark in (("a", False), ("b", False), ("b", True)):
        item = Item(Version("rv", 0), Version("uid", 0), tag, mark)
        values.add(0, ())
        values.add(0, (item,))
        values.add(0, (item, item))
    return values, 1


def test_queues_are_kept_as_lengths_and_items() -> None:
    values, part = split()
    assert values.values[0] == [(), (Some(part),), (Some(part), Some(part))]
    assert len(values.values[part]) == 3
    mixed = (Item(Version("rv", 4), Version("uid", 0), "b", True), Item(Version("rv", 9), Version("uid", 0), "a"))
    assert values.number(0, mixed) == 2
    assert values.number(0, (attrs.evolve(mixed[0], tag="c"),)) == -1
    assert values.number(0, (*mixed, mixed[0])) == -1


def hole() -> tuple[Run, Hole]:
    values, part = split()
    run = Run(values, (), [])
    return run, Hole(part, "here", run)


def test_a_hole_costs_nothing_until_somebody_looks() -> None:
    run, item = hole()
    assert not run.path
    assert item.mark is False
    assert len(run.path) == 1
    assert item.mark is False
    assert len(run.path) == 1
    assert len(run.path[0][0].all_options(run.values)) == 2


@pytest.mark.parametrize(
    ("look", "answer"),
    [
        (lambda item: isinstance(item, Item), True),
        (lambda item: isinstance(item, Pair), False),
        (bool, True),
        (lambda item: item == attrs.evolve(filled(item), tag="z"), False),
        (lambda item: item != "a text", True),
        (lambda item: hash(item) == hash(filled(item)), True),
        (lambda item: item in {item}, True),
        (lambda item: attrs.evolve(item, tag="z").tag, "z"),
        (lambda item: f"{item}" == str(filled(item)) == repr(item), True),
        (lambda item: hasattr(item, "nothing"), False),
    ],
)
def test_looks_at_a_hole_are_those_at_what_it_stands_for(look: object, answer: object) -> None:
    run, item = hole()
    assert callable(look)
    assert look(item) == answer
    assert run.path


def test_nobody_looks_where_there_is_no_run() -> None:
    for look in (bool, hash, str, len, iter, lambda x: x.tag, lambda x: x == 1, lambda x: x < 1, lambda x: isinstance(x, Item)):
        with pytest.raises(Unseen):
            look(Hole(1, "here", None))  # type: ignore[operator]
    for look in (bool, repr, lambda x: x == 1, lambda x: x < 1, lambda x: x >= 1):
        with pytest.raises(Unseen):
            look(Number("here", None))


def test_a_hole_that_outlives_its_run_is_refused() -> None:
    run, item = hole()
    assert item.tag == "a"
    run.end(None)
    with pytest.raises(TooWide, match="from one run to the next"):
        _ = item.mark


def test_any_number_is_counted_but_not_listed() -> None:
    values, _ = split()
    run = Run(values, (), [])
    number = Number("here", run)
    assert type(number + 1) is type(number - 1) is type(1 + number) is Number
    assert number == number
    assert (number > 3) is not (number <= 3)
    for look in (hash, repr):
        with pytest.raises(Unfit, match="counts without end"):
            look(number)
    with pytest.raises(TypeError):
        range(number)  # type: ignore[call-overload]


# models


@action("keeper.more", writer="keeper")
def more(v: View, slot: Slot[tuple[Tag, ...]]) -> Iterator[Outcome]:
    """A tuple that gets longer for ever."""
    out = v.outcome()
    out[slot] = (*v.value(slot), Tag("x"))
    yield out


def test_a_tuple_that_grows_for_ever_is_too_wide(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(known_values, "MOST_VALUES", 40)
    slot: Slot[tuple[Tag, ...]] = Slot("tags", (), "room")
    found = footprints(Model("keeper", [slot], [Action(more, {}, frozenset({"room"}), slot)]))
    assert not found.actions[0].exact
    assert "it may have more than" in found.cause


@pytest.mark.parametrize(
    "name", ["two-schedulers", "single-pod", *(pytest.param(n, marks=pytest.mark.full) for n in ("h1", "recreated-claim", "touched-claim"))]
)
def test_shipped_models_stay_within_what_is_known(name: str) -> None:
    """What walks meet is known, and touches no slot outside of the footprints; whatever is said to accord does."""
    (scenario,) = scenarios([name], Overrides())
    known = footprints(scenario.model)
    assert all(footprint.exact for footprint in known.actions)
    reached = walked(scenario.model, 100)
    assert not uncovered(known, reached)
    audit(Independence(known), reached)


def test_a_channel_is_never_full_when_something_is_pushed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A push to a full channel does nothing, so that it is total; as writes wait for room, no state has it."""
    tried = []

    def full(order: tuple[str, ...], lag: int) -> bool:
        return len(order) >= lag

    def pushed(p: object, channel: watch.Channel, name: str) -> None:
        assert isinstance(p, View)
        tried.append(p.project(channel.order, full, channel.lag))
        original(p, channel, name)  # type: ignore[arg-type]

    original = watch._push_order
    monkeypatch.setattr(watch, "_push_order", pushed)
    (scenario,) = scenarios(["two-schedulers"], Overrides())
    assert explore(scenario.model, Limits(expand_violating=True)).complete
    assert tried
    assert not any(tried)


def test_marks_are_not_values() -> None:
    """A mark in a skeleton is no value that a model could have."""
    assert key(Some(1)) != key(1)
    assert key(Counted()) != key(Counted)
