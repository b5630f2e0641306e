"""The symbolic engine is the other engines' test, and they are its: counts, verdicts, shortest lengths."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import attrs
import classics
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from oxidd.util import DDMemoryError
from random_models import Maker, agree

from benchmarks import toy
from dra_spec.explorer import EngineError, Limits, ModelError, Result, explore, symbolic, symbolic_relation
from dra_spec.explorer.model import Action, ActionType, AlwaysPossible, Model, PartView, Slot, StateInvariant, Truth, View
from dra_spec.explorer.model import Outcome as Out
from dra_spec.explorer.result import Stopped
from dra_spec.explorer.scout import Scout, Walker
from dra_spec.explorer.symbolic_order import slot_order
from dra_spec.explorer.symbolic_relation import Relation
from dra_spec.explorer.symbolic_sample import first
from dra_spec.explorer.symbolic_sets import Set
from dra_spec.explorer.symbolic_traces import Layers
from dra_spec.explorer.values import Version


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tables for small models; they would take longer to make than to use."""
    monkeypatch.setattr(symbolic, "NODES", 1 << 21)
    monkeypatch.setattr(symbolic, "CACHE", 1 << 17)


def act(name: str, fn: Any, **params: Any) -> Action:
    return Action(ActionType(name, fn, "writer"), params, frozenset({"room"}))


def same(one: Result, other: Result) -> None:
    """All that must be the same; a search without layers knows no depth."""
    agree(one, attrs.evolve(other, depth=one.depth) if other.depth == symbolic.UNKNOWN_DEPTH else other)


@pytest.mark.parametrize(
    "model",
    [
        classics.philosophers(2, ordered=False),
        classics.philosophers(5, ordered=False),
        classics.philosophers(4, ordered=True),
        classics.peterson(),
        classics.peterson(polite=False),
        classics.two_phase_commit(3),
    ],
    ids=lambda model: model.name,
)
def test_classics(model: Model) -> None:
    same(explore(model, engine="plain"), explore(model, engine="symbolic"))


@pytest.mark.parametrize("name", ["g", "c", "d", "e", "m", *(pytest.param(name, marks=pytest.mark.full) for name in "ilq")])
def test_toy_counts(name: str) -> None:
    """The counts that SPIN, TLC and Stateright report for the same protocol."""
    config = toy.CONFIGS[name]
    result = explore(toy.toy(name), engine="symbolic")
    assert (result.states, result.transitions) == (config.states, config.transitions)
    assert result.verdict == "holds"
    assert result.complete
    assert result.engine == "symbolic"
    assert result.depth == symbolic.UNKNOWN_DEPTH
    assert not any(p.vacuous for p in result.properties)


def test_toy_by_layers() -> None:
    """A limit on the depth is a reason to go layer by layer; one that is not met changes nothing else."""
    config = toy.CONFIGS["g"]
    result = explore(toy.toy("g"), Limits(depth=100), "symbolic")
    assert (result.states, result.transitions, result.depth + 1) == (config.states, config.transitions, config.depth)
    assert result.complete


@pytest.mark.parametrize(
    ("name", "bug", "promise", "length"),
    [
        ("c", "unprepare", "in-use-is-prepared", 23),
        ("c", "inflight", "no-double-allocation", 14),
        pytest.param("e", "unprepare", "in-use-is-prepared", 18, marks=pytest.mark.full),
        pytest.param("e", "inflight", "no-double-allocation", 6, marks=pytest.mark.full),
    ],
)
def test_toy_bugs(name: str, bug: str, promise: str, length: int) -> None:
    """Shortest counterexamples as long as those of SPIN's breadth-first search; the rest as in the explicit engine."""
    result = explore(toy.toy(name, bug), engine="symbolic")
    found = result.property(promise)
    assert found.verdict == "violated"
    assert found.trace is not None
    assert len(found.trace) == length
    same(explore(toy.toy(name, bug)), result)


