"""What the kernels need of the trees beside the trees themselves: the merged forest, and outcomes as masks of packed rows."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dra_spec.explorer import arrays as k
from dra_spec.explorer.layout import Chunk, cluster
from dra_spec.explorer.native import Kernel
from dra_spec.explorer.trees import DISABLED, Trees

_MERGE, _PLACE_NODES = Kernel("kernels_merge", "merge"), Kernel("kernels_merge", "place_nodes")
_PACK_OUTCOMES = Kernel("kernels_merge", "pack_outcomes")
_POOL = 1 << 16  # entries that are remembered, at least
_NEAR = 5  # so many tests after each other count as near
_STALE = 1.1  # a merged forest is made anew when so many times as many paths are known


class Merger:
    """Keeps both up to date while the trees grow."""

    def __init__(self, trees: Trees) -> None:
        self.trees = trees
        self._merged: k.Merged | None = None
        self._learned = self._moved = 0  # of the trees, when they were merged
        self._merged_for: k.Layout | None = None
        self._packed = k.Packed(*(np.zeros(shape, kind) for shape, kind in _shapes(0, 0, 0)))
        self._before = np.zeros(0, np.int32)  # per node of the merged forest the one before it, -1 at the root
        self._done = 0, 0  # outcomes and leaves that are packed
        self._layout: k.Layout | None = None
        self._special = np.zeros(0, np.uint8)

    def forest(self, layout: k.Layout, chunks: Sequence[Chunk]) -> k.Merged:
        """The trees of all actions as one forest; valid until something is learned.

        An old one names some walks that are not worth it, so it is kept for a while.
        """
        trees = self.trees
        stale = self._moved != trees.moved or trees.learned > self._learned * _STALE or self._merged_for is not layout
        if self._merged is None or stale:
            self._learned, self._moved, self._merged_for = trees.learned, trees.moved, layout
            self._merged = self._merge(layout, chunks)
        return self._merged

    def _merge(self, layout: k.Layout, chunks: Sequence[Chunk]) -> k.Merged:
        nodes, cells, observers = self.trees.nodes.used, self.trees.child.used, self.trees.observers
        actions = len(self.trees.model.actions)
        most_entries = cells + 2 * nodes + 2
        merged = k.Merged(
            nodes=np.zeros((nodes + 1) * k.NODE, np.int32),
            first=np.zeros(cells + 2 * nodes + 2, np.int32),
            entries=np.zeros(2 * (most_entries + max(_POOL, 4 * actions)), np.int32),
            stack=np.zeros(4 * (nodes + len(chunks) + 2), np.int32),
            chunks=np.zeros(len(chunks) * k.CHUNK, np.int32),
            memo=np.zeros(sum(2 << chunk.bits for chunk in chunks), np.int32),
            pool=np.zeros(2, np.int64),
        )
        scratch = np.zeros((nodes + 1, 3), np.int32), np.zeros((nodes + 1, 3), np.int32), np.zeros((len(observers) + 1, 2), np.int32)
        capacities = np.array([o.capacity for o in observers] or [0], np.int32)
        used = np.zeros(4, np.int64)
        _MERGE(self.trees.forest(), actions, DISABLED, capacities, merged, scratch, used)
        _PLACE_NODES(merged, layout, int(used[0]))
        merged.pool[:] = used[2]
        _chunk(merged, chunks, int(used[3]))
        self._before = scratch[0][: used[0], 2]
        return merged

    def groups(self, sizes: NDArray[np.int64]) -> list[list[int]]:
        """Slots that should sit side by side in a row, since one is looked at after the other; the rows as they are do not matter."""
        assert self._merged is not None
        slots, before = len(sizes), self._before
        at = self._merged.nodes.reshape(-1, k.NODE)[: len(before), 7]
        depth = np.zeros(len(before), np.int64)
        for _ in range(_NEAR):
            depth = np.where(before >= 0, depth[before] + 1, 0)
        pull = np.zeros((slots, slots))
        other = before
        for _ in range(_NEAR):
            there = other >= 0
            np.add.at(pull, (at[there], at[other[there]]), 0.5 ** depth[there])
            other = np.where(there, before[other], -1)
        pull += pull.T
        return cluster(pull, [int(size - 1).bit_length() if size > 0 else 0 for size in sizes])

    def packed(self, layout: k.Layout, special: NDArray[np.uint8]) -> k.Packed:
        """Outcomes as masks. `special`: slots whose change has consequences beyond their bits."""
        trees, words = self.trees, int(layout.word.max(initial=0)) + 1
        outcomes, leaves = trees.outcomes.used, trees.leaves.used
        if layout is not self._layout or not np.array_equal(special, self._special):
            self._done = 0, 0
            self._layout, self._special = layout, special
        if outcomes > len(self._packed.plain) or leaves > len(self._packed.plain_leaf) or words != self._packed.keep.shape[1]:
            self._done = 0, 0
            self._packed = k.Packed(*(np.zeros(shape, kind) for shape, kind in _shapes(2 * outcomes, 2 * leaves, words)))
        ranges = np.array([self._done[0], outcomes, self._done[1], leaves], np.int64)
        _PACK_OUTCOMES(trees.forest(), layout, special, self._packed, ranges)
        self._done = outcomes, leaves
        return self._packed


def _shapes(outcomes: int, leaves: int, words: int) -> list[tuple[tuple[int, ...], type]]:
    return [((outcomes, words), np.uint64), ((outcomes, words), np.uint64), ((outcomes,), np.uint8), ((leaves,), np.uint8)]


def _chunk(merged: k.Merged, chunks: Sequence[Chunk], roots: int) -> None:
    """Groups the nodes of the root by their chunks; those without one join what is for every state."""
    of_root = merged.nodes.reshape(-1, k.NODE)[:roots, 6]
    order = np.argsort(of_root, kind="stable")
    begin = int(merged.first[1])
    merged.entries[2 * begin + 1 : 2 * (begin + roots) : 2] = order
    merged.first[1] += np.count_nonzero(of_root < 0)
    ends = begin + np.searchsorted(of_root[order], np.arange(len(chunks) + 1))
    base = 0
    for c, chunk in enumerate(chunks):
        merged.chunks[c * k.CHUNK : (c + 1) * k.CHUNK] = chunk.word, chunk.shift, (1 << chunk.bits) - 1, base, ends[c], ends[c + 1]
        base += 2 << chunk.bits
