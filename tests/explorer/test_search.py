"""Each feature of the search on a model that is just large enough for it, on both engines."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from functools import partial
from typing import Any

import attrs
import pytest

from dra_spec.explorer import EngineError, Limits, ModelError, Progress, Result, explore
from dra_spec.explorer import report as report_module
from dra_spec.explorer.control import Control
from dra_spec.explorer.machine import Machine
from dra_spec.explorer.model import (
    Action,
    ActionType,
    AlwaysPossible,
    DeadlockFree,
    Kind,
    Model,
    Outcome,
    PartView,
    Projection,
    Property,
    Slot,
    StateInvariant,
    StepInvariant,
    Truth,
    View,
)
from dra_spec.explorer.values import Version

ENGINES = ("plain", "explicit")
both = pytest.mark.parametrize("engine", ENGINES)


def act(name: str, fn: Any, kind: Kind = Kind.PROTOCOL, rooms: tuple[str, ...] = ("room",), **params: Any) -> Action:
    return Action(ActionType(name, fn, "writer", kind=kind), params, frozenset(rooms))


def counter(top: int) -> tuple[Slot[int], Action]:
    """A slot that counts from 0 to top, and the action that counts."""
    n = Slot("n", 0, "room")

    def count(v: View, context: None) -> Iterator[Outcome]:
        if v.value(n) < top:
            outcome = v.outcome("ok")
            outcome[n] = v.value(n) + 1
            yield outcome

    return n, act("count", count)


def below(n: Slot[int], bound: int, promise: str = "below") -> StateInvariant:
    return StateInvariant(promise, lambda v: Truth.TRUE if v.value(n) < bound else Truth.FALSE)


def length(result: Result, promise: str) -> int:
    trace = result.property(promise).trace
    assert trace is not None
    return len(trace)


# promises


@both
def test_all_violated_promises_have_their_shortest_trace(engine: str) -> None:
    n, count = counter(9)
    model = Model("m", [n], [count], [below(n, 7, "seven"), below(n, 4, "four"), below(n, 11, "eleven")])
    result = explore(model, Limits(expand_violating=True), engine)
    assert (length(result, "seven"), length(result, "four")) == (7, 4)
    assert result.property("eleven").verdict == "holds"
    assert result.complete
    assert (result.states, result.depth) == (10, 9)


@both
def test_what_lies_behind_a_violation_is_undecided(engine: str) -> None:
    n, count = counter(9)
    result = explore(Model("m", [n], [count], [below(n, 4, "four"), below(n, 7, "seven")]), engine=engine)
    assert result.states == 5
    assert result.unexpanded == 1
    assert not result.complete
    assert result.property("four").verdict == "violated"
    assert result.property("seven").verdict == "undecided"
    assert "not expanded" in result.property("seven").reason


@both
def test_an_instance_of_a_promise_is_named(engine: str) -> None:
    n, count = counter(5)
    late = StateInvariant("p", lambda v: Truth(2 * (v.value(n) < 5)), {"which": "late"})
    early = StateInvariant("p", lambda v: Truth(2 * (v.value(n) < 3)), {"which": "early"})
    found = explore(Model("m", [n], [count], [late, early]), Limits(expand_violating=True), engine).property("p")
    assert found.binding == {"which": "early"}
    assert found.trace is not None
    assert [state[0] for state in found.trace.states] == [0, 1, 2, 3]


@both
def test_violation_in_the_initial_state(engine: str) -> None:
    n, count = counter(5)
    assert length(explore(Model("m", [n], [count], [below(n, 0)]), engine=engine), "below") == 0


@both
def test_step_invariants_see_both_sides_of_their_actions_only(engine: str) -> None:
    n, count = counter(5)

    def back(v: View, context: None) -> Iterator[Outcome]:
        if v.value(n) == 5:
            for label, to in (("far", 0), ("near", 4)):
                outcome = v.outcome(label)
                outcome[n] = to
                yield outcome

    def small(v: View, later: View, action: Action, label: str) -> Truth:
        assert action.name == "back"
        return Truth(2 * (later.value(n) > v.value(n) - 2)) if label == "near" else Truth.TRIVIAL

    def never_zero(v: View, later: View, action: Action, label: str) -> Truth:
        return Truth(2 * (later.value(n) != 0))

    def applies(action: Action) -> bool:
        return action.name == "back"

    properties: list[Property] = [StepInvariant("small", applies, small), StepInvariant("never-zero", applies, never_zero)]
    result = explore(Model("m", [n], [count, act("back", back)], properties), engine=engine)
    assert result.property("small").verdict == "holds"
    assert result.complete
    found = result.property("never-zero")
    assert found.trace is not None
    assert [s.label for s in found.trace.steps] == ["ok"] * 5 + ["far"]
    assert found.trace.states[-1] == (0,)


@both
def test_always_possible_by_allowed_actions_only(engine: str) -> None:
    n, count = counter(3)

    def reset(v: View, context: None) -> Iterator[Outcome]:
        if v.value(n) == 3:
            outcome = v.outcome("ok")
            outcome[n] = 0
            yield outcome

    def allowed(*kinds: Kind) -> Any:
        return lambda action: action.type.kind in kinds

    def at(k: int) -> Any:
        return lambda v: Truth(2 * (v.value(n) == k))

    properties: list[Property] = [
        AlwaysPossible("with-faults", at(1), allowed(Kind.PROTOCOL, Kind.FAULT)),
        AlwaysPossible("without", at(1), allowed(Kind.PROTOCOL)),
        AlwaysPossible("end", at(3), allowed(Kind.PROTOCOL)),
        AlwaysPossible("nowhere", at(7), allowed(Kind.PROTOCOL, Kind.FAULT)),
    ]
    result = explore(Model("m", [n], [count, act("reset", reset, Kind.FAULT)], properties), engine=engine)
    assert [p.verdict for p in result.properties] == ["holds", "violated", "holds", "violated"]
    assert length(result, "without") == 2
    assert length(result, "nowhere") == 0
    assert result.property("nowhere").vacuous is False


@both
def test_always_possible_on_a_truncated_graph(engine: str) -> None:
    """What was not expanded may lead to the goal; what is lost for certain is lost all the same."""
    n, count = counter(20)
    lost = Slot("lost", False, "room")

    def lose(v: View, context: None) -> Iterator[Outcome]:
        if v.value(n) == 2:
            outcome = v.outcome("ok")
            outcome[lost], outcome[n] = True, 20
            yield outcome

    goal = AlwaysPossible("goal", lambda v: Truth(2 * (v.value(n) == 20 and not v.value(lost))), lambda a: True)
    surviving = explore(Model("m", [n, lost], [count], [goal]), Limits(depth=5), engine)
    assert surviving.property("goal").verdict == "undecided"
    assert surviving.property("goal").reason == "depth"
    losing = explore(Model("m", [n, lost], [count, act("lose", lose)], [goal]), Limits(depth=5), engine)
    assert losing.property("goal").verdict == "violated"
    assert length(losing, "goal") == 3


@both
def test_deadlock(engine: str) -> None:
    n, count = counter(4)
    final = DeadlockFree("final", lambda v: Truth(2 * (v.value(n) == 4)))
    never = DeadlockFree("never", lambda v: Truth.FALSE)
    result = explore(Model("m", [n], [count], [final, never, below(n, 2)]), engine=engine)
    assert result.property("final").verdict == "holds"
    assert length(result, "never") == 4  # the violating states were expanded, because deadlock is about all states
    assert result.stuck == 1
    assert result.complete


# parts and conflicts


@both
def test_parts_read_the_state_before_the_action(engine: str) -> None:
    slots = [Slot(f"s{i}", i, "room") for i in range(4)]

    def take_next(p: PartView, i: int) -> None:
        p.write(slots[i], p.value(slots[(i + 1) % 4]))

    def rotate(v: View, context: None) -> Iterator[Outcome]:
        outcome = v.outcome("ok")
        for i in range(4):
            outcome.part(take_next, i)
        yield outcome

    result = explore(Model("m", slots, [act("rotate", rotate)]), engine=engine)
    assert result.states == 4
    assert result.transitions == 4


@both
@pytest.mark.parametrize("first", ["constant", "part"])
def test_a_slot_written_twice_is_an_error(engine: str, first: str) -> None:
    a, b = Slot("a", 0, "room"), Slot("b", 0, "room")

    def write_a(p: PartView, value: int) -> None:
        p.write(a, value)

    def both_write(v: View, context: None) -> Iterator[Outcome]:
        outcome = v.outcome("twice")
        outcome[b] = 1
        if first == "constant":
            outcome[a] = 1
        else:
            outcome.part(write_a, 1)
        outcome.part(write_a, 2)
        yield outcome

    with pytest.raises(ModelError, match=r"both\(\) \[twice\]: a is written twice, last by .*write_a\(2\)"):
        explore(Model("m", [a, b], [act("both", both_write)]), engine=engine)


# versions


@attrs.frozen
class Copy:
    """A value with versions of two objects inside."""

    rv: Version
    other: Version


@both
def test_versions_are_renumbered_and_finite(engine: str) -> None:
    """An object that is written for ever and a reader that copies it: only "current or stale, and how" is left."""
    api, cache = Slot("api", Version("x", 40), "room"), Slot("cache", Version("x", 40), "room")
    pair = Slot("pair", Copy(Version("x", 40), Version("y", 9)), "room")

    def write(v: View, context: None) -> Iterator[Outcome]:
        outcome = v.outcome("ok")
        outcome[api] = v.value(api).next()
        yield outcome

    def read(v: View, context: None) -> Iterator[Outcome]:
        if v.value(cache) < v.value(api):
            outcome = v.outcome("ok")
            outcome[cache] = v.value(api)
            yield outcome

    def copy(v: View, context: None) -> Iterator[Outcome]:
        outcome = v.outcome("ok")
        outcome[pair] = Copy(v.value(cache), v[pair].other.next())
        yield outcome

    result = explore(Model("m", [api, cache, pair], [act("write", write), act("read", read), act("copy", copy)]), engine=engine)
    assert result.complete
    # orders of pair <= cache <= api, each step equal or smaller
    assert result.states == 4
    assert result.transitions == 10


@both
def test_step_invariants_compare_versions_across_the_step(engine: str) -> None:
    api = Slot("api", Version("x", 0), "room")

    def write(v: View, context: None) -> Iterator[Outcome]:
        outcome = v.outcome("ok")
        outcome[api] = v.value(api).next()
        yield outcome

    newer = StepInvariant("newer", lambda a: True, lambda v, w, a, label: Truth(2 * (v.value(api) < w.value(api))))
    result = explore(Model("m", [api], [act("write", write)], [newer]), engine=engine)
    assert result.states == 1
    assert result.property("newer").verdict == "holds"


# bounds and limits


@both
def test_beyond_the_bounds_nothing_is_followed_and_the_rest_undecided(engine: str) -> None:
    n = Slot("n", 0, "room")

    def push(v: View, context: None) -> Iterator[Outcome]:
        outcome = v.outcome("pushed")
        if v.value(n) == 3:
            yield outcome.beyond_bounds("the queue is full")
            return
        outcome[n] = v.value(n) + 1
        yield outcome

    properties: list[Property] = [below(n, 9), below(n, 2, "two"), DeadlockFree("stuck", lambda v: Truth.FALSE)]
    result = explore(Model("m", [n], [act("push", push)], properties), engine=engine)
    assert result.states == 4
    assert result.transitions == 3
    assert result.stopped == "beyond bounds: the queue is full"
    assert not result.complete
    assert result.stuck == 0
    assert [p.verdict for p in result.properties] == ["undecided", "violated", "undecided"]
    assert result.property("below").reason == "beyond bounds: the queue is full"


@both
@pytest.mark.parametrize(
    ("limits", "stopped"), [(Limits(max_states=5), "max-states"), (Limits(depth=4), "depth"), (Limits(time_limit=0.0), "time")]
)
def test_limits(engine: str, limits: Limits, stopped: str) -> None:
    n, count = counter(50)
    result = explore(Model("m", [n], [count], [below(n, 50), below(n, 0, "zero")]), attrs.evolve(limits, expand_violating=True), engine)
    assert result.stopped == stopped
    assert result.states == (1 if stopped == "time" else 5)
    assert not result.complete
    assert result.property("below").verdict == "undecided"
    assert result.property("below").reason == stopped
    assert result.property("zero").verdict == "violated"


def test_when_time_is_up_judging_the_graph_takes_not_long_either(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each look at the clock is a second here: 40 for the search, and a quarter of that for what is left to say of it."""
    clock, asked = itertools.count(), []
    monkeypatch.setattr(Control, "seconds", property(lambda self: float(next(clock))))
    monkeypatch.setattr(Machine, "label", lambda self, index, *rest, **more: asked.append(index))
    n, count = counter(10**6)
    goals = [AlwaysPossible(f"p{i}", lambda v: Truth.FALSE, lambda a: True) for i in range(60)]
    result = explore(Model("m", [n], [count], goals), Limits(time_limit=40))
    assert result.stopped == "time"
    assert 0 < len(asked) <= 10
    assert {(p.verdict, p.reason) for p in result.properties} == {("undecided", "time")}


