"""Random models of loosely coupled parts, for reductions that live on independence: random models side by side, and walkers."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import attrs
from random_models import ROOM, Maker

from dra_spec.explorer import Result
from dra_spec.explorer.model import (
    Action,
    ActionType,
    AlwaysPossible,
    DeadlockFree,
    Kind,
    LeadsTo,
    Model,
    Outcome,
    PartView,
    Property,
    Slot,
    StateInvariant,
    StepInvariant,
    Truth,
    View,
)


def loose(seed: int, kinds: Sequence[type] = (StateInvariant, StepInvariant, DeadlockFree), beyond: bool = False) -> Model:
    """A random model of one or two parts and up to two walkers, with promises of some kinds only."""
    dice = random.Random(seed)
    slots: list[Slot[Any]] = []
    actions: list[Action] = []
    promises: list[Property] = []
    for part in range(dice.choice([1, 1, 2])):
        made = Maker(dice.randrange(10**9), dice.random() < 0.3, beyond and dice.random() < 0.5, f"{part}.").model()
        slots += [_renamed(slot, part) for slot in made.slots]
        actions += [attrs.evolve(a, type=attrs.evolve(a.type, name=f"{part}.{a.name}", writer=f"writer{part}")) for a in made.actions]
        for promise in made.properties:
            if not isinstance(promise, DeadlockFree) or not any(isinstance(p, DeadlockFree) for p in promises):
                promises.append(attrs.evolve(promise, promise=f"{part}.{promise.promise}"))
    shared = [slot for slot in slots if slot.name[2] == "n"]
    for number in range(dice.randint(0, 2)):
        walker = Walker(number, dice, shared)
        slots += walker.slots
        actions += walker.actions
    dice.shuffle(actions)
    return Model("loose", slots, actions, [p for p in promises if isinstance(p, tuple(kinds))])


def walkers(seed: int, kinds: Sequence[type] = (StateInvariant, StepInvariant, DeadlockFree)) -> Model:
    """Two or three walkers that meet in two slots. Where they end, and with what, hangs on who came first."""
    dice = random.Random(seed)
    shared: list[Slot[Any]] = [Slot(f"shared{i}", 0, "room") for i in range(2)]
    them = [Walker(number, dice, shared) for number in range(dice.choice([2, 2, 3]))]
    slots = [*shared, *(slot for walker in them for slot in walker.slots)]
    actions = [action for walker in them for action in walker.actions]
    dice.shuffle(actions)
    last, where, wrong = dice.choice(them), dice.choice(shared), dice.randint(0, 2)
    kind, allowed = dice.choice(list(Kind)), dice.random() < 0.5

    def ended(v: View) -> bool:
        return all(v.value(walker.at) == walker.length for walker in them)

    promises: list[Property] = [
        StateInvariant("memory", lambda v: Truth(2 * (v.value(last.memory) < 2 or v.value(last.at) != 1))),
        StateInvariant("end", lambda v: Truth(2 * (not ended(v) or v.value(where) != wrong))),
        StateInvariant("value", lambda v: Truth(2 * (v.value(where) != wrong))),
        StepInvariant("step", lambda a: a.type.writer == "walker0", lambda v, after, a, label: Truth(2 * (after.value(where) != wrong))),
        DeadlockFree("stuck", lambda v: Truth(2 * ended(v))),
        AlwaysPossible("come", lambda v: Truth(2 * (v.value(where) == wrong)), lambda a: allowed or a.type.kind is not kind),
    ]
    chosen = [p for p in promises if isinstance(p, tuple(kinds)) and dice.random() < 0.4]
    if StateInvariant in kinds and dice.random() < 0.6:
        told = [walker.told for walker in them[:2]]
        chosen += [StateInvariant(f"pair {i}", partial(_not_both, told, divmod(i, 3))) for i in range(9)]
    return Model("walkers", slots, actions, chosen)


def _not_both(shared: Sequence[Slot[int]], values: tuple[int, int], v: View) -> Truth:
    return Truth(2 * (tuple(v.value(slot) for slot in shared) != values))


def _renamed(slot: Slot[Any], part: int) -> Slot[Any]:
    """Slots are told apart by identity, and the model's functions hold them: the name is changed in place."""
    object.__setattr__(slot, "name", f"{part}.{slot.name}")
    return slot


class Walker:
    """A process with a counter and a memory of its own. Some steps nobody else can see; others read, write or wait for a shared slot."""

    def __init__(self, number: int, dice: random.Random, shared: Sequence[Slot[Any]]) -> None:
        self.at: Slot[int] = Slot(f"at{number}", 0, "room")
        self.memory: Slot[int] = Slot(f"memory{number}", 0, "room")
        self.told: Slot[int] = Slot(f"told{number}", 0, "room")
        self.slots = [self.at, self.memory, self.told]
        program = [dice.choice(["think", "read", "write", "tell", "part", "choose", "wait"]) for _ in range(dice.randint(2, 4))]
        if dice.random() < 0.4:  # who comes first is told by what is read behind one's own write
            program = ["write", "read", "tell"]
        self.length = len(program)
        self.loops = dice.random() < 0.3
        self.actions = []
        for step, what in enumerate(program):
            fn = partial(self._step, step, what, dice.choice(shared), dice.randint(0, 1))
            kind = ActionType(f"walker{number}.step{step}", fn, f"walker{number}", kind=dice.choice(list(Kind)))
            self.actions.append(Action(kind, {}, ROOM))

    def _step(self, step: int, what: str, shared: Slot[Any], number: int, v: View, context: None) -> Iterator[Outcome]:
        if v.value(self.at) != step or (what == "wait" and v.value(shared) == number):
            return
        for value in (0, 1) if what == "choose" else (0,):
            outcome = v.outcome(f"value {value}")
            outcome[self.at] = 0 if self.loops and step + 1 == self.length else step + 1
            if what == "read":
                outcome[self.memory] = min(2, v.project(shared, int))
            elif what == "write":
                outcome[shared] = (v.value(self.memory) + number) % 3
            elif what == "tell":
                outcome[self.told] = v.value(self.memory)
            elif what == "part":
                outcome.part(_remember, self.memory)
            elif what == "choose":
                outcome[self.memory] = value
            yield outcome


def _remember(p: PartView, memory: Slot[int]) -> None:
    p.write(memory, min(2, p.value(memory) + 1))


def same_verdicts(full: Result, reduced: Result, lengths: bool) -> None:
    """What a reduction must keep when violating states are expanded; `lengths`: also those of shortest traces."""
    assert reduced.complete == full.complete
    assert reduced.stopped == full.stopped
    for one, other in zip(full.properties, reduced.properties, strict=True):
        assert (other.promise, other.verdict) == (one.promise, one.verdict)
        assert (other.trace is None) == (one.trace is None)
        if lengths and one.trace is not None and other.trace is not None:
            assert len(other.trace) == len(one.trace), one.promise


SAFETY: Sequence[type] = (StateInvariant, StepInvariant, DeadlockFree)
ALL: Sequence[type] = (*SAFETY, AlwaysPossible)
WITH_RUNS: Sequence[type] = (*ALL, LeadsTo)
