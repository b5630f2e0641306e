"""Classic models: known counts, known verdicts, on both engines."""

from __future__ import annotations

import classics
import numpy as np
import pytest

from benchmarks import toy
from dra_spec.explorer import explore

ENGINES = ("plain", "explicit")


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("count", [2, 3, 5])
def test_philosophers_meet_the_deadlock(engine: str, count: int) -> None:
    result = explore(classics.philosophers(count, ordered=False), engine=engine)
    # a philosopher has 0, 1 or 2 forks; whoever has 2 leaves his neighbour none: closed walks of length `count`
    neighbours = np.array([[1, 1, 1], [1, 1, 1], [1, 0, 0]])
    assert result.states == np.trace(np.linalg.matrix_power(neighbours, count))
    assert result.stuck == 1
    deadlock = result.property("no-deadlock")
    assert deadlock.verdict == "violated"
    assert deadlock.trace is not None
    assert {str(s.action) for s in deadlock.trace.steps} == {f"philosopher.take(who={i}, which=0)" for i in range(count)}
    assert len(deadlock.trace) == count
    hungry = result.property("each-can-eat")
    assert hungry.verdict == "violated"
    assert hungry.trace is not None
    assert len(hungry.trace) == count
    assert "no goal" in hungry.reason


@pytest.mark.parametrize("engine", ENGINES)
def test_an_order_of_forks_removes_the_deadlock(engine: str) -> None:
    result = explore(classics.philosophers(4, ordered=True), engine=engine)
    assert result.complete
    assert result.stuck == 0
    assert {p.promise: p.verdict for p in result.properties} == {"no-deadlock": "holds", "each-can-eat": "holds"}


@pytest.mark.parametrize("engine", ENGINES)
def test_peterson(engine: str) -> None:
    result = explore(classics.peterson(), engine=engine)
    assert result.states == classics.peterson_states(polite=True)
    assert result.verdict == "holds"
    assert not any(p.vacuous for p in result.properties)


@pytest.mark.parametrize("engine", ENGINES)
def test_peterson_without_politeness(engine: str) -> None:
    """Without the write to `turn` process 0 is the only one that ever waits for the other."""
    result = explore(classics.peterson(polite=False), engine=engine)
    assert result.states == classics.peterson_states(polite=False)
    exclusion = result.property("mutual-exclusion")
    assert exclusion.verdict == "violated"
    assert exclusion.trace is not None
    assert len(exclusion.trace) == 6
    entering = result.property("enters-alone")
    assert entering.verdict == "violated"
    assert entering.trace is not None
    assert len(entering.trace) == 6
    assert entering.trace.steps[-1].label == "waiting"


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(("count", "states"), [(3, 288), (4, 1568)])
def test_two_phase_commit(engine: str, count: int, states: int) -> None:
    """TLC and Stateright report the same numbers for this specification."""
    result = explore(classics.two_phase_commit(count), engine=engine)
    assert result.states == states
    assert result.verdict == "holds"


@pytest.mark.parametrize("name", ["g", "c", "d", "i", "e", "m", *(pytest.param(name, marks=pytest.mark.full) for name in "lq")])
def test_toy_counts(name: str) -> None:
    """The counts that SPIN, TLC and Stateright report for the same protocol."""
    config = toy.CONFIGS[name]
    result = explore(toy.toy(name))
    assert (result.states, result.transitions, result.depth + 1) == (config.states, config.transitions, config.depth)
    assert result.verdict == "holds"
    assert result.complete
    assert result.python_calls < 5000
    assert result.bytes_per_state < 100


def test_toy_on_the_plain_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    """A configuration that is small enough for it; the peers were not asked."""
    monkeypatch.setitem(toy.CONFIGS, "tiny", toy.Config(((0,), (0,)), 1, 1, 1, 0, 0, 0))
    plain, explicit = (explore(toy.toy("tiny"), engine=engine) for engine in ENGINES)
    assert (explicit.states, explicit.transitions, explicit.depth) == (plain.states, plain.transitions, plain.depth)
    assert explicit.actions == plain.actions
    assert plain.states > 1000


@pytest.mark.parametrize(
    ("name", "bug", "promise", "length"),
    [
        ("c", "unprepare", "in-use-is-prepared", 23),
        ("c", "inflight", "no-double-allocation", 14),
        ("e", "unprepare", "in-use-is-prepared", 18),
        ("e", "inflight", "no-double-allocation", 6),
    ],
)
def test_toy_bugs(name: str, bug: str, promise: str, length: int) -> None:
    """Shortest counterexamples as long as those of SPIN's breadth-first search."""
    found = explore(toy.toy(name, bug)).property(promise)
    assert found.verdict == "violated"
    assert found.trace is not None
    assert len(found.trace) == length
