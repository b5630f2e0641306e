"""Partial-order reduction by stubborn sets: in each state only the actions of one set are taken.

A set T of actions is *stubborn* in a state s if
- an enabled member: all actions that get in its way (independence.py) are in T;
- a member that is not enabled: all actions that can open one of its locks are in T.

So whatever the others do, the enabled members stay enabled, do the same, and can as well be taken first; and the members that are not
enabled stay so.

Mode *safety*. T also holds what must happen before a promise about states is broken, before an outcome leaves the bounds, and each action
about whose steps there is a promise. Take a shortest way from s to a violation. It has a step of an action of T, or else nothing can have
changed. The first such step can be moved to the front, with the same state at the end, so the way goes on from a successor that is looked
at, and it is one step shorter there. No condition on cycles is needed, and shortest lengths are kept. (Valmari and Hansen, "Stubborn set
intuition explained", 2017; the argument is written out in docs/decisions.)

Mode *stuck*. T has an enabled member if there is any, and what must happen before an outcome leaves the bounds. A way to a stuck state
has a step of T, as the enabled members would be enabled in its last state otherwise; the rest is as above. Nothing is said about other
promises.
"""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dra_spec.explorer.independence import Independence, Lock
from dra_spec.explorer.machine import Machine
from dra_spec.explorer.model import AlwaysPossible, DeadlockFree, LeadsTo, Model, StateInvariant, StepInvariant
from dra_spec.explorer.native import Kernels
from dra_spec.explorer.result import EngineError, Limits

kernels_stubborn = Kernels("kernels_stubborn")

Mode = Literal["stuck", "safety"]
_PAIRS = 1 << 16


class Tables(NamedTuple):
    """For the kernel. A guard is an action (the first ones), a promise about states, or an action that may leave the bounds."""

    tree: Any  # per guard
    first: Any  # per guard: its locks
    lock_slot: Any
    lock_base: Any  # in `shut`
    shut: Any  # per lock and number of a value: whether it keeps the guard shut
    sets: Any  # sets of actions: per action what gets in its way, per lock its keys, per slot its writers
    actions: Any  # how many there are
    seed: Any  # a set of actions
    keeps_moving: Any  # whether a set needs an enabled member


class Scratch(NamedTuple):
    """Sets of actions, and a list."""

    enabled: Any
    live: Any  # enabled with an outcome that stays within the bounds
    chosen: Any
    best: Any
    base: Any
    todo: Any
    cells: Any  # per guard: where its tree begins


def refusal(model: Model, mode: Mode, limits: Limits) -> str:
    """Why a model cannot be searched with stubborn sets; empty if it can."""
    for promise in model.properties:
        if isinstance(promise, (AlwaysPossible, LeadsTo)):
            return f"{promise.promise} is about what stays possible, or must happen, on all runs; these stubborn sets do not keep that"
    if mode == "stuck" and limits.depth is not None:
        return "the mode for stuck states takes other ways than the shortest, so it does not go with a depth"
    return ""


