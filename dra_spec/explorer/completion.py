"""Completes decision trees over the values that slots can have, as far as each slot can be told alone.

The trees of a search (trees.py) hold the paths of the states that were met. A reduction must know what a function reads and writes in
*all* states. So each function is run once for every path through it: whenever it looks at a slot, the run goes on with one sight out of
those that the slot's known values give, and other runs take the others. What it writes are new values, which make new paths, until
nothing is new. The result covers every state that can be reached (and many that cannot): if each slot has one of its known values, so it
has after any step.

Versions have no bound. They are taken out of the values, and how two of them compare is chosen as sights are (footprints_versions.py).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from functools import partial
from typing import Any

import attrs

from dra_spec.explorer.footprints_versions import Compared, Unfit, Unnumbered, bears_versions, replaced, shape, without_numbers
from dra_spec.explorer.intern import function_key, identity
from dra_spec.explorer.model import WHOLE, Projection, Slot
from dra_spec.explorer.values import Version, key

MOST_VALUES = 300  # of one slot
MOST_LEAVES = 4_000  # of one tree
MOST_RUNS = 60_000  # of the model's actions and parts, in all
MOST_OF_PROMISE = 2_000  # runs of a promise
_MOST_CHOICES = 400  # on one path


class TooWide(Exception):
    """A tree cannot be completed within the budgets; the text says why."""


class Values:
    """The known values of each slot, version numbers taken out, and what observers see of them."""

    def __init__(self, slots: Sequence[Slot[Any]]) -> None:
        self.slots = slots
        self.index = {slot: i for i, slot in enumerate(slots)}
        self.values: list[list[Any]] = [[] for _ in slots]
        self.wide: dict[int, str] = {}  # slots of which the values are not known, and why
        self._numbers: list[dict[Hashable, int]] = [{} for _ in slots]
        self._seen: dict[tuple[int, Hashable], list[Hashable]] = {}
        self._places: dict[Hashable, int] = {}

    def add(self, slot: int, value: Any) -> bool:
        """Whether the value is new."""
        if slot in self.wide:
            return False
        try:
            bare = without_numbers(value)
            name = key(bare)
        except (Unfit, TypeError) as error:
            return self.give_up(slot, str(error))
        if name in self._numbers[slot]:
            return False
        if len(self.values[slot]) == MOST_VALUES:
            return self.give_up(slot, f"it may have more than {MOST_VALUES} values")
        self._numbers[slot][name] = len(self.values[slot])
        self.values[slot].append(bare)
        return True

    def give_up(self, slot: int, why: str) -> bool:
        """The slot may have any value from now on. Whether that is new."""
        if slot in self.wide:
            return False
        self.wide[slot] = why
        return True

    def number(self, slot: int, value: Any) -> int:
        """The number of a value among the known ones, -1: not known."""
        return self._numbers[slot].get(shape(value), -1)

    def place(self, of: Hashable) -> int:
        """A number for where a version was found (a position and an observer): the same in all runs."""
        return self._places.setdefault(of, len(self._places))

    def sights(self, slot: int, what: Projection, name: Hashable) -> list[Hashable]:
        """Per value what is seen of it: equal for values that look the same; where that hangs on versions, each value by itself."""
        seen = self._seen.setdefault((slot, name), [])
        for number in range(len(seen), len(self.values[slot])):
            value = self.values[slot][number]
            if what == WHOLE:
                seen.append(("value", number))
                continue
            try:
                found = what.of(replaced(value, lambda version: Unnumbered(version.of, 0, None)))
                seen.append(("sight", shape(found)))
            except (Compared, Exception):  # an exception: a run that comes here will meet it again
                seen.append(("value", number))
        return seen


@attrs.define(eq=False)
class Node:
    """A place where a run looks at a slot, or compares two versions (slot -1): one child for each thing that it may find."""

    slot: int
    observer: Hashable
    what: Projection
    path: tuple[tuple[Node, Hashable], ...]
    children: dict[Hashable, Node | Leaf] = attrs.field(factory=dict)
    example: dict[Hashable, int] = attrs.field(factory=dict)  # per thing that may be found the first value that shows it
    options: dict[Hashable, None] = attrs.field(factory=dict)  # all that may be found, as of so many values
    known: int = -1


@attrs.frozen(eq=False)
class Leaf:
    """The end of a run: what it found on its way, and its result."""

    path: tuple[tuple[Node, Hashable], ...]
    result: Any

    def numbers(self, values: Values) -> dict[int, frozenset[int]]:
        """Per position that was looked at the numbers of the values with which a run ends here."""
        found: dict[int, frozenset[int]] = {}
        for node, sight in self.path:
            if node.slot >= 0:
                found[node.slot] = frozenset(candidates(values, node, sight))
        return found


def candidates(values: Values, node: Node, sight: Hashable | None = None) -> Iterator[int]:
    """The values that a node's slot may have there, given what was seen of it before; with `sight` those that look so."""
    slot = node.slot % len(values.slots)
    wanted = [(n.observer, n.what, s) for n, s in node.path if n.slot == node.slot]
    if sight is not None:
        wanted.append((node.observer, node.what, sight))
    tests = [(values.sights(slot, what, name), s) for name, what, s in wanted]
    for number in range(len(values.values[slot])):
        if all(seen[number] == s for seen, s in tests):
            yield number


def _captured(fn: Any) -> tuple[Any, ...]:
    """The values that a function carries with it."""
    if isinstance(fn, partial):
        return (*fn.args, *fn.keywords.values(), *_captured(fn.func))
    cells = tuple(cell.cell_contents for cell in getattr(fn, "__closure__", None) or ())
    return (*cells, *(getattr(fn, "__defaults__", None) or ()))


