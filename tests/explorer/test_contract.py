"""What the text of a model must keep to, and what values of the same look are not the same: each is told, or kept apart."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import attrs
import pytest

from dra_spec.explorer import EngineError, Limits, explore
from dra_spec.explorer.footprints import footprints
from dra_spec.explorer.intern import function_key
from dra_spec.explorer.model import (
    Action,
    ActionType,
    LiveWhen,
    Model,
    ModelError,
    Outcome,
    PartView,
    Property,
    Slot,
    StateInvariant,
    Truth,
    View,
)
from dra_spec.explorer.reductions import Reductions
from dra_spec.explorer.values import Version, identity, key, rename

ROOM = frozenset({"room"})
ENGINES = ("plain", "explicit", "symbolic")
Writes = Callable[[View], Sequence[tuple[Slot[Any], Any]] | None]


def act(name: str, writes: Writes) -> Action:
    """An action with one outcome; none where `writes` gives None."""

    def function(v: View, context: None) -> Iterator[Outcome]:
        """Writes."""
        found = writes(v)
        if found is not None:
            outcome = v.outcome()
            for slot, value in found:
                outcome[slot] = value
            yield outcome

    return Action(ActionType(name, function, "writer"), {}, ROOM)


def never(slot: Slot[Any], value: object) -> StateInvariant:
    return StateInvariant("never", lambda view: Truth(2 * (view.value(slot) != value)))


# versions


def stale(by_part: bool = False) -> Model:
    """A cache that counts up by itself, also where the object has got newer."""
    api, cache, steps = Slot("api", Version("x", 0), "room"), Slot("cache", Version("x", 0), "room"), Slot("steps", 0, "room")

    def count(v: View) -> int:
        return v.value(steps) + 1

    def renew(v: View) -> Sequence[tuple[Slot[Any], Any]] | None:
        return [(api, v.value(api).next()), (steps, count(v))] if v.value(steps) < 2 and v.value(api) >= v.value(cache) else None

    def guess(p: PartView) -> None:
        p.write(cache, p.value(cache).next())

    def spoil(v: View, context: None) -> Iterator[Outcome]:
        if v.value(steps) < 2:
            outcome = v.outcome()
            if by_part:
                outcome.part(guess)
            else:
                outcome[cache] = v.value(cache).next()
            outcome[steps] = count(v)
            yield outcome

    actions = [act("renew", renew), Action(ActionType("spoil", spoil, "writer"), {}, ROOM)]
    return Model("stale", [api, cache, steps], actions)


@pytest.mark.parametrize("by_part", [False, True])
def test_a_version_made_of_an_old_one_is_told(by_part: bool) -> None:
    """It would be the same as one that is alive, as if it were a copy of that."""
    told = r"spoil\(\) \[ok\]: cache gets a version made of x@0, which is not the newest: api holds a newer one"
    with pytest.raises(ModelError, match=told):
        explore(stale(by_part), engine="plain")
    for engine in ("explicit", "symbolic"):
        with pytest.raises(EngineError, match=f"audit: {told}"):
            explore(stale(by_part), engine=engine, audit=True)


def test_a_version_that_is_not_written_is_nobodys_business() -> None:
    """An action may make it before it knows whether it may write it."""
    api, cache = Slot("api", Version("x", 1), "room"), Slot("cache", Version("x", 0), "room")

    def look(v: View) -> Sequence[tuple[Slot[Any], Any]] | None:
        new = v.value(cache).next()
        return [(api, new)] if v.value(cache) == v.value(api) else [(cache, v.value(api))]

    actions = [act("look", look)]
    assert explore(Model("careful", [api, cache], actions), Limits(max_states=9), "plain").states == 2


# values


class Named(NamedTuple):
    """Two numbers with names."""

    left: int
    right: int


@dataclass(frozen=True)
class Data:
    """A number in a dataclass."""

    number: object


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("value", [Named(1, 2), Data(1), (Named(1, 2),), frozenset({Data(1)})])
def test_values_into_which_nobody_looks_are_refused(value: object, engine: str) -> None:
    """Versions in them would not be found, and numbers not told from truths."""
    slot = Slot[Any]("slot", 0, "room")
    with pytest.raises(ModelError, match=r"slot: a value must be immutable and hashable, found .* named tuple, a dataclass"):
        explore(Model("odd", [slot], [act("set", lambda v: [(slot, value)])]), engine=engine)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_value_that_cannot_be_hashed_is_refused(engine: str) -> None:
    slot = Slot[Any]("slot", 0, "room")
    with pytest.raises(ModelError, match=r"slot: a value must be immutable and hashable, found \[1\]"):
        explore(Model("odd", [slot], [act("set", lambda v: [(slot, [1])])]), engine=engine)


def test_renaming_leaves_what_it_does_not_know() -> None:
    old, new = Version("x", 3), Version("x", 0)
    assert rename((old, frozenset({old})), {old: new}) == (new, frozenset({new}))
    assert type(rename(Named(1, 2), {old: new})) is Named


@pytest.mark.parametrize("engine", ENGINES)
def test_a_promise_says_a_truth(engine: str) -> None:
    slot = Slot[Any]("slot", 0, "room")
    nothing: Any = StateInvariant("nothing", lambda view: None)  # type: ignore[arg-type, return-value]
    with pytest.raises(ModelError, match="promise nothing: ValueError: None is not a valid Truth"):
        explore(Model("odd", [slot], [], [nothing]), engine=engine)


# what is looked at


def is_exactly(value: object, wanted: object) -> bool:
    return key(value) == key(wanted)


@pytest.mark.parametrize("engine", ENGINES)
def test_arguments_are_told_apart_by_type(engine: str) -> None:
    """`True` is not `1`, also where both are arguments of projections in one run; of an action and of a promise."""
    slot, seen = Slot[Any]("slot", 0, "room"), Slot[Any]("seen", (), "room")

    def look(v: View) -> Sequence[tuple[Slot[Any], Any]] | None:
        return [(seen, tuple(v.project(slot, is_exactly, wanted) for wanted in (1, True, 1.0)))] if not v.value(seen) else None

    def grow(v: View) -> Sequence[tuple[Slot[Any], Any]] | None:
        following = {key(0): 1, key(1): True}
        return [(slot, following[key(v.value(slot))])] if key(v.value(slot)) in following else None

    def other(view: View) -> Truth:
        return Truth(2 * (not view.project(slot, is_exactly, 1) and not view.project(slot, is_exactly, True)))

    model = Model("exact", [slot, seen], [act("look", look), act("grow", grow)], [StateInvariant("other", other)])
    found = explore(model, Limits(expand_violating=True), engine)
    assert (found.states, found.verdict) == (9, "violated")
    shown = explore(attrs.evolve(model, properties=[never(seen, (False, True, False))]), engine=engine)
    assert shown.verdict == "violated"


def test_functions_are_told_apart_by_all_that_they_hold() -> None:
    """Also by what they have as keyword arguments; and a function that calls itself can be asked for."""

    def of(number: object) -> list[Callable[..., Any]]:
        def countdown(n: int) -> object:
            return countdown(n - 1) if n else number

        def by_keyword(n: int, *, wanted: object = number) -> bool:
            return n == wanted

        return [countdown, by_keyword, lambda n, wanted=number: n == wanted, partial(is_exactly, wanted=number)]

    keys = [[function_key(fn) for fn in of(number)] for number in (1, 1, True, 2)]
    assert keys[0] == keys[1]
    for one in range(4):
        assert len({keys[0][one], keys[2][one], keys[3][one]}) == 3
    assert identity(Data(1)) == identity(Data(1)) != identity(Data(True))


@pytest.mark.parametrize("engine", ENGINES)
def test_projections_by_keyword(engine: str) -> None:
    """Each run of the action makes a new function; two of them differ in a keyword argument only."""
    slot, seen = Slot[Any]("slot", 0, "room"), Slot[Any]("seen", (), "room")

    def look(v: View) -> Sequence[tuple[Slot[Any], Any]] | None:
        found = []
        for wanted in (0, 1):

            def equal(value: int, *, other: int = wanted) -> bool:
                return value == other

            found.append(v.project(slot, equal))
        return [(seen, tuple(found))]

    found = explore(Model("keyword", [slot, seen], [act("look", look)], [never(seen, (True, False))]), engine=engine)
    assert found.verdict == "violated"


# declarations of dead values


def test_a_slot_in_two_declarations() -> None:
    """Each would be believed because of the other: neither is used."""
    at, note = Slot("at", 0, "room"), Slot("note", 0, "room")

    def step(v: View) -> Sequence[tuple[Slot[Any], Any]] | None:
        here = v.value(at)
        if here == 0:
            return [(at, 1), (note, 7)]
        return [(at, 2)] if here == 1 and v.value(note) == 7 else None

    live = [LiveWhen([note], lambda view: False), LiveWhen([note], lambda view: view.value(at) == 1)]
    promises: list[Property] = [never(at, 2)]
    model = Model("twice", [at, note], [act("step", step)], promises, live=live)
    found = explore(model, reductions=Reductions(dead=True))
    assert found.verdict == explore(model).verdict == "violated"
    (report,) = found.reductions
    assert (report.applied, report.reason) == (False, "note: note is in two declarations")


def left_behind() -> Model:
    """A note of an object's version: taken, compared, left behind, cleaned up; while the object gets newer."""
    api, note = Slot("api", Version("x", 0), "room"), Slot[Any]("note", Version("x", 0), "room")
    at, same = Slot("at", 0, "room"), Slot("same", False, "room")

    def step(v: View) -> Sequence[tuple[Slot[Any], Any]] | None:
        here = v.value(at)
        if here == 0:
            return [(at, 1), (note, v.value(api))]
        if here == 1:
            return [(at, 2), (same, v.value(note) == v.value(api))]
        return [(at, 3), (note, None)] if here == 2 else None

    actions = [act("step", step), act("renew", lambda v: [(api, v.value(api).next())])]
    old = StateInvariant("old", lambda view: Truth(2 * (view.value(at) < 3 or view.value(same))))
    live = [LiveWhen([note], lambda view: view.value(at) == 1)]
    return Model("left behind", [api, at, note, same], actions, [old], [{note: None}], live=live)