class StubbornSets:
    """Chooses the actions to take in the states of one search."""

    def __init__(self, machine: Machine, independence: Independence, mode: Mode) -> None:
        self.machine, self.independence, self.mode = machine, independence, mode
        self.looked_at = np.zeros(kernels_stubborn.NUMBERS, np.int64)
        model, count = machine.model, len(machine.model.actions)
        self._words = max(1, (count + 63) // 64)
        self._guards: list[tuple[int, list[Lock]]] = [(a, independence.action_locks(a)) for a in range(count)]
        seed: set[int] = set()
        if mode == "safety":
            for index, promise in enumerate(model.properties):
                if isinstance(promise, StateInvariant):
                    self._guards.append((machine.predicates[index], independence.promise_locks(index)))
                elif isinstance(promise, StepInvariant):
                    seed.update(a for a, action in enumerate(model.actions) if promise.applies(action))
        escaping = [a for a, footprint in enumerate(independence.footprints.actions) if footprint.escapes]
        self._guards += [(a, independence.escape_locks(a)) for a in escaping]
        self._seed = self._set(seed)
        self._in_the_way = np.array([self._set(others) for others in independence.in_the_way], np.uint64).reshape(count, self._words)
        self._writers = np.array([self._set(writers) for writers in independence.writers], np.uint64).reshape(len(model.slots), self._words)
        self._keeps_moving = mode == "stuck" or any(isinstance(p, DeadlockFree) for p in model.properties)
        self._sizes = np.zeros(len(model.slots), np.int64)
        self._known: list[list[int]] = [[] for _ in model.slots]  # per slot and number in the search: the number in `independence.values`
        self._pairs = np.zeros(max(_PAIRS, 2 * count), np.int64)
        room = count + len(self._guards) + 1
        one, two, three, four, five = (np.zeros(self._words, np.uint64) for _ in range(5))
        self._scratch = Scratch(one, two, three, four, five, np.zeros(room, np.int64), np.zeros(len(self._guards), np.int64))
        self._tables: Tables | None = None

    def _set(self, members: Any) -> NDArray[np.uint64]:
        made = np.zeros(self._words, np.uint64)
        for a in members:
            made[a >> 6] |= np.uint64(1 << (a & 63))
        return made

    def _at_rest(self, slot: int, number: int) -> bool:
        """Whether a value is what a dead slot gets; nobody looks at it before another one is written, so it opens nothing."""
        return self.machine.deaths is not None and number == self.machine.deaths.rest_of(slot)

    def _make_tables(self) -> Tables:
        """The tables for the values that the search has met; made anew when it has met more."""
        domains = self.machine.domains
        if self._tables is not None and np.array_equal(self._sizes, domains.sizes):
            return self._tables
        self._sizes = domains.sizes.copy()
        values = self.independence.values
        for slot, known in enumerate(self._known):
            for number in range(len(known), len(domains.values[slot])):
                found = values.number(slot, domains.values[slot][number])
                if found < 0 and slot not in values.wide and not self._at_rest(slot, number):
                    value = domains.values[slot][number]
                    raise EngineError(f"footprints: {domains.slots[slot]} got the value {value!r}, which was not expected to be written")
                known.append(found)
        locks = [lock for _, of_guard in self._guards for lock in of_guard]
        lengths = [len(self._known[lock.slot]) for lock in locks]
        base = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        shut = np.zeros(max(1, int(base[-1])), np.uint8)
        for at, lock in zip(base, locks, strict=False):
            for number, known_as in enumerate(self._known[lock.slot]):
                shut[at + number] = known_as not in lock.open
        keys = np.array([self._set(lock.keys) for lock in locks], np.uint64).reshape(len(locks), self._words)
        self._tables = Tables(
            np.array([tree for tree, _ in self._guards], np.int64),
            np.concatenate([[0], np.cumsum([len(of_guard) for _, of_guard in self._guards])]).astype(np.int64),
            np.array([lock.slot for lock in locks], np.int64),
            base,
            shut,
            np.concatenate([self._in_the_way, keys, self._writers]),
            len(self._in_the_way),
            self._seed,
            self._keeps_moving,
        )
        return self._tables

    def expand(self, begin: int, end: int) -> None:
        """Takes the actions of a stubborn set in each of the states."""
        machine = self.machine
        states = np.arange(begin, end, dtype=np.int64)
        while len(states):
            left = np.zeros(len(states), np.int64)
            numbers = np.zeros(kernels_stubborn.NUMBERS, np.int64)
            remaining: list[NDArray[np.int64]] = []
            while numbers[kernels_stubborn.AT] < len(states):
                kernels_stubborn.choose(
                    machine.trees.forest(),
                    machine.store.layout.arrays,
                    machine.store.arrays(),
                    machine.work,
                    machine.ctl,
                    self._make_tables(),
                    self._scratch,
                    states,
                    self._pairs,
                    left,
                    numbers,
                )
                remaining.append(left[: numbers[kernels_stubborn.LEFT]].copy())
                machine.fire(self._pairs[: numbers[kernels_stubborn.PAIRS]])
            self.looked_at += numbers
            states = np.concatenate(remaining)
            if len(states):
                machine.learn()
