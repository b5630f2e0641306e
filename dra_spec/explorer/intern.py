"""Small integers for values: the domain of each slot, what observers see of a value, and which versions a value bears."""

from __future__ import annotations

import types
from collections.abc import Callable, Hashable, Sequence
from functools import partial
from operator import getitem
from typing import Any

import numpy as np

from dra_spec.explorer.growing import Ints, Pool
from dra_spec.explorer.model import Model, ModelError, Projection, Slot
from dra_spec.explorer.values import Version, identity, key, rename, versions

MOST_VERSIONS = 62  # live versions of one object; a bit each


def function_key(fn: Callable[..., Any], around: tuple[object, ...] = ()) -> Hashable:
    """A key of a function: two closures of one text over equal values are one function, also when each run of an action makes a new one.

    `around`: the functions that hold this one. One that holds itself is known by its place among them.
    """
    if isinstance(fn, partial):
        held = tuple(sorted((k, identity(v)) for k, v in fn.keywords.items()))
        return ("partial", function_key(fn.func, (*around, fn)), identity(fn.args), held)
    if not isinstance(fn, types.FunctionType):
        return identity(fn)
    place = next((i for i, outer in enumerate(around) if outer is fn), None)
    if place is not None:
        return ("itself", place)
    contents = [cell.cell_contents for cell in fn.__closure__ or ()]
    cells = tuple(function_key(held, (*around, fn)) if callable(held) else identity(held) for held in contents)
    return (fn.__code__, id(fn.__globals__), cells, identity(fn.__defaults__), identity(fn.__kwdefaults__))


class Observer:
    """One projection of one slot's value, in the state before or after: numbers what is seen."""

    def __init__(self, position: int, slot: int, what: Projection) -> None:
        self.position, self.slot, self.what = position, slot, what
        self.whole = what.fn is None and not what.name
        self.numbers: dict[Hashable, int] = {}
        self.base = 0  # in the pool of what is seen, by value
        self.nodes: list[int] = []
        self.capacity = 0  # children of each of its nodes


class Domains:
    """The values that each slot has had, numbered in the order of their discovery."""

    def __init__(self, model: Model) -> None:
        self.slots: Sequence[Slot[Any]] = model.slots
        self.index = {slot: i for i, slot in enumerate(model.slots)}
        self.values: list[list[Any]] = [[] for _ in model.slots]
        self._numbers: list[dict[Hashable, int]] = [{} for _ in model.slots]
        self.capacity = [4 for _ in model.slots]
        self.sizes = np.zeros(len(model.slots), np.int64)
        self.on_growth: list[Callable[[int], None]] = []  # (slot): its capacity was doubled
        self.on_value: list[Callable[[int, int], None]] = []  # (slot, number): a new value

    def numbers(self, state: Sequence[Any]) -> Ints:
        """The numbers of a state's values, new or not."""
        return np.array([self.number(slot, value) for slot, value in enumerate(state)], np.int32)

    def number(self, slot: int, value: Any) -> int:
        """The number of a value, new or not."""
        try:
            identity_ = key(value)
            known = self._numbers[slot].get(identity_)
        except TypeError as error:
            raise ModelError(f"{self.slots[slot]}: a value must be immutable and hashable, found {value!r} ({error})") from None
        if known is not None:
            return known
        number = self._numbers[slot][identity_] = len(self.values[slot])
        self.values[slot].append(value)
        self.sizes[slot] = number + 1
        if number >= self.capacity[slot]:
            self.capacity[slot] *= 2
            for grow in self.on_growth:
                grow(slot)
        for tell in self.on_value:
            tell(slot, number)
        return number

    def state(self, numbers: Sequence[int] | Ints) -> tuple[Any, ...]:
        """The values behind a row of numbers."""
        return tuple(map(getitem, self.values, numbers.tolist() if isinstance(numbers, np.ndarray) else numbers))


