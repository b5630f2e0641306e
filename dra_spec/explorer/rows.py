"""The states of the explicit engine: bit-packed rows, how each was reached, and the table that finds them; all of it grows on demand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dra_spec.explorer import arrays as k
from dra_spec.explorer import kernels
from dra_spec.explorer.intern import Ints

_WORD = 64  # bits
_MOST = 1 << 32  # states, since a number has 32 bits


class Layout:
    """Which bits of which word hold which slot. No field lies across two words; bits left over in a word go to the fullest domains."""

    def __init__(self, sizes: NDArray[np.int64]) -> None:
        bits = [int(size - 1).bit_length() if size > 0 else 0 for size in sizes]
        words: list[list[int]] = [[]]
        free = [_WORD]
        for slot, width in enumerate(bits):
            at = next((w for w, left in enumerate(free) if left >= width), None)
            if at is None:
                at = len(free)
                free.append(_WORD)
                words.append([])
            free[at] -= width
            words[at].append(slot)
        self.words = len(words)
        word, shift, width_of = (np.zeros(len(bits), np.int64) for _ in range(3))
        for w, slots in enumerate(words):
            by_fullness = sorted((s for s in slots if sizes[s] > 1), key=lambda s: -float(sizes[s]) / (1 << bits[s]))
            for slot in by_fullness[: free[w]]:
                bits[slot] += 1
            position = 0
            for slot in slots:
                word[slot], shift[slot], width_of[slot] = w, position, bits[slot]
                position += bits[slot]
        self.limits = np.array([1 << b for b in bits], np.int64)  # how large each domain may become
        self.arrays = k.Layout(word, (shift % _WORD).astype(np.uint64), np.array([(1 << b) - 1 for b in bits], np.uint64))

    def fits(self, sizes: NDArray[np.int64]) -> bool:
        """Whether domains of these sizes fit into the fields."""
        return bool(np.all(sizes <= self.limits))


class Store:
    """The arrays of states. `allow(bytes)` is asked before something grows; if it refuses, growing answers False."""

    def __init__(self, sizes: NDArray[np.int64], with_edges: bool, buffer: int, allow: Callable[[int], bool]) -> None:
        self.buffer, self._allow = buffer, allow
        self.layout = Layout(sizes)
        self.rows = np.zeros((4 * buffer, self.layout.words), np.uint64)
        self.parent = np.zeros(4 * buffer, np.uint32)
        self.via = np.zeros(4 * buffer, np.uint32)
        self.flags = np.zeros(4 * buffer, np.uint8)
        self.table = np.zeros(8 * buffer, np.uint64)
        self.edges = np.zeros((4 * buffer if with_edges else 0, 2), np.uint32)
        self.edge_class = np.zeros(len(self.edges), np.uint8)

    def arrays(self) -> k.Store:
        """For the kernels; valid until something grows."""
        return k.Store(self.rows, self.parent, self.via, self.flags, self.table, self.edges, self.edge_class)

    @property
    def memory(self) -> int:
        """Bytes of all arrays."""
        return sum(array.nbytes for array in self.arrays())

    @property
    def memory_of_states(self) -> int:
        """Bytes of rows, parents and table."""
        return self.memory - self.edges.nbytes - self.edge_class.nbytes

    def grow(self, states: int, edges: int) -> bool:
        """Makes room for one more buffer of successors; False if that is not allowed."""
        most = states + self.buffer
        if most > _MOST - 2:
            return False
        if most > len(self.rows):
            size = max(most, len(self.rows) * 3 // 2)
            if not self._allow((size - len(self.rows)) * (8 * self.layout.words + 9)):
                return False
            self.rows, self.parent, self.via, self.flags = (
                _longer(a, size, states) for a in (self.rows, self.parent, self.via, self.flags)
            )
        if most * 5 > len(self.table) * 3:
            if not self._allow(8 * len(self.table)):
                return False
            self.table = np.zeros(2 * len(self.table), np.uint64)
            kernels.rebuild(self.arrays(), states)
        if len(self.edges) and edges + self.buffer > len(self.edges):
            size = max(edges + self.buffer, len(self.edges) * 3 // 2)
            if not self._allow((size - len(self.edges)) * 9):
                return False
            self.edges, self.edge_class = _longer(self.edges, size, edges), _longer(self.edge_class, size, edges)
        return True

    def repack(self, sizes: NDArray[np.int64], states: int) -> bool:
        """Widens the fields for larger domains; False if the memory for that is not allowed."""
        layout = Layout(sizes)
        if not self._allow(8 * layout.words * len(self.rows)):
            return False
        rows = np.empty((len(self.rows), layout.words), np.uint64)
        kernels.repack(self.layout.arrays, layout.arrays, self.rows, rows, states, np.zeros(len(sizes), np.int32))
        self.layout, self.rows = layout, rows
        self.table[:] = 0
        kernels.rebuild(self.arrays(), states)
        return True

    def numbers(self, state: int) -> Ints:
        """The row of a state, unpacked."""
        values = np.zeros(len(self.layout.limits), np.int32)
        kernels.unpack_row(self.layout.arrays, self.rows, state, values)
        return values

    def pack(self, numbers: Ints) -> NDArray[np.uint64]:
        """A row from numbers."""
        word, shift, _ = self.layout.arrays
        row = np.zeros(self.layout.words, np.uint64)
        for slot, number in enumerate(numbers):
            row[word[slot]] |= np.uint64(int(number) << int(shift[slot]))
        return row


def _longer(array: NDArray[Any], size: int, used: int) -> NDArray[Any]:
    longer = np.empty((size, *array.shape[1:]), array.dtype)
    longer[:used] = array[:used]
    return longer