@both
def test_the_last_states_before_a_limit_are_judged(engine: str) -> None:
    n, count = counter(50)
    result = explore(Model("m", [n], [count], [below(n, 4)]), Limits(max_states=5), engine)
    assert length(result, "below") == 4


@both
def test_limits_that_are_not_met(engine: str) -> None:
    n, count = counter(4)
    result = explore(Model("m", [n], [count]), Limits(max_states=5, depth=5, time_limit=600, memory=1 << 40), engine)
    assert result.complete
    assert result.stopped is None


@both
def test_memory_limit(engine: str) -> None:
    n, count = counter(4)
    assert explore(Model("m", [n], [count]), Limits(memory=1), engine).stopped == "memory"


def test_memory_limit_in_the_middle_of_growing() -> None:
    """The limit lies between what the process has and what a large model needs."""
    from dra_spec.explorer.control import resident

    digits = [Slot(f"d{i}", 0, "room") for i in range(7)]

    def turn(v: View, context: None, i: int) -> Iterator[Outcome]:
        outcome = v.outcome("ok")
        outcome[digits[i]] = (v.value(digits[i]) + 1) % 10
        yield outcome

    actions = [act(f"turn{i}", turn, i=i) for i in range(7)]
    explore(Model("m", digits, actions), Limits(max_states=50_000))  # what is loaded only once is loaded
    result = explore(Model("m", digits, actions), Limits(memory=resident() + 40_000_000))
    assert result.stopped == "memory"
    assert 10_000 < result.states < 10**7
    assert result.memory < 60_000_000