@pytest.mark.parametrize("versions", [False, True])
@given(
    seed=st.integers(0, 10**9),
    beyond=st.booleans(),
    expand=st.booleans(),
    depth=st.one_of(st.none(), st.integers(0, 8)),
    largest=st.sampled_from([0, symbolic_relation.LARGEST]),
)
@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
def test_engines_agree(versions: bool, seed: int, beyond: bool, expand: bool, depth: int | None, largest: int) -> None:
    model = Maker(seed, versions, beyond).model()
    plain = explore(model, Limits(depth=depth, expand_violating=expand, max_states=3000), "plain")
    if plain.stopped != "max-states":
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(symbolic_relation, "LARGEST", largest)
            same(plain, explore(model, Limits(depth=depth, expand_violating=expand), "symbolic"))


@pytest.mark.nightly
@given(seed=st.integers(0, 10**9), versions=st.booleans(), beyond=st.booleans(), expand=st.booleans(), depth=st.integers(0, 12))
@settings(max_examples=2000, deadline=None, suppress_health_check=list(HealthCheck))
def test_three_engines_agree(seed: int, versions: bool, beyond: bool, expand: bool, depth: int) -> None:
    """`depth` 12: without a limit."""
    model = Maker(seed, versions, beyond).model()
    limits = Limits(depth=depth if depth < 12 else None, expand_violating=expand)
    plain = explore(model, attrs.evolve(limits, max_states=3000), "plain")
    if plain.stopped != "max-states":
        agree(plain, explore(model, limits, "explicit"))
        same(plain, explore(model, limits, "symbolic"))


def test_an_unsound_engine_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """The comparison with random models notices an engine that forgets one outcome of each action, by a handful of seeds."""
    right = Relation.effects
    monkeypatch.setattr(Relation, "effects", lambda self, action, states: right(self, action, states)[1:])
    caught = 0
    for seed in range(10):
        model = Maker(seed, versions=False, beyond=False).model()
        try:
            same(explore(model, Limits(depth=6), "plain"), explore(model, Limits(depth=6), "symbolic"))
        except (AssertionError, EngineError):
            caught += 1
    assert caught >= 5


@given(seed=st.integers(0, 10**9))
@example(seed=479001600)
@settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
def test_it_learns_without_a_scout(seed: int) -> None:
    """Nothing known and no bits in use at the beginning: domains, trees and renumbering grow inside the fixed point."""
    model = Maker(seed, versions=seed % 2 == 0, beyond=False).model()
    plain = explore(model, Limits(max_states=3000), "plain")
    if plain.stopped is not None and plain.stopped == "max-states":
        return
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("dra_spec.explorer.scout._BROAD", 0)
        patch.setattr("dra_spec.explorer.scout._WALKS", 0)
        same(plain, explore(model, engine="symbolic"))


def test_a_set_that_looks_the_same_after_a_domain_has_grown() -> None:
    """All values of a slot before, all of them again when it has one bit more: the same diagram, but not what an action has seen."""
    n, m = Slot("n", 0, "room"), Slot("m", 0, "room")

    def copy(v: View, context: None) -> Iterator[Out]:
        outcome = v.outcome("ok")
        outcome[m] = v.value(n)
        yield outcome

    def up(v: View, context: None) -> Iterator[Out]:
        if v.value(n) < 1:
            outcome = v.outcome("ok")
            outcome[n] = v.value(n) + 1
            yield outcome

    model = Model("m", [n, m], [act("copy", copy), act("up", up)])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("dra_spec.explorer.scout._BROAD", 0)
        patch.setattr("dra_spec.explorer.scout._WALKS", 0)
        result = explore(model, engine="symbolic")
    same(explore(model, engine="plain"), result)


