"""Dead values: the reduction changes nothing but the number of states, and wrong declarations are found."""

from __future__ import annotations

import attrs
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from mortal_models import MortalMaker

from dra_spec.explorer import EngineError, Limits, Result, dead, explore
from dra_spec.explorer.control import Control
from dra_spec.explorer.model import LiveWhen, Model, Slot
from dra_spec.explorer.plain import PlainSearch
from dra_spec.explorer.reductions import Reductions
from dra_spec.explorer.semantics import Semantics
from dra_spec.explorer.values import key

DEAD = Reductions(dead=True)
LIMITS = Limits(max_states=600, depth=40, expand_violating=True)
ALL = list(HealthCheck)


def same(full: Result, reduced: Result) -> None:
    """All that resetting must not change."""
    for name in ("complete", "stopped", "verdict"):
        assert getattr(reduced, name) == getattr(full, name), name
    for one, other in zip(full.properties, reduced.properties, strict=True):
        assert (other.promise, other.verdict, other.vacuous) == (one.promise, one.verdict, one.vacuous)
        assert (None if other.trace is None else len(other.trace)) == (None if one.trace is None else len(one.trace)), one.promise
    assert [(a.name, a.never_enabled) for a in reduced.actions] == [(a.name, a.never_enabled) for a in full.actions]


def compare(model: Model) -> Result:
    """Compares a search with the plain one, and its states with the plain ones after resetting."""
    full, reduced = explore(model, LIMITS, "plain"), explore(model, LIMITS, reductions=DEAD)
    if not full.complete:  # a search that stops at a depth need not stop there when reduced
        for one, other in zip(full.properties, reduced.properties, strict=True):
            if one.trace is not None and full.stopped == "depth":
                assert other.trace is not None
                assert len(other.trace) == len(one.trace)
        return reduced
    same(full, reduced)
    plan = dead.find(model, {})
    if str(plan.report) == str(reduced.reductions[0]):
        search, semantics = PlainSearch(model, Control(LIMITS)), Semantics(model)
        search.run()
        settled = {number: key(semantics.renumber(settle(model, plan, state))) for number, state in enumerate(search.states)}
        assert reduced.states == len(set(settled.values()))
        assert reduced.stuck == len({settled[number] for number in search.stuck})
    return reduced


def settle(model: Model, plan: dead.Plan, state: tuple[object, ...]) -> tuple[object, ...]:
    view = Semantics(model).view(state)
    gone = {slot for live in plan.live if not live.predicate(view) for slot in live.slots}
    return tuple(dead.at_rest(slot) if slot in gone else value for slot, value in zip(model.slots, state, strict=True))


@given(seed=st.integers(0, 10**9), versions=st.booleans(), honest=st.booleans())
@settings(max_examples=12, deadline=None, suppress_health_check=ALL)
def test_resetting_changes_nothing_but_the_number_of_states(seed: int, versions: bool, honest: bool) -> None:
    compare(MortalMaker(seed, versions, honest).model())


@pytest.mark.nightly
@given(seed=st.integers(0, 10**9), versions=st.booleans(), honest=st.booleans())
@settings(max_examples=1000, deadline=None, suppress_health_check=ALL)
def test_resetting_changes_nothing_on_many_models(seed: int, versions: bool, honest: bool) -> None:
    compare(MortalMaker(seed, versions, honest).model())


def test_an_unchecked_declaration_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """A double that believes every declaration: the comparison above fails on some model."""
    monkeypatch.setattr(dead.Deaths, "failures", lambda self: iter(()))
    monkeypatch.setattr(dead.Deaths, "check", lambda *_: None)
    for seed in range(60):
        try:
            compare(MortalMaker(seed, False, honest=False).model())
        except Exception:
            return
    pytest.fail("nobody noticed")


def liar() -> Model:
    """A store that is used although its declaration says that it is dead then."""
    return next(
        model
        for seed in range(100)
        for model in [MortalMaker(seed, False, honest=False).model()]
        if all(not live.predicate(Semantics(model).view(tuple(1 for _ in model.slots))) for live in model.live)
    )


def test_a_lie_is_refused_with_the_function_that_looks() -> None:
    (report,) = explore(liar(), LIMITS, reductions=DEAD).reductions
    assert not report.applied
    assert "store0: use0(i=0, target=n" in report.reason
    assert "looks at store0 where it need not be live" in report.reason


def test_the_audit_finds_a_lie_that_nobody_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dead.Deaths, "failures", lambda self: iter(()))
    monkeypatch.setattr(dead.Deaths, "check", lambda *_: None)
    with pytest.raises(EngineError, match=r"audit: use\d\(i=\d, target=n\d\) depends on store\d, which is dead there"):
        explore(liar(), LIMITS, reductions=DEAD, audit=True)


def test_the_audit_says_what_it_tried() -> None:
    result = explore(MortalMaker(0, False, honest=True).model(), LIMITS, reductions=DEAD, audit=True)
    assert result.reductions[0].applied
    assert "dead slots: " in result.audit


def test_other_engines_say_that_they_do_not_have_it() -> None:
    for engine in ("plain", "symbolic"):
        (report,) = explore(MortalMaker(0, False, honest=True).model(), LIMITS, engine, reductions=DEAD).reductions
        assert str(report) == f"dead not used: the {engine} engine does not have it"


def test_a_predicate_about_a_slot_that_is_not_there_is_refused() -> None:
    """As in a sub-model of one promise."""
    model = MortalMaker(0, False, honest=True).model()
    gone = Slot[int]("gone", 0, "room")
    live = [LiveWhen(model.live[0].slots, lambda v: v.value(gone) == 0), *model.live[1:]]
    (report,) = explore(attrs.evolve(model, live=live), LIMITS, reductions=DEAD).reductions
    assert "its predicate fails: slot gone is not part of the model" in report.reason