@both
def test_interrupt_by_the_callback(engine: str) -> None:
    n, count = counter(50)
    asked = iter([False] * 3 + [True] * 100)
    result = explore(Model("m", [n], [count], [below(n, 90)]), engine=engine, interrupted=lambda: next(asked))
    assert result.stopped == "interrupted"
    assert 1 <= result.states < 51
    assert result.property("below").verdict == "undecided"


@both
def test_keyboard_interrupt_reports_what_was_found(engine: str) -> None:
    n = Slot("n", 0, "room")

    def count(v: View, context: None) -> Iterator[Outcome]:
        if v.value(n) == 7:
            raise KeyboardInterrupt
        outcome = v.outcome("ok")
        outcome[n] = v.value(n) + 1
        yield outcome

    result = explore(Model("m", [n], [act("count", count)], [below(n, 3), below(n, 30, "thirty")]), Limits(expand_violating=True), engine)
    assert result.stopped == "interrupted"
    assert result.states == 8
    assert length(result, "below") == 3
    assert result.property("thirty").verdict == "undecided"


@both
def test_ctrl_c_is_a_request_to_stop(engine: str) -> None:
    import signal

    n = Slot("n", 0, "room")
    outside = signal.signal(signal.SIGINT, signal.default_int_handler)  # which may be to ignore it

    def count(v: View, context: None) -> Iterator[Outcome]:
        if v.value(n) == 7:
            signal.raise_signal(signal.SIGINT)
        outcome = v.outcome("ok")
        outcome[n] = v.value(n) + 1
        yield outcome

    try:
        result = explore(Model("m", [n], [act("count", count)]), Limits(max_states=100), engine)
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, outside)
    assert result.stopped == "interrupted"
    assert result.states == 9


