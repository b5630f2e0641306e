"""The audit finds functions that look at more than their view shows."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import classics
import pytest
from random_models import Maker

from benchmarks import toy
from dra_spec.explorer import EngineError, Limits, Result, explore
from dra_spec.explorer.model import Action, ActionType, Model, Outcome, PartView, Slot, StateInvariant, StepInvariant, Truth, View

A, B, HIDDEN = Slot("a", 0, "room"), Slot("b", 0, "room"), Slot("hidden", 0, "room")


def act(name: str, fn: Any, room: str = "room") -> Action:
    return Action(ActionType(name, fn, "writer"), {}, frozenset({room}))


def turn(v: View, context: None) -> Iterator[Outcome]:
    """Gives `hidden` all its values."""
    outcome = v.outcome("ok")
    outcome[HIDDEN] = (v.value(HIDDEN) + 1) % 3
    yield outcome


def count(v: View, context: None) -> Iterator[Outcome]:
    outcome = v.outcome("ok")
    outcome[A] = (v.value(A) + 1) % 2
    yield outcome


def peek(v: View, slot: Slot[Any]) -> Any:
    """Reads behind the recorder's back, which a function must not do."""
    recorder = v.read.__self__  # type: ignore[attr-defined]
    return recorder._state[recorder._index[slot]]


def audited(*actions: Action, properties: Any = (), engine: str = "explicit") -> Result:
    model = Model("m", [A, B, HIDDEN], [*actions, act("turn", turn), act("count", count)], properties)
    return explore(model, engine=engine, audit=True)


@pytest.mark.parametrize("engine", ["explicit", "symbolic", "plain"])
def test_honest_models_pass(engine: str) -> None:
    result = (
        explore(toy.toy("g"), engine=engine, audit=True) if engine != "plain" else explore(classics.peterson(), engine=engine, audit=True)
    )
    assert "leaves" in result.audit
    assert int(result.audit.split()[0].replace(",", "")) > 5
    assert explore(classics.peterson(), engine=engine).audit == ""


@pytest.mark.parametrize("seed", range(12))
def test_random_models_pass(seed: int) -> None:
    """Parts, projections, versions, promises about steps: none of them is blamed wrongly."""
    explore(Maker(seed, versions=seed % 2 == 0, beyond=seed % 3 == 0).model(), Limits(depth=5), audit=True)


def sly(v: View, context: None) -> Iterator[Outcome]:
    """Writes what it did not read."""
    if v.value(A) == 0:
        outcome = v.outcome("ok")
        outcome[B] = 1 if peek(v, HIDDEN) == 2 else 0
        yield outcome


def curious(v: View, context: None) -> Iterator[Outcome]:
    """What it reads next hangs on what it did not read."""
    if v.value(A) == 0 and (peek(v, HIDDEN) < 2 or v.value(B) == 0):
        yield v.outcome("ok")


@pytest.mark.parametrize("fn", [sly, curious])
@pytest.mark.parametrize("engine", ["explicit", "symbolic"])
def test_a_hidden_look_names_action_and_slot(fn: Any, engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if engine == "symbolic":
        monkeypatch.setattr("dra_spec.explorer.scout._BROAD", 1)
        monkeypatch.setattr("dra_spec.explorer.scout._WALKS", 0)
    with pytest.raises(EngineError, match=rf"audit: {fn.__name__}\(\) depends on hidden, which it did not read"):
        audited(act(fn.__name__, fn), engine=engine)


def test_a_part_that_peeks() -> None:
    def part(p: PartView) -> None:
        p.write(B, 1 if peek(p, HIDDEN) == 1 else 0)

    def action(v: View, context: None) -> Iterator[Outcome]:
        yield v.outcome("ok").part(part)

    with pytest.raises(EngineError, match=r"audit: part .*part\(\) of spread\(\) depends on hidden"):
        audited(act("spread", action))


def test_a_hidden_counter() -> None:
    """It changes only what is written, so that no tree contradicts itself while the search runs it once."""
    ticks = itertools.count()

    def ticking(v: View, context: None) -> Iterator[Outcome]:
        if v.value(A) == 0:
            outcome = v.outcome("ok")
            outcome[B] = next(ticks)
            yield outcome

    with pytest.raises(
        EngineError,
        match=r"audit: ticking\(\) is not deterministic: run twice in one state it .* yields other outcomes|no longer does what",
    ):
        audited(act("ticking", ticking))


def test_a_clock_that_stands_still_for_a_while() -> None:
    """Twice the same and then something else: what was learned differs from what is answered now."""
    world = {"day": 0}

    def by_day(v: View, context: None) -> Iterator[Outcome]:
        outcome = v.outcome("ok")
        outcome[B] = world["day"]
        yield outcome

    def promise(v: View) -> Truth:
        world["day"] = max(world["day"], v.value(A))
        return Truth.TRUE

    with pytest.raises(EngineError, match=r"by_day\(\) no longer does what was learned of it for the same reads \(none\)"):
        audited(act("by_day", by_day), properties=[StateInvariant("p", promise)])


def test_a_promise_that_remembers() -> None:
    seen: list[int] = []

    def first_time(v: View) -> Truth:
        seen.append(1)
        return Truth.TRUE if len(seen) == 1 else Truth.TRIVIAL

    with pytest.raises(EngineError, match="audit: promise only-once"):
        audited(properties=[StateInvariant("only-once", first_time)])


def test_a_promise_about_steps_that_peeks() -> None:
    lookups: list[int] = []

    def judge(before: View, after: View, action: Action, label: str) -> Truth:
        lookups.append(1)
        return Truth.TRUE if len(lookups) % 2 else Truth.TRIVIAL

    with pytest.raises(EngineError, match=r"audit: promise fickle at (turn|count)\(\) \[ok\] is not deterministic|no longer does"):
        audited(properties=[StepInvariant("fickle", lambda a: True, judge)])


def test_a_room_entered_in_other_surroundings() -> None:
    """It touches a foreign slot only where a slot that it did not read has a certain value."""
    foreign = Slot("foreign", 0, "elsewhere")

    def intruder(v: View, context: None) -> Iterator[Outcome]:
        if v.value(A) == 1 and peek(v, HIDDEN) == 2:
            v.value(foreign)
        yield v.outcome("ok")

    model = Model("m", [A, HIDDEN, foreign], [act("intruder", intruder), act("turn", turn), act("count", count)])
    with pytest.raises(EngineError, match=r"intruder\(\): touches foreign, which belongs to elsewhere"):
        explore(model, Limits(depth=2), audit=True)
