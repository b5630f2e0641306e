"""What each action, part and promise of a model may read and write in all states, not only in those that a search met.

The trees are completed over the values that each slot can have (completion.py): a fixed point, since what leaves write are values too.
Where that is too wide, all slots of the action's rooms count, and from then on these slots may have any value. That is a true
over-approximation, because a look or a write outside the rooms is a mistake that the view refuses (semantics.py).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from functools import lru_cache, partial
from typing import Any

import attrs

from dra_spec.explorer.completion import MOST_OF_PROMISE, MOST_RUNS, Completion, Leaf, Run, TooWide
from dra_spec.explorer.footprints_versions import has_value
from dra_spec.explorer.intern import function_key
from dra_spec.explorer.known_values import Choices, Values
from dra_spec.explorer.model import (
    Action,
    AlwaysPossible,
    DeadlockFree,
    LeadsTo,
    Model,
    Part,
    PartView,
    Property,
    Slot,
    StepInvariant,
    Truth,
    View,
)
from dra_spec.explorer.semantics import check_room
from dra_spec.explorer.values import identity


@attrs.frozen(eq=False)
class Effect:
    """One outcome of an action in all states where it is one: constants (slot, number of the value), parts, bound that it leaves."""

    label: str
    constants: tuple[tuple[int, int], ...]
    parts: tuple[int, ...]  # indices in `Footprints.parts`
    beyond: bool


@attrs.frozen(eq=False)
class Footprint:
    """Slots, by index, that one function may look at and set. `exact` false: all slots of its rooms, since its tree is too wide (`reason`).

    `escapes`: some outcome may leave the bounds of the model. Of an action everything includes its parts; of a promise about steps what
    is read before and after the step.
    """

    reads: frozenset[int]
    writes: frozenset[int]
    exact: bool
    escapes: bool = False
    reason: str = ""

    @property
    def touched(self) -> frozenset[int]:
        """Read or written."""
        return self.reads | self.writes


@attrs.define(eq=False)
class _Function:
    """An action or a part whose tree is completed."""

    completion: Completion
    rooms: frozenset[str]
    writes: set[int] = attrs.field(factory=set)
    parts: dict[int, None] = attrs.field(factory=dict)
    escapes: bool = False
    too_wide: str = ""


class Footprints:
    """The footprints of a model. Made by `footprints`; those of promises are worked out when they are asked for."""

    def __init__(self, model: Model, most_runs: int = MOST_RUNS) -> None:
        self.model = model
        self._most = most_runs
        self._runs = 0
        self._of_room: dict[str, set[int]] = {}
        for i, slot in enumerate(model.slots):
            self._of_room.setdefault(slot.room, set()).add(i)
        self._properties: dict[int, Footprint] = {}
        self._property_leaves: dict[int, list[Leaf]] = {}
        choices = Choices()
        self._begin(choices)
        while self.values.again:
            self._begin(choices)
        self.actions: Sequence[Footprint] = [self._footprint(i) for i in range(len(model.actions))]

    @property
    def cause(self) -> str:
        """Why the first slot whose values are not known is one; all others may follow from it."""
        return next((f"{self.model.slots[slot]}: {why}" for slot, why in self.values.wide.items()), "")

    # the fixed point

    def _begin(self, choices: Choices) -> None:
        """Completes all trees, unless it turns out on the way that other choices are needed."""
        self.values = Values(self.model.slots, choices)
        self._functions = [_Function(Completion(str(a), partial(self._run_action, a)), a.rooms) for a in self.model.actions]
        self._part: dict[Hashable, int] = {}
        for state in self.model.initial_states():
            for at, value in enumerate(state):
                self.values.add(at, value)
        size = -1
        while size != (size := self._size()) and not self.values.again:
            at = 0
            while at < len(self._functions) and not self.values.again:  # parts are added on the way
                if not self._functions[at].too_wide:
                    self._complete(at)
                at += 1
            self.values.settle()

    def _size(self) -> int:
        """Grows with each round that found something."""
        wide = sum(bool(f.too_wide) for f in self._functions) + len(self.values.wide)
        return wide + len(self._functions) + sum(map(len, self.values.values)) + sum(len(f.completion.leaves) for f in self._functions)

    def _complete(self, number: int) -> None:
        function = self._functions[number]
        before = function.completion.runs
        try:
            for leaf in function.completion.complete(self.values, max(0, self._most - self._runs)):
                self._take(function, leaf)
        except TooWide as reason:
            if self.values.again:  # what was asked before it changed what runs choose
                return
            function.too_wide = str(reason)
            self.values.not_all_known()
            for slot in self._in(function.rooms):
                self.values.give_up(slot, f"{function.completion.who} may write anything to it")
        self._runs += function.completion.runs - before

    def _take(self, function: _Function, leaf: Leaf) -> None:
        for effect in leaf.result:
            function.escapes |= effect.beyond
            function.parts.update(dict.fromkeys(effect.parts))
            function.writes.update(slot for slot, _ in effect.constants)

    def _in(self, rooms: Iterable[str]) -> frozenset[int]:
        return frozenset(slot for room in rooms for slot in self._of_room.get(room, ()))

    # what is run

    def _reader(self, run: Run, rooms: frozenset[str] | None, who: str, offset: int = 0) -> Callable[..., Any]:
        def read(slot: Slot[Any], what: Any) -> Any:
            check_room(slot, rooms, who)
            return run.read(self.values.index[slot] + offset, what)

        return read

    def _constants(self, updates: dict[Slot[Any], Any], rooms: frozenset[str], who: str) -> tuple[tuple[int, int], ...]:
        constants = []
        for slot, value in updates.items():
            check_room(slot, rooms, who)
            at = self.values.index[slot]
            constants.append((at, self.values.add(at, value)))
        return tuple(constants)

    def _run_action(self, action: Action, run: Run) -> tuple[Effect, ...]:
        who, effects = str(action), []
        for outcome in action.run(View(self._reader(run, action.rooms, who))):
            parts = tuple(self._part_of(part, action.rooms) for part in outcome.parts)
            constants = self._constants(outcome.updates, action.rooms, who)
            effects.append(Effect(outcome.label, constants, parts, outcome.beyond is not None))
        return tuple(effects)

    def _part_name(self, part: Part, rooms: frozenset[str]) -> tuple[Hashable, tuple[Any, ...]]:
        """A key of a part that leaves version numbers out, and its arguments without them."""
        bare = tuple(self.values.listed(arg) if has_value(arg) else arg for arg in part.args)
        return (function_key(part.fn), identity(bare), rooms), bare

    def _part_of(self, part: Part, rooms: frozenset[str]) -> int:
        name, bare = self._part_name(part, rooms)
        if name not in self._part:
            self._part[name] = len(self._functions)
            self._functions.append(_Function(Completion(part.fn.__qualname__, partial(self._run_part, Part(part.fn, bare), rooms)), rooms))
        return self._part[name]

    def _run_part(self, part: Part, rooms: frozenset[str], run: Run) -> tuple[Effect, ...]:
        view = PartView(self._reader(run, rooms, str(part)))
        part.fn(view, *(run.fresh(arg, -1 - i) if has_value(arg) else arg for i, arg in enumerate(part.args)))
        return (Effect("", self._constants(view.updates, rooms, str(part)), (), False),)

    # results

    def _footprint(self, number: int) -> Footprint:
        members = [self._functions[number], *(self._functions[p] for p in self._functions[number].parts)]
        reason = next((m.too_wide for m in members if m.too_wide), "")
        reads = frozenset(slot for m in members for slot in m.completion.reads)
        writes = frozenset(slot for m in members for slot in m.writes)
        if reason:
            rooms = self._in(members[0].rooms)
            return Footprint(rooms, rooms, False, True, reason)
        return Footprint(reads, writes, True, members[0].escapes)

    def may_write(self, action: int) -> frozenset[int]:
        """Slots that an action may set, also if the model had wider bounds: of what lies beyond them only the rooms are known."""
        footprint = self.actions[action]
        return self._in(self.model.actions[action].rooms) if footprint.escapes else footprint.writes

    def decides(self, action: int, slots: frozenset[int]) -> frozenset[int]:
        """Slots that decide whether an action is enabled, and what it writes to some slots."""
        if not self.actions[action].exact:
            return self._in(self.model.actions[action].rooms)
        function = self._functions[action]
        parts = [self._functions[p] for p in function.parts if not slots.isdisjoint(self._functions[p].writes)]
        return frozenset(slot for f in (function, *parts) for slot in f.completion.reads)

    def part(self, part: Part, rooms: frozenset[str]) -> Footprint:
        """The footprint of a part of an outcome of an action with such rooms."""
        number = self._part.get(self._part_name(part, rooms)[0])
        function = None if number is None else self._functions[number]
        if function is None or function.too_wide:
            reason = function.too_wide if function else "it is part of an action that is too wide"
            return Footprint(self._in(rooms), self._in(rooms), False, reason=reason)
        return Footprint(frozenset(function.completion.reads), frozenset(function.writes), True)

    def leaves(self, function: int) -> Sequence[Leaf]:
        """The leaves of an action whose footprint is exact, or of a part (an index from `Effect.parts`); their results are `Effect`s."""
        return self._functions[function].completion.leaves

    def looks(self, function: int) -> frozenset[int]:
        """What an action, without its parts, or a part looks at."""
        return frozenset(self._functions[function].completion.reads)

    def sets(self, function: int) -> frozenset[int]:
        """What an action, without its parts, or a part may set."""
        return frozenset(self._functions[function].writes)

    def property(self, index: int) -> Footprint:
        """What a promise looks at; all slots if its tree is too wide. A promise about steps: at all actions to which it applies."""
        if index not in self._properties:
            try:
                leaves = self._property_ways(self.model.properties[index])
            except TooWide as reason:
                everything = frozenset(range(len(self.model.slots)))
                self._properties[index] = Footprint(everything, frozenset(), False, reason=str(reason))
            else:
                reads = frozenset(node.slot % len(self.model.slots) for leaf in leaves for node, _ in leaf.path if node.slot >= 0)
                self._properties[index] = Footprint(reads, frozenset(), True)
                self._property_leaves[index] = leaves
        return self._properties[index]

    def looks_at(self, fn: Callable[[View], object]) -> frozenset[int] | None:
        """The slots that a function of the state looks at; None: too wide to know."""
        completion = Completion("", lambda run: fn(View(self._reader(run, None, ""))), promise=True)
        try:
            completion.complete(self.values, MOST_OF_PROMISE)
        except TooWide:
            return None
        return frozenset(completion.reads)

    def property_leaves(self, index: int) -> Sequence[Leaf]:
        """The leaves of a promise, with truths as results; none if its footprint is not exact."""
        self.property(index)
        return self._property_leaves.get(index, [])

    def _property_ways(self, promise: Property) -> list[Leaf]:
        """All ways through a promise; one about steps is asked about each action and label. Raises `TooWide`."""
        cases: list[tuple[Action | None, str]] = [(None, "")]
        if isinstance(promise, StepInvariant):
            cases = []
            for number, action in enumerate(self.model.actions):
                if promise.applies(action):
                    if not self.actions[number].exact:
                        raise TooWide(f"it is about {action}, whose footprint is not known")
                    cases += [(action, label) for label in sorted({e.label for leaf in self.leaves(number) for e in leaf.result})]
        trees: list[Completion] = []
        for about, label in cases:
            trees.append(self._completion(promise, about, label))
            trees[-1].complete(self.values, MOST_OF_PROMISE - sum(tree.runs for tree in trees))
        return [leaf for tree in trees for leaf in tree.leaves]

    def _completion(self, promise: Property, action: Action | None, label: str) -> Completion:
        slots = len(self.model.slots)

        def run(run: Run) -> Truth:
            before = View(self._reader(run, None, ""))
            if isinstance(promise, StepInvariant):
                assert action is not None
                return promise.fn(before, View(self._reader(run, None, "", slots)), action, label)
            if isinstance(promise, LeadsTo):
                return Truth(min(promise.when(before), promise.goal(before)))
            if isinstance(promise, AlwaysPossible):
                return promise.goal(before)
            return promise.final(before) if isinstance(promise, DeadlockFree) else promise.fn(before)

        return Completion(f"promise {promise.promise}", run, promise=True)


@lru_cache(maxsize=2)  # reductions of one search ask for the same ones
def footprints(model: Model, most_runs: int = MOST_RUNS) -> Footprints:
    """The footprints of a model: per action (in order) `Footprints.actions`, per promise `Footprints.property(index)`.

    `most_runs`: of the model's functions; a tree that is not complete by then counts as too wide. The same for the same model, always.
    """
    return Footprints(model, most_runs)