@both
def test_progress_is_reported(engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dra_spec.explorer.control._INTERVAL", 0.0)
    n, count = counter(9)
    seen: list[Progress] = []
    explore(Model("m", [n], [count]), engine=engine, progress=seen.append)
    assert [p.states for p in seen] == [*range(2, 11), 10]
    assert [p.depth for p in seen] == list(range(10))
    assert all(p.memory > 0 for p in seen)


# mistakes in the text of a model


@both
def test_an_exception_names_action_parameters_and_state(engine: str) -> None:
    n, count = counter(5)

    def fragile(v: View, context: None, pod: str) -> Iterator[Outcome]:
        if v.value(n) == 3:
            raise ValueError("no such thing")
        yield from ()

    with pytest.raises(ModelError) as caught:
        explore(Model("m", [n], [count, act("fragile", fragile, pod="p1")]), engine=engine)
    text = str(caught.value)
    assert "fragile(pod=p1): ValueError: no such thing" in text
    assert "n = 3" in text


@both
def test_an_exception_in_a_promise_names_it(engine: str) -> None:
    n, count = counter(5)

    def judge(v: View) -> Truth:
        return Truth.TRUE if 1 // (3 - v.value(n)) < 9 else Truth.FALSE

    with pytest.raises(ModelError, match=r"promise p: ZeroDivisionError.*\n.*\n  n = 3"):
        explore(Model("m", [n], [count], [StateInvariant("p", judge)]), engine=engine)


@both
@pytest.mark.parametrize("how", ["read", "write", "part"])
def test_another_writers_room(engine: str, how: str) -> None:
    mine, theirs = Slot("mine", 0, "room"), Slot("theirs", 0, "elsewhere")

    def poke(p: PartView) -> None:
        p.write(theirs, 1)

    def intrude(v: View, context: None) -> Iterator[Outcome]:
        outcome = v.outcome("ok")
        if how == "read":
            outcome[mine] = v.value(theirs)
        elif how == "write":
            outcome[theirs] = 1
        else:
            outcome.part(poke)
        yield outcome

    with pytest.raises(ModelError, match="touches theirs, which belongs to elsewhere"):
        explore(Model("m", [mine, theirs], [act("intrude", intrude)]), engine=engine)


@both
def test_a_slot_outside_the_model(engine: str) -> None:
    n, count = counter(5)
    stray = Slot("stray", 0, "room")

    def write(v: View, context: None) -> Iterator[Outcome]:
        outcome = v.outcome("ok")
        outcome[stray] = 1
        yield outcome

    with pytest.raises(ModelError, match="slot stray is not part of the model"):
        explore(Model("m", [n], [count, act("write", write)]), engine=engine)


def test_an_action_that_is_no_function_of_its_reads() -> None:
    """A hidden counter changes what is read next; the explicit engine notices."""
    n, count = counter(5)
    other = Slot("other", 0, "room")
    hidden = [0]

    def moody(v: View, context: None) -> Iterator[Outcome]:
        hidden[0] += 1
        if hidden[0] > 2:
            v.value(other)
        v.value(n)
        yield from ()

    with pytest.raises(
        ModelError, match=r"moody\(\) is not a function of what it reads: after the same reads it read n once and other now"
    ):
        explore(Model("m", [n, other], [count, act("moody", moody)]))


_MOODS: list[int] = []


def _mood(value: object) -> int:
    _MOODS.append(0)
    return len(_MOODS)


def test_a_projection_that_is_not_pure() -> None:
    n, count = counter(5)
    flag = Slot("flag", False, "room")

    def look(v: View, context: None) -> Iterator[Outcome]:
        v.value(n)
        v.project(flag, _mood)
        yield from ()

    with pytest.raises(ModelError, match=r"look\(\): flag_mood\(\) gives \d now and gave something else before for the same value"):
        explore(Model("m", [n, flag], [count, act("look", look)]))


@both
def test_values_must_be_hashable(engine: str) -> None:
    n = Slot[Any]("n", 0, "room")

    def write(v: View, context: None) -> Iterator[Outcome]:
        outcome = v.outcome("ok")
        outcome[n] = [1]
        yield outcome

    with pytest.raises((ModelError, TypeError), match=r"unhashable|write\(\) \[ok\]: n: a value must be immutable and hashable"):
        explore(Model("m", [n], [act("write", write)]), engine=engine)


def test_closures_made_anew_by_each_run_are_one_projection() -> None:
    letters = Slot("letters", frozenset("a"), "room")
    n, count = counter(5)

    def look(v: View, context: None, wanted: str) -> Iterator[Outcome]:
        if v.project(letters, lambda value: wanted in value) and v.project(letters, partial(_has, "b")):
            yield v.outcome("ok")
        v.value(n)

    result = explore(Model("m", [letters, n], [count, act("look", look, wanted="a")]))
    assert result.states == 6


def _has(wanted: str, value: frozenset[str]) -> bool:
    return wanted in value


def test_an_unknown_engine() -> None:
    n, count = counter(1)
    with pytest.raises(ValueError, match="expected one of explicit, plain"):
        explore(Model("m", [n], [count]), engine="magic")


# statistics and warnings


@both
def test_vacuous_models_are_named(engine: str) -> None:
    n, count = counter(3)

    def never(v: View, context: None) -> Iterator[Outcome]:
        if v.value(n) > 90:
            yield v.outcome("ok")

    trivial = StateInvariant("trivial", lambda v: Truth.TRIVIAL)
    sometimes = StateInvariant("sometimes", lambda v: Truth.TRUE if v.value(n) == 2 else Truth.TRIVIAL)
    unmet = StepInvariant("unmet", lambda a: a.name == "never", lambda v, w, a, label: Truth.TRUE)
    here = AlwaysPossible("here", lambda v: Truth.TRUE, lambda a: True)
    ahead = AlwaysPossible("ahead", lambda v: Truth(2 * (v.value(n) == 3)), lambda a: True)
    model = Model("m", [n], [count, act("never", never)], [trivial, sometimes, unmet, here, ahead])
    result = explore(model, engine=engine)
    assert result.verdict == "holds"
    assert list(result.warnings) == [
        "action never is never enabled",
        "promise trivial is never true other than trivially",
        "promise unmet is never true other than trivially",
        "promise here is never true other than trivially",
    ]
    assert [(a.name, a.taken, a.never_enabled) for a in result.actions] == [("count", 3, False), ("never", 0, True)]
    assert [p.vacuous for p in result.properties] == [True, False, True, True, False]


@both
def test_values_of_different_types_are_different_states(engine: str) -> None:
    n = Slot[Any]("n", 0, "room")
    order = [0, False, 0.0, 1, True, 1.0, "1"]

    def change(v: View, context: None, index: int) -> Iterator[Outcome]:
        now = v.value(n)
        if type(now) is type(order[index]) and now == order[index] and index + 1 < len(order):
            outcome = v.outcome("ok")
            outcome[n] = order[index + 1]
            yield outcome

    actions = [act(f"change{i}", change, index=i) for i in range(len(order))]
    result = explore(Model("m", [n], actions), engine=engine)
    assert result.states == len(order)
    assert result.depth == len(order) - 1


@both
def test_a_trace_that_does_not_run_again_is_no_verdict(engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """If the plain semantics and the engine disagree, the tool doubts itself."""
    n, count = counter(5)
    original = report_module.rerun

    def broken(semantics: Any, explored: Any, found: Any) -> Any:
        path = explored.path
        explored.path = lambda state: (path(state)[0], path(state)[1][:-1])
        return original(semantics, explored, found)

    monkeypatch.setattr(report_module, "rerun", broken)
    with pytest.raises(EngineError, match="another state than the engine stored"):
        explore(Model("m", [n], [count], [below(n, 3)]), engine=engine)


def test_functions_among_arguments_are_named_without_an_address() -> None:
    assert str(Projection("asks", len, (len, 3))) == "asks(len, 3)"
