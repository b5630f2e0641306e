"""The values that each slot of a model can have, as far as each slot can be told alone, version numbers taken out.

A slot that has too many values to list is *split*: its values are kept as skeletons, in which each object that is a member of a tuple, or
a field of an object, is replaced by a mark (`Some`), and the values of these parts are kept apart, for all members of a tuple together. So
the known values are all combinations of a skeleton with values of its parts, more than there are, never fewer. Parts may be split in
their turn; and where that is not enough, whole numbers in a skeleton become any number (`Counted`).

What is written into a part may be a hole (compound.py), that is, any value of another part: then the part has all values of that one, also
those that come later (`_Edge`). Which slots are split, and which objects get new versions, is found out on the way (`Choices`): whoever
completes trees over these values begins again where `again` is set.
"""

from __future__ import annotations

import types
from collections.abc import Hashable, Iterator, Sequence
from typing import Any

import attrs

from dra_spec.explorer.compound import Counted, Hole, Number, Some, Unfit, Unseen, filled, is_unknown, part_of
from dra_spec.explorer.footprints_versions import Unnumbered, replaced, shape
from dra_spec.explorer.model import WHOLE, Projection, Slot
from dra_spec.explorer.values import Version, key

MOST_VALUES = 400  # of one slot or part
SPLIT = 3  # with so many values a slot is split, if they have several parts
COUNTED = 10  # with so many values numbers in a part are any number

Kind = tuple[type, bool]  # of values that are split together: their type, and of tuples whether there are objects in them

Test = tuple[Hashable, Projection, Hashable]  # observer, what it looks at, what it saw
_METHODS = (types.MethodType, types.BuiltinMethodType, types.MethodWrapperType)


@attrs.define
class Choices:
    """What was found out on the way: kinds of values that are split, those in which numbers are any number, objects that get versions."""

    split: set[Kind] = attrs.field(factory=set)
    counted: set[Kind] = attrs.field(factory=set)
    moving: set[str] = attrs.field(factory=set)
    all_move: bool = False  # some function is not known well enough to say

    def moves(self, of: str) -> bool:
        """Whether an object may get a new version."""
        return self.all_move or of in self.moving


@attrs.define(eq=False)
class _Edge:
    """The values of one part that pass the tests belong to another one. `done`: so many were looked at."""

    source: int
    tests: Sequence[Test]
    target: int
    done: int = 0


class _Uncovered(Exception):
    """A value is not among the known ones."""


