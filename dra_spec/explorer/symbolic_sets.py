"""Sets of states as decision diagrams: which variables hold which slot, cubes of values, counting, picking a state.

A slot has as many bits as its largest number needs; some more variables stand ready at its place in the order. One that no set
depends on yet costs nothing. When a slot's domain outgrows its bits, the next one is put to use: all sets are narrowed to
"that bit is 0", since their states have old values only, and everything made of cubes is made again (`epoch`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from oxidd.bdd import BDDFunction as Set
from oxidd.bdd import BDDManager
from oxidd.util import BooleanOperator

from dra_spec.explorer.growing import Ints
from dra_spec.explorer.intern import Domains

__all__ = ["AND", "NODE_BYTES", "Encoding", "Grown", "Set", "fresh"]

_SPARE = 4  # variables per slot beyond those in use
_MORE = 4
AND = BooleanOperator.AND
_TIDY = 1 << 27  # bytes of nodes before the first look for unused ones
NODE_BYTES = 16  # of an inner node in the manager's store


def fresh(done: Set | None, now: Set) -> Set:
    """What is in a set and was not in it when something was done to all of it."""
    return now if done is None else done.imp_strict(now)


class Grown(Exception):
    """A domain got one more bit: what was being computed has to be computed again."""


class Encoding:
    """The variables of one search."""

    def __init__(self, domains: Domains, order: Sequence[int], nodes: int, cache: int) -> None:
        self.domains = domains
        self.manager = BDDManager(nodes, cache, 1)
        self.true, self.false = self.manager.true(), self.manager.false()
        self.bits = [max(0, len(values) - 1).bit_length() for values in domains.values]
        self.epoch = 0
        self.on_bit: list[Callable[[Set], None]] = []  # (the new variable, negated): narrow your sets
        self._variables: list[list[int]] = [[] for _ in domains.values]  # per slot, lowest bit first
        self._primed: list[list[int]] = [[] for _ in domains.values]
        for slot in order:
            self._reserve(slot, self.bits[slot] + _SPARE)
        self._cubes: list[dict[int, Set]] = [{} for _ in domains.values]
        self._primed_cubes: list[dict[int, Set]] = [{} for _ in domains.values]
        self._quantified: dict[tuple[int, ...], Set] = {}
        self._swaps: dict[tuple[tuple[int, ...], bool], Any] = {}
        self._tidy_at = _TIDY
        domains.on_value.append(self._new_value)

    def _reserve(self, slot: int, count: int) -> None:
        new = self.manager.add_vars(2 * count)
        pairs = [(new[2 * i], new[2 * i + 1]) for i in range(count)]
        self._variables[slot] += [pair[0] for pair in reversed(pairs)]
        self._primed[slot] += [pair[1] for pair in reversed(pairs)]

    def _new_value(self, slot: int, number: int) -> None:
        while number >= 1 << self.bits[slot]:
            if self.bits[slot] == len(self._variables[slot]):
                self._reserve(slot, _MORE)
            narrow = self.manager.not_var(self._variables[slot][self.bits[slot]])
            self.bits[slot] += 1
            self.epoch += 1
            self._cubes[slot].clear()
            self._primed_cubes[slot].clear()
            self._quantified.clear()
            self._swaps.clear()
            for tell in self.on_bit:
                tell(narrow)

    def close(self) -> None:
        """Stops to follow the domains: another encoding takes over."""
        self.domains.on_value.remove(self._new_value)

    # cubes

    def cube(self, slot: int, number: int) -> Set:
        """The slot has the value with this number."""
        known = self._cubes[slot].get(number)
        if known is None:
            known = self._cubes[slot][number] = self._literals(self._variables[slot][: self.bits[slot]], number)
        return known

    def primed_cube(self, slot: int, number: int) -> Set:
        """The same over the slot's second set of variables."""
        known = self._primed_cubes[slot].get(number)
        if known is None:
            known = self._primed_cubes[slot][number] = self._literals(self._primed[slot][: self.bits[slot]], number)
        return known

    def _literals(self, variables: list[int], number: int) -> Set:
        made = self.true
        for i, variable in enumerate(variables):
            made &= self.manager.var(variable) if number >> i & 1 else self.manager.not_var(variable)
        return made

    def constants(self, constants: Sequence[tuple[int, int]]) -> Set:
        """All these slots have these numbers."""
        made = self.true
        for slot, number in constants:
            made &= self.cube(slot, number)
        return made

    def bits_of(self, slots: tuple[int, ...]) -> Set:
        """The variables of some slots, to be quantified over."""
        known = self._quantified.get(slots)
        if known is None:
            known = self.true
            for slot in slots:
                for variable in self._variables[slot][: self.bits[slot]]:
                    known &= self.manager.var(variable)
            self._quantified[slots] = known
        return known

    def primed_constants(self, constants: Sequence[tuple[int, int]]) -> Set:
        """The same over their second sets of variables."""
        made = self.true
        for slot, number in constants:
            made &= self.primed_cube(slot, number)
        return made

    def same(self, slots: Iterable[int]) -> Set:
        """The first and the second variables of the slots agree."""
        made = self.true
        for slot in slots:
            for one, other in list(zip(self._variables[slot], self._primed[slot], strict=True))[: self.bits[slot]]:
                made &= self.manager.var(one).equiv(self.manager.var(other))
        return made

    def primed_bits(self, slots: tuple[int, ...]) -> Set:
        """The second sets of variables of some slots, to be quantified over."""
        made = self.true
        for slot in slots:
            for variable in self._primed[slot][: self.bits[slot]]:
                made &= self.manager.var(variable)
        return made

    def swap(self, of: Set, slots: tuple[int, ...], to_primed: bool) -> Set:
        """The set with the variables of some slots replaced by their second ones, or the other way round."""
        if not any(self.bits[slot] for slot in slots):
            return of
        if (slots, to_primed) not in self._swaps:
            old, new = (self._variables, self._primed) if to_primed else (self._primed, self._variables)
            pairs = [(old[slot][i], self.manager.var(new[slot][i])) for slot in slots for i in range(self.bits[slot])]
            self._swaps[slots, to_primed] = Set.make_substitution(pairs)
        return of.substitute(self._swaps[slots, to_primed])

    # states

    def row(self, numbers: Sequence[int] | Ints) -> Set:
        """The set of one state."""
        return self.constants([(slot, int(number)) for slot, number in enumerate(numbers)])

    def pick(self, of: Set) -> Ints:
        """The numbers of a state in a set that is not empty."""
        found = of.pick_cube()
        assert found is not None
        numbers = np.zeros(len(self.bits), np.int32)
        for slot, count in enumerate(self.bits):
            numbers[slot] = sum(1 << i for i, variable in enumerate(self._variables[slot][:count]) if found[variable])
        return numbers

    def count(self, of: Set) -> int:
        """How many states, exactly."""
        variables = self.manager.num_vars()
        return int(of.sat_count(variables)) >> (variables - sum(self.bits))

    def tidy(self) -> int:
        """Drops the nodes that no set needs, once they are many. Bytes of the nodes that were there before."""
        before = self.memory
        if before > self._tidy_at:
            self.manager.gc()
            self._tidy_at = max(_TIDY, 3 * self.memory)
        return before

    @property
    def memory(self) -> int:
        """Bytes of the nodes that are there now."""
        return NODE_BYTES * int(self.manager.approx_num_inner_nodes())
