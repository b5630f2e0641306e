"""Walks decision trees in Python: on one row of numbers at a time, for what comes before or after a search."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

import attrs

from dra_spec.explorer import arrays as k
from dra_spec.explorer.growing import Ints
from dra_spec.explorer.intern import VersionTable
from dra_spec.explorer.result import EngineError
from dra_spec.explorer.semantics import Semantics
from dra_spec.explorer.trees import Trees

_BROAD = 60  # states expanded breadth first
_WALKS, _STEPS = 40, 150  # random walks behind them
_IDLE = 3  # walks one after the other that met nothing new are enough


@attrs.frozen
class Piece:
    """An outcome as the trees hold it: constants (slot, number), trees of parts, trees of step invariants, number of a reason."""

    constants: tuple[tuple[int, int], ...]
    parts: tuple[int, ...]
    steps: tuple[int, ...]
    beyond: int  # -1: within the bounds


class Walker:
    """Looks things up in the trees' arrays."""

    def __init__(self, trees: Trees) -> None:
        self.trees = trees
        self._pieces: dict[int, Piece] = {}
        self._leaves: dict[int, tuple[Piece, ...]] = {}

    def piece(self, outcome: int) -> Piece:
        """An outcome by its number in the table of outcomes."""
        if outcome not in self._pieces:
            first, last, parts, parts_end, steps, steps_end, beyond = (int(n) for n in self.trees.outcomes.data[outcome])
            self._pieces[outcome] = Piece(
                tuple((int(slot), int(value)) for slot, value in self.trees.constants.data[first:last]),
                tuple(int(n) for n in self.trees.lists.data[parts:parts_end]),
                tuple(int(n) for n in self.trees.lists.data[steps:steps_end]),
                beyond,
            )
        return self._pieces[outcome]

    def leaf(self, code: int) -> tuple[Piece, ...]:
        """The outcomes of a leaf by its code; none: disabled."""
        if code not in self._leaves:
            base, count = (int(n) for n in self.trees.leaves.data[k.LEAF - code])
            self._leaves[code] = tuple(self.piece(int(o)) for o in self.trees.outcome_list.data[base : base + count])
        return self._leaves[code]

    def path(self, tree: int, row: Sequence[int] | Ints, after: Sequence[int] | Ints | None = None) -> tuple[list[tuple[int, int]], int]:
        """The inner nodes on the way with what is seen there, and the code where it ends: above LEAF if the path is missing."""
        slots = len(row)
        way: list[tuple[int, int]] = []
        nodes, seen_item, child_item = self.trees.nodes.data.item, self.trees.seen.data.item, self.trees.child.data.item
        code: int = child_item(self.trees.roots.data.item(tree))
        while code >= 0:
            position: int = nodes(code, 0)
            if position < slots:
                value = int(row[position])
            else:
                assert after is not None
                value = int(after[position - slots])
            seen: int = seen_item(nodes(code, 1) + value)
            if seen < 0:
                return way, seen
            way.append((code, seen))
            code = child_item(nodes(code, 2) + seen)
        return way, code

    def reach(self, tree: int, row: Ints, after: Ints | None = None) -> int:
        """The code of the leaf; a missing path is learned."""
        _, code = self.path(tree, row, after)
        if code > k.LEAF:
            self.trees.learn(tree, row, after)
            _, code = self.path(tree, row, after)
            if code > k.LEAF:
                raise EngineError(f"{self.trees.trees[tree].who}: a path that was learned is missing")
        return code

    def apply(self, piece: Piece, row: Ints) -> Ints | None:
        """The row after an outcome, versions as the action wrote them; None if a slot is written twice."""
        writes = list(piece.constants)
        for part in piece.parts:
            writes.extend(self.leaf(self.reach(part, row))[0].constants)
        if len({slot for slot, _ in writes}) != len(writes):
            return None
        after = row.copy()
        for slot, value in writes:
            after[slot] = value
        return after

    def reads(self, tree: int) -> frozenset[int]:
        """The slots that the tree looks at, as far as it is known."""
        slots, found = len(self.trees.domains.slots), set()
        todo = [int(self.trees.child.data[self.trees.roots.data[tree]])]
        while todo:
            code = todo.pop()
            if code >= 0:
                position, _, child, observer = (int(n) for n in self.trees.nodes.data[code])
                found.add(position % slots)
                todo.extend(int(c) for c in self.trees.child.data[child : child + self.trees.width(observer)] if c >= 0)
        return frozenset(found)

    def leaf_codes(self, tree: int) -> Iterator[int]:
        """The leaves that the tree is known to have."""
        seen = set()
        todo = [int(self.trees.child.data[self.trees.roots.data[tree]])]
        while todo:
            code = todo.pop()
            if code >= 0:
                _, _, child, observer = (int(n) for n in self.trees.nodes.data[code])
                todo.extend(int(c) for c in self.trees.child.data[child : child + self.trees.width(observer)])
            elif code <= k.LEAF and code not in seen:
                seen.add(code)
                yield code

    def groups(self) -> Iterator[frozenset[int]]:
        """Slots that are touched together: what the tree of an action or of a part reads, with what its leaves write."""
        for number, tree in enumerate(self.trees.trees):
            if tree.property < 0:
                touched = set(self.reads(number))
                for code in self.leaf_codes(number):
                    touched.update(slot for piece in self.leaf(code) for slot, _ in piece.constants)
                yield frozenset(touched)