class Run:
    """One run of a function: it finds what `decisions` say, and then the first thing that there is; keeps what it found."""

    def __init__(self, values: Values, decisions: Sequence[tuple[Node, Hashable]], root: list[Node | Leaf]) -> None:
        self.values, self.decisions, self.root = values, decisions, root
        self.path: list[tuple[Node, Hashable]] = []
        self._known: dict[Hashable, Any] = {}

    def fresh(self, value: Any, place: int) -> Any:
        """The value with versions that this run may compare. `place`: where the value was found."""
        count = iter(range(1 << 30))

        def make(version: Version) -> Version:
            return Unnumbered(version.of, (place, next(count)), self.compare)

        return replaced(value, make)

    def compare(self, question: Hashable) -> bool:
        """Chooses how two versions compare; the same pair always in the same way."""
        known = ("compared", question)
        if known not in self._known:
            self._known[known] = self._choose(-1, question, WHOLE)
        return bool(self._known[known])

    def read(self, position: int, what: Projection) -> Any:
        """What the run finds in a slot (position: slot, or slot + number of slots for the state after)."""
        observer: Hashable = what.name
        if what.fn is not None:
            if any(map(bears_versions, (*what.args, *_captured(what.fn)))):
                return what.of(self.read(position, WHOLE))  # what is seen hangs on versions of this run: look at the value as a whole
            observer = (what.name, function_key(what.fn), identity(what.args))
        known = (position, observer)
        if known not in self._known:
            slot = position % len(self.values.slots)
            if slot in self.values.wide:
                raise TooWide(f"it reads {self.values.slots[slot]}: {self.values.wide[slot]}")
            sight, place = self._choose(position, observer, what), self.values.place(known)
            node = self.path[-1][0]
            if sight not in node.example:
                node.example[sight] = next(candidates(self.values, node, sight))
            value = self.values.values[slot][node.example[sight]]
            self._known[known] = what.of(self.fresh(value, place)) if sight[0] == "value" else self.fresh(what.of(value), place)
        return self._known[known]

    def _choose(self, position: int, observer: Hashable, what: Projection) -> Any:
        at = len(self.path)
        if at == _MOST_CHOICES:
            raise TooWide(f"a path has more than {_MOST_CHOICES} choices")
        node = self._next(position, observer, what)
        sight = self.decisions[at][1] if at < len(self.decisions) else next(iter(options(self.values, node)))
        self.path.append((node, sight))
        return sight

    def _next(self, position: int, observer: Hashable, what: Projection) -> Node:
        """The node where the run is; a new one if it is the first to come here."""
        before = self.path[-1] if self.path else None
        known = self.root[0] if before is None and self.root else None if before is None else before[0].children.get(before[1])
        if known is None:
            known = Node(position, observer, what, tuple(self.path))
            self._hang(known)
        if not isinstance(known, Node) or (known.slot, known.observer) != (position, observer):
            raise TooWide("it is not a function of what it reads")
        return known

    def _hang(self, child: Node | Leaf) -> None:
        if self.path:
            node, sight = self.path[-1]
            node.children[sight] = child
        else:
            self.root.append(child)

    def end(self, result: Any) -> None:
        """Hangs the leaf below the last thing that was found."""
        self._hang(Leaf(tuple(self.path), result))


def options(values: Values, node: Node) -> dict[Hashable, None]:
    """All that may be found at a node."""
    if node.slot < 0:
        return {False: None, True: None}
    slot = node.slot % len(values.slots)
    if node.known != len(values.values[slot]):
        node.known = len(values.values[slot])
        seen = values.sights(slot, node.what, node.observer)
        node.options = dict.fromkeys(seen[number] for number in candidates(values, node))
    return node.options


class Completion:
    """One function, completed. `run(run)` runs it and gives the result for the leaf."""

    def __init__(self, who: str, run: Callable[[Run], Any]) -> None:
        self.who, self._run = who, run
        self.root: list[Node | Leaf] = []
        self.leaves: list[Leaf] = []
        self.reads: set[int] = set()  # positions
        self.runs = 0

    def complete(self, values: Values, most: int) -> list[Leaf]:
        """The leaves that are new since the last time. Raises `TooWide` (after `most` runs, or for its own budgets)."""
        new: list[Leaf] = []
        if not self.root:
            self._once(values, (), new)
        todo = [self.root[0]]
        begun = self.runs
        while todo:
            node = todo.pop()
            if isinstance(node, Leaf):
                continue
            self.reads.add(node.slot)
            if node.slot >= 0 and node.slot % len(values.slots) in values.wide:
                raise TooWide(f"it reads {values.slots[node.slot % len(values.slots)]}: {values.wide[node.slot % len(values.slots)]}")
            for sight in options(values, node):
                if sight not in node.children:
                    if self.runs - begun >= most or len(self.leaves) >= MOST_LEAVES:
                        raise TooWide(f"it has more than {len(self.leaves)} paths")
                    self._once(values, (*node.path, (node, sight)), new)
                todo.append(node.children[sight])
        self.reads.discard(-1)
        return new

    def _once(self, values: Values, decisions: Sequence[tuple[Node, Hashable]], new: list[Leaf]) -> None:
        self.runs += 1
        run = Run(values, decisions, self.root)
        try:
            result = self._run(run)
        except TooWide:
            raise
        except Exception as error:  # in a combination of values that no state may have: then nothing is known of it
            raise TooWide(f"{type(error).__name__}: {error}") from error
        run.end(result)
        node, sight = run.path[-1] if run.path else (None, None)
        leaf = self.root[0] if node is None else node.children[sight]
        assert isinstance(leaf, Leaf)
        self.leaves.append(leaf)
        new.append(leaf)
