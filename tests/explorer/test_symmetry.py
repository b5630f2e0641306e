"""Symmetry: which permutations are found, that nothing changes but the number of states, and that traces are those of the full model."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from symmetric_models import SymmetricMaker

from dra_spec.explorer import Limits, Result, explore, symmetry
from dra_spec.explorer.control import Control
from dra_spec.explorer.model import Model
from dra_spec.explorer.plain import PlainSearch
from dra_spec.explorer.reductions import Reductions
from dra_spec.explorer.symmetry_check import Checker
from dra_spec.explorer.symmetry_images import Element
from dra_spec.explorer.values import key

SYMMETRY = Reductions(symmetry=True)
LIMITS = Limits(max_states=800, expand_violating=True)
ALL = list(HealthCheck)


def image(element: Element, state: tuple[Any, ...]) -> tuple[Any, ...]:
    found: list[Any] = [None] * len(state)
    for slot, value in zip(element.slots, state, strict=True):
        found[slot] = element.renaming.value(value)
    return tuple(found)


def same(full: Result, reduced: Result) -> None:
    """All that symmetry must not change."""
    assert (reduced.complete, reduced.stopped, reduced.depth, reduced.verdict) == (full.complete, full.stopped, full.depth, full.verdict)
    for one, other in zip(full.properties, reduced.properties, strict=True):
        assert (other.promise, other.verdict, other.vacuous) == (one.promise, one.verdict, one.vacuous)
        assert (None if other.trace is None else len(other.trace)) == (None if one.trace is None else len(one.trace)), one.promise
    assert [(a.name, a.never_enabled) for a in reduced.actions] == [(a.name, a.never_enabled) for a in full.actions]


def compare(model: Model) -> Result | None:
    """Compares a search with the plain one; None if the model is too large."""
    full = explore(model, LIMITS, "plain")
    if not full.complete:
        return None
    reduced = explore(model, LIMITS, reductions=SYMMETRY)
    same(full, reduced)
    group = symmetry.find(model, {})
    if str(group.report) == str(reduced.reductions[0]):  # no permutation was refuted later
        search = PlainSearch(model, Control(LIMITS))
        search.run()
        orbit = [frozenset([key(state), *(key(image(e, state)) for e in group.in_use)]) for state in search.states]
        assert reduced.states == len(set(orbit))
        assert reduced.stuck == len({orbit[number] for number in search.stuck})
    return reduced


def check_seed(seed: int, fair: bool) -> None:
    compare(SymmetricMaker(seed, fair).model())


@given(seed=st.integers(0, 10**9), fair=st.booleans())
@settings(max_examples=15, deadline=None, suppress_health_check=ALL)
def test_symmetry_changes_nothing_but_the_number_of_states(seed: int, fair: bool) -> None:
    check_seed(seed, fair)


@pytest.mark.nightly
@given(seed=st.integers(0, 10**9), fair=st.booleans())
@settings(max_examples=1000, deadline=None, suppress_health_check=ALL)
def test_symmetry_changes_nothing_on_many_models(seed: int, fair: bool) -> None:
    check_seed(seed, fair)


def test_fair_models_are_reduced() -> None:
    """The reduction is not vacuous: where nothing prefers an object, the whole group is used."""
    for seed in range(20):
        model = SymmetricMaker(seed, fair=True).model()
        group = symmetry.find(model, {})
        if group.report.applied and len(group.elements) == 5:
            full, reduced = explore(model, LIMITS), explore(model, LIMITS, reductions=SYMMETRY)
            if full.complete and full.states > 100:
                assert full.states / reduced.states > 3
                return
    pytest.fail("no model with a group of six")


def test_an_unchecked_permutation_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """A double that believes every permutation: the comparison above fails on some model."""
    monkeypatch.setattr(Checker, "run", lambda self: self.todo.clear())
    monkeypatch.setattr(Checker, "finish", lambda self: None)
    for seed in range(60):
        try:
            check_seed(seed, fair=False)
        except Exception:
            return
    pytest.fail("nobody noticed")