class Scout:
    """A short search ahead of a large one: it fills trees and domains with what most states will ask for."""

    def __init__(self, walker: Walker, semantics: Semantics, initial: Sequence[Ints], versions: VersionTable) -> None:
        self.walker, self.semantics, self.initial, self.versions = walker, semantics, initial, versions

    def run(self, walks: int | None = None) -> list[Ints]:
        """Some breadth-first states, then random walks that go deep, until there is nothing new. Always the same ones.

        Returns the rows that were seen.
        """
        seen = {row.tobytes(): row for row in self.initial}
        todo, at = list(self.initial), 0
        while at < len(todo) and at < _BROAD:
            for action in range(len(self.walker.trees.model.actions)):
                for after in self._successors(action, todo[at]):
                    if after.tobytes() not in seen:
                        seen[after.tobytes()] = after
                        todo.append(after)
            at += 1
        dice = random.Random(0)
        idle = 0
        for _ in range((_WALKS if walks is None else walks) if at < len(todo) else 0):
            known = self.semantics.calls
            row = todo[dice.randrange(len(todo))]
            for _ in range(_STEPS):
                ahead = self._step(row, dice)
                if ahead is None:
                    break
                row = ahead
                seen[row.tobytes()] = row
            idle = 0 if self.semantics.calls > known else idle + 1
            if idle == _IDLE:
                break
        return list(seen.values())

    def follow(self, action: int, row: Ints) -> None:
        """Goes on from a state by one action, as long as its tree has no path for the next state: a long count is learned at one go."""
        for _ in range(_STEPS):
            new = (after for after in self._successors(action, row) if self.walker.path(action, after)[1] > k.LEAF)
            ahead = next(new, None)
            if ahead is None:
                break
            row = ahead

    def _step(self, row: Ints, dice: random.Random) -> Ints | None:
        """A successor by an action that the dice choose; None if there is none."""
        actions = list(range(len(self.walker.trees.model.actions)))
        for i in range(len(actions)):
            j = dice.randrange(i, len(actions))
            actions[i], actions[j] = actions[j], actions[i]
            found = self._successors(actions[i], row)
            if found:
                return dice.choice(found)
        return None

    def _successors(self, action: int, row: Ints) -> list[Ints]:
        domains = self.walker.trees.domains
        found = []
        for piece in self.walker.leaf(self.walker.reach(action, row)):
            if piece.beyond >= 0:
                continue
            after = self.walker.apply(piece, row)
            if after is None:
                raise_conflict(self.semantics, action, domains.state(row))
                raise EngineError(f"{self.walker.trees.model.actions[action]}: a slot is written twice, but not in the plain semantics")
            self.versions.renumber(after)
            found.append(after)
        return found


def raise_conflict(semantics: Semantics, action: int, state: tuple[object, ...]) -> None:
    """Lets the plain semantics say which slot is written twice, and by which part."""
    act = semantics.model.actions[action]
    for outcome in semantics.observe(act, state).outcomes:
        if outcome.beyond is None:
            semantics.apply_raw(act, outcome, state)
