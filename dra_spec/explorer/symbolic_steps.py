"""Step invariants over sets: of which states an outcome of an action is judged true or false.

The tree of a step invariant looks at the state before and at the state after. The state after is a function of the one before:
a slot that the outcome writes has that number, one that a part may write has it where the part's leaf says so, any other is what it was.
"""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from dra_spec.explorer import arrays as k
from dra_spec.explorer.model import Truth
from dra_spec.explorer.result import EngineError
from dra_spec.explorer.scout import Piece
from dra_spec.explorer.symbolic_sets import Set
from dra_spec.explorer.symbolic_trees import SymbolicTrees, union


@attrs.frozen(eq=False)
class Judged:
    """What a step invariant says of an outcome: where it is false, and whether it is true somewhere."""

    property: int
    action: int
    outcome: int
    false: Set
    true: bool


@attrs.frozen(eq=False)
class _Place:
    """Where an evaluation is: code in the tree, states, what is known to be written, parts that were not looked at yet."""

    code: int
    states: Set
    written: dict[int, int]
    parts: tuple[int, ...]


class SymbolicSteps:
    """The step invariants of a model."""

    def __init__(self, trees: SymbolicTrees) -> None:
        self.trees, self.encoding = trees, trees.encoding
        self._slots = len(trees.trees.domains.slots)

    def judge(self, action: int, states: Set) -> Iterator[Judged]:
        """All step invariants about the outcomes of the action in the states. Learns what is missing; raises `Grown`."""
        guards = self.trees.cover(action, states)
        for code, guard in list(guards.leaves.items()):
            here = states & guard
            for number, piece in enumerate(self.trees.walker.leaf(code)):
                if piece.beyond < 0 and piece.steps and here.satisfiable():
                    for tree in piece.steps:
                        truths = self._truths(tree, piece, here)
                        yield Judged(
                            self.trees.trees.trees[tree].property, action, number, truths[Truth.FALSE], truths[Truth.TRUE].satisfiable()
                        )

    def _truths(self, tree: int, piece: Piece, states: Set) -> dict[Truth, Set]:
        for part in piece.parts:
            self.trees.cover(part, states)
        child, roots = self.trees.trees.child, self.trees.trees.roots
        if k.LEAF < int(child.data[roots.data[tree]]) < 0:
            self._learn(tree, piece, states)
        found: dict[Truth, list[Set]] = {truth: [] for truth in Truth}
        todo = [_Place(int(child.data[roots.data[tree]]), states, dict(piece.constants), piece.parts)]
        while todo:
            place = todo.pop()
            if not place.states.satisfiable():
                continue
            if place.code <= k.LEAF:
                found[Truth(k.LEAF - place.code)].append(place.states)
                continue
            known = [ahead for ahead in self._ahead(place) if ahead.code >= 0 or ahead.code <= k.LEAF]
            missing = union([ahead.states for ahead in known], self.encoding).imp_strict(place.states)
            if missing.satisfiable():
                self._learn(tree, piece, missing)
                todo.append(attrs.evolve(place, states=missing))
            todo += known
        return {truth: union(sets, self.encoding) for truth, sets in found.items()}

    def _learn(self, tree: int, piece: Piece, states: Set) -> None:
        row = self.encoding.pick(states)
        after = self.trees.walker.apply(piece, row)
        if after is None:
            raise EngineError(f"{self.trees.trees.trees[tree].who}: a slot is written twice")
        self.trees.trees.learn(tree, row, after)

    def _ahead(self, place: _Place) -> Iterator[_Place]:
        position, base, child, _ = (int(n) for n in self.trees.trees.nodes.data[place.code])
        slot = position - self._slots
        if slot >= 0 and slot in place.written:
            seen = int(self.trees.trees.seen.data[base + place.written[slot]])
            if seen >= 0:
                yield _Place(int(self.trees.trees.child.data[child + seen]), place.states, place.written, place.parts)
            return
        writer = next((p for p in place.parts if slot >= 0 and slot in self._writes(p)), None)
        if writer is not None:
            rest = tuple(part for part in place.parts if part != writer)
            for code, guard in self.trees.guards(writer).leaves.items():
                written = place.written | dict(self.trees.walker.leaf(code)[0].constants)
                yield _Place(place.code, place.states & guard, written, rest)
            return
        for seen, values in self.trees.values_by_sight(place.code).items():
            yield _Place(int(self.trees.trees.child.data[child + seen]), place.states & values, place.written, place.parts)

    def _writes(self, part: int) -> set[int]:
        return {slot for code in self.trees.guards(part).leaves for piece in self.trees.walker.leaf(code) for slot, _ in piece.constants}
