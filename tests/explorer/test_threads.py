"""Threads of the explicit engine: whatever their number, the same states under the same numbers, and the same of everything else.

A model of a few states is cut into many blocks and pieces, so that paths and names are missing in the middle of a block, and the table and
the fields grow there.
"""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable
from typing import Any

import attrs
import classics
import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from mortal_models import MortalMaker
from random_models import Maker, agree
from symmetric_models import SymmetricMaker
from test_reductions_agree import SLOW

from benchmarks.toy import toy
from dra_spec.cli.main import main
from dra_spec.explorer import Limits, Result, crew, explicit, explore, fingerprints, machine, parallel, rows
from dra_spec.explorer import arrays as k
from dra_spec.explorer.crew import Crew
from dra_spec.explorer.model import Action, ActionType, Model, ModelError, Slot
from dra_spec.explorer.reductions import NONE, Reductions
from dra_spec.scenario.modelfile import Overrides
from dra_spec.scenario.targets import scenarios

THREADS = (1, 2, 3)
UNLIMITED = Limits()
FIGURES = (
    *("states", "transitions", "depth", "stuck", "unexpanded", "complete", "stopped", "verdict", "actions", "warnings", "python_calls"),
    *("reductions", "fingerprints", "audit"),
)


@attrs.define
class Seen:
    """A result, and the arrays of the search that it comes from."""

    result: Result
    arrays: dict[str, Any]


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Makes everything as small as it may be."""

    def make(block: int = 7, pieces: int = 3, buffer: int = 2) -> None:
        for module, name, size in (
            *((parallel, "LEAST", 1), (parallel, "PIECES", pieces), (parallel, "_BATCH", 2), (rows, "_SHARED", 1), (rows, "_LATE", 1)),
            *((machine, "_BUFFER", buffer), (machine, "_REQUESTS", 3), (machine, "_NAMES", 4), (machine, "_AGAIN", 2)),
            *((explicit, "_CHUNK", block), (explicit, "_ARRANGED", 20)),
        ):
            monkeypatch.setattr(module, name, size)

    return make


def seen(model: Model, limits: Limits, reductions: Reductions = NONE, audit: bool = False) -> Seen:
    """Explores, and looks into the last search."""
    searches: list[explicit.ExplicitSearch] = []
    run = explicit.ExplicitSearch.run

    def kept(search: explicit.ExplicitSearch) -> Any:
        searches.append(search)
        return run(search)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(explicit.ExplicitSearch, "run", kept)
        result = explore(model, limits, reductions=reductions, audit=audit)
    last = searches[-1].machine
    states, edges = last.states, int(last.ctl[k.EDGES])
    store, work = last.store, last.work
    arrays = {name: getattr(store, name)[:states].copy() for name in ("parent", "via", "flags")}
    arrays["rows"] = np.array([store.numbers(state) for state in range(store.gone, states)])
    arrays["edges"], arrays["classes"] = store.edges[:edges].copy(), store.edge_class[:edges].copy()
    arrays |= {name: getattr(work, name).copy() for name in ("taken", "enabled", "saw", "step_bad")}
    arrays["reasons"] = work.beyond[: len(last.trees.reasons)].copy()
    arrays["values"] = [[repr(value) for value in values] for values in last.domains.values]
    return Seen(result, arrays)


def same(one: Seen, other: Seen) -> None:
    """All but times and the room that arrays have."""
    for name in FIGURES:
        assert getattr(other.result, name) == getattr(one.result, name), name
    for name, array in one.arrays.items():
        assert np.array_equal(array, other.arrays[name]) if isinstance(array, np.ndarray) else array == other.arrays[name], name
    for found, again in zip(one.result.properties, other.result.properties, strict=True):
        for attribute in ("promise", "verdict", "binding", "reason", "vacuous"):
            assert getattr(again, attribute) == getattr(found, attribute)
        assert (again.trace is None) == (found.trace is None)
        if found.trace is not None and again.trace is not None:
            assert [str(step) for step in again.trace.steps] == [str(step) for step in found.trace.steps]
            assert (again.trace.due, again.trace.loop) == (found.trace.due, found.trace.loop)
            assert list(again.trace.states) == list(found.trace.states)


def compare(model: Model, limits: Limits = UNLIMITED, reductions: Reductions = NONE, audit: bool = False) -> Seen:
    """One, two and three threads; gives what one finds."""
    one, *others = (seen(model, attrs.evolve(limits, threads=n), reductions, audit) for n in THREADS)
    for other in others:
        same(one, other)
    return one


@settings(max_examples=25, deadline=None, suppress_health_check=SLOW, phases=[Phase.explicit, Phase.reuse, Phase.generate])
@given(seed=st.integers(0, 1 << 30), block=st.sampled_from([1, 2, 5, 30]), pieces=st.integers(1, 5), data=st.data())
def test_random_models(tiny: Callable[..., None], seed: int, block: int, pieces: int, data: st.DataObject) -> None:
    tiny(block, pieces)
    model = Maker(seed, versions=seed % 2 == 0, beyond=seed % 5 == 0).model()
    limits = Limits(depth=6, expand_violating=seed % 3 == 0)
    one = compare(model, limits)
    agree(explore(model, limits, "plain"), one.result)
    if one.result.states > 1:
        compare(model, attrs.evolve(limits, max_states=data.draw(st.integers(1, one.result.states))))


@pytest.mark.nightly
@pytest.mark.parametrize("seed", range(2000))
def test_many_random_models(tiny: Callable[..., None], seed: int) -> None:
    tiny([1, 2, 5, 30][seed % 4], 1 + seed % 5)
    compare(Maker(seed, versions=seed % 2 == 0, beyond=seed % 5 == 0).model(), Limits(3000, expand_violating=seed % 3 == 0))


@pytest.mark.parametrize("seed", [0, 1, 2, 3, 5, 6])
def test_promises_about_runs(tiny: Callable[..., None], seed: int) -> None:
    """Edges are stored in the same order."""
    tiny()
    one = compare(Maker(seed, versions=False, beyond=False).model_with_runs(), Limits(max_states=1500))
    assert len(one.arrays["edges"])


@pytest.mark.parametrize("seed", range(8))
def test_dead_values_and_symmetry(tiny: Callable[..., None], seed: int) -> None:
    tiny(5 + seed)
    compare(MortalMaker(seed, seed % 2 == 0, honest=seed % 4 > 0).model(), Limits(1500), Reductions(dead=True), audit=True)
    compare(SymmetricMaker(seed, fair=seed % 4 > 0).model(), Limits(1500), Reductions(dead=True, symmetry=True))


@pytest.mark.parametrize("seed", range(4))
def test_stubborn_sets(tiny: Callable[..., None], seed: int) -> None:
    tiny(5 + seed)
    compare(SymmetricMaker(seed, fair=True).model(), Limits(1500), Reductions(por="stuck" if seed % 2 else "safety"))


@pytest.mark.parametrize("seed", range(6))
def test_fingerprints(tiny: Callable[..., None], seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    tiny()
    layouts = iter(range(1_000_000))
    monkeypatch.setattr(fingerprints, "too_wide", lambda words: next(layouts) >= seed % 3)
    model = Maker(seed, versions=seed % 2 == 0, beyond=False).model()
    found = []
    for threads in THREADS:
        layouts = iter(range(1_000_000))
        found.append(seen(model, Limits(depth=6, fingerprints=True, threads=threads)))
    assert seed % 3 or all(one.result.fingerprints is not None and one.result.fingerprints.bits for one in found)
    for other in found[1:]:
        same(found[0], other)


@pytest.mark.parametrize(
    "model",
    [
        *(classics.philosophers(4, ordered) for ordered in (False, True)),
        *(classics.peterson(polite) for polite in (False, True)),
        classics.two_phase_commit(3),
    ],
)
def test_classics(tiny: Callable[..., None], model: Model) -> None:
    tiny(40, 4)
    compare(model)


@pytest.mark.parametrize(
    ("name", "reductions", "most"),
    [
        ("h1", Reductions(dead=True), None),
        ("finished-pods", NONE, None),
        ("two-pods", Reductions(dead=True, symmetry=True), None),
        ("template-claim", Reductions(symmetry=True), 20_000),
        ("fair-node", NONE, 6_000),
    ],
)
def test_shipped_models(name: str, reductions: Reductions, most: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parallel, "LEAST", 50)
    monkeypatch.setattr(rows, "_SHARED", 1000)
    monkeypatch.setattr(explicit, "_CHUNK", 400)
    compare(scenarios([name], Overrides())[0].model, Limits(most), reductions)


def test_toy_as_it_is_run() -> None:
    """Blocks of the usual size; the search is long enough for several threads."""
    one = compare(toy("d"))
    assert one.result.states > 4 * parallel.LEAST


def test_small_models_start_no_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    def start(worker: Crew) -> None:
        raise AssertionError("a thread for a small model")

    monkeypatch.setattr(Crew, "_start", start)
    assert explore(toy("g"), Limits(threads=3)).complete


def test_threads_end_with_the_search(tiny: Callable[..., None], monkeypatch: pytest.MonkeyPatch) -> None:
    tiny()
    before, started = set(threading.enumerate()), []
    start = Crew._start

    def noted(worker: Crew) -> None:
        start(worker)
        started.extend(set(threading.enumerate()) - before)

    monkeypatch.setattr(Crew, "_start", noted)
    explore(classics.philosophers(4, True), Limits(threads=3))
    assert len(started) == 2
    for thread in started:
        thread.join(10)
        assert not thread.is_alive()


def test_a_slot_written_twice(tiny: Callable[..., None]) -> None:
    """Workers meet it in several states; the first of them is named, as by one thread."""
    tiny(30, 5)
    counter, x = Slot("counter", 0, "room"), Slot("x", 0, "room")

    def count(v: Any, context: None, by: int) -> Any:
        if v.value(counter) < 60:
            outcome = v.outcome("ok")
            outcome[counter] = v.value(counter) + by
            yield outcome

    def set_x(p: Any, to: int) -> None:
        p.write(x, to)

    def twice(v: Any, context: None) -> Any:
        if v.value(counter) > 20:
            yield v.outcome("ok").part(set_x, 1).part(set_x, v.value(counter))

    kinds = [(ActionType(name, fn, "writer"), params) for name, fn, params in (("one", count, {"by": 1}), ("two", count, {"by": 2}))]
    actions = [Action(kind, params, frozenset({"room"})) for kind, params in kinds]
    model = Model("m", [counter, x], [*actions, Action(ActionType("twice", twice, "writer"), {}, frozenset({"room"}))])
    said = set()
    for threads in THREADS:
        with pytest.raises(ModelError) as error:
            explore(model, Limits(threads=threads))
        said.add(str(error.value))
    assert len(said) == 1


@pytest.mark.parametrize("after", [0, 3, 20])
def test_interrupt(tiny: Callable[..., None], after: int) -> None:
    """What is stored when somebody interrupts is in order: each state has a path that runs again."""
    tiny(40, 4)
    asked = iter(range(1_000_000))
    result = explore(classics.two_phase_commit(4), Limits(threads=2), interrupted=lambda: next(asked) >= after)
    assert result.stopped == "interrupted"


def test_interrupt_within_a_block(tiny: Callable[..., None], monkeypatch: pytest.MonkeyPatch) -> None:
    """The second Ctrl-C raises wherever the caller is; the states that have a number are written all the same."""
    tiny(40, 4)
    ran = Crew.run
    for at in range(1, 12):
        calls = iter(range(1_000_000))

        def run(self: Crew, job: Callable[[int], None], calls: Any = calls, at: int = at) -> None:
            mine = next(calls)

            def broken(number: int) -> None:
                if number == 0 and mine == at:
                    raise KeyboardInterrupt
                job(number)

            ran(self, broken)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Crew, "run", run)
            found = seen(classics.two_phase_commit(4), Limits(threads=2))
        assert found.result.stopped == "interrupted"
        whole = seen(classics.two_phase_commit(4), Limits(threads=1))
        count = found.result.states
        for name in ("rows", "parent", "via"):
            assert np.array_equal(found.arrays[name], whole.arrays[name][:count]), (at, name)


def test_crew() -> None:
    team = Crew(3)
    done: list[int] = []
    team.run(done.append)
    assert sorted(done) == [0, 1, 2]

    def fail(number: int) -> None:
        if number:
            raise ValueError(number)

    with pytest.raises(ValueError, match="1"):
        team.run(fail)
    team.run(done.append)
    assert len(done) == 6
    team.close()
    team.run(done.append)
    assert len(done) == 9
    mine = [thread for thread in threading.enumerate() if thread.name.startswith("dra-spec worker")][-2:]
    del team  # nobody closed it
    gc.collect()
    for thread in mine:
        thread.join(10)
        assert not thread.is_alive()


def test_how_many() -> None:
    assert crew.size(1) == 1
    assert crew.size(0) == min(crew.cores(), crew.MOST)
    assert crew.size(1000) == crew.MOST


def test_command_line() -> None:
    for threads in ("1", "2"):
        done = CliRunner().invoke(main, ["check", "single-pod", "--threads", threads], prog_name="dra-spec")
        assert done.exit_code == 0, done.output
    for wrong in ("-1", "many"):
        done = CliRunner().invoke(main, ["check", "single-pod", "--threads", wrong], prog_name="dra-spec")
        assert done.exit_code == 2
        assert "--threads" in done.output
