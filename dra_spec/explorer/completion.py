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

from dra_spec.explorer.compound import Hole, Number, Some, filled, part_of
from dra_spec.explorer.footprints_versions import Unnumbered, bears_versions, replaced
from dra_spec.explorer.intern import function_key
from dra_spec.explorer.known_values import Test, Values
from dra_spec.explorer.model import WHOLE, Projection
from dra_spec.explorer.values import Version, identity

MOST_LEAVES = 4_000  # of one tree
MOST_RUNS = 60_000  # of the model's actions and parts, in all
RUNS_OF_AUTO = 4_000  # the same where nobody asked for a certain reduction
MOST_OF_PROMISE = 2_000  # runs of a promise
_MOST_CHOICES = 400  # on one path
COMPARES, LOOKS_INTO = -1, -2  # instead of a slot


class TooWide(BaseException):
    """A tree cannot be completed within the budgets; the text says why. Not an `Exception`, which a model's function may handle."""


@attrs.define(eq=False)
class Node:
    """A place where a run looks at a slot (its position), into a hole, or compares: one child for each thing that it may find.

    `at`: the position, or the place of the hole; `domain`: the number of the slot or part in `Values`, -1 where it compares.
    """

    slot: int
    at: Hashable
    domain: int
    observer: Hashable
    what: Projection
    path: tuple[tuple[Node, Hashable], ...]
    children: dict[Hashable, Node | Leaf] = attrs.field(factory=dict)
    found: dict[Hashable, tuple[Any, bool]] = attrs.field(factory=dict)  # per thing that may be found `find` of it
    options: dict[Hashable, None] = attrs.field(factory=dict)  # all that may be found, as of so many values
    known: int = -1

    def candidates(self, values: Values, sight: Hashable | None = None) -> Iterator[int]:
        """The values that there may be, given what was seen before; with `sight` those that look so."""
        wanted = seen_of(self.path, self.at)
        if sight is not None:
            wanted.append((self.observer, self.what, sight))
        return values.candidates(self.domain, wanted)

    def find(self, values: Values, sight: Any) -> tuple[Any, bool]:
        """What a run finds where the first value that looks so is there, and whether something in it is for that run alone."""
        if sight not in self.found:
            number = next(self.candidates(values, sight))
            found = values.values[self.domain][number] if sight[0] == "value" else self.what.of(values.unseen(self.domain, number))
            self.found[sight] = found, bears_versions(found)
        return self.found[sight]

    def all_options(self, values: Values) -> dict[Hashable, None]:
        """All that may be found."""
        if self.slot == COMPARES:
            return {False: None, True: None}
        if self.known != len(values.values[self.domain]):
            self.known = len(values.values[self.domain])
            seen = values.sights(self.domain, self.what, self.observer)
            self.options = dict.fromkeys(seen[number] for number in self.candidates(values))
        return self.options


@attrs.frozen(eq=False)
class Leaf:
    """The end of a run: what it found on its way, and its result."""

    path: tuple[tuple[Node, Hashable], ...]
    result: Any

    def numbers(self, values: Values) -> dict[int, frozenset[int]]:
        """Per position that was looked at the numbers of the values with which a run may end here; of skeletons where a slot is split."""
        found: dict[int, frozenset[int]] = {}
        for node, sight in self.path:
            if node.slot >= 0:
                found[node.slot] = frozenset(node.candidates(values, sight))
        return found

    def answers(self) -> dict[Hashable, Hashable]:
        """How versions compared, and what was seen of holes."""
        return {(node.slot, node.at, node.observer): sight for node, sight in self.path if node.slot < 0}


def seen_of(path: Sequence[tuple[Node, Hashable]], at: Hashable) -> list[Test]:
    """What was seen on a path of a slot or a hole."""
    return [(node.observer, node.what, sight) for node, sight in path if node.slot != COMPARES and node.at == at]


def _captured(fn: Any) -> tuple[Any, ...]:
    """The values that a function carries with it."""
    if isinstance(fn, partial):
        return (*fn.args, *fn.keywords.values(), *_captured(fn.func))
    cells = tuple(cell.cell_contents for cell in getattr(fn, "__closure__", None) or ())
    return (*cells, *(getattr(fn, "__defaults__", None) or ()))