@pytest.mark.parametrize("reduce", ["dead", "dead,por", "dead,por=stuck"])
def test_a_dead_slot_with_a_version(reduce: str) -> None:
    """What it gets is the same whatever it held when it died, and newer versions are not counted from it; it may get a value that no step
    and no beginning gives it."""
    full = explore(left_behind(), Limits(expand_violating=True))
    reduced = explore(left_behind(), Limits(expand_violating=True), reductions=Reductions.parse(reduce), audit=True)
    assert [report.applied for report in reduced.reductions] == [True] * len(reduced.reductions)
    assert (full.verdict, reduced.verdict) == ("violated", "violated")
    traces = [found.property("old").trace for found in (full, reduced)]
    assert [len(trace or ()) for trace in traces] == [4, 4]  # type: ignore[arg-type]
    assert reduced.states < full.states


# what stands for many values


@attrs.frozen
class Job:
    """An object with a counter."""

    name: str
    count: int


def test_a_number_that_stands_for_many_is_a_number() -> None:
    """An action that asks `isinstance` goes where it would go with each of them."""
    queue, out = Slot[Any]("queue", (), "room"), Slot[Any]("out", 0, "room")

    def put(v: View) -> Sequence[tuple[Slot[Any], Any]] | None:
        jobs = v.value(queue)
        return [(queue, (*jobs, Job("job", jobs[-1].count + 1 if jobs else 0)))] if len(jobs) < 30 else None

    def take(v: View) -> Sequence[tuple[Slot[Any], Any]] | None:
        jobs = v.value(queue)
        if not jobs:
            return None
        return [(out, 1)] if isinstance(jobs[0].count, int) else [(queue, ())]

    model = Model("counted", [queue, out], [act("put", put), act("take", take)])
    found = footprints(model)
    assert found.actions[1].reads <= {0}
    assert 1 in found.actions[1].writes
