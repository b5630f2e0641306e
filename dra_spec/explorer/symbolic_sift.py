"""A better order of the slots, from a sample of the states: each slot in turn moves to where the diagram is smallest.

The nodes of a slot stand for the different rests that states can have behind the slots in front of it, whatever the order among those
(Friedman, Supowit 1990). So a place is judged by counting rests in the sample, without building a diagram, and moving one slot (sifting,
Rudell 1993) changes only the counts of the slots that it passes.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dra_spec.explorer.growing import Ints
from dra_spec.explorer.native import Kernel

_RESTS = Kernel("kernels_order", "rests")
_PASSES = 3
_WORTH = 0.98  # another pass if the last one left at most so much

Words = NDArray[np.uint64]


def sifted(rows: Ints, order: Sequence[int]) -> list[int]:
    """The slots in an order for which the sample (a state per row) makes a small diagram, beginning from a known order."""
    varying = [slot for slot in order if np.any(rows[:, slot] != rows[0, slot])]
    rests = Rests(rows)
    best, least = varying, rests.total(varying)
    for _ in range(_PASSES):
        before = least
        for slot in list(best):
            others = [other for other in best if other != slot]
            place, cost = rests.best_place(slot, others)
            if cost < least:
                best, least = [*others[:place], slot, *others[place:]], cost
        if least > _WORTH * before:
            break
    return best + [slot for slot in order if slot not in set(varying)]


class Rests:
    """Counts different sets of rests behind some slots. `rows`: states, all different."""

    def __init__(self, rows: Ints) -> None:
        dice = np.random.default_rng(0)
        self._hashes = np.empty((rows.shape[1], len(rows)), np.uint64)
        for slot in range(rows.shape[1]):
            names = dice.integers(0, 1 << 63, int(rows[:, slot].max()) + 1, np.uint64) << np.uint64(1)
            self._hashes[slot] = names[rows[:, slot]]
        self._whole = self._hashes.sum(axis=0, dtype=np.uint64)
        room = 1 << int(2 * len(rows)).bit_length()
        self._room = np.empty(room, np.uint64), np.empty(room, np.uint64)
        self._none = np.zeros(len(rows), np.uint64)
        self._known: dict[frozenset[int], int] = {}

    def _count(self, slots: frozenset[int], before: Words, more: Words) -> int:
        if slots not in self._known:
            self._known[slots] = _RESTS(before, more, self._whole, *self._room)
        return self._known[slots]

    def total(self, order: Sequence[int]) -> int:
        """The nodes of the sample's diagram."""
        before, slots, nodes = self._none.copy(), frozenset[int](), 0
        for slot in order:
            nodes += self._count(slots, before, self._none)
            before += self._hashes[slot]
            slots |= {slot}
        return nodes

    def best_place(self, slot: int, others: Sequence[int]) -> tuple[int, int]:
        """How many of the others should stand in front of a slot, and the nodes of the whole diagram then."""
        before, slots = self._none.copy(), frozenset[int]()
        without, behind = [], []  # nodes at each cut if the slot comes later, and if it came before
        for other in [*others, None]:
            without.append(self._count(slots, before, self._none))
            behind.append(self._count(slots | {slot}, before, self._hashes[slot]))
            if other is not None:
                before += self._hashes[other]
                slots |= {other}
        costs = np.cumsum(without) + sum(behind[:-1]) - np.cumsum([0, *behind[:-1]])
        place = int(np.argmin(costs))
        return place, int(costs[place])