class Run:
    """One run of a function: it finds what `decisions` say, and then the first thing that there is; keeps what it found.

    `promise`: it meets no holes, as an evaluator of expressions may tell a hole from what it stands for; and it makes no versions.
    """

    def __init__(self, values: Values, decisions: Sequence[tuple[Node, Hashable]], root: list[Node | Leaf], promise: bool = False) -> None:
        self.values, self.decisions, self.root = values, decisions, root
        self.path: list[tuple[Node, Hashable]] = []
        self._known: dict[Hashable, Any] = {}
        self._promise = promise
        self._ended = False

    def fresh(self, value: Any, place: Hashable) -> Any:
        """The value with versions that this run may compare, and holes into which it may look. `place`: where the value was found."""
        count = iter(range(1 << 30))

        def version(found: Version) -> Version:
            return Unnumbered(found.of, (place, next(count)), self)

        def part(found: Any) -> Any:
            where = (place, next(count))
            if type(found) not in (Some, Hole):
                return Number(where, self)
            hole = Hole(found.part if type(found) is Some else part_of(found)[0], where, self)
            return filled(hole) if self._promise else hole

        return replaced(value, version, part)

    # what holes and versions ask (compound.Chooser)

    def compare(self, question: Hashable, of: str | None) -> bool:
        """Chooses how two versions compare; the same pair always in the same way. All versions of an object that never gets another one are
        the same."""
        if of is not None and not self.values.choices.moves(of):
            return isinstance(question, tuple) and question[0] == "="
        known = ("compared", question)
        if known not in self._known:
            self._known[known] = self._choose(COMPARES, None, -1, question, WHOLE)
        return bool(self._known[known])

    def moved(self, of: str) -> None:
        """An object gets a new version."""
        if self._promise and not self.values.choices.moves(of):
            raise TooWide(f"it makes versions of {of}")
        self.values.moved(of)

    def into(self, part: int, place: Hashable, name: str, fn: Callable[..., Any] | None) -> Any:
        """Looks into a hole."""
        return self._look(LOOKS_INTO, place, part, Projection(name, fn))

    def tests(self, place: Hashable) -> Sequence[Test]:
        """What was seen of a hole up to now."""
        return seen_of(self.path, place)

    # looks

    def read(self, position: int, what: Projection) -> Any:
        """What the run finds in a slot (position: slot, or slot + number of slots for the state after)."""
        return self._look(position, position, position % len(self.values.slots), what)

    def _look(self, slot: int, at: Hashable, domain: int, what: Projection) -> Any:
        observer: Hashable = what.name
        if what.fn is not None:
            if any(map(bears_versions, (*what.args, *_captured(what.fn)))):
                return what.of(self._look(slot, at, domain, WHOLE))  # what is seen hangs on versions of this run: look at the whole value
            observer = (what.name, function_key(what.fn), identity(what.args))
        known = (at, observer)
        if known not in self._known:
            if domain in self.values.wide:
                raise TooWide(f"it reads {self.values.name(domain)}: {self.values.wide[domain]}")
            sight = self._choose(slot, at, domain, observer, what)
            whole = sight[0] == "value"
            found, own = self.path[-1][0].find(self.values, sight)
            if own:
                found = self.fresh(found, self.values.place((at, WHOLE.name) if whole else known))
            self._known[known] = what.of(found) if whole else found
        return self._known[known]

    def _choose(self, slot: int, at: Hashable, domain: int, observer: Hashable, what: Projection) -> Any:
        depth = len(self.path)
        if self._ended:
            raise TooWide("something keeps values from one run to the next")
        if depth == _MOST_CHOICES:
            raise TooWide(f"a path has more than {_MOST_CHOICES} choices")
        node = self._next(slot, at, domain, observer, what)
        sight = self.decisions[depth][1] if depth < len(self.decisions) else next(iter(node.all_options(self.values)))
        self.path.append((node, sight))
        return sight

    def _next(self, slot: int, at: Hashable, domain: int, observer: Hashable, what: Projection) -> Node:
        """The node where the run is; a new one if it is the first to come here."""
        before = self.path[-1] if self.path else None
        known = self.root[0] if before is None and self.root else None if before is None else before[0].children.get(before[1])
        if known is None:
            known = Node(slot, at, domain, observer, what, tuple(self.path))
            self._hang(known)
        if not isinstance(known, Node) or (known.slot, known.at, known.observer) != (slot, at, observer):
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
        self._ended = True
        self._hang(Leaf(tuple(self.path), result))


class Completion:
    """One function, completed. `run(run)` runs it and gives the result for the leaf. `promise`: it is no function of the model's steps."""

    def __init__(self, who: str, run: Callable[[Run], Any], promise: bool = False) -> None:
        self.who, self._run, self._promise = who, run, promise
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
            if node.slot >= 0:
                self.reads.add(node.slot)
            if node.domain in values.wide:
                raise TooWide(f"it reads {values.name(node.domain)}: {values.wide[node.domain]}")
            for sight in node.all_options(values):
                if sight not in node.children:
                    if self.runs - begun >= most or len(self.leaves) >= MOST_LEAVES:
                        raise TooWide(f"it has more than {len(self.leaves)} paths")
                    self._once(values, (*node.path, (node, sight)), new)
                if values.again:  # runs choose other things from now on
                    return new
                todo.append(node.children[sight])
        return new

    def _once(self, values: Values, decisions: Sequence[tuple[Node, Hashable]], new: list[Leaf]) -> None:
        self.runs += 1
        run = Run(values, decisions, self.root, self._promise)
        try:
            result = self._run(run)
        except Exception as error:  # in a combination of values that no state may have: then nothing is known of it
            raise TooWide(f"{type(error).__name__}: {error}") from error
        run.end(result)
        node, sight = run.path[-1] if run.path else (None, None)
        leaf = self.root[0] if node is None else node.children[sight]
        assert isinstance(leaf, Leaf)
        self.leaves.append(leaf)
        new.append(leaf)
