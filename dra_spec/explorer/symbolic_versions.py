"""Renumbering of versions over sets: closes gaps, one object and one missing version at a time, all states that lack it at once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import attrs

from dra_spec.explorer.intern import MOST_VERSIONS, VersionTable
from dra_spec.explorer.symbolic_sets import AND, Encoding, Grown, Set
from dra_spec.explorer.symbolic_trees import union

_ALL = (1 << (MOST_VERSIONS + 1)) - 1


@attrs.define(eq=False)
class Shift:
    """What happens to the values of one slot when versions above a gap move down: a relation between the slot's two sets of variables."""

    numbers: dict[int, int] = attrs.field(factory=dict)  # value, value after; those that do not change are left out
    relation: Set | None = None
    known: Set | None = None
    stamp: tuple[int, int, int] = (-1, -1, -1)


@attrs.frozen(eq=False)
class Closing:
    """One gap that was closed: where, and how."""

    thing: int
    version: int
    lacking: Set  # the states that lacked the version
    others: Set  # those that came with them
    closed: Set  # what became of the former


@attrs.frozen(eq=False)
class Gaps:
    """Of one object: per version the states that hold a higher one but not this one; all of them."""

    stamp: tuple[int, tuple[int, ...]]
    lacking: list[Set]
    somewhere: Set


