"""`dra-spec check --audit` on actions that do not keep what the engines rest on: exit code 4, and the message names action and slot."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import attrs
import pytest
from click.testing import Result

from dra_spec.explorer.model import Action, ActionFunction, LiveWhen, Outcome, Slot, View
from dra_spec.protocol.assembly import Assembly
from dra_spec.scenario import build

Run = Callable[..., Result]
Spoil = Callable[[str, Callable[[ActionFunction, Assembly], ActionFunction]], None]


@pytest.fixture
def spoil(monkeypatch: pytest.MonkeyPatch) -> Spoil:
    """`spoil(action, make)`: the protocol has that action with another function; `make` also gets the parts of the model."""
    right = build.assemble

    def put(name: str, make: Callable[[ActionFunction, Assembly], ActionFunction]) -> None:
        def assemble(*args: Any) -> Assembly:
            parts = right(*args)

            def other(action: Action) -> Action:
                return attrs.evolve(action, type=attrs.evolve(action.type, fn=make(action.type.fn, parts)))

            return attrs.evolve(parts, actions=[other(action) if action.name == name else action for action in parts.actions])

        monkeypatch.setattr(build, "assemble", assemble)

    return put


def peeking(slot: str) -> Callable[[ActionFunction, Assembly], ActionFunction]:
    """Looks at a slot behind the view, and does nothing where it is not as it was at the beginning."""

    def make(fn: ActionFunction, parts: Assembly) -> ActionFunction:
        (hidden,) = (s for s in parts.slots if s.name == slot)

        def function(v: View, context: Any, **params: Any) -> Iterator[Outcome]:
            state = getattr(v.read, "__self__", None)
            outcomes = list(fn(v, context, **params))
            if state is None or state._state[state._index[hidden]] == hidden.initial:
                yield from outcomes

        return function

    return make


def forgetful(fn: ActionFunction, parts: Assembly) -> ActionFunction:
    """Does nothing every second time in one place."""
    calls: Counter[str] = Counter()

    def function(v: View, context: Any, **params: Any) -> Iterator[Outcome]:
        reads: list[str] = []
        watching = View(lambda slot, what: reads.append(f"{slot}{what}") or v.read(slot, what))  # type: ignore[func-returns-value]
        outcomes = list(fn(watching, context, **params))
        calls[str(reads)] += bool(outcomes)
        if calls[str(reads)] % 2:
            yield from outcomes

    return function


def trespassing(slot: str) -> Callable[[ActionFunction, Assembly], ActionFunction]:
    """Looks at a slot of a room that the action may not enter."""

    def make(fn: ActionFunction, parts: Assembly) -> ActionFunction:
        (other,) = (s for s in parts.slots if s.name == slot)

        def function(v: View, context: Any, **params: Any) -> Iterator[Outcome]:
            v.value(other)
            yield from fn(v, context, **params)

        return function

    return make


@pytest.mark.parametrize("engine", ["explicit", "symbolic", "plain"])
def test_a_look_behind_the_view(run: Run, spoil: Spoil, engine: str) -> None:
    spoil("kubelet.kill_containers", peeking("api/claim/c1"))
    done = run("check", "node-reboot", "--audit", "--engine", engine)
    assert done.exit_code == 4
    assert "kubelet.kill_containers(node=n1, pod=p1) depends on api/claim/c1, which it did not read" in done.stderr
    assert "Traceback" not in done.output


def test_a_memory_of_its_own(run: Run, spoil: Spoil) -> None:
    spoil("plugin.start", forgetful)
    done = run("check", "node-reboot", "--audit")
    assert done.exit_code == 4
    assert "audit: plugin.start(node=n1, driver=accel.example.org) is not deterministic" in done.stderr


def test_a_room_of_another_writer(run: Run, spoil: Spoil) -> None:
    """No audit is needed for that."""
    spoil("kubelet.kill_containers", trespassing("plugin/n1/accel.example.org/lock"))
    done = run("check", "node-reboot")
    assert done.exit_code == 4
    assert "kubelet.kill_containers(node=n1, pod=p1): touches plugin/n1/accel.example.org/lock, which belongs to" in done.stderr
    assert "Traceback" not in done.output


def test_a_look_at_a_slot_that_is_dead(run: Run, spoil: Spoil) -> None:
    spoil("kubelet.get_claim", peeking("scheduler/allocated"))
    done = run("check", "single-pod", "--reduce", "dead", "--audit")
    assert done.exit_code == 4
    assert "kubelet.get_claim(" in done.stderr
    assert "depends on scheduler/allocated" in done.stderr


def test_a_wrong_declaration_is_left_out(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """A look through the view needs no audit: the search finds it."""
    right = build.assemble

    def assemble(*args: Any) -> Assembly:
        parts = right(*args)
        slots: list[Slot[Any]] = [slot for slot in parts.slots if slot.name == "kubelet/n1/checkpoint/c1"]
        return attrs.evolve(parts, live=[LiveWhen(slots, lambda view: False)])

    monkeypatch.setattr(build, "assemble", assemble)
    done = run("check", "node-reboot", "--reduce", "dead", "--audit")
    assert done.exit_code == 0, done.stderr
    assert "dead not used: kubelet/n1/checkpoint/c1: " in done.stdout
    assert "looks at kubelet/n1/checkpoint/c1 where it need not be live" in done.stdout