class Values:
    """The known values of slots (numbered as in the model) and of parts (the numbers after these), and what observers see of them."""

    def __init__(self, slots: Sequence[Slot[Any]], choices: Choices) -> None:
        self.slots, self.choices = slots, choices
        self.index = {slot: i for i, slot in enumerate(slots)}
        self.values: list[list[Any]] = [[] for _ in slots]
        self.wide: dict[int, str] = {}  # slots and parts of which the values are not known, and why
        self.again = False  # the choices changed: all that was found is void
        self._paths: list[tuple[Hashable, ...]] = [(i,) for i in range(len(slots))]
        self._parts: dict[tuple[Hashable, ...], int] = {}
        self._numbers: list[dict[Hashable, int]] = [{} for _ in slots]
        self._seen: dict[tuple[int, Hashable], list[Hashable]] = {}
        self._unseen: dict[int, list[Any]] = {}
        self._places: dict[Hashable, int] = {}
        self._edges: dict[Hashable, _Edge] = {}
        self._first: dict[str, int] = {}  # the number of the one version of an object that never gets another

    # what is known

    def add(self, slot: int, value: Any) -> int:
        """Makes a value known; its number, that of its skeleton where the slot is split, -1 if it has none."""
        if slot in self.wide:
            return -1
        try:
            bare = self._bare(slot, value, True)
            name = key(bare)
        except (Unfit, TypeError) as error:
            self.give_up(slot, str(error))
            return -1
        if name not in self._numbers[slot]:
            known = self.values[slot]
            if len(known) >= SPLIT and not self._more(slot, bare):
                return -1
            self._numbers[slot][name] = len(known)
            known.append(bare)
        return self._numbers[slot][name]

    def _more(self, slot: int, value: Any) -> bool:
        """Whether a slot that has many values may have one more; if not, it is split, or given up."""
        full, kind = len(self.values[slot]) >= MOST_VALUES, _kind(value)
        parts = 0 if kind in self.choices.split else _objects(value)
        if parts > 1 or (parts and (isinstance(value, tuple) or full)):
            self.choices.split.add(kind)
            self.again = True
            return False
        counting = len(self._paths[slot]) > 1 and len(self.values[slot]) >= COUNTED
        if kind not in self.choices.counted and (counting or full) and _counts(value):
            self.choices.counted.add(kind)
            self.again = True
            return False
        if not full:
            return True
        self.give_up(slot, f"it may have more than {MOST_VALUES} values")
        return False

    def give_up(self, slot: int, why: str) -> bool:
        """The slot, and that of which it is a part, may have any value from now on. Whether that is new."""
        root = self._paths[slot][0]
        assert isinstance(root, int)
        if slot in self.wide:
            return False
        self.wide[slot] = why
        self.wide.setdefault(root, why)
        return True

    def number(self, slot: int, value: Any) -> int:
        """The number of a value among the known ones, -1: not known, or a value of one of its parts is not."""
        try:
            return self._numbers[slot].get(key(self._bare(slot, value, False)), -1)
        except (_Uncovered, Unfit, TypeError):
            return -1

    def name(self, slot: int) -> str:
        """A slot's name, also for its parts."""
        root = self._paths[slot][0]
        assert isinstance(root, int)
        return str(self.slots[root])

    def _part(self, slot: int, name: str) -> int:
        path = (*self._paths[slot], name)
        if path not in self._parts:
            self._parts[path] = len(self.values)
            self._paths.append(path)
            self.values.append([])
            self._numbers.append({})
        return self._parts[path]

    # values without numbers and parts

    def _bare(self, slot: int, value: Any, add: bool) -> Any:
        """A value as it is kept: if the slot is split, its skeleton. `add`: makes the values of its parts known; else raises `_Uncovered`
        if they are not."""
        while type(value) is Hole:
            value = filled(value)
        kind = _kind(value)
        if kind not in self.choices.split and kind not in self.choices.counted:
            return self.listed(value, add)
        counted = kind in self.choices.counted
        if isinstance(value, tuple):
            return tuple(self._marked(slot, "member", item, add, counted) for item in value)
        if _is_object(value):
            names = [field.name for field in attrs.fields(type(value))]
            return type(value)(**{name.lstrip("_"): self._marked(slot, name, getattr(value, name), add, counted) for name in names})
        return self.listed(value, add)

    def _marked(self, slot: int, name: str, value: Any, add: bool, counted: bool) -> Any:
        """What stands for a member or a field in a skeleton. `counted`: whole numbers are any number."""
        unknown = type(value)
        if unknown in (Hole, Some):
            source, tests = (part_of(value)[0], value._hole_tests()) if unknown is Hole else (value.part, ())
            target = self._part(slot, name)
            self._flow(source, tests, target)
            return Some(target)
        if counted and unknown in (Number, Counted, int):
            return Counted()
        if not _is_object(value):
            return self.listed(value, add)
        target = self._part(slot, name)
        if add:
            self.add(target, value)
        elif target not in self.wide and self.number(target, value) < 0:
            raise _Uncovered
        return Some(target)

    def listed(self, value: Any, add: bool = True) -> Any:
        """A value of which nothing is left open, without version numbers. Raises `Unfit` if something cannot be told."""

        def whole(unknown: Any) -> Any:
            if type(unknown) is Hole:
                return replaced(filled(unknown), unnumbered, whole)
            raise Unfit("it counts without end" if type(unknown) in (Number, Counted) else "its parts have too many values")

        def unnumbered(version: Version) -> Version:
            if add and type(version) is Version and self._first.setdefault(version.of, version.n) != version.n:
                self.moved(version.of)
            return Version(version.of, 0)

        return replaced(value, unnumbered, whole)

    # objects that get new versions

    def moved(self, of: str) -> None:
        """An object gets a new version."""
        if not self.choices.moves(of):
            self.choices.moving.add(of)
            self.again = True

    def not_all_known(self) -> None:
        """Some function may make new versions that nobody has seen."""
        self.again = self.again or not self.choices.all_move
        self.choices.all_move = True

    # values of one part that are values of another

    def _flow(self, source: int, tests: Sequence[Test], target: int) -> None:
        name = (source, tuple((observer, seen) for observer, _, seen in tests), target)
        if name not in self._edges:
            self._edges[name] = _Edge(source, tuple(tests), target)
            self._along(self._edges[name])

    def _along(self, edge: _Edge) -> bool:
        """Whether there was something new."""
        if edge.source in self.wide:
            return self.give_up(edge.target, self.wide[edge.source])
        begun = edge.done
        while edge.done < len(self.values[edge.source]):
            edge.done += 1
            if all(self.sights(edge.source, what, observer)[edge.done - 1] == seen for observer, what, seen in edge.tests):
                self.add(edge.target, self.values[edge.source][edge.done - 1])
        return edge.done > begun

    def settle(self) -> None:
        """Passes values on until nothing is new."""
        todo = True
        while todo:
            todo = False
            for edge in list(self._edges.values()):
                todo = self._along(edge) or todo

    # what is seen

    def place(self, of: Hashable) -> int:
        """A number for where something was found (a position and an observer): the same in all runs."""
        return self._places.setdefault(of, len(self._places))

    def sights(self, slot: int, what: Projection, name: Hashable) -> list[Hashable]:
        """Per value what is seen of it: equal for values that look the same; where that hangs on versions or parts, each by itself."""
        seen = self._seen.setdefault((slot, name), [])
        for number in range(len(seen), len(self.values[slot])):
            seen.append(("value", number))
            if what != WHOLE:
                try:
                    found = what.of(self.unseen(slot, number))
                    if not isinstance(found, _METHODS):
                        seen[number] = ("sight", shape(replaced(found, lambda version: version, _mark)))
                except (Unseen, Exception):  # an exception: a run that comes here will meet it again
                    pass
        return seen

    def unseen(self, slot: int, number: int) -> Any:
        """A known value for somebody who may not look at versions and parts."""
        known = self._unseen.setdefault(slot, [])
        for value in self.values[slot][len(known) : number + 1]:
            known.append(_unseen(value))
        return known[number]

    def candidates(self, slot: int, tests: Sequence[Test]) -> Iterator[int]:
        """The numbers of the values that pass all tests."""
        columns = [(self.sights(slot, what, observer), seen) for observer, what, seen in tests]
        for number in range(len(self.values[slot])):
            if all(column[number] == seen for column, seen in columns):
                yield number


def _unseen(value: Any) -> Any:
    def part(unknown: Any) -> Any:
        return Hole(unknown.part, None, None) if type(unknown) is Some else Number(None, None)

    return replaced(value, lambda version: Unnumbered(version.of, 0, None), part)


def _mark(unknown: Any) -> Any:
    return Some(part_of(unknown)[0]) if type(unknown) is Hole else Counted() if type(unknown) is Number else unknown


def _is_object(value: Any) -> bool:
    return not is_unknown(value) and attrs.has(type(value)) and not isinstance(value, Version)


def _members(value: Any) -> Sequence[Any]:
    if isinstance(value, tuple):
        return value
    return [getattr(value, field.name) for field in attrs.fields(type(value))] if _is_object(value) else ()


def _kind(value: Any) -> Kind:
    return type(value), isinstance(value, tuple) and _objects(value) > 0


def _objects(value: Any) -> int:
    """How many parts a split would take out of a value."""
    return sum(type(member) in (Hole, Some) or _is_object(member) for member in _members(value))


def _counts(value: Any) -> bool:
    """Whether there is a whole number in a value."""
    return any(type(member) is int for member in _members(value))
