"""The states of the explicit engine: bit-packed rows, how each was reached, and the table that finds them; all of it grows on demand."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from dra_spec.explorer import arrays as k
from dra_spec.explorer import fingerprints
from dra_spec.explorer.arena import Growing
from dra_spec.explorer.crew import Crew
from dra_spec.explorer.growing import Ints
from dra_spec.explorer.layout import Layout, moves
from dra_spec.explorer.native import Kernel
from dra_spec.explorer.result import EngineError

_REBUILD, _REPACK = Kernel("kernels_store", "rebuild"), Kernel("kernels_store", "repack")
_FINGERPRINT = Kernel("kernels_store", "fingerprint")
_REFILL, _REFILL_LATE = Kernel("kernels_share", "refill"), Kernel("kernels_share", "refill_late")
_SHARED = 1 << 15  # states that are worth several threads
_LATE = 1 << 12
_BATCH = 1 << 8  # states that are put into the table together
_LATELY = 16  # a domain grew lately if there were at least so many times fewer states than now
_NOTHING = np.zeros(0, np.int64)
_MOST = 1 << 32  # states, since a number has 32 bits


class Store:
    """The arrays of states. `allow(bytes)` is asked before something grows; if it refuses, growing answers False.

    With `fingerprints`, when rows have become too wide to be kept, `narrow` turns true for good: the table compares fingerprints, edges
    are not stored any more, and rows below `gone` may not be read.
    """

    def __init__(
        self,
        sizes: NDArray[np.int64],
        with_edges: bool,
        buffer: int,
        allow: Callable[[int], bool],
        fingerprints: bool = False,
        crew: Crew | None = None,
    ) -> None:
        self.buffer, self._allow, self._may_narrow = buffer, allow, fingerprints
        self._crew = crew or Crew(1)
        self.narrow, self.gone = False, 0
        self.layout = Layout(sizes)
        self._sizes, self._grown = sizes.copy(), np.zeros(len(sizes), np.int64)  # per slot, and when it grew last
        self.groups: list[list[int]] | None = None  # slots that should sit side by side
        first = 4 * buffer
        self._rows = Growing(first, (self.layout.words,), np.uint64)
        self._prints = Growing(0, (2,), np.uint64)
        self._key_first, self._keys = np.zeros(0, np.int64), np.zeros((0, 2), np.uint64)
        self._others = [Growing(first, (), kind) for kind in (np.uint32, np.uint32, np.uint8)]
        self._table = Growing(2 * first, (), np.uint64)
        self._edges = [Growing(first if with_edges else 0, rest, kind) for rest, kind in (((2,), np.uint32), ((), np.uint16))]
        self._name()
        if self._narrows(self.layout):
            self.repack(sizes, 0)

    def _narrows(self, layout: Layout) -> bool:
        return self._may_narrow and not self.narrow and fingerprints.too_wide(layout.words)

    def _name(self) -> None:
        self.rows, self.table, self.prints = self._rows.data, self._table.data, self._prints.data
        self.parent, self.via, self.flags = (growing.data for growing in self._others)
        self.edges, self.edge_class = (growing.data for growing in self._edges)
        kept = self.prints if self.narrow else self.rows
        others = self.parent, self.via, self.flags, self.table, self.edges, self.edge_class
        self._arrays = k.Store(self.rows, kept, self._keys, self._key_first, *others)

    def arrays(self) -> k.Store:
        """For the kernels; valid until something grows."""
        return self._arrays

    @property
    def memory(self) -> int:
        """Bytes of all arrays."""
        return self.memory_of_states + self.edges.nbytes + self.edge_class.nbytes

    @property
    def memory_of_states(self) -> int:
        """Bytes of rows or fingerprints, parents and table."""
        whole = self.parent, self.via, self.flags, self.table, self.prints, self._keys, self._key_first
        return self.rows[self.gone :].nbytes + sum(array.nbytes for array in whole)

    def fits(self, sizes: NDArray[np.int64], states: int) -> bool:
        """Whether the fields are wide enough; it is noted which domains grew at this number of states."""
        self._grown[sizes > self._sizes] = states
        self._sizes = sizes.copy()
        return self.layout.fits(sizes)

    def grow(self, states: int, edges: int) -> bool:
        """Makes room for one more buffer of successors; False if that is not allowed."""
        more = self.buffer
        return self.grow_states(states, more) and self.grow_table(states, more) and self.grow_edges(edges, more)

    def grow_states(self, states: int, more: int) -> bool:
        """Makes room for the rows of so many more states; False if that is not allowed."""
        most = states + more
        if most > _MOST - 2:
            return False
        if most > len(self.rows):
            size = max(most, self._rows.next_length())
            if not self._allow((size - len(self.rows)) * (8 * self.layout.words + 9 + 16 * self.narrow)):
                return False
            for growing in (self._rows, *self._others, *([self._prints] if self.narrow else [])):
                growing.grow(size)
            self._name()
        return True

    def grow_table(self, states: int, more: int) -> bool:
        """Makes room in the table for so many more states; False if that is not allowed."""
        size = len(self.table)
        while (states + more) * 4 > size * 3:
            size *= 2
        if size > len(self.table):
            if not self._allow(8 * (size - len(self.table))):
                return False
            self._table.data[:] = 0
            self._table.grow(size)
            self._name()
            self._rebuild(states)
        return True

    def _rebuild(self, states: int) -> None:
        """Fills the empty table."""
        store, workers = self.arrays(), self._crew.size if states >= _SHARED else 1
        bounds = [len(self.table) * w // workers for w in range(workers + 1)]
        late, mine = np.zeros((workers, _LATE, 2), np.int64), np.zeros((workers, 2 * _BATCH), np.int64)
        shares = [k.Share(np.array([*bounds[w : w + 2], 0, 0, 0]), _NOTHING, late[w], mine[w]) for w in range(workers)]
        done = np.zeros(workers, np.bool_)

        def refill(w: int) -> None:
            done[w] = _REFILL(store, shares[w], states)

        self._all(workers, refill)
        if done.all():
            for share in shares:
                _REFILL_LATE(store, share)
        else:
            self.table[:] = 0
            _REBUILD(store, states)

    def _all(self, workers: int, job: Callable[[int], None]) -> None:
        """Lets the crew, or the caller alone, do a job."""
        if workers > 1:
            self._crew.run(job)
        else:
            job(0)

    def grow_edges(self, edges: int, more: int) -> bool:
        """Makes room for so many more edges, where edges are stored; False if that is not allowed."""
        if len(self.edges) and edges + more > len(self.edges):
            size = max(edges + more, self._edges[0].next_length())
            if not self._allow((size - len(self.edges)) * 10):
                return False
            for growing in self._edges:
                growing.grow(size)
            self._name()
        return True

    def repack(self, sizes: NDArray[np.int64], states: int) -> bool:
        """Widens the fields for larger domains; False if the memory for that is not allowed."""
        layout = Layout(sizes, self.groups, self._grown * _LATELY >= states)
        narrows = self._narrows(layout)
        if not self._allow(8 * layout.words * (len(self.rows) - self.gone) + 16 * narrows * len(self.rows)):
            return False
        rows = Growing(len(self.rows), (layout.words,), np.uint64, layout.words if self.narrow or narrows else 1)
        self._repack(layout, rows.data, states)
        self.layout, self._rows = layout, rows
        self._name()
        if self.narrow or narrows:
            self._key_first, self._keys = fingerprints.keys(layout.limits)
            self._name()
        if narrows:
            self._take_fingerprints(states)
        if narrows or not self.narrow:  # fingerprints are the same in every layout
            self.table[:] = 0
            self._rebuild(states)
        return True

    def _repack(self, layout: Layout, rows: NDArray[np.uint64], states: int) -> None:
        workers = self._crew.size if states - self.gone >= _SHARED else 1
        how = moves(self.layout, layout)

        def repack(w: int) -> None:
            begin, end = (self.gone + (states - self.gone) * n // workers for n in (w, w + 1))
            _REPACK(how, self.rows[begin:end], rows[begin:end], end - begin)

        self._all(workers, repack)

    def _take_fingerprints(self, states: int) -> None:
        self.narrow = True
        self._prints = Growing(len(self.rows), (2,), np.uint64)
        self._edges = [Growing(0, rest, kind) for rest, kind in (((2,), np.uint32), ((), np.uint16))]
        self._name()
        _FINGERPRINT(self.layout.arrays, self.rows, states, self._keys, self._key_first, self.prints, np.zeros(0, np.uint64))

    def forget(self, states: int) -> None:
        """The rows of the first states will not be read again; with fingerprints only."""
        assert self.narrow
        self.gone = max(self.gone, states)
        self._rows.forget(self.gone)

    def is_stored_as(self, state: int, numbers: Ints) -> bool:
        """Whether a row has the fingerprint of a stored state."""
        if np.any(numbers >= self.layout.limits):
            return False
        return bool(np.array_equal(np.bitwise_xor.reduce(self._keys[self._key_first + numbers], axis=0), self.prints[state]))

    def numbers(self, state: int) -> Ints:
        """The row of a state, unpacked. Raises `EngineError` if it is gone."""
        if state < self.gone:
            raise EngineError(f"the row of state {state} is not kept, only its fingerprint")
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
