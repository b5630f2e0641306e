"""Searches with fingerprints: the same states and verdicts as with full rows, and what they may not say they do not say."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Literal

import attrs
import classics
import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st
from mortal_models import MortalMaker
from random_models import Maker
from symmetric_models import SymmetricMaker

from dra_spec.cli.main import main
from dra_spec.explorer import Limits, explicit, explore, fingerprints, machine
from dra_spec.explorer.arena import Growing
from dra_spec.explorer.model import (
    Action,
    ActionType,
    AlwaysPossible,
    LeadsTo,
    Model,
    Outcome,
    Property,
    StateInvariant,
    Truth,
    View,
)
from dra_spec.explorer.native import Kernel
from dra_spec.explorer.reductions import NONE, Reductions
from dra_spec.explorer.result import EngineError, Result
from dra_spec.explorer.rows import Store
from dra_spec.scenario.modelfile import Overrides
from dra_spec.scenario.targets import scenarios


@pytest.fixture
def forced(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Rows of more words than are given are not kept, and what is forgotten is spoilt at once."""

    def spoil(growing: Growing, length: int) -> None:
        growing.data[:length] = 0

    def force(words: int) -> None:
        monkeypatch.setattr(fingerprints, "_FULL_WORDS", words)

    monkeypatch.setattr(Growing, "forget", spoil)
    force(0)
    return force


def same(full: Result, narrow: Result, model: Model) -> None:
    """Everything but what is said of promises about the whole graph, and how much memory that took."""
    for attribute in ("states", "transitions", "depth", "stuck", "unexpanded", "complete", "stopped", "actions"):
        assert getattr(narrow, attribute) == getattr(full, attribute), attribute
    about_graph = {p.promise for p in model.properties if isinstance(p, (AlwaysPossible, LeadsTo))}
    for one, other in zip(full.properties, narrow.properties, strict=True):
        if one.promise in about_graph:
            assert (other.verdict, other.reason, other.trace) == ("undecided", fingerprints.WHOLE_GRAPH, None)
        else:
            assert (other.promise, other.verdict, other.binding) == (one.promise, one.verdict, one.binding)
            assert (None if other.trace is None else list(map(str, other.trace.steps))) == (
                None if one.trace is None else list(map(str, one.trace.steps))
            )
            assert other.reason == (str(narrow.fingerprints) if other.verdict == "holds" else one.reason)


@pytest.mark.parametrize(
    "model",
    [
        classics.philosophers(5, ordered=False),
        classics.philosophers(5, ordered=True),
        classics.peterson(),
        classics.peterson(polite=False),
        classics.two_phase_commit(4),
    ],
    ids=["philosophers", "ordered", "peterson", "impolite", "2pc"],
)
def test_classics(model: Model, forced: Callable[[int], None]) -> None:
    full, narrow = explore(model), explore(model, Limits(fingerprints=True))
    same(full, narrow, model)
    assert narrow.fingerprints is not None
    assert (narrow.fingerprints.bits, full.fingerprints) == (128, None)
    assert Fraction(narrow.fingerprints.omission) == Fraction(full.states * (full.states + 1), 2**129)


def test_rows_of_at_most_256_bits_are_kept() -> None:
    model = classics.philosophers(4, ordered=False)
    full, narrow = explore(model), explore(model, Limits(fingerprints=True))
    assert narrow.fingerprints is not None
    assert str(narrow.fingerprints) == "no fingerprints, exact: rows have at most 256 bits and are kept as they are"
    assert narrow.fingerprints.omission == 0
    assert [(p.verdict, p.reason) for p in narrow.properties] == [(p.verdict, p.reason) for p in full.properties]
    assert narrow.bytes_per_state == full.bytes_per_state


def test_a_wide_model() -> None:
    """A token goes round a hundred slots and turns each a little further; after some rounds they have 300 bits."""
    slots = [classics.slot(f"s{i}", 0) for i in range(100)]
    token = classics.slot("token", 0)

    def turn(v: View, context: None, index: int) -> Iterator[Outcome]:
        if v.value(token) == index:
            outcome = v.outcome("ok")
            outcome[slots[index]] = (v.value(slots[index]) + 1) % 8
            outcome[token] = (index + 1) % 100
            yield outcome

    def returns(v: View) -> Truth:
        return Truth.TRUE if v.value(token) == 0 else Truth.FALSE

    promises: list[Property] = [
        StateInvariant("last", lambda v: Truth(2 * (v.value(slots[99]) < 7))),
        StateInvariant("first", lambda v: Truth(2 * (v.value(slots[0]) < 8))),
        AlwaysPossible("returns", returns, lambda a: True),
    ]
    actions = [Action(ActionType(f"turn{i}", turn, "writer"), {"index": i}, classics.ROOM) for i in range(100)]
    model = Model("wide", [*slots, token], actions, promises)
    full, narrow = (explore(model, Limits(fingerprints=on)) for on in (False, True))
    assert full.states == 800
    same(full, narrow, model)
    found = narrow.property("last").trace
    assert found is not None
    assert len(found) == 700
    assert narrow.fingerprints is not None
    assert narrow.fingerprints.bits == 128


