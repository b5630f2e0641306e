"""The audit: do the model's functions keep the promises on which the engines rest?

Everything stands on one assumption: an action (a part, a promise) is a deterministic function of what it read through its view. The
trees that a search learned are the list of what was read. For each leaf the audit fixes what was read on the way, gives every other slot
some value that it has been seen to have, and runs the function again: it must read the same in the same order, and yield the same
outcomes with the same writes. It also runs it twice in one state, and looks at the rooms of all that it touches. A slot that makes a
difference although it was not read is named.

It is a test, not a proof: it tries a few random surroundings of each leaf.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

import attrs
import numpy as np

from dra_spec.explorer import arrays as k
from dra_spec.explorer.growing import Ints
from dra_spec.explorer.intern import Domains, VersionTable
from dra_spec.explorer.model import Model, ModelError
from dra_spec.explorer.result import EngineError
from dra_spec.explorer.scout import Scout, Walker
from dra_spec.explorer.semantics import Semantics
from dra_spec.explorer.trees import Look, Trees

ROUNDS = 3  # random surroundings per leaf
MOST = 20_000  # runs of the model's code
_TRIES = 100  # surroundings in which a function may do again what was learned of it
_ANSWER = tuple[list[tuple[int, str, object]], int]


@attrs.frozen
class Audit:
    """What was tried: leaves looked at, runs of the model's functions, leaves left out because there were too many."""

    leaves: int
    runs: int
    left_out: int

    def __str__(self) -> str:
        more = f", {self.left_out} leaves left out" if self.left_out else ""
        return f"{self.leaves} leaves, {self.runs} runs{more}"


def scouted(model: Model) -> Trees:
    """Trees as a short look around learns them, for an engine that has none."""
    semantics = Semantics(model)
    domains = Domains(model)
    trees = Trees(model, semantics, domains)
    versions = VersionTable(domains)
    initial = [domains.numbers(state) for state in semantics.initial_states()]
    Scout(Walker(trees), semantics, initial, versions).run()
    return trees


@attrs.frozen(eq=False)
class _Leaf:
    """A way through a tree: for each position that was looked at the numbers of values that look the same, and where it ends."""

    tree: int
    choices: dict[int, tuple[int, ...]]
    code: int