class VersionTable:
    """Which live versions of which object are in each value, and the learned names of values whose versions are counted anew."""

    def __init__(self, domains: Domains) -> None:
        self.domains = domains
        self.masks = Pool(np.uint64, 0)
        self.objects: dict[str, int] = {}
        self.bearers: list[list[int]] = []  # slot, object, base in masks
        self._bearer: dict[tuple[int, str], int] = {}
        self._of_slot: list[list[int]] = [[] for _ in domains.slots]
        self._of_object: list[list[int]] = []
        self._names: dict[tuple[int, int, int], int] = {}  # of `renumber`
        self.changed = True
        domains.on_growth.append(self._grow)
        domains.on_value.append(self._add)

    def _grow(self, slot: int) -> None:
        for b in self._of_slot[slot]:
            new = self.domains.capacity[slot]
            self.bearers[b][2] = self.masks.move(self.bearers[b][2], new // 2, new)
            self.changed = True

    def _add(self, slot: int, number: int) -> None:
        for version in versions(self.domains.values[slot][number]):
            if not 0 <= version.n <= MOST_VERSIONS:
                raise ModelError(f"{self.domains.slots[slot]}: version {version}: more than {MOST_VERSIONS} live versions of one object")
            base = self.bearers[self._bear(slot, version.of)][2]
            self.masks.data[base + number] |= np.uint64(1 << version.n)

    def _bear(self, slot: int, thing: str) -> int:
        if (slot, thing) not in self._bearer:
            if thing not in self.objects:
                self.objects[thing] = len(self.objects)
                self._of_object.append([])
            b = self._bearer[slot, thing] = len(self.bearers)
            self.bearers.append([slot, self.objects[thing], self.masks.take(self.domains.capacity[slot])])
            self._of_slot[slot].append(b)
            self._of_object[self.objects[thing]].append(b)
            self.changed = True
        return self._bearer[slot, thing]

    def rename(self, bearer: int, number: int, mask: int) -> int:
        """The number of the value with the versions in `mask` of the bearer's object renamed to 0, 1, 2, ..."""
        slot, thing, _ = self.bearers[bearer]
        of = next(name for name, n in self.objects.items() if n == thing)
        live = [n for n in range(mask.bit_length()) if mask >> n & 1]
        names = {Version(of, n): Version(of, rank) for rank, n in enumerate(live) if n != rank}
        return self.domains.number(slot, rename(self.domains.values[slot][number], names))

    def renumber(self, row: Ints) -> None:
        """Renames, in a row, the live versions of each object in order to 0, 1, 2, ..."""
        for members in self._of_object:
            live = 0
            for b in members:
                slot, _, base = self.bearers[b]
                live |= int(self.masks.data[base + row[slot]])
            if live & (live + 1):
                for b in members:
                    slot, _, base = self.bearers[b]
                    if int(self.masks.data[base + row[slot]]):
                        row[slot] = self._renamed(b, int(row[slot]), live)

    def _renamed(self, bearer: int, number: int, mask: int) -> int:
        asked = bearer, number, mask
        if asked not in self._names:
            self._names[asked] = self.rename(bearer, number, mask)
        return self._names[asked]

    def arrays(self) -> tuple[Ints, Ints, Ints, Ints, Ints]:
        """slot_first, slot_bearers, bearers, object_first, object_bearers (slot, number of the bearer, base in masks)."""
        bearers = np.array(self.bearers, np.int32).reshape(-1, 3)
        first, members = _grouped(self._of_object)
        of_object = np.stack([bearers[members, 0], members, bearers[members, 2]], axis=1)
        return (*_grouped(self._of_slot), bearers, first, np.ascontiguousarray(of_object, np.int32))


def _grouped(groups: list[list[int]]) -> tuple[Ints, Ints]:
    first = np.zeros(len(groups) + 1, np.int32)
    first[1:] = np.cumsum([len(group) for group in groups]) if groups else 0
    return first, np.array([b for group in groups for b in group], np.int32)