@pytest.mark.parametrize("seed", range(30))
def test_random_models(seed: int, forced: Callable[[int], None], monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows become too wide sooner or later in the search, and everything else grows at the same time."""
    model = Maker(seed, versions=seed % 2 == 0, beyond=seed % 5 == 0).model()
    for name, size in (("_BUFFER", 2), ("_RETRIES", 160), ("_REQUESTS", 2), ("_NAMES", 4)):
        monkeypatch.setattr(machine, name, size)
    monkeypatch.setattr(explicit, "_CHUNK", 3)
    monkeypatch.setattr(explicit, "_ARRANGED", 20)
    limits = Limits(depth=6, expand_violating=seed % 3 == 0)
    full = explore(model, limits)
    layouts = iter(range(100_000))
    monkeypatch.setattr(fingerprints, "too_wide", lambda words: next(layouts) >= seed % 4)
    narrow = explore(model, attrs.evolve(limits, fingerprints=True))
    assert narrow.fingerprints is not None
    if narrow.fingerprints.bits:
        same(full, narrow, model)
    else:  # the rows were not arranged so often
        assert seed % 4 > 1
        assert narrow.states == full.states


@pytest.mark.parametrize(
    ("name", "reductions"),
    [("h1", NONE), ("kubelet-restart", Reductions(dead=True, symmetry=True)), ("two-pods", Reductions(por="safety", cone=True))],
)
def test_shipped_models(name: str, reductions: Reductions, forced: Callable[[int], None]) -> None:
    """Rows of h1 become too wide while it is searched: two words where one may be kept."""
    forced(1 if name == "h1" else 0)
    model = scenarios([name], Overrides())[0].model
    full, narrow = (explore(model, Limits(fingerprints=on), reductions=reductions) for on in (False, True))
    assert narrow.fingerprints is not None
    assert narrow.fingerprints.bits == 128
    same(full, narrow, model)
    assert [report.name for report in narrow.reductions if report.applied] == [r.name for r in full.reductions if r.applied]


@pytest.mark.parametrize("seed", range(6))
def test_reductions_on_random_models(seed: int, forced: Callable[[int], None], monkeypatch: pytest.MonkeyPatch) -> None:
    """Old states that reductions ask for, in traces and audits, are found again by their paths."""
    monkeypatch.setattr(explicit, "_CHUNK", 7)
    modes: list[Literal["", "stuck", "safety"]] = ["", "stuck", "safety"]
    for model, reductions in (
        (MortalMaker(seed, seed % 2 == 0, honest=True).model(), Reductions(dead=True)),
        (SymmetricMaker(seed, fair=True).model(), Reductions(dead=True, symmetry=True, por=modes[seed % 3])),
    ):
        full, narrow = (explore(model, Limits(2000, fingerprints=on), audit=True, reductions=reductions) for on in (False, True))
        for attribute in ("states", "transitions", "depth", "stuck", "unexpanded", "complete", "stopped", "actions"):
            assert getattr(narrow, attribute) == getattr(full, attribute), attribute
        about_graph = {p.promise for p in model.properties if isinstance(p, (AlwaysPossible, LeadsTo))}
        for one, other in zip(full.properties, narrow.properties, strict=True):
            assert other.verdict == ("undecided" if one.promise in about_graph else one.verdict)
            assert one.promise in about_graph or (one.trace is None) == (other.trace is None)
        assert [report.applied for report in narrow.reductions] == [report.applied for report in full.reductions]


def test_a_weak_fingerprint_is_noticed(forced: Callable[[int], None], monkeypatch: pytest.MonkeyPatch) -> None:
    """Eight bits tell at most 256 states apart; the probability says so."""
    model = classics.two_phase_commit(4)
    monkeypatch.setattr(fingerprints, "_BITS", 8)
    weak = explore(model, Limits(fingerprints=True))
    assert weak.states <= 256 < explore(model).states
    assert weak.fingerprints is not None
    assert weak.fingerprints.omission == min(1.0, weak.states * (weak.states + 1) / 2**9) > 0.5
    (found,) = weak.properties
    assert found.reason.startswith("8-bit fingerprints: probability that a state was omitted at most N(N+1)/2^9 = ")


def test_a_trace_that_meets_another_state_is_noticed(forced: Callable[[int], None], monkeypatch: pytest.MonkeyPatch) -> None:
    """The way to a state is run again, and its end must have the fingerprint that was stored."""
    model = classics.peterson(polite=False)
    explored = explicit.ExplicitSearch(model, explicit.Control(Limits(fingerprints=True)))
    found = explored.run().found[0].state
    assert found is not None
    explored.machine.store.prints[found, 0] ^= np.uint64(1)
    with pytest.raises(EngineError, match="lead to one with another fingerprint"):
        explored.state(found)


def test_a_row_that_is_gone_cannot_be_read(forced: Callable[[int], None]) -> None:
    search = explicit.ExplicitSearch(classics.two_phase_commit(2), explicit.Control(Limits(fingerprints=True)))
    search.run()
    with pytest.raises(EngineError, match="the row of state 3 is not kept"):
        search.machine.store.numbers(3)
    assert search.machine.store.rows[search.machine.store.gone :].size < search.machine.store.rows.size


@given(st.lists(st.integers(1, 300), min_size=1, max_size=40), st.data())
@settings(max_examples=40, deadline=None)
def test_a_fingerprint_is_the_same_in_every_layout(sizes: list[int], data: st.DataObject) -> None:
    numbers = np.array([[data.draw(st.integers(0, size - 1)) for size in sizes] for _ in range(2)], np.int32)
    limits = np.array(sizes, np.int64)
    order = data.draw(st.permutations(range(len(sizes))))
    seen = []
    for layout_sizes, groups in ((limits, None), (limits * 5, [[slot] for slot in order])):
        store = Store(layout_sizes, False, 4, lambda extra: True)
        store.groups = groups
        assert store.repack(layout_sizes, 0)
        for n in range(2):
            store.rows[n] = store.pack(numbers[n])
        first, keys = fingerprints.keys(store.layout.limits)
        prints = np.zeros((2, 2), np.uint64)
        Kernel("kernels_store", "fingerprint")(store.layout.arrays, store.rows, 2, keys, first, prints, np.zeros(2, np.uint64))
        seen.append(prints)
        for n in range(2):
            assert list(prints[n]) == list(np.bitwise_xor.reduce(keys[first + numbers[n]], axis=0))
    assert np.array_equal(*seen)
    assert bool(np.all(seen[0][0] == seen[0][1])) == bool(np.all(numbers[0] == numbers[1]))


def test_the_probability_is_rounded_up() -> None:
    assert str(fingerprints.used(10**9)).endswith("= 2e-21")  # 10^18 / 6.8 * 10^38 = 1.47 * 10^-21
    assert str(fingerprints.used(2**64 - 1)).endswith("= 5e-01")
    assert str(fingerprints.used(2**70)).endswith("= 1")
    assert str(fingerprints.used(0)).endswith("= 0")


def test_memory_is_given_back() -> None:
    growing = Growing(1 << 10, (16,), np.uint64, 4)
    growing.data[:] = 7
    growing.forget(1000)
    growing.forget(500)
    assert (growing.data[1000:] == 7).all()
    growing.grow(1 << 12)
    assert (growing.data[1000 : 1 << 10] == 7).all()
    assert (growing.data[1 << 10 :] == 0).all()


def test_the_command_says_so(forced: Callable[[int], None]) -> None:
    done = CliRunner().invoke(main, ["check", "node-reboot", "--fingerprints", "-o", "json"], prog_name="dra-spec")
    told = json.loads(done.stdout)["models"][0]
    verdicts = {found["name"]: found["verdict"] for found in told["invariants"]}
    assert (done.exit_code, told["verdict"], told["states"]) == (3, "undecided", 120)
    assert (verdicts["prepared-device-exclusive"], verdicts["pod-eventually-runs"]) == ("holds", "undecided")
    assert told["fingerprints"]["bits"] == 128
    assert told["fingerprints"]["omission_probability"] == 120 * 121 / 2**129
    text = CliRunner().invoke(main, ["check", "node-reboot", "--fingerprints"], prog_name="dra-spec").stdout
    assert "(128-bit fingerprints: probability that a state was omitted at most N(N+1)/2^129 = 3e-35)" in text
    assert "pod-eventually-runs" in text.partition("undecided: ")[2].partition(fingerprints.WHOLE_GRAPH)[0]


def test_the_command_says_that_full_rows_are_kept() -> None:
    done = CliRunner().invoke(main, ["check", "node-reboot", "--fingerprints"], prog_name="dra-spec")
    assert done.exit_code == 0
    assert "engine explicit: holds (no fingerprints, exact: rows have at most 256 bits and are kept as they are)" in done.stdout
    done = CliRunner().invoke(main, ["check", "node-reboot", "--fingerprints", "--engine", "symbolic", "-o", "json"], prog_name="dra-spec")
    (told,) = json.loads(done.stdout)["models"]
    assert told["fingerprints"] == {
        "bits": 0,
        "omission_probability": 0.0,
        "text": "no fingerprints, exact: the symbolic engine does not have them",
    }
    plain = CliRunner().invoke(main, ["check", "node-reboot", "-o", "json"], prog_name="dra-spec")
    assert "fingerprints" not in json.loads(plain.stdout)["models"][0]
