"""Ranges of costs and sizes, with arithmetic that stops at the largest 64 bit number, and the paths by which sizes are known."""

from __future__ import annotations

import math

import attrs

from dra_spec.selectors.tree import Node
from dra_spec.selectors.types import Type

LARGEST = 2**64 - 1
_TWO_64 = 2.0**64


@attrs.frozen
class Range:
    """From `low` to `high`, both included: cost units or sizes."""

    low: int
    high: int

    def __add__(self, other: Range) -> Range:
        return Range(min(self.low + other.low, LARGEST), min(self.high + other.high, LARGEST))

    def __mul__(self, other: Range) -> Range:
        return Range(min(self.low * other.low, LARGEST), min(self.high * other.high, LARGEST))

    def times(self, factor: float) -> Range:
        """Rounded up; computed in doubles, as upstream does."""
        return Range(_times(self.low, factor), _times(self.high, factor))

    def union(self, other: Range) -> Range:
        return Range(min(self.low, other.low), max(self.high, other.high))


def fixed(value: int) -> Range:
    return Range(value, value)


UNKNOWN = Range(0, LARGEST)


def _times(value: int, factor: float) -> int:
    product = math.ceil(float(value) * factor) if value and factor else 0
    return LARGEST if product >= _TWO_64 else product


class Path:
    """The steps from a variable to a value.

    Upstream keeps paths in Go slices and appends to them in place. Two paths that start alike can therefore overwrite each other's last
    step, which shows in estimates; so this is a view of a shared array that does the same.
    """

    __slots__ = ("_length", "_store")

    def __init__(self, store: list[str], length: int) -> None:
        self._store, self._length = store, length

    def append(self, step: str) -> Path:
        if self._length < len(self._store):
            self._store[self._length] = step
            return Path(self._store, self._length + 1)
        room = max(1, 2 * len(self._store))
        store = [*self._store, step, *[""] * (room - self._length - 1)]
        return Path(store, self._length + 1)

    @property
    def steps(self) -> list[str]:
        return self._store[: self._length]


NO_PATH = Path([], 0)


@attrs.frozen
class Operand:
    """An argument as the rules of calls see it. `size`: None if nothing is known."""

    path: Path | None
    type: Type
    node: Node | None
    size: Range | None


@attrs.frozen
class Entries:
    """Sizes of the keys (or indices) and values of a list or map. `list`: which of the two it is."""

    list: bool
    key: Range
    value: Range

    def union(self, other: Entries) -> Entries:
        return Entries(self.list, self.key.union(other.key), self.value.union(other.value))