class Auditor:
    """Audits the trees of a finished search. Always the same surroundings for the same trees."""

    def __init__(self, trees: Trees, rounds: int = ROUNDS, most: int = MOST) -> None:
        self.trees, self.rounds, self.most = trees, rounds, most
        self.slots = len(trees.domains.slots)
        self._dice = random.Random(0)
        self._runs = 0

    def run(self) -> Audit:
        """Raises `EngineError`, which names the function and the slot, at the first one that is not what it must be."""
        leaves = [leaf for tree in range(len(self.trees.trees)) for leaf in self._leaves(tree)]
        fit = max(1, self.most // (self.rounds + 2))
        chosen = leaves if len(leaves) <= fit else self._dice.sample(leaves, fit)
        for leaf in chosen:
            self._audit(leaf)
        return Audit(len(chosen), self._runs, len(leaves) - len(chosen))

    def _leaves(self, tree: int) -> Iterator[_Leaf]:
        """All ways from the root to a leaf that some values can take."""
        todo: list[tuple[int, dict[int, tuple[int, ...]]]] = [(int(self.trees.child.data[self.trees.roots.data[tree]]), {})]
        while todo:
            code, choices = todo.pop()
            if code <= k.LEAF:
                yield _Leaf(tree, choices, code)
                continue
            if code < 0:
                continue
            position, base, child, _ = (int(n) for n in self.trees.nodes.data[code])
            size = int(self.trees.domains.sizes[position % self.slots])
            numbers = choices.get(position, tuple(range(size)))
            by_sight: dict[int, list[int]] = {}
            for number in numbers:
                seen = int(self.trees.seen.data[base + number])
                if seen >= 0:
                    by_sight.setdefault(seen, []).append(number)
            for seen, alike in by_sight.items():
                todo.append((int(self.trees.child.data[child + seen]), choices | {position: tuple(alike)}))

    def _audit(self, leaf: _Leaf) -> None:
        who = self.trees.trees[leaf.tree].who
        values = {position: self._dice.choice(numbers) for position, numbers in leaf.choices.items()}
        first_row = self._surround(values)
        first = self._answer(leaf, first_row)
        again = self._answer(leaf, first_row)
        if again != first:
            told = f"audit: {who} is not deterministic: run twice in one state it {_difference(first, again, self._name)}"
            raise EngineError(told + self._where(first_row))
        if first[1] != leaf.code:
            self._compare_with_learned(leaf, first_row)
            told = f"audit: {who} no longer does what was learned of it for the same reads ({self._reads(leaf)})"
            raise EngineError(told + self._where(first_row))
        for _ in range(self.rounds):
            row = self._surround(values)
            if self._answer(leaf, row) != first:
                self._blame(leaf, first, first_row, row)

    def _compare_with_learned(self, leaf: _Leaf, bad: Ints) -> None:
        """Looks for surroundings in which the function does what was learned of it, and blames a slot."""
        for _ in range(_TRIES):
            good = self._surround({position: self._dice.choice(numbers) for position, numbers in leaf.choices.items()})
            answer = self._answer(leaf, good)
            if answer[1] == leaf.code:
                self._blame(leaf, answer, good, bad)

    def _surround(self, values: dict[int, int]) -> Ints:
        """A row before and a row after: these positions have these numbers, the others any that they have been seen to have."""
        row = np.array([self._dice.randrange(int(size)) for size in self.trees.domains.sizes] * 2, np.int32)
        for slot in range(self.slots):
            row[slot + self.slots] = self._dice.randrange(int(self.trees.domains.sizes[slot]))
        for position, number in values.items():
            row[position] = number
        return row

    def _answer(self, leaf: _Leaf, row: Ints) -> _ANSWER:
        """What the function reads, in order, and the leaf that its outcomes make."""
        self._runs += 1
        before = self.trees.domains.state(row[: self.slots])
        after = self.trees.domains.state(row[self.slots :])
        tree = self.trees.trees[leaf.tree]
        try:
            looks, code = tree.run(before, after)
        except ModelError as error:
            raise EngineError(f"audit: {error}") from error
        return [self._look(look) for look in looks], code

    def _look(self, look: Look) -> tuple[int, str, object]:
        position, what, found = look
        return position, str(what), found

    def _blame(self, leaf: _Leaf, first: _ANSWER, good: Ints, bad: Ints) -> None:
        """Finds a slot that makes the difference: takes the values of the bad row one by one."""
        row = good.copy()
        for position in np.flatnonzero(good != bad):
            row[position] = bad[position]
            now = self._answer(leaf, row)
            if now != first:
                who = self.trees.trees[leaf.tree].who
                told = f"audit: {who} depends on {self._name(int(position))}, which it did not read: with another value of it, it "
                raise EngineError(told + _difference(first, now, self._name) + self._where(row))
        raise EngineError(
            f"audit: {self.trees.trees[leaf.tree].who} is not deterministic: it answers otherwise in a state in which it was run before"
        )

    def _name(self, position: int) -> str:
        return str(self.trees.domains.slots[position % self.slots]) + ("" if position < self.slots else " (after the step)")

    def _reads(self, leaf: _Leaf) -> str:
        return ", ".join(self._name(position) for position in leaf.choices) or "none"

    def _where(self, row: Ints) -> str:
        return f"\nin the state\n{self.trees.semantics.describe(self.trees.domains.state(row[: self.slots]))}"


def _difference(one: _ANSWER, other: _ANSWER, name: object) -> str:
    """What two answers differ in."""
    reads, more = one[0], other[0]
    if reads != more:
        at = next((i for i, (a, b) in enumerate(zip(reads, more, strict=False)) if a != b), min(len(reads), len(more)))
        return f"reads {_told(reads, at, name)} as number {at + 1} once and {_told(more, at, name)} the other time"
    return "reads the same and yields other outcomes"


def _told(reads: Sequence[tuple[int, str, object]], at: int, name: object) -> str:
    if at >= len(reads):
        return "nothing"
    assert callable(name)
    return f"{name(reads[at][0])}{reads[at][1]}"
