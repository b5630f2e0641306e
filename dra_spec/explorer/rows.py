"""The states of the explicit engine: bit-packed rows, how each was reached, and the table that finds them; all of it grows on demand."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from dra_spec.explorer import arrays as k
from dra_spec.explorer.arena import Growing
from dra_spec.explorer.intern import Ints
from dra_spec.explorer.layout import Layout
from dra_spec.explorer.native import Kernel

_REBUILD, _REPACK = Kernel("kernels_store", "rebuild"), Kernel("kernels_store", "repack")
_MOST = 1 << 32  # states, since a number has 32 bits


class Store:
    """The arrays of states. `allow(bytes)` is asked before something grows; if it refuses, growing answers False."""

    def __init__(self, sizes: NDArray[np.int64], with_edges: bool, buffer: int, allow: Callable[[int], bool]) -> None:
        self.buffer, self._allow = buffer, allow
        self.layout = Layout(sizes)
        self.groups: list[list[int]] | None = None  # slots that should sit side by side
        first = 4 * buffer
        self._rows = Growing(first, (self.layout.words,), np.uint64)
        self._others = [Growing(first, (), kind) for kind in (np.uint32, np.uint32, np.uint8)]
        self._table = Growing(2 * first, (), np.uint64)
        self._edges = [Growing(first if with_edges else 0, rest, kind) for rest, kind in (((2,), np.uint32), ((), np.uint16))]
        self._name()

    def _name(self) -> None:
        self.rows, self.table = self._rows.data, self._table.data
        self.parent, self.via, self.flags = (growing.data for growing in self._others)
        self.edges, self.edge_class = (growing.data for growing in self._edges)

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
            size = max(most, self._rows.next_length())
            if not self._allow((size - len(self.rows)) * (8 * self.layout.words + 9)):
                return False
            for growing in (self._rows, *self._others):
                growing.grow(size)
        if most * 4 > len(self.table) * 3:
            if not self._allow(8 * len(self.table)):
                return False
            self._table.data[:] = 0
            self._table.grow(2 * len(self.table))
            self._name()
            _REBUILD(self.arrays(), states)
        if len(self.edges) and edges + self.buffer > len(self.edges):
            size = max(edges + self.buffer, self._edges[0].next_length())
            if not self._allow((size - len(self.edges)) * 10):
                return False
            for growing in self._edges:
                growing.grow(size)
        self._name()
        return True

    def repack(self, sizes: NDArray[np.int64], states: int) -> bool:
        """Widens the fields for larger domains; False if the memory for that is not allowed."""
        layout = Layout(sizes, self.groups)
        if not self._allow(8 * layout.words * len(self.rows)):
            return False
        rows = Growing(len(self.rows), (layout.words,), np.uint64)
        _REPACK(self.layout.arrays, layout.arrays, self.rows, rows.data, states, np.zeros(len(sizes), np.int32))
        self.layout, self._rows = layout, rows
        self._name()
        self.table[:] = 0
        _REBUILD(self.arrays(), states)
        return True

    def numbers(self, state: int) -> Ints:
        """The row of a state, unpacked."""
        word, shift, mask, _ = self.layout.arrays
        numbers: Ints = ((self.rows[state][word] >> shift) & mask).astype(np.int32)
        return numbers

    def pack(self, numbers: Ints) -> NDArray[np.uint64]:
        """A row from numbers."""
        word, shift, *_ = self.layout.arrays
        row = np.zeros(self.layout.words, np.uint64)
        for slot, number in enumerate(numbers):
            row[word[slot]] |= np.uint64(int(number) << int(shift[slot]))
        return row
