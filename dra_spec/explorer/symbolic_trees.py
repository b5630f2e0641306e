"""Decision trees as sets: which states of a set reach which leaf, and the learning of paths that a set meets and a tree lacks."""

from __future__ import annotations

from collections.abc import Sequence

import attrs
import numpy as np

from dra_spec.explorer import arrays as k
from dra_spec.explorer.growing import Ints
from dra_spec.explorer.result import EngineError
from dra_spec.explorer.scout import Scout
from dra_spec.explorer.symbolic_sets import Encoding, Grown, Set


@attrs.define(eq=False)
class Guards:
    """A tree over sets: per code of a leaf the states that reach it, and all states for which the path is known."""

    leaves: dict[int, Set]
    known: Set
    epoch: int
    learned: int  # until when it has all that was
    change: int = 0  # counts up whenever a guard changes
    covered: Set | None = None  # what was asked about last: all of it is known


class SymbolicTrees:
    """The trees of a model over sets of states."""

    def __init__(self, scout: Scout, encoding: Encoding) -> None:
        self.scout, self.walker, self.trees, self.encoding = scout, scout.walker, scout.walker.trees, encoding
        self.learned = 0
        self._guards: dict[int, Guards] = {}
        self._seen: dict[int, tuple[bytes, int, dict[int, Set]]] = {}  # per base in seen: its content, epoch, values by what is seen
        self._changes = 0

    def guards(self, tree: int) -> Guards:
        """The tree as it is known; what is missing is neither in a leaf nor in `known`."""
        known = self._guards.get(tree)
        if known is None or known.epoch != self.encoding.epoch:
            known = self._make(tree)
        return known

    def _make(self, tree: int) -> Guards:
        self._changes += 1
        guards = Guards({}, self.encoding.false, self.encoding.epoch, self.learned, self._changes)
        collected: dict[int, list[Set]] = {}
        todo = [(int(self.trees.child.data[self.trees.roots.data[tree]]), self.encoding.true)]
        slots = len(self.trees.domains.slots)
        while todo:
            code, states = todo.pop()
            if code <= k.LEAF:
                collected.setdefault(code, []).append(states)
            elif code >= 0:
                position, _, child, _ = (int(n) for n in self.trees.nodes.data[code])
                if position >= slots:
                    raise EngineError("a tree about steps is asked about states")
                for seen, values in self.values_by_sight(code).items():
                    todo.append((int(self.trees.child.data[child + seen]), states & values))
        for code, sets in collected.items():
            guards.leaves[code] = union(sets, self.encoding)
        guards.known = union(list(guards.leaves.values()), self.encoding)
        self._guards[tree] = guards
        return guards

    def values_by_sight(self, node: int) -> dict[int, Set]:
        """For an inner node: by what is seen, the values of its slot (cubes over the slot's variables, whether before or after)."""
        position, base, _, _ = (int(n) for n in self.trees.nodes.data[node])
        slot = position % len(self.trees.domains.slots)
        seen = self.trees.seen.data[base : base + int(self.trees.domains.sizes[slot])]
        content = seen.tobytes()
        cached = self._seen.get(base)
        if cached is not None and cached[0] == content and cached[1] == self.encoding.epoch:
            return cached[2]
        sights = {
            int(what): union([self.encoding.cube(slot, int(v)) for v in np.flatnonzero(seen == what)], self.encoding)
            for what in np.unique(seen)
            if what >= 0
        }
        self._seen[base] = content, self.encoding.epoch, sights
        return sights

    def cover(self, tree: int, states: Set) -> Guards:
        """The tree, with a path for each of the states. Raises `Grown` if a domain got another bit meanwhile."""
        guards = self.guards(tree)
        if guards.covered is not None and guards.covered == states:
            return guards
        missing = guards.known.imp_strict(states)
        while missing.satisfiable():
            row, taught = self.encoding.pick(missing), self.learned
            way, code = self.learn(tree, row)
            if self.learned == taught and guards.learned != taught:
                guards = self._make(tree)  # paths were learned elsewhere, or other trees taught what is seen of new values
                missing = guards.known.imp_strict(states)
                continue
            current = guards.learned == taught == self.learned - 1
            path = self.encoding.true
            for node, seen in way:
                path &= self.values_by_sight(node)[seen]
            self._changes += 1
            guards.change = self._changes
            if current:
                guards.learned = self.learned
            guards.known |= path
            guards.leaves[code] = guards.leaves.get(code, self.encoding.false) | path
            missing = path.imp_strict(missing)
        guards.covered = states
        return guards

    def learn(self, tree: int, row: Ints, after: Ints | None = None) -> tuple[list[tuple[int, int]], int]:
        """Learns a path; the inner nodes on it and the leaf. Raises `Grown` if a domain got another bit."""
        way, code = self.walker.path(tree, row, after)
        if code > k.LEAF:
            epoch, before = self.encoding.epoch, self.trees.learned
            self.trees.learn(tree, row, after)
            if tree < len(self.trees.model.actions):
                self.scout.follow(tree, row)
            self.learned += max(1, self.trees.learned - before)
            if self.encoding.epoch != epoch:
                raise Grown
            way, code = self.walker.path(tree, row, after)
        if code > k.LEAF:
            raise EngineError(f"{self.trees.trees[tree].who}: a path that was learned is missing")
        return way, code


def union(sets: Sequence[Set], encoding: Encoding) -> Set:
    """All of them, joined in pairs."""
    todo = list(sets)
    if not todo:
        return encoding.false
    while len(todo) > 1:
        todo = [a | b for a, b in zip(todo[::2], todo[1::2], strict=False)] + todo[len(todo) // 2 * 2 :]
    return todo[0]
