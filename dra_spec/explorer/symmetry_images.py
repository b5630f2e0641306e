"""How a group of permutations acts on the numbers of values: tables that are kept complete while the domains of the slots grow."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import attrs
import numpy as np

from dra_spec.explorer.growing import Ints
from dra_spec.explorer.intern import Domains

if TYPE_CHECKING:
    from dra_spec.explorer.naming import Acting, Renaming

MOST_ELEMENTS = 720


class Symmetry(NamedTuple):
    """For the kernel. Element e (the identity is not among them) puts into slot j what `tables[base[e, j] + v]` says, v being the number
    in slot `source[e, j]`. `order`: the slots that some element changes, in the order in which rows are compared."""

    order: Any
    source: Any
    base: Any
    tables: Any
    image: Any  # room for one row


NO_SYMMETRY = Symmetry(
    np.zeros(0, np.int32), np.zeros((0, 0), np.int32), np.zeros((0, 0), np.int64), np.zeros(0, np.int32), np.zeros(0, np.int32)
)


@attrs.frozen(eq=False)
class Element:
    """A permutation of the group: the element `before` (-1: the identity), then a generator."""

    renaming: Renaming
    before: int
    generator: int
    slots: tuple[int, ...]
    actions: tuple[int, ...]


def generated(generators: Sequence[Acting]) -> list[Element] | None:
    """All elements of the group but the identity; None if there are too many."""
    from dra_spec.explorer import naming

    known: set[Hashable] = {naming.Renaming({}).identity}
    found: list[Element] = []
    at = -1
    while at < len(found):
        for g, generator in enumerate(generators):
            base = found[at] if at >= 0 else None
            renaming = base.renaming.then(generator.renaming) if base else generator.renaming
            if renaming.identity not in known:
                known.add(renaming.identity)
                slots = tuple(generator.slots[s] for s in base.slots) if base else generator.slots
                actions = tuple(generator.actions[a] for a in base.actions) if base else generator.actions
                found.append(Element(renaming, at, g, slots, actions))
                if len(found) >= MOST_ELEMENTS:
                    return None
        at += 1
    return found


class Images:
    """The images of all values that the slots have had, under the generators and under the whole group."""

    def __init__(self, domains: Domains, generators: Sequence[Acting], elements: Sequence[Element], used: Sequence[int]) -> None:
        self.domains, self.generators, self.elements, self.used = domains, generators, elements, used
        self.tables: list[list[list[int]]] = [[[] for _ in domains.slots] for _ in generators]  # per generator, per slot
        self._fresh = [(slot, number) for slot, values in enumerate(domains.values) for number in range(len(values))]
        self.changed = True
        domains.on_value.append(lambda slot, number: self._fresh.append((slot, number)))

    def close(self) -> None:
        """Finds the images of new values; they are values of their slots from then on."""
        while self._fresh:
            self.changed = True
            fresh, self._fresh = self._fresh, []
            for slot, number in fresh:
                value = self.domains.values[slot][number]
                for table, generator in zip(self.tables, self.generators, strict=True):
                    assert len(table[slot]) == number
                    table[slot].append(self.domains.number(generator.slots[slot], generator.renaming.value(value)))

    def row(self, generator: int, row: Ints | Sequence[int]) -> Ints:
        """The image of a row of numbers under a generator; `close` comes first."""
        image = np.empty(len(row), np.int32)
        for slot, number in enumerate(row):
            image[self.generators[generator].slots[slot]] = self.tables[generator][slot][int(number)]
        return image

    def canonical(self, row: Ints) -> Ints:
        """The least image of a row, as the kernel finds it."""
        self.close()
        arrays = self.arrays()
        best = row.copy()
        for e in range(len(arrays.source)):
            image = row.copy()
            for j in arrays.order:
                image[j] = arrays.tables[arrays.base[e, j] + row[arrays.source[e, j]]]
            if tuple(image[arrays.order]) < tuple(best[arrays.order]):
                best = image
        return best

    def arrays(self) -> Symmetry:
        """The tables of the whole group, for the kernel; made anew when values have come."""
        if self.changed:
            self.changed = False
            self._arrays = self._make()
        return self._arrays

    def _make(self) -> Symmetry:
        slots = len(self.domains.slots)
        generators = [[np.array(table, np.int32) for table in tables] for tables in self.tables]
        per_element: list[list[Any]] = []
        moved = np.zeros(slots, np.bool_)
        numbers = [np.arange(len(values), dtype=np.int32) for values in self.domains.values]
        for element in self.elements:
            last = generators[element.generator]
            if element.before < 0:
                tables = last
            else:
                before = self.elements[element.before]
                tables = [last[before.slots[s]][per_element[element.before][s]] for s in range(slots)]
            per_element.append(tables)
            for slot in range(slots) if len(per_element) - 1 in self.used else ():
                if element.slots[slot] != slot or not np.array_equal(tables[slot], numbers[slot]):
                    moved[[slot, element.slots[slot]]] = True
        source = np.zeros((len(self.used), slots), np.int32)
        base = np.zeros((len(self.used), slots), np.int64)
        pieces, used = [], 0
        for e, number in enumerate(self.used):
            for slot in (int(s) for s in np.flatnonzero(moved)):
                to = self.elements[number].slots[slot]
                source[e, to], base[e, to] = slot, used
                pieces.append(per_element[number][slot])
                used += len(per_element[number][slot])
        order = np.flatnonzero(moved).astype(np.int32)
        flat = np.concatenate(pieces) if pieces else np.zeros(0, np.int32)
        return Symmetry(order, source, base, flat, np.zeros(slots, np.int32))
