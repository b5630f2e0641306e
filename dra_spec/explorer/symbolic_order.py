"""The order of slots in the decision diagrams: those that are touched together sit together."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

_STARTS, _ROUNDS = 24, 40
_PASSES = 5
_BEST = 3  # of the starts are worth the moves
_SIFTED = 120  # slots; beyond them the moves one by one take too long


def slot_order(slots: int, groups: Iterable[frozenset[int]]) -> list[int]:
    """All slots in an order that keeps groups together.

    By centres of gravity (each slot moves to the mean place of the groups that it is in) from several starts, then by moving
    single slots while that helps. Always the same answer for the same groups.
    """
    wanted = sorted({group for group in groups if len(group) > 1}, key=sorted)
    if not wanted:
        return list(range(slots))
    member = np.zeros((len(wanted), slots), np.bool_)
    for i, group in enumerate(wanted):
        member[i, list(group)] = True
    layout = _Layout(member)
    dice = np.random.default_rng(0)
    starts = [np.arange(slots), *(dice.permutation(slots) for _ in range(_STARTS))]
    settled = sorted((layout.settle(start) for start in starts), key=layout.cost)
    if slots <= _SIFTED:
        settled = [layout.sift(order) for order in settled[:_BEST]]
    return [int(slot) for slot in min(settled, key=layout.cost)]


class _Layout:
    """Judges orders. A group counts less the larger it is: it says less about each pair in it."""

    def __init__(self, member: NDArray[np.bool_]) -> None:
        self.member = member
        self.weights = 1 / (member.sum(axis=1) - 1)
        self._pull = member * self.weights[:, None]

    def cost(self, order: NDArray[np.int64]) -> float:
        """The weighted spans of all groups."""
        there = self.member[:, order]
        first = there.argmax(axis=1)
        last = there.shape[1] - 1 - there[:, ::-1].argmax(axis=1)
        return float(self.weights @ (last - first))

    def settle(self, order: NDArray[np.int64]) -> NDArray[np.int64]:
        """Moves all slots to the mean place of their groups, as long as that helps."""
        members, pull = self.member.sum(axis=1), self._pull.sum(axis=0)
        lonely = pull == 0
        best, cost = order, self.cost(order)
        for _ in range(_ROUNDS):
            place = np.empty(len(order))
            place[order] = np.arange(len(order))
            wanted = (self._pull.T @ (self.member @ place / members)) / np.where(lonely, 1, pull)
            wanted[lonely] = place[lonely]
            order = np.argsort(wanted, kind="stable")
            now = self.cost(order)
            if now >= cost:
                break
            best, cost = order, now
        return best

    def sift(self, order: NDArray[np.int64]) -> NDArray[np.int64]:
        """Moves single slots to their best places."""
        for _ in range(_PASSES):
            before = self.cost(order)
            for slot in order.copy():
                rest = order[order != slot]
                place = int(np.argmin(self._costs_of_places(slot, rest)))
                order = np.concatenate([rest[:place], [slot], rest[place:]])
            if self.cost(order) >= before:
                break
        return order

    def _costs_of_places(self, slot: int, rest: NDArray[np.int64]) -> NDArray[np.float64]:
        """What each place among the others would cost."""
        there = self.member[:, rest]
        alone = ~there.any(axis=1)
        first = there.argmax(axis=1)[:, None]
        last = (len(rest) - 1 - there[:, ::-1].argmax(axis=1))[:, None]
        place = np.arange(len(rest) + 1)[None, :]
        with_it = np.maximum(last + 1, place) - np.minimum(first, place)
        without = last - first + ((first < place) & (place <= last))
        span = np.where(self.member[:, [slot]], with_it, without)
        span[alone] = 0
        costs: NDArray[np.float64] = self.weights @ span
        return costs