def test_a_domain_outgrows_the_spare_bits() -> None:
    n = Slot("n", 0, "room")

    def up(v: View, context: None) -> Iterator[Out]:
        if v.value(n) < 300:
            outcome = v.outcome("ok")
            outcome[n] = v.value(n) + 1
            yield outcome

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("dra_spec.explorer.scout._BROAD", 0)
        patch.setattr("dra_spec.explorer.scout._WALKS", 0)
        patch.setattr("dra_spec.explorer.symbolic_sets._SPARE", 1)
        patch.setattr("dra_spec.explorer.symbolic_sets._MORE", 2)
        result = explore(Model("m", [n], [act("up", up)]), engine="symbolic")
    assert (result.states, result.transitions, result.stuck) == (301, 300, 1)


@pytest.mark.parametrize("largest", [0, symbolic_relation.LARGEST])
def test_parts_that_read_what_others_write(largest: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two parts swap two slots, a third takes what one was: all of them read the state before, be they one relation or stages."""
    monkeypatch.setattr(symbolic_relation, "LARGEST", largest)
    a, b, c = Slot("a", 0, "room"), Slot("b", 1, "room"), Slot("c", 2, "room")

    def copy(p: PartView, source: Slot[Any], target: Slot[Any]) -> None:
        p.write(target, p.value(source))

    def rotate(v: View, context: None) -> Iterator[Out]:
        yield v.outcome("rotate").part(copy, a, b).part(copy, b, c).part(copy, c, a)
        yield v.outcome("swap").part(copy, a, b).part(copy, b, a)

    model = Model("m", [a, b, c], [act("rotate", rotate)], [StateInvariant("not-back", lambda v: Truth(2 * (v.value(a) != 1)))])
    result = explore(model, Limits(expand_violating=True), "symbolic")
    assert (result.states, result.transitions) == (6, 12)
    same(explore(model, Limits(expand_violating=True), "plain"), result)


def test_a_slot_written_twice_is_refused() -> None:
    a, b = Slot("a", 0, "room"), Slot("b", 0, "room")

    def write(p: PartView, when: int) -> None:
        if p.value(a) >= when:
            p.write(b, when)

    def both(v: View, context: None) -> Iterator[Out]:
        outcome = v.outcome("ok").part(write, 1).part(write, 2)
        outcome[a] = min(v.value(a) + 1, 3)
        yield outcome

    with pytest.raises(ModelError, match="b is written twice"):
        explore(Model("m", [a, b], [act("both", both)]), engine="symbolic")


def test_versions_are_renumbered_in_sets() -> None:
    """Weak orders of seven copies, as in the explicit engine's test."""
    api = Slot("api", Version("x", 0), "room")
    copies = [Slot(f"copy{i}", Version("x", 0), "room") for i in range(4)]

    def write(v: View, context: None) -> Iterator[Out]:
        outcome = v.outcome("ok")
        outcome[api] = v.value(api).next()
        yield outcome

    def read(v: View, context: None, index: int) -> Iterator[Out]:
        outcome = v.outcome("ok")
        outcome[copies[index]] = v.value(api)
        yield outcome

    goal = AlwaysPossible("level", lambda v: Truth(2 * (v.value(copies[0]) == v.value(api))), lambda a: a.name == "read0")
    model = Model("m", [api, *copies], [act("write", write), *(act(f"read{i}", read, index=i) for i in range(4))], [goal])
    result = explore(model, engine="symbolic")
    assert result.states == 2 * 75
    assert result.verdict == "holds"
    same(explore(model, engine="plain"), result)


def test_more_states_than_can_be_stored() -> None:
    """Counts are exact integers beyond the precision of a float."""
    slots = [Slot(f"s{i}", 0, "room") for i in range(60)]

    def turn(v: View, context: None, index: int) -> Iterator[Out]:
        outcome = v.outcome("ok")
        outcome[slots[index]] = (v.value(slots[index]) + 1) % 3
        yield outcome

    result = explore(Model("m", slots, [act(f"turn{i}", turn, index=i) for i in range(60)]), engine="symbolic")
    assert result.states == 3**60
    assert result.transitions == 60 * 3**60


def test_limits_end_undecided() -> None:
    result = explore(toy.toy("d"), Limits(time_limit=1e-9), "symbolic")
    assert (result.stopped, result.verdict, result.complete) == ("time", "undecided", False)
    few = explore(toy.toy("g"), Limits(depth=3), "symbolic")
    same(explore(toy.toy("g"), Limits(depth=3)), few)
    assert few.stopped == "depth"


@pytest.mark.parametrize("trap", [False, True])
def test_goals_that_are_never_reached_together(trap: bool) -> None:
    """Each place on a ring stays possible though no state is at two of them; with a trap some do not, and one at the trap does."""
    at = Slot("at", 0, "room")

    def on(v: View, context: None) -> Iterator[Out]:
        if v.value(at) < 4:
            outcome = v.outcome("on")
            outcome[at] = (v.value(at) + 1) % 4
            yield outcome

    def fall(v: View, context: None) -> Iterator[Out]:
        if trap and v.value(at) == 2:
            outcome = v.outcome("fall")
            outcome[at] = 4
            yield outcome

    def goal(*places: int) -> AlwaysPossible:
        return AlwaysPossible(f"at-{places}", lambda v: Truth(2 * (v.value(at) in places)), lambda a: True)

    goals = [goal(0), goal(1), goal(3), goal(0, 4), goal(2, 4)]
    model = Model("m", [at], [act("on", on), act("fall", fall)], goals)
    result = explore(model, engine="symbolic")
    same(explore(model, engine="plain"), result)
    assert [found.verdict == "violated" for found in result.properties] == [trap, trap, trap, False, False]


@pytest.mark.parametrize("stop", [Stopped("time"), KeyboardInterrupt(), DDMemoryError()], ids=["time", "interrupted", "memory"])
@pytest.mark.parametrize("expand", [False, True])
def test_stopped_on_the_way_to_a_trace(stop: BaseException, expand: bool, monkeypatch: pytest.MonkeyPatch, request: Any) -> None:
    """The set is there and is what is reported, as are the other verdicts; a promise that it breaks is undecided and says so."""
    model = toy.toy("g", "unprepare")
    whole = explore(model, Limits(expand_violating=expand), "symbolic")
    (broken,) = [found.promise for found in whole.properties if found.verdict == "violated"]

    def further(self: Layers) -> None:
        raise stop

    monkeypatch.setattr(Layers, "_further", further)
    monkeypatch.setattr(Layers, "_before", lambda self, states, seen: further(self))
    result = explore(model, Limits(expand_violating=expand), "symbolic")
    for name in ("states", "transitions", "stuck", "unexpanded", "complete"):
        assert getattr(result, name) == getattr(whole, name), name
    assert result.stopped == {Stopped: "time", KeyboardInterrupt: "interrupted", DDMemoryError: "memory"}[type(stop)]
    assert result.verdict == "undecided"
    assert result.property(broken).trace is None
    assert result.property(broken).reason == f"{result.stopped}; {symbolic.UNTRACED}"
    for found in whole.properties:
        if found.promise != broken:
            assert result.property(found.promise).verdict == found.verdict
            assert (found.verdict == "holds") == expand


def test_shortest_runs_meet_in_the_middle(monkeypatch: pytest.MonkeyPatch) -> None:
    """A long corridor between two halls: layers behind the violating states are made as well as layers ahead of the initial one."""
    seen = []
    right = Layers._before

    def before(self: Layers, states: Set, behind: Set) -> Set:
        seen.append(len(self.ahead))
        return right(self, states, behind)

    monkeypatch.setattr(Layers, "_before", before)
    at, *wings = (Slot(name, 0, "room") for name in ("at", *"abcdefgh"))

    def walk(v: View, context: None) -> Iterator[Out]:
        if v.value(at) < 9:
            outcome = v.outcome("on")
            outcome[at] = v.value(at) + 1
            yield outcome

    def flap(v: View, context: None, wing: int) -> Iterator[Out]:
        if v.value(at) < 4:
            outcome = v.outcome("flap")
            outcome[wings[wing]] = 1 - v.value(wings[wing])
            yield outcome

    actions = [act("walk", walk), *(act(f"flap{i}", flap, wing=i) for i in range(8))]
    there = StateInvariant("never", lambda v: Truth(2 * (v.value(at) < 9 or any(v.value(wing) == 0 for wing in wings))))
    model = Model("m", [at, *wings], actions, [there])
    result = explore(model, engine="symbolic")
    trace = result.property("never").trace
    assert trace is not None
    assert len(trace) == 9 + 8
    assert seen
    assert max(seen) < len(trace)
    same(explore(model, engine="plain"), result)


def test_a_long_count_is_learned_at_one_go() -> None:
    n = Slot("n", 0, "room")

    def up(v: View, context: None) -> Iterator[Out]:
        if v.value(n) < 100:
            outcome = v.outcome("ok")
            outcome[n] = v.value(n) + 1
            yield outcome

    lesson = first(Model("m", [n], [act("up", up)]))
    Scout(Walker(lesson.trees), lesson.semantics, lesson.initial, lesson.versions).follow(0, lesson.initial[0])
    assert len(lesson.domains.values[0]) == 101
    assert lesson.trees.learned == 101


def test_a_full_table_of_nodes_ends_undecided(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(symbolic, "NODES", 1 << 11)
    result = explore(toy.toy("d"), engine="symbolic")
    assert (result.stopped, result.verdict) == ("memory", "undecided")


def test_a_wrong_relation_does_not_become_a_verdict(monkeypatch: pytest.MonkeyPatch) -> None:
    """A trace that the plain actions do not take is an error of the engine."""
    right = Relation.image

    def wrong(self: Relation, effects: Any, states: Any) -> Any:
        return right(self, effects[:0], states) if len(effects) > 1 else self.encoding.constants([(0, 1)])

    monkeypatch.setattr(Relation, "image", wrong)
    n, m = Slot("n", 0, "room"), Slot("m", 0, "room")

    def up(v: View, context: None) -> Iterator[Out]:
        if v.value(m) == 0 and v.value(n) == 0:
            outcome = v.outcome("ok")
            outcome[n] = 1
            yield outcome

    model = Model("m", [n, m], [act("up", up)], [StateInvariant("low", lambda v: Truth(2 * (v.value(n) < 1 or v.value(m) == 0)))])
    assert explore(model, engine="symbolic").states >= 2  # the wrong image adds no violation here
    promise = StateInvariant("never", lambda v: Truth(2 * (v.value(n) == 0)))
    monkeypatch.setattr(Relation, "preimage", lambda self, effects, target, states: self.encoding.false)
    with pytest.raises(EngineError, match="no action leads"):
        explore(Model("m", [n, m], [act("up", up)], [promise]), engine="symbolic")


def test_order_keeps_groups_together() -> None:
    """Two rings that share nothing, given in mixed order, come apart."""
    groups = [frozenset({i, (i + 2) % 12}) for i in range(12)]
    order = slot_order(12, groups)
    assert sorted(order) == list(range(12))
    assert {slot % 2 for slot in order[:6]} in ({0}, {1})
    assert slot_order(4, []) == [0, 1, 2, 3]


def test_auto_says_why() -> None:
    """The toy protocol is what decision diagrams are good at; versions, few states or a wide action are not."""
    chosen = explore(toy.toy("d"), engine="auto")
    assert chosen.engine == "symbolic"
    assert "touched together" in chosen.choice
    few = explore(classics.peterson(), engine="auto")
    assert (few.engine, few.verdict) == ("explicit", "holds")
    assert "combinations at most" in few.choice
    slots = [Slot(f"s{i}", 0, "room") for i in range(40)]

    def shift(v: View, context: None) -> Iterator[Out]:
        outcome = v.outcome("ok")
        for one, other in pairwise(slots):
            outcome[one] = v.value(other)
        outcome[slots[-1]] = 1 - v.value(slots[0])
        yield outcome

    wide = Model("wide", slots, [act("shift", shift)])
    assert "touches 40 of 40 slots" in explore(wide, engine="auto").choice
