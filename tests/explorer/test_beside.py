"""The audit of dead values and symmetry: a search without the reduction stands beside the one with it."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from mortal_models import MortalMaker

from dra_spec.explorer import EngineError, Limits, beside, dead, explore
from dra_spec.explorer.dead_audit import DeadAudit
from dra_spec.explorer.model import Action, LiveWhen, Model, Outcome, Slot, StateInvariant, Truth, View, action
from dra_spec.explorer.reductions import Reductions

DEAD = Reductions(dead=True)
AT, LEFT, OTHER = Slot[int]("at", 0, "room"), Slot[int]("left", 0, "room"), Slot[int]("other", 0, "room")


@action("begin", writer="w", step="1", source="-")
def begin(v: View, context: None) -> Iterator[Outcome]:
    """Notes one of three values, and one that nobody needs."""
    if v.value(AT) == 0:
        for n in range(3):
            out = v.outcome(str(n))
            out[AT], out[LEFT], out[OTHER] = 1, n, n
            yield out


@action("use", writer="w", step="2", source="-")
def use(v: View, context: None) -> Iterator[Outcome]:
    """Goes on in the same way whatever was noted."""
    if v.value(AT) == 1 and v.value(LEFT) < 3:
        out = v.outcome()
        out[AT] = 2
        yield out


@action("end", writer="w", step="3", source="-")
def end(v: View, context: None) -> Iterator[Outcome]:
    """Ends where 1 was noted; so a slot that is dead by its declaration counts."""
    if v.value(AT) == 2 and v.value(LEFT) == 1:
        out = v.outcome()
        out[AT] = 3
        yield out


def model(left_is_live: Callable[[View], bool], *more: Action) -> Model:
    """Promises that 3 is not reached."""

    def few(v: View) -> Truth:
        return Truth.TRUE if v.value(AT) < 3 else Truth.FALSE

    return Model(
        name="noted",
        slots=[AT, LEFT, OTHER],
        actions=[Action(begin, {}, frozenset({"room"}), None), Action(use, {}, frozenset({"room"}), None), *more],
        properties=[StateInvariant("few", few)],
        live=[LiveWhen([LEFT], left_is_live), LiveWhen([OTHER], lambda v: False)],
    )


def test_the_audit_tells_what_each_declaration_saves() -> None:
    noted = model(lambda v: v.value(AT) == 1)
    assert [explore(noted).states, explore(noted, reductions=DEAD).states] == [7, 5]
    (report,) = explore(noted, reductions=DEAD, audit=True).reductions
    assert report.factor == "factor 1.40 (each declaration alone: left: 1.00, other: 1.00)"
    assert explore(noted, reductions=DEAD).reductions[0].factor == ""  # only where it was asked for


def test_a_lie_that_no_other_check_finds_is_found_by_the_search_beside(monkeypatch: pytest.MonkeyPatch) -> None:
    """A double that believes every declaration, and an audit that looks at no state."""
    monkeypatch.setattr(dead.Deaths, "failures", lambda self: iter(()))
    monkeypatch.setattr(dead.Deaths, "check", lambda *_: None)
    monkeypatch.setattr(DeadAudit, "run", lambda self, rows: "")
    lying = model(lambda v: v.value(AT) == 1, Action(end, {}, frozenset({"room"}), None))
    assert explore(lying).verdict == "violated"
    assert explore(lying, reductions=DEAD).verdict == "holds"
    with pytest.raises(EngineError, match="audit: few: holds with dead, and violated without it"):
        explore(lying, reductions=DEAD, audit=True)


def test_lengths_and_stuck_states_are_compared() -> None:
    first = explore(model(lambda v: True, Action(end, {}, frozenset({"room"}), None)))
    other = explore(model(lambda v: True))
    with pytest.raises(EngineError, match="violated with symmetry, and holds without it"):
        beside.compare("symmetry", first, other, Reductions(symmetry=True))
    stopped = explore(MortalMaker(0, False, honest=True).model(), Limits(max_states=3))
    beside.compare("dead", stopped, stopped, DEAD)


def test_a_search_that_stops_says_that_the_factor_is_not_known() -> None:
    (report,) = explore(model(lambda v: v.value(AT) == 1), Limits(max_states=4), reductions=DEAD, audit=True).reductions
    assert report.factor.startswith("factor unknown")
