"""Runs that break a leads-to promise: found by each engine in a shipped model, told, written to a file, replayed, refused when edited."""

from __future__ import annotations

from pathlib import Path

import attrs
import pytest

from dra_spec.explorer import explore, symbolic
from dra_spec.explorer.model import LeadsTo
from dra_spec.properties.bind import bind
from dra_spec.properties.invariant import find
from dra_spec.scenario.modelfile import Overrides
from dra_spec.scenario.scenario import Scenario
from dra_spec.scenario.strict import InputError
from dra_spec.scenario.targets import scenarios
from dra_spec.traces import tracefile
from dra_spec.traces.counterexample import counterexample
from dra_spec.traces.replayer import replay
from dra_spec.traces.story import text
from dra_spec.traces.trace import Trace

PROMISE = "prepared-leads-to-unprepared"


def only(name: str, **overrides: bool) -> Scenario:
    (found,) = scenarios([name], Overrides(**overrides))  # type: ignore[arg-type]
    return found


@pytest.fixture(scope="module")
def trace() -> Trace:
    scenario = only("fair-node")
    found = counterexample(scenario, explore(scenario.model).property(PROMISE))
    assert found.verdict == "confirmed"
    return found.trace


def test_a_retry_for_ever_is_told_with_its_loop(trace: Trace) -> None:
    """1.37.2: the device stays prepared for a claim that is gone, so the next pod's prepare fails again and again."""
    assert trace.due is not None
    assert trace.loop is not None
    assert 0 < trace.due < trace.loop < len(trace.steps)
    looping = {step.action for step in trace.steps[trace.loop :]}
    assert {"kubelet.prepare_send", "plugin.record_started", "kubelet.prepare_failed"} <= looping
    told = text(trace)
    assert f"by a run of {len(trace.steps)} steps, the last {len(trace.steps) - trace.loop} of them for ever" in told
    due, loop = told.index("from here on the goal is owed"), told.index("from here on the steps repeat for ever")
    assert told.index(f"{trace.due:4}. ") < due < told.index(f"{trace.due + 1:4}. ") < loop < told.index(f"{trace.loop + 1:4}. ")
    assert "each action that the promise counts on (protocol, timeout) is taken or disabled again and again" in told


def test_the_file_holds_the_loop(trace: Trace, tmp_path: Path) -> None:
    path = tmp_path / "trace.yaml"
    tracefile.save(trace, path)
    assert tracefile.load(path) == trace
    written = path.read_text()
    assert f"\ndue: {trace.due}\nloop: {trace.loop}\nsteps:" in written
    with pytest.raises(InputError, match=r"due: expected loop beside it|due.*expected loop"):
        tracefile.loads(written.replace(f"\nloop: {trace.loop}", ""), "t.yaml")
    with pytest.raises(InputError, match=f"expected the number of a step from {trace.due} on"):
        tracefile.loads(written.replace(f"\nloop: {trace.loop}", "\nloop: 0"), "t.yaml")


def test_replay_demands_a_fair_loop(trace: Trace) -> None:
    assert replay(trace).confirmed
    assert trace.loop is not None
    for edited in (
        attrs.evolve(trace, loop=trace.loop + 1),  # does not lead back
        attrs.evolve(trace, due=0),  # nothing is owed there
        attrs.evolve(trace, loop=len(trace.steps)),  # the run may not end there: the retry is enabled
        attrs.evolve(trace, due=None, loop=None),
        attrs.evolve(trace, steps=trace.steps[:-1]),
        attrs.evolve(trace, loop=len(trace.steps) + 5),
    ):
        assert replay(edited).verdict == f"spurious ({PROMISE} is not broken at the end)"


def test_a_run_that_may_end_is_told_so() -> None:
    scenario = attrs.evolve(only("kubelet-restart"))
    invariant = find(PROMISE)
    model = attrs.evolve(scenario.model, properties=bind(invariant, scenario.instance))
    scenario = attrs.evolve(scenario, model=model, invariants={PROMISE: invariant})
    found = counterexample(scenario, explore(model).property(PROMISE))
    assert found.trace.loop == len(found.trace.steps)
    assert "by a run that may end after" in text(found.trace)
    assert "the run may end here" in text(found.trace)


def test_the_repairs_keep_the_promise() -> None:
    assert explore(only("fair-node", repaired=True).model).verdict == "holds"


@pytest.mark.full
def test_decision_diagrams_agree(monkeypatch: pytest.MonkeyPatch, trace: Trace) -> None:
    monkeypatch.setattr(symbolic, "NODES", 1 << 22)
    monkeypatch.setattr(symbolic, "CACHE", 1 << 18)
    scenario = only("fair-node")
    found = counterexample(scenario, explore(scenario.model, engine="symbolic").property(PROMISE))
    assert (found.verdict, found.trace.due) == ("confirmed", trace.due)


def test_what_a_model_is_fair_to() -> None:
    """Containers may run for ever, users may do nothing, faults need not happen; a kubelet and a plugin go on."""
    scenario = only("fair-node")
    promises = [p for p in scenario.model.properties if isinstance(p, LeadsTo)]
    assert [dict(p.binding) for p in promises] == [{"n": "n1", "l": "accel.example.org", "e": claim} for claim in ("c1", "c2")]
    fair = {action.name for action in scenario.model.actions if promises[0].fair(action)}
    assert {"kubelet.restart", "plugin.set_up", "scheduler.place"} <= fair
    assert not {"kubelet.crash", "workload.delete_pod", "workload.exit_containers"} & fair
