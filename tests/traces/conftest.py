"""A small model for the tests of traces: an object in the API, a cache that lags, a writer that trusts its cache."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import attrs
import pytest

from dra_spec.explorer.model import Action, Kind, Model, Outcome, Slot, StateInvariant, Storage, Truth, View, action
from dra_spec.explorer.semantics import Move, Semantics
from dra_spec.explorer.values import Version
from dra_spec.traces.trace import ModelRef, Trace, record


@attrs.frozen
class Thing:
    rv: Version
    owner: str | None = None
    labels: frozenset[str] = frozenset()


API: Slot[Thing] = Slot("thing", Thing(Version("rv/thing/t", 0)), "api", Storage.API)
CACHES: dict[str, Slot[Thing]] = {w: Slot(f"{w}/thing", Thing(Version("rv/thing/t", 0)), w) for w in ("ann", "bob")}
BELIEVES: dict[str, Slot[bool]] = {w: Slot(f"{w}/owns", False, w) for w in ("ann", "bob")}


@action("writer.take", writer="scheduler", step="T1")
def take(v: View, _: None, who: str) -> Iterator[Outcome]:
    """Takes the thing if the cache says that nobody has it."""
    if v[CACHES[who]].owner is not None or v.value(BELIEVES[who]):
        return
    ok = v.outcome("ok")
    ok[API] = Thing(v[API].rv.next(), who, v[API].labels)
    ok[BELIEVES[who]] = True
    yield ok
    refused = v.outcome("refused")
    refused[BELIEVES[who]] = False
    yield refused


@action("writer.watch", writer="scheduler", step="T2")
def watch(v: View, _: None, who: str) -> Iterator[Outcome]:
    """Brings the cache up to date."""
    if v[CACHES[who]].rv == v[API].rv:
        return
    ok = v.outcome("ok")
    ok[CACHES[who]] = v.value(API)
    yield ok


@action("user.drop", writer="workload", step="T3", kind=Kind.USER)
def drop(v: View, _: None) -> Iterator[Outcome]:
    """Somebody takes the thing away."""
    if v[API].owner is None:
        return
    ok = v.outcome("ok")
    ok[API] = Thing(v[API].rv.next())
    yield ok


def _one_owner(v: View) -> Truth:
    return Truth.FALSE if all(v.value(b) for b in BELIEVES.values()) else Truth.TRUE


def toy() -> Model:
    rooms = frozenset({"api", "ann", "bob"})
    actions = [Action(t, {"who": w}, rooms) for t in (take, watch) for w in CACHES] + [Action(drop, {}, rooms)]
    slots = [API, *CACHES.values(), *BELIEVES.values()]
    return Model("toy", slots, actions, [StateInvariant("one-owner", _one_owner)])


def run_to_two_owners(semantics: Semantics) -> list[Move]:
    """Ann takes the thing, hears of it; Bob, who has not heard, takes it as well."""
    moves: list[Move] = []
    state = semantics.initial_states()[0]
    for name, who in (("writer.take", "ann"), ("writer.watch", "ann"), ("writer.take", "bob")):
        moves.append(next(m for m in semantics.moves(state) if (m.action.name, m.action.params["who"], m.label) == (name, who, "ok")))
        state = moves[-1].after
    return moves


@pytest.fixture
def semantics() -> Semantics:
    return Semantics(toy())


@pytest.fixture
def double(semantics: Semantics) -> Callable[[], Trace]:
    """Makes the trace of that run."""

    def make() -> Trace:
        steps = record(semantics, semantics.initial_states()[0], run_to_two_owners(semantics))
        return Trace(ModelRef("toy"), "one-owner", steps, "One owner at a time.", "dra-spec check toy", "1.37.2", {}, ("ann and bob",))

    return make
