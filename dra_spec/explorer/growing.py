"""Flat arrays that grow, from which pieces and rows are taken."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int32]


class Pool:
    """An array from which pieces are taken; a piece that grows moves to the end."""

    def __init__(self, dtype: Any = np.int32, fill: int = -1, size: int = 1024) -> None:
        self.fill = fill
        self.data: NDArray[Any] = np.full(size, fill, dtype)
        self.used = 0

    def take(self, count: int) -> int:
        """The base of a new piece."""
        base = self.used
        self.used += count
        if self.used > len(self.data):
            grown = np.full(max(self.used, 2 * len(self.data)), self.fill, self.data.dtype)
            grown[:base] = self.data[:base]
            self.data = grown
        return base

    def move(self, base: int, old: int, new: int) -> int:
        """The base of a piece of size `new` that begins like the piece of size `old` at `base`."""
        moved = self.take(new)
        self.data[moved : moved + old] = self.data[base : base + old]
        return moved


class Table:
    """A growing array of rows of integers."""

    def __init__(self, columns: int) -> None:
        self.data: Ints = np.zeros((256, columns), np.int32)
        self.used = 0

    def add(self, *row: int) -> int:
        """The number of the new row."""
        if self.used == len(self.data):
            self.data = np.concatenate([self.data, np.zeros_like(self.data)])
        self.data[self.used] = row
        self.used += 1
        return self.used - 1
