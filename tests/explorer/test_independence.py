"""Reductions that rest on footprints: partial order, merged steps, sub-models. On random models they must say what a full search says."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any, cast

import attrs
import numpy as np
import pytest
from classics import peterson, philosophers, two_phase_commit
from click.testing import CliRunner
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from loose_models import ALL, SAFETY, WITH_RUNS, loose, same_verdicts, walkers

from benchmarks import toy
from dra_spec.cli.main import main
from dra_spec.explorer import EngineError, Limits, Result, explore, footprints, known_values, por
from dra_spec.explorer.audit_independence import audit
from dra_spec.explorer.footprints import Footprint
from dra_spec.explorer.independence import Independence
from dra_spec.explorer.model import Action, Model, Outcome, Slot, StateInvariant, StepInvariant, Truth, View, action
from dra_spec.explorer.reductions import Reductions
from dra_spec.explorer.semantics import Semantics
from dra_spec.scenario.modelfile import Overrides
from dra_spec.scenario.targets import scenarios

SEEDS = st.integers(0, 10**9)
MOST = 3_000
FULLY = Limits(max_states=MOST, expand_violating=True)


def both(model: Model, reduce: str, audited: bool = False) -> tuple[Result, Result] | None:
    """A search of the full model and a reduced one; None if the model is too large."""
    full = explore(model, FULLY)
    if full.stopped == "max-states":
        return None
    return full, explore(model, Limits(expand_violating=True), reductions=Reductions.parse(reduce), audit=audited)


def some(seed: int, kinds: Sequence[type]) -> Model:
    """Every second model is one of walkers."""
    return walkers(seed, kinds) if seed % 2 else loose(seed, kinds, seed % 3 == 0)


def applied(result: Result, name: str) -> bool:
    return any(report.name == name and report.applied for report in result.reductions)


def check_por(seed: int) -> None:
    found = both(some(seed, SAFETY), "por", seed % 4 == 0)
    if found is not None:
        full, reduced = found
        same_verdicts(full, reduced, lengths=True)
        if applied(reduced, "por"):
            assert reduced.states <= full.states


def check_stuck(seed: int) -> None:
    found = both(some(seed, SAFETY), "por=stuck")
    if found is not None and applied(found[1], "por"):
        full, reduced = found
        assert reduced.stuck == full.stuck
        for one, other in zip(full.properties, reduced.properties, strict=True):
            if "stuck" in one.promise:
                assert (other.verdict, len(other.trace or ())) == (one.verdict, len(one.trace or ()))
            else:
                assert other.verdict in (one.verdict, "undecided")


def check_merge(seed: int) -> None:
    found = both(some(seed, ALL), "merge", seed % 4 == 0)
    if found is not None:
        same_verdicts(*found, lengths=False)
        assert found[1].stuck == found[0].stuck


def check_cone(seed: int) -> None:
    found = both(some(seed, WITH_RUNS), "cone", seed % 4 == 0)
    if found is not None:
        full, reduced = found
        for one, other in zip(full.properties, reduced.properties, strict=True):
            if other.verdict == one.verdict:
                assert len(other.trace or ()) == len(one.trace or ())
            else:  # the bounds that the full model met cannot influence this promise
                assert (one.verdict, full.stopped is not None) == ("undecided", True)


def check_together(seed: int) -> None:
    found = both(some(seed, SAFETY), "cone,merge,por")
    if found is not None:
        full, reduced = found
        for one, other in zip(full.properties, reduced.properties, strict=True):
            assert other.verdict == one.verdict or (one.verdict == "undecided" and full.stopped is not None)


CHECKS = {"por": check_por, "stuck": check_stuck, "merge": check_merge, "cone": check_cone, "together": check_together}


@pytest.mark.parametrize("name", CHECKS)
@given(seed=SEEDS)
@settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck))
def test_random_models(name: str, seed: int) -> None:
    CHECKS[name](seed)


@pytest.mark.nightly
@pytest.mark.parametrize("name", CHECKS)
@given(seed=SEEDS)
@settings(max_examples=400, deadline=None, suppress_health_check=list(HealthCheck))
def test_many_random_models(name: str, seed: int) -> None:
    CHECKS[name](seed)


# test doubles: reductions that are not sound


UNSOUND_SEEDS = range(1, 80, 2)  # walkers


def caught(name: str) -> bool:
    """Whether the checks of random models, or the audits and comparisons that run beside a reduction, find out."""
    for seed in UNSOUND_SEEDS:
        try:
            CHECKS[name](seed)
        except (AssertionError, EngineError):
            return True
    return False


@pytest.mark.parametrize("name", ["por", "stuck", "merge"])
def test_a_reduction_that_ignores_dependence_is_caught(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Independence, "_accord", lambda *_: True)
    assert caught(name)


@pytest.mark.parametrize("name", ["por", "stuck"])
def test_a_reduction_that_forgets_who_opens_a_guard_is_caught(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Independence, "_may_write", lambda *_: False)
    assert caught(name)


def test_a_sub_model_that_forgets_what_decides_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(footprints.Footprints, "may_write", lambda self, action: frozenset())
    assert caught("cone")


# the audit


def test_the_audit_names_a_slot_outside_of_a_footprint() -> None:
    model = peterson()
    relations = Independence(footprints.footprints(model))
    states = Semantics(model).initial_states()
    assert audit(relations, states).startswith("footprints and order of actions in 1 states")
    relations.footprints.actions = [Footprint(frozenset(), f.writes, True) for f in relations.footprints.actions]
    with pytest.raises(EngineError, match=r"process.step\(me=0\) looks at pc0, which is not in its footprint"):
        audit(relations, states)


def test_the_audit_finds_two_actions_whose_order_counts() -> None:
    model = philosophers(2, ordered=False)
    semantics = Semantics(model)
    relations = Independence(footprints.footprints(model))
    relations.in_the_way = [frozenset() for _ in model.actions]
    with pytest.raises(EngineError, match="are said to accord, and do not"):
        audit(relations, [move.after for move in semantics.moves(semantics.initial_states()[0])])


# known models


@pytest.mark.parametrize("model", [peterson(), two_phase_commit(3)], ids=lambda model: model.name)
def test_classics_keep_their_verdicts(model: Model) -> None:
    safe = attrs.evolve(model, properties=[p for p in model.properties if isinstance(p, tuple(SAFETY))])
    found = both(safe, "por")
    assert found is not None
    same_verdicts(*found, lengths=True)


def test_two_phase_commit_shrinks() -> None:
    full = explore(two_phase_commit(4))
    reduced = explore(two_phase_commit(4), reductions=Reductions.parse("por=stuck"))
    assert full.states == 1568
    assert reduced.states * 2 < full.states
    assert reduced.stuck == full.stuck
    (report,) = reduced.reductions
    assert report.factor == f"factor {full.states / reduced.states:.1f}"
    assert {found.verdict for found in reduced.properties} == {"undecided"}


def test_the_philosophers_deadlock_is_found_by_a_shortest_run() -> None:
    table = philosophers(5, ordered=False)
    model = attrs.evolve(table, properties=[p for p in table.properties if p.promise == "no-deadlock"])
    for mode in ("stuck", "safety"):
        reduced = explore(model, reductions=Reductions.parse(f"por={mode}"))
        found = reduced.property("no-deadlock")
        assert found.verdict == "violated"
        assert found.trace is not None
        assert len(found.trace) == 5
        assert reduced.stuck == 1


@pytest.mark.parametrize(("name", "stuck"), [("g", 4), ("c", 1), pytest.param("d", 1, marks=pytest.mark.full)])
def test_toy(name: str, stuck: int) -> None:
    """Both modes shrink the toy protocol, and keep its verdicts and its stuck states."""
    full = explore(toy.toy(name))
    safe = explore(toy.toy(name), reductions=Reductions.parse("por"))
    final = explore(toy.toy(name), reductions=Reductions.parse("por=stuck"))
    assert full.stuck == final.stuck == stuck
    assert safe.verdict == full.verdict == "holds"
    assert final.states < safe.states < full.states


@pytest.mark.parametrize(("bug", "promise", "length"), [("unprepare", "in-use-is-prepared", 23), ("inflight", "no-double-allocation", 14)])
def test_toy_bugs(bug: str, promise: str, length: int) -> None:
    """Shortest counterexamples are as long as without the reduction."""
    found = explore(toy.toy("c", bug), reductions=Reductions.parse("por")).property(promise)
    assert found.trace is not None
    assert len(found.trace) == length


# refusals and reports


def test_promises_about_runs_are_refused() -> None:
    result = explore(peterson(), reductions=Reductions.parse("por"))
    (report,) = result.reductions
    assert not report.applied
    assert "can-enter" in report.reason
    assert result.verdict == "holds"


def test_the_mode_for_stuck_states_does_not_go_with_a_depth() -> None:
    result = explore(two_phase_commit(2), Limits(depth=3), reductions=Reductions.parse("por=stuck"))
    (report,) = result.reductions
    assert not report.applied
    assert "depth" in report.reason


def test_a_search_that_was_stopped_has_no_factor() -> None:
    (report,) = explore(two_phase_commit(3), Limits(max_states=10), reductions=Reductions.parse("por")).reductions
    assert report.factor == "factor unknown, the search with it was stopped"


def test_other_engines_refuse() -> None:
    (report,) = explore(two_phase_commit(2), engine="plain", reductions=Reductions.parse("por")).reductions
    assert str(report) == "por not used: the plain engine does not have it"


def test_auto_measures_whether_it_pays(monkeypatch: pytest.MonkeyPatch) -> None:
    auto = attrs.evolve(Reductions.parse("por"), auto=True)
    monkeypatch.setattr(por, "_PAYS", 0.0)
    (report,) = explore(two_phase_commit(3), reductions=auto).reductions
    assert not report.applied
    assert "of the enabled actions" in report.reason
    monkeypatch.setattr(por, "_PAYS", 1.0)
    (report,) = explore(two_phase_commit(3), reductions=auto).reductions
    assert report.applied


def test_a_sub_model_says_what_it_leaves_out() -> None:
    seed = next(seed for seed in range(50) if _left_out(seed))
    (report,) = (r for r in explore(loose(seed, ALL), FULLY, reductions=Reductions.parse("cone")).reductions if r.name == "cone")
    assert "writers left out: " in report.reason


def _left_out(seed: int) -> bool:
    model = loose(seed, ALL)
    return bool(model.properties) and any(
        "writers left out" in r.reason for r in explore(model, FULLY, reductions=Reductions(cone=True)).reductions
    )


@action("counter.count", writer="counter")
def count(v: View, slots: tuple[Slot[int], Slot[int]]) -> Iterator[Outcome]:
    """Counts for ever."""
    outcome = v.outcome()
    outcome[slots[0]] = v.value(slots[0]) + 1
    yield outcome


def test_an_action_that_is_too_wide_counts_as_its_room(monkeypatch: pytest.MonkeyPatch) -> None:
    """The slot that it counts in may have any number, and all other slots of its room any value; a promise about its steps looks at all."""
    monkeypatch.setattr(known_values, "MOST_VALUES", 40)
    slots: list[Slot[int]] = [Slot("number", 0, "room"), Slot("other", 0, "room"), Slot("elsewhere", 0, "elsewhere")]
    step = StepInvariant("step", lambda a: True, lambda v, after, a, label: Truth.TRUE)
    state = StateInvariant("state", lambda v: Truth(2 * (v.value(slots[2]) == 0)))
    model = Model("counter", slots, [Action(count, {}, frozenset({"room"}), tuple(slots[:2]))], [step, state])
    found = footprints.footprints(model)
    (one,) = found.actions
    assert (one.exact, one.reads, one.writes) == (False, {0, 1}, {0, 1})
    assert set(found.values.wide) == {0, 1}
    assert found.property(0).reads == {0, 1, 2}
    assert (found.property(1).exact, found.property(1).reads) == (True, {2})
    reduced = explore(model, Limits(max_states=50), reductions=Reductions.parse("por"))
    assert str(reduced.reductions[0]).startswith(
        "por not used: no action's footprint is known in all states: number: it may have more than"
    )


def test_footprints_hold_for_versions_without_bound() -> None:
    """A counter of versions has no last value; its footprint is exact all the same."""
    seed = next(seed for seed in range(50) if any("v0" in slot.name for slot in loose(seed).slots))
    found = footprints.footprints(loose(seed))
    assert all(footprint.exact for footprint in found.actions)
    assert np.all([len(values) < 100 for values in found.values.values])


# on the command line, and shipped models


def call(*arguments: str) -> dict[str, Any]:
    done = CliRunner().invoke(main, [*arguments, "-o", "json"], prog_name="dra-spec")
    assert done.exit_code == 0, done.output
    (model,) = json.loads(done.stdout)["models"]
    return cast(dict[str, Any], model)


def test_the_command_line_reports_the_factor() -> None:
    model = call("check", "vanishing-device", "--por")
    (report,) = model["reductions"]
    assert report["applied"]
    assert report["factor"].startswith("factor ")
    assert "mode safety" in report["reason"]
    assert model["verdict"] == "holds"


FULL_TIER = [pytest.param(name, marks=pytest.mark.full) for name in ("plugin-restart", "vanishing-device", "shared-on-node")]


@pytest.mark.parametrize("name", ["kubelet-restart", *FULL_TIER])
def test_shipped_models_keep_their_verdicts(name: str) -> None:
    (scenario,) = scenarios([name], Overrides())
    model = attrs.evolve(scenario.model, properties=[p for p in scenario.model.properties if isinstance(p, tuple(SAFETY))])
    full = explore(model)
    for reduce in ("cone,merge,por", "dead,symmetry,por"):
        reduced = explore(model, reductions=Reductions.parse(reduce), audit=True)
        for one, other in zip(full.properties, reduced.properties, strict=True):
            assert other.verdict == one.verdict
            assert (None if other.trace is None else len(other.trace)) == (None if one.trace is None else len(one.trace))


@pytest.mark.parametrize("name", ["two-schedulers", pytest.param("h1", marks=pytest.mark.full)])
def test_models_with_a_scheduler_have_exact_footprints(name: str) -> None:
    """Its watch queues, and the pairs of objects in its cache, have too many values to list; their parts have not."""
    (scenario,) = scenarios([name], Overrides())
    assert all(footprint.exact and not footprint.escapes for footprint in footprints.footprints(scenario.model).actions)


def test_auto_does_not_take_long_for_footprints() -> None:
    """Without footprints nothing is left out, and the report says why."""
    (scenario,) = scenarios(["h1"], Overrides())
    reports = {report.name: report for report in explore(scenario.model, reductions=Reductions.parse("auto")).reductions}
    assert not reports["por"].applied
    assert "no action's footprint is known in all states" in reports["por"].reason