class Renumbering:
    """The versions of one search."""

    def __init__(self, table: VersionTable, encoding: Encoding) -> None:
        self.table, self.encoding = table, encoding
        self._shifts: dict[tuple[int, int], Shift] = {}  # bearer, version
        self._known_masks: dict[int, list[int]] = {}
        self._top: dict[int, int] = {}  # per bearer: the highest version in any of its values
        self._joint: dict[tuple[tuple[int, ...], int], tuple[object, Set, tuple[int, ...]]] = {}
        self._known_gaps: dict[int, Gaps] = {}  # by object
        self._holds: dict[tuple[int, int], tuple[tuple[int, int, int], Set, Set]] = {}

    @property
    def needed(self) -> bool:
        """Whether any value bears a version."""
        return bool(self.table.bearers)

    def objects(self, slots: Iterable[int]) -> list[int]:
        """The objects whose versions these slots bear."""
        wanted = set(slots)
        return sorted({thing for slot, thing, _ in self.table.bearers if slot in wanted})

    def bearing(self, objects: Iterable[int]) -> frozenset[int]:
        """The slots that bear versions of these objects."""
        return frozenset(self.table.bearers[bearer][0] for thing in objects for bearer in self._bearers(thing))

    def normal(self, states: Set, objects: Iterable[int], record: list[Closing] | None = None) -> Set:
        """The states with their versions counted anew; `record` gets what was done. Raises `Grown`."""
        for thing in objects:
            gaps = self._gaps(thing)
            some = gaps.somewhere & states
            if some.satisfiable():
                states = gaps.somewhere.imp_strict(states)
                states |= self._normal(some, thing, states, record)
        return states

    def _normal(self, states: Set, thing: int, normal: Set, record: list[Closing] | None) -> Set:
        """The states with the versions of one object counted anew; `normal` are those that came with them and have no gap."""
        version = 0
        while version <= self._highest(thing):
            lacking = states & self._gaps(thing).lacking[version]
            if not lacking.satisfiable():
                version += 1
                continue
            others, closed = lacking.imp_strict(states), self._close(lacking, thing, version)
            if record is not None:
                record.append(Closing(thing, version, lacking, others | normal, closed))
            states = others | closed
        return states

    def undo(self, states: Set, record: list[Closing]) -> Set:
        """The states before what was recorded that became these."""
        for closing in reversed(record):
            back = states & closing.closed
            states &= closing.others
            if not back.satisfiable():
                continue
            relation, slots = self._together(self._bearers(closing.thing), closing.version)
            moved = self.encoding.swap(back, slots, to_primed=True)
            back = moved.apply_exists(AND, relation, self.encoding.primed_bits(slots))
            states |= closing.lacking & back
        return states

    def _bearers(self, thing: int) -> list[int]:
        return [b for b, bearer in enumerate(self.table.bearers) if bearer[1] == thing]

    def _masks(self, bearer: int) -> list[int]:
        """The versions in each value of the bearer's slot, as bits."""
        slot, _, base = self.table.bearers[bearer]
        known, size = self._known_masks.setdefault(bearer, []), len(self.encoding.domains.values[slot])
        if len(known) < size:
            known += [int(mask) for mask in self.table.masks.data[base + len(known) : base + size]]
            self._top[bearer] = max(mask.bit_length() for mask in known) - 1
        return known

    def _highest(self, thing: int) -> int:
        bearers = self._bearers(thing)
        for bearer in bearers:
            self._masks(bearer)
        return max(self._top[bearer] for bearer in bearers)

    def _held(self, bearer: int, version: int) -> tuple[Set, Set]:
        """Whether the slot holds the version; whether it holds a higher one."""
        slot = self.table.bearers[bearer][0]
        stamp = len(self.encoding.domains.values[slot]), self.encoding.epoch, 0
        known = self._holds.get((bearer, version))
        if known is None or known[0] != stamp:
            masks = self._masks(bearer)
            holds = union([self.encoding.cube(slot, v) for v, mask in enumerate(masks) if mask >> version & 1], self.encoding)
            above = union([self.encoding.cube(slot, v) for v, mask in enumerate(masks) if mask >> (version + 1)], self.encoding)
            known = self._holds[bearer, version] = stamp, holds, above
        return known[1:]

    def _gaps(self, thing: int) -> Gaps:
        bearers = self._bearers(thing)
        stamp = self.encoding.epoch, tuple(len(self.encoding.domains.values[self.table.bearers[bearer][0]]) for bearer in bearers)
        known = self._known_gaps.get(thing)
        if known is None or known.stamp != stamp:
            lacking = []
            for version in range(self._highest(thing) + 1):
                held = [self._held(bearer, version) for bearer in bearers]
                here, higher = (union([pair[i] for pair in held], self.encoding) for i in (0, 1))
                lacking.append(here.imp_strict(higher))
            known = self._known_gaps[thing] = Gaps(stamp, lacking, union(lacking, self.encoding))
        return known

    def _close(self, states: Set, thing: int, version: int) -> Set:
        moving = []
        for bearer in self._bearers(thing):
            higher = states & self._held(bearer, version)[1]
            if higher.satisfiable():
                self._learn(bearer, version, higher)
                moving.append(bearer)
        relation, slots = self._together(moving, version)
        return self.encoding.swap(states.apply_exists(AND, relation, self.encoding.bits_of(slots)), slots, to_primed=False)

    def _together(self, bearers: Sequence[int], version: int) -> tuple[Set, tuple[int, ...]]:
        """What happens to all these slots; the slots."""
        shifts = [self._shift(bearer, version) for bearer in bearers]
        asked, stamps = (tuple(bearers), version), tuple(shift.stamp for shift in shifts)
        known = self._joint.get(asked)
        if known is None or known[0] != stamps:
            relation = self.encoding.true
            for shift in shifts:
                assert shift.relation is not None
                relation &= shift.relation
            known = self._joint[asked] = stamps, relation, tuple(sorted(self.table.bearers[bearer][0] for bearer in bearers))
        return known[1:]

    def _learn(self, bearer: int, version: int, states: Set) -> None:
        """The shift, with a new value for each value of the slot in these states."""
        shift = self._shift(bearer, version)
        assert shift.known is not None
        missing = shift.known.imp_strict(states)
        slot = self.table.bearers[bearer][0]
        while missing.satisfiable():
            number = int(self.encoding.pick(missing)[slot])
            epoch = self.encoding.epoch
            shift.numbers[number] = self.table.rename(bearer, number, _ALL & ~(1 << version))
            if self.encoding.epoch != epoch:
                raise Grown
            missing = self.encoding.cube(slot, number).imp_strict(missing)

    def _shift(self, bearer: int, version: int) -> Shift:
        shift = self._shifts.setdefault((bearer, version), Shift())
        slot = self.table.bearers[bearer][0]
        stamp = len(self.encoding.domains.values[slot]), self.encoding.epoch, len(shift.numbers)
        if shift.stamp != stamp:
            shift.stamp = stamp
            same = [v for v, mask in enumerate(self._masks(bearer)) if not mask >> (version + 1)]
            pairs = [(v, v) for v in same] + list(shift.numbers.items())
            cube, primed = self.encoding.cube, self.encoding.primed_cube
            shift.relation = union([cube(slot, v) & primed(slot, to) for v, to in pairs], self.encoding)
            shift.known = union([cube(slot, v) for v in shift.numbers], self.encoding)
        return shift
