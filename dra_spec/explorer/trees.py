"""Decision trees, learned one observation at a time: of actions, of parts of outcomes, of properties.

An inner node looks at an observer (a projection of one slot); its edges are the numbers of what is seen; a leaf holds what
follows. The trees live in flat arrays, which the kernels walk.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any

import attrs
import numpy as np

from dra_spec.explorer import arrays as k
from dra_spec.explorer.growing import Ints, Pool, Table
from dra_spec.explorer.intern import Domains, Observer, function_key
from dra_spec.explorer.model import (
    Action,
    AlwaysPossible,
    DeadlockFree,
    LiveWhen,
    Model,
    ModelError,
    Outcome,
    Part,
    Projection,
    Slot,
    StateInvariant,
    StepInvariant,
    Truth,
    View,
)
from dra_spec.explorer.reductions import Refuted
from dra_spec.explorer.semantics import Semantics, State
from dra_spec.explorer.values import identity, key

DISABLED = k.LEAF - 3  # the code of the leaf without outcomes; leaves 0 to 2 are the truths
Look = tuple[int, Projection, Any]  # position (slot, or slot + number of slots: in the state after), what of it, what was found


@attrs.define(eq=False)
class Tree:
    """What one tree is about."""

    who: str
    run: Callable[[State, State | None], tuple[list[Look], int]]  # looks, and the code of the leaf
    property: int = -1


class Trees:
    """All trees of a model. The first ones are those of the actions, in order."""

    def __init__(self, model: Model, semantics: Semantics, domains: Domains) -> None:
        self.model, self.semantics, self.domains = model, semantics, domains
        self.calls = 0  # of properties and projections
        self.trees: list[Tree] = []
        self.positions: list[set[int]] = []  # per tree: where its known paths look
        self.roots = Pool(fill=0)  # per tree: its cell in child
        self.nodes = Table(4)  # position, base in seen, base in child, observer
        self.seen = Pool()
        self.child = Pool()
        self.leaves = Table(2)
        self.outcome_list = Pool(fill=0)
        self.outcomes = Table(7)
        self.constants = Table(2)
        self.lists = Pool(fill=0)  # trees of parts and step invariants
        self.reasons: dict[str, int] = {}
        self.widest = np.ones(len(model.actions), np.int64)  # per action: most outcomes of a leaf
        self.learned = 0  # calls of `learn` that added a path
        self.learned_live = 0  # those about predicates of declarations
        self.moved = 0  # how often places in `child` or `seen` that are in use have moved, or a tree got its root
        self._observers: list[Observer] = []
        self._observer: dict[Hashable, int] = {}
        self._of_slot: list[list[int]] = [[] for _ in domains.slots]
        self._leaf: dict[Hashable, int] = {}
        self._outcome: dict[Hashable, int] = {}
        self._part: dict[Hashable, int] = {}
        self._step: dict[tuple[int, int, str], int] = {}
        self._about_step: dict[int, tuple[int, int, str]] = {}  # by tree
        self._steps = [(i, p) for i, p in enumerate(model.properties) if isinstance(p, StepInvariant)]
        self._parts: dict[int, Part] = {}  # by tree
        self._live: dict[Hashable, int] = {}
        self._live_of: dict[int, tuple[LiveWhen, bool]] = {}  # by tree
        self._predicates: dict[int, int] = {}  # by property
        self.log: list[tuple[int, Ints, Ints | None]] | None = None  # paths as they are learned: tree, row, row after
        domains.on_growth.append(self._grow_slot)
        domains.on_value.append(self._new_value)
        for _ in Truth:
            self.leaves.add(0, 0)
        assert k.LEAF - self._leaf_of(()) == DISABLED
        for number, action in enumerate(model.actions):
            self._add(Tree(str(action), self._runs_action(number, action)))

    def _add(self, tree: Tree) -> int:
        number = self.roots.take(1)  # before `data` is looked at: it may be another array afterwards
        self.roots.data[number] = self.child.take(1)
        self.trees.append(tree)
        self.positions.append(set())
        return len(self.trees) - 1

    def forest(self) -> k.Forest:
        """The arrays for the kernels; valid until something is learned."""
        return k.Forest(
            self.nodes.data,
            self.seen.data,
            self.child.data,
            self.roots.data,
            self.leaves.data,
            self.outcome_list.data,
            self.outcomes.data,
            self.constants.data,
            self.lists.data,
        )

    @property
    def memory(self) -> int:
        """Bytes of all arrays."""
        return sum(array.nbytes for array in self.forest())

    @property
    def observers(self) -> Sequence[Observer]:
        """All ways in which some tree looks at a slot."""
        return self._observers

    def part_of(self, tree: int) -> Part:
        """The part that a tree is about."""
        return self._parts[tree]

    def is_part(self, tree: int) -> bool:
        """Whether a tree is that of a part."""
        return tree in self._parts

    def live_of(self, tree: int) -> tuple[LiveWhen, bool] | None:
        """Of which declaration a tree is the predicate, and whether it looks at the state after a step; None: of none."""
        return self._live_of.get(tree)

    def live_tree(self, declared: LiveWhen, later: bool) -> int:
        """The tree of a declaration's predicate, asked about the state itself or about the one after a step."""
        identity_ = (tuple(self.domains.index[slot] for slot in declared.slots), later)
        if identity_ not in self._live:

            def run(state: State, after: State | None) -> tuple[list[Look], int]:
                looks: list[Look] = []
                asked = after if later else state
                assert asked is not None
                view = View(self._reader(asked, looks, len(state) if later else 0))
                try:
                    return looks, self._truth(f"{declared} is live", asked, lambda: Truth.TRUE if declared.predicate(view) else Truth.FALSE)
                except ModelError as error:  # a slot that a sub-model does not have, or a mistake in the predicate
                    raise Refuted("dead", str(declared), f"its predicate fails: {str(error).splitlines()[0]}") from None

            self._live[identity_] = self._add(Tree(f"where {declared} is live", run))
            self._live_of[self._live[identity_]] = declared, later
        return self._live[identity_]

    def step_of(self, tree: int) -> tuple[int, int, str] | None:
        """Property, action and label of the outcome that the tree of a step invariant is about; None: it is no such tree."""
        return self._about_step.get(tree)

    def step_tree(self, index: int, number: int, label: str) -> int:
        """The tree of a step invariant at an outcome of an action."""
        wanted = self.model.properties[index]
        assert isinstance(wanted, StepInvariant)
        return self._step_of(index, wanted, number, self.model.actions[number], label)

    def predicate_tree(self, index: int) -> int:
        """The tree of a property's predicate on states: of the invariant, of the goal, of what a stuck state must be."""
        if index not in self._predicates:
            wanted = self.model.properties[index]
            if isinstance(wanted, StateInvariant):
                self.add_property(index, wanted.promise, wanted.fn)
            elif isinstance(wanted, AlwaysPossible):
                self.add_property(index, wanted.promise, wanted.goal)
            else:
                assert isinstance(wanted, DeadlockFree)
                self.add_property(index, wanted.promise, wanted.final)
        return self._predicates[index]

    def width(self, observer: int) -> int:
        """How many cells in `child` each node of an observer has."""
        return self._observers[observer].capacity

    # learning

    def learn(self, number: int, row: Ints, after: Ints | None = None) -> None:
        """Runs the tree's function in a state and adds the path. Raises `ModelError` if it is not a function of what it reads."""
        if self._only_looks(number, row, after):
            return
        self.learned += 1
        self.learned_live += number in self._live_of
        tree = self.trees[number]
        state = self.domains.state(row)
        looks, leaf = tree.run(state, None if after is None else self.domains.state(after))
        cell = int(self.roots.data[number])
        if self.child.data[cell] > k.LEAF and self.child.data[cell] < 0:
            self.moved += 1
        for position, what, found in looks:
            self.calls += what.fn is not None
            o = self._observe(position, what)
            observer = self._observers[o]
            node = int(self.child.data[cell])
            if node <= k.LEAF:
                raise self._unsteady(tree, state, f"it read {self._look(observer)} although it had not done so before after the same reads")
            if node < 0:
                node = self._node(o)
                self.positions[number].add(position)
                self.child.data[cell] = node
            elif self.nodes.data[node, 3] != o:
                before = self._observers[int(self.nodes.data[node, 3])]
                raise self._unsteady(tree, state, f"after the same reads it read {self._look(before)} once and {self._look(observer)} now")
            numbers = row if position < len(row) else after
            assert numbers is not None
            seen = self._see(tree, observer, int(numbers[observer.slot]), found)
            cell = int(self.nodes.data[node, 2]) + seen
        known = int(self.child.data[cell])
        if known >= 0:
            before = self._observers[int(self.nodes.data[known, 3])]
            raise self._unsteady(tree, state, f"after the same reads it did not read {self._look(before)}, which it had read before")
        if known <= k.LEAF and known != leaf:
            raise self._unsteady(tree, state, "the same reads led to other outcomes before")
        self.child.data[cell] = leaf
        if self.log is not None:
            self.log.append((number, row.copy(), None if after is None else after.copy()))

    def _only_looks(self, number: int, row: Ints, after: Ints | None) -> bool:
        """Whether the path was there and just a projection of a new value was not; it is now.

        The function would look at the same, since what it looked at so far is the same; so it need not run.
        """
        cell = int(self.roots.data[number])
        while (code := int(self.child.data[cell])) >= 0:
            observer = self._observers[int(self.nodes.data[code, 3])]
            numbers = row if observer.position < len(row) else after
            assert numbers is not None
            value = int(numbers[observer.slot])
            seen = int(self.seen.data[observer.base + value])
            if seen < 0:
                try:
                    found = observer.what.of(self.domains.values[observer.slot][value])
                except Exception:
                    return False  # the function itself will meet it and say more
                self.calls += observer.what.fn is not None
                seen = self._see(self.trees[number], observer, value, found)
            cell = int(self.nodes.data[code, 2]) + seen
        return code <= k.LEAF

    def _look(self, observer: Observer) -> str:
        return f"{self.domains.slots[observer.slot]}{observer.what}"

    def _unsteady(self, tree: Tree, state: State, what: str) -> ModelError:
        return ModelError(f"{tree.who} is not a function of what it reads: {what}\nin the state\n{self.semantics.describe(state)}")

    def _observe(self, position: int, what: Projection) -> int:
        identity_ = (position, what.name) if what.fn is None else (position, what.name, function_key(what.fn), identity(what.args))
        if identity_ not in self._observer:
            slot = position % len(self.domains.slots)
            observer = Observer(position, slot, what)
            observer.base = self.seen.take(self.domains.capacity[slot])
            observer.capacity = self.domains.capacity[slot] if observer.whole else 4
            if observer.whole:
                size = len(self.domains.values[slot])
                self.seen.data[observer.base : observer.base + size] = np.arange(size)
            self._observer[identity_] = len(self._observers)
            self._of_slot[slot].append(len(self._observers))
            self._observers.append(observer)
        return self._observer[identity_]

    def _node(self, o: int) -> int:
        observer = self._observers[o]
        node = self.nodes.add(observer.position, observer.base, self.child.take(observer.capacity), o)
        observer.nodes.append(node)
        return node

    def _see(self, tree: Tree, observer: Observer, value: int, found: Any) -> int:
        if observer.whole:
            return value
        try:
            identity_ = key(found)
            seen = observer.numbers.setdefault(identity_, len(observer.numbers))
        except TypeError as error:
            raise ModelError(f"{tree.who}: {self._look(observer)} gives {found!r}, which is not hashable ({error})") from None
        known = int(self.seen.data[observer.base + value])
        if known >= 0 and known != seen:
            raise ModelError(f"{tree.who}: {self._look(observer)} gives {found!r} now and gave something else before for the same value")
        self.seen.data[observer.base + value] = seen
        if seen >= observer.capacity:
            self._widen(observer, 2 * observer.capacity)
        return seen

    def _widen(self, observer: Observer, capacity: int) -> None:
        self.moved += 1
        for node in observer.nodes:
            self.nodes.data[node, 2] = self.child.move(int(self.nodes.data[node, 2]), observer.capacity, capacity)
        observer.capacity = capacity

    def _grow_slot(self, slot: int) -> None:
        self.moved += 1
        capacity = self.domains.capacity[slot]
        for o in self._of_slot[slot]:
            observer = self._observers[o]
            observer.base = self.seen.move(observer.base, capacity // 2, capacity)
            self.nodes.data[observer.nodes, 1] = observer.base
            if observer.whole:
                self._widen(observer, capacity)

    def _new_value(self, slot: int, number: int) -> None:
        for o in self._of_slot[slot]:
            if self._observers[o].whole:
                self.seen.data[self._observers[o].base + number] = number

    # what the trees run

    def _runs_action(self, number: int, action: Action) -> Callable[[State, State | None], tuple[list[Look], int]]:
        def run(state: State, after: State | None) -> tuple[list[Look], int]:
            seen = self.semantics.observe(action, state)
            if len(seen.outcomes) > 1 << k.OUTCOME_BITS:
                raise ModelError(f"{action}: {len(seen.outcomes)} outcomes in one state; {1 << k.OUTCOME_BITS} are possible")
            outcomes = tuple(self._outcome_of(number, action, outcome) for outcome in seen.outcomes)
            self.widest[number] = max(self.widest[number], len(outcomes))
            return self._looks(seen.reads), k.LEAF - self._leaf_of(outcomes)

        return run

    def _looks(self, reads: Sequence[tuple[Slot[Any], Projection, Any]]) -> list[Look]:
        return [(self.domains.index[slot], what, found) for slot, what, found in reads]

    def _leaf_of(self, outcomes: tuple[int, ...]) -> int:
        if outcomes not in self._leaf:
            base = self.outcome_list.take(len(outcomes))
            self.outcome_list.data[base : base + len(outcomes)] = outcomes
            self._leaf[outcomes] = self.leaves.add(base, len(outcomes))
        return self._leaf[outcomes]

    def _constants_of(self, who: object, updates: dict[Slot[Any], Any]) -> tuple[tuple[int, int], ...]:
        constants = []
        for slot, value in updates.items():
            if slot not in self.domains.index:
                raise ModelError(f"{who}: slot {slot} is not part of the model")
            try:
                constants.append((self.domains.index[slot], self.domains.number(self.domains.index[slot], value)))
            except ModelError as error:
                raise ModelError(f"{who}: {error}") from None
        return tuple(constants)

    def _outcome_of(self, number: int, action: Action, outcome: Outcome) -> int:
        constants = self._constants_of(f"{action} [{outcome.label}]", outcome.updates)
        parts = tuple(self._part_of(action, part) for part in outcome.parts)
        steps = tuple(self._step_of(i, p, number, action, outcome.label) for i, p in self._steps if p.applies(action))
        return self._make(constants, parts, steps, outcome.beyond)

    def _make(self, constants: tuple[tuple[int, int], ...], parts: tuple[int, ...], steps: tuple[int, ...], beyond: str | None) -> int:
        identity_ = (constants, parts, steps, beyond)
        if identity_ not in self._outcome:
            first = self.constants.used
            for constant in constants:
                self.constants.add(*constant)
            lists = self.lists.take(len(parts) + len(steps))
            self.lists.data[lists : lists + len(parts) + len(steps)] = parts + steps
            middle, end = lists + len(parts), lists + len(parts) + len(steps)
            reason = -1 if beyond is None else self.reasons.setdefault(beyond, len(self.reasons))
            self._outcome[identity_] = self.outcomes.add(first, self.constants.used, lists, middle, middle, end, reason)
        return self._outcome[identity_]

    def _part_of(self, action: Action, part: Part) -> int:
        identity_ = (function_key(part.fn), identity(part.args), action.rooms)
        if identity_ not in self._part:

            def run(state: State, after: State | None) -> tuple[list[Look], int]:
                reads, updates = self.semantics.observe_part(part, state, action.rooms)
                outcome = self._make(self._constants_of(part, updates), (), (), None)
                return self._looks(reads), k.LEAF - self._leaf_of((outcome,))

            self._part[identity_] = self._add(Tree(f"part {part} of {action}", run))
            self._parts[self._part[identity_]] = part
        return self._part[identity_]

    def add_property(self, index: int, promise: str, fn: Callable[[View], Truth]) -> int:
        """The tree of a predicate on states; its leaf is a truth."""

        def run(state: State, after: State | None) -> tuple[list[Look], int]:
            looks: list[Look] = []
            return looks, self._truth(promise, state, lambda: fn(View(self._reader(state, looks, 0))))

        tree = self._add(Tree(f"promise {promise}", run, index))
        self._predicates.setdefault(index, tree)
        return tree

    def _step_of(self, index: int, wanted: StepInvariant, number: int, action: Action, label: str) -> int:
        identity_ = (index, number, label)
        if identity_ not in self._step:

            def run(state: State, after: State | None) -> tuple[list[Look], int]:
                assert after is not None
                looks: list[Look] = []
                before_view = View(self._reader(state, looks, 0))
                after_view = View(self._reader(after, looks, len(state)))
                return looks, self._truth(wanted.promise, state, lambda: wanted.fn(before_view, after_view, action, label))

            self._step[identity_] = self._add(Tree(f"promise {wanted.promise} at {action} [{label}]", run, index))
            self._about_step[self._step[identity_]] = identity_
        return self._step[identity_]

    def _truth(self, promise: str, state: State, judge: Callable[[], Truth]) -> int:
        self.calls += 1
        return k.LEAF - int(self.semantics.ask(promise, state, judge))

    def _reader(self, state: State, looks: list[Look], offset: int) -> Callable[[Slot[Any], Projection], Any]:
        index = self.domains.index
        known: set[tuple[int, Projection]] = set()

        def read(slot: Slot[Any], what: Projection) -> Any:
            if slot not in index:
                raise ModelError(f"slot {slot} is not part of the model")
            found = what.of(state[index[slot]])
            if (index[slot], what) not in known:
                known.add((index[slot], what))
                looks.append((index[slot] + offset, what, found))
            return found

        return read
