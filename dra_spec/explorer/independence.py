"""Which actions get in each other's way, in all states; and what must happen before a thing that is not so can become so.

Two actions *accord* if in every state that enables both, either leaves the other as it was and the order of the two makes no difference.
Slots that neither writes while the other touches them cannot matter; where footprints overlap, all ways through both trees are compared,
if versions play no part and there are not too many of them.

A *guard* is something that is not the case in a state: an action that is not enabled, a promise that is not broken, an outcome that does
not leave the bounds. Where one slot alone keeps it so, an action must write another value to that slot first, and only some actions do.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from typing import NamedTuple

import attrs

from dra_spec.explorer.completion import Leaf
from dra_spec.explorer.footprints import Effect, Footprints
from dra_spec.explorer.footprints_versions import bears_versions
from dra_spec.explorer.known_values import Values
from dra_spec.explorer.model import StepInvariant, Truth

_MOST_STEPS = 20_000  # comparisons of ways for two actions; more: they do not accord

Where = dict[int, frozenset[int]]  # per slot the numbers of values that it may have


class _TooMany(Exception):
    """Two actions are too large to be compared."""


class _Way(NamedTuple):
    """A way through a function: what slots may have there, and how what bears versions, or has parts, looks there."""

    leaf: Leaf
    where: Where
    answers: Mapping[Hashable, Hashable]

    def follows(self, before: _Way, where: Where) -> bool:
        """Whether a function may take this way when slots have become what `where` says, and no slot that bears versions or has parts has
        changed; so what was asked of those is answered as before."""
        return _both(where, self.where) is not None and all(
            self.answers.get(question, answer) == answer for question, answer in before.answers.items()
        )


@attrs.frozen(eq=False)
class _Enabled:
    """States that enable an action: which values slots may have there that another action touches too, and the outcomes."""

    where: Where
    effects: tuple[Effect, ...]


def _both(one: Where, other: Where) -> Where | None:
    """What two things know together; None: they exclude each other."""
    if not all(one[slot] & numbers for slot, numbers in other.items() if slot in one):
        return None
    return one | {slot: one[slot] & numbers if slot in one else numbers for slot, numbers in other.items()}


@attrs.frozen(eq=False)
class Lock:
    """A slot that alone can keep a guard shut: with a value out of `open` it does not. `keys`: the actions that may write such a value."""

    slot: int
    open: frozenset[int]
    keys: frozenset[int]


class Independence:
    """The relations of a model's actions, from their footprints."""

    def __init__(self, footprints: Footprints) -> None:
        self.footprints, self.model = footprints, footprints.model
        count = len(self.model.actions)
        self._ways: dict[int, list[_Way]] = {}
        self._bearing = [
            slot in self.values.wide or any(map(bears_versions, self.values.values[slot])) for slot in range(len(self.model.slots))
        ]
        self._steps = 0
        self.judged = judged = self._judged()  # per action what promises about its steps look at
        self.reads = [footprints.actions[a].reads | judged.get(a, frozenset()) for a in range(count)]
        self.writes = [footprints.actions[a].writes for a in range(count)]
        self._written = [self._values_written(a) for a in range(count)]
        self.in_the_way: list[frozenset[int]] = [
            frozenset(b for b in range(count) if b != a and not self._accord(a, b, judged)) for a in range(count)
        ]
        self.writers: list[frozenset[int]] = [
            frozenset(a for a in range(count) if slot in self.writes[a]) for slot in range(len(self.model.slots))
        ]

    @property
    def values(self) -> Values:
        """The values that the numbers in cases and locks stand for."""
        return self.footprints.values

    def overlap(self, a: int, b: int) -> bool:
        """Whether one writes what the other touches."""
        writes, others = self.writes[a], self.writes[b]
        return bool(writes & (self.reads[b] | others) or others & self.reads[a])

    def _judged(self) -> dict[int, frozenset[int]]:
        """What promises about steps look at when they judge an action's step: it counts as read by the action."""
        found: dict[int, frozenset[int]] = {}
        for index, promise in enumerate(self.model.properties):
            if isinstance(promise, StepInvariant):
                for a, action in enumerate(self.model.actions):
                    if promise.applies(action):
                        found[a] = found.get(a, frozenset()) | self.footprints.property(index).reads
        return found

    # commutation

    def _accord(self, a: int, b: int, judged: Mapping[int, frozenset[int]]) -> bool:
        if not self.overlap(a, b):
            return True
        actions = self.footprints.actions
        if not actions[a].exact or not actions[b].exact:
            return False
        common = actions[a].touched & actions[b].touched
        shared = (self.writes[a] & (self.reads[b] | self.writes[b])) | (self.writes[b] & self.reads[a])
        # in another order a promise about steps would be asked about other states
        unclear = bool(self.writes[a] & judged.get(b, frozenset()) or self.writes[b] & judged.get(a, frozenset()))
        unclear = unclear or any(self._bearing[slot] for slot in shared)
        self._steps = 0
        try:
            ours, theirs = self._enabled(a, common), self._enabled(b, common)
            for mine in ours:
                for other in theirs:
                    self._step()
                    where = _both(mine.where, other.where)
                    if where is not None and (unclear or not self._any_order(a, mine, b, other, where)):
                        return False
        except _TooMany:
            return False
        return True

    def _step(self) -> None:
        self._steps += 1
        if self._steps > _MOST_STEPS:
            raise _TooMany

    def _ways_of(self, function: int) -> list[_Way]:
        """The ways through an action or a part."""
        if function not in self._ways:
            self._ways[function] = [_Way(leaf, leaf.numbers(self.values), leaf.answers()) for leaf in self.footprints.leaves(function)]
        return self._ways[function]

    def _enabled(self, action: int, common: frozenset[int]) -> list[_Enabled]:
        """The states that enable an action, as far as they differ for another one that has some slots in common with it."""
        found: dict[Hashable, _Enabled] = {}
        for leaf, where, _ in self._ways_of(action):
            if leaf.result:
                seen = {slot: numbers for slot, numbers in where.items() if slot in common}
                name = (
                    tuple(sorted(seen.items())),
                    tuple((effect.label, effect.constants, effect.parts, effect.beyond) for effect in leaf.result),
                )
                found.setdefault(name, _Enabled(seen, leaf.result))
        return list(found.values())

    def _any_order(self, a: int, mine: _Enabled, b: int, other: _Enabled, where: Where) -> bool:
        """Whether in some states both orders of two actions are the same: neither changes what the other does, and what both write is the
        same."""
        return (
            all(self._undisturbed(a, mine, effect, where) for effect in other.effects if not effect.beyond)
            and all(self._undisturbed(b, other, effect, where) for effect in mine.effects if not effect.beyond)
            and all(
                self._agree(one, another, where)
                for one in mine.effects
                for another in other.effects
                if not one.beyond and not another.beyond
            )
        )

    def _undisturbed(self, action: int, enabled: _Enabled, effect: Effect, where: Where) -> bool:
        """Whether after an outcome of another action this one, and each of its parts, does the same."""
        functions = [action, *dict.fromkeys(part for mine in enabled.effects if not mine.beyond for part in mine.parts)]
        return all(self._does_the_same(function, action, effect, where) for function in functions)

    def _does_the_same(self, function: int, action: int, effect: Effect, where: Where) -> bool:
        reads = self.footprints.looks(function)
        for now, written in self._written_by(effect, reads, where):
            for way in self._ways_of(function):
                self._step()
                here = _both(now, way.where)
                if here is None or (function == action and not way.leaf.result):
                    continue
                after = here | written
                for then in self._ways_of(function):
                    self._step()
                    if then is not way and then.follows(way, after) and not self._same(way.leaf, then.leaf):
                        return False
        return True

    def _same(self, one: Leaf, other: Leaf) -> bool:
        """Whether the results of two ways are the same, labels included, since promises about steps see them."""

        def told(leaf: Leaf) -> list[Hashable]:
            return [(effect.label, effect.constants, effect.parts, effect.beyond) for effect in leaf.result]

        written = (constant for effect in one.result for constant in effect.constants)
        return told(one) == told(other) and not any(number < 0 or self._bearing[slot] for slot, number in written)

    def _written_by(self, effect: Effect, slots: frozenset[int], where: Where) -> Iterator[tuple[Where, Where]]:
        """What an outcome may write to some slots, and the states where it does so; nothing if it writes to none of them."""
        constants: Where = {slot: frozenset({number}) for slot, number in effect.constants if slot in slots}
        found: list[tuple[Where, Where]] = [(where, constants)]
        for part in effect.parts:
            if self.footprints.sets(part) & slots:
                more: list[tuple[Where, Where]] = []
                for now, written in found:
                    for leaf, seen, _ in self._ways_of(part):
                        self._step()
                        here = _both(now, seen)
                        if here is not None:
                            new = {slot: frozenset({number}) for e in leaf.result for slot, number in e.constants if slot in slots}
                            more.append((here, written | new))
                found = more
        return ((now, written) for now, written in found if written)

    def _agree(self, one: Effect, other: Effect, where: Where) -> bool:
        """Whether two outcomes write the same to each slot to which both write."""
        slots = self._sets(one) & self._sets(other)
        for now, written in self._written_by(one, slots, where) if slots else ():
            for _, others in self._written_by(other, slots, now):
                self._step()
                if any(others.get(slot, numbers) != numbers for slot, numbers in written.items()):
                    return False
        return True

    def _sets(self, effect: Effect) -> frozenset[int]:
        return frozenset(slot for slot, _ in effect.constants).union(*(self.footprints.sets(part) for part in effect.parts))

    # what opens a guard

    def _values_written(self, action: int) -> dict[int, set[int]] | None:
        """Per slot the numbers of the values that an action may write; None: any."""
        if not self.footprints.actions[action].exact:
            return None
        found: dict[int, set[int]] = {}
        effects = [effect for leaf in self.footprints.leaves(action) for effect in leaf.result]
        parts = dict.fromkeys(part for effect in effects for part in effect.parts)
        for effect in (*effects, *(e for part in parts for leaf in self.footprints.leaves(part) for e in leaf.result)):
            if not effect.beyond:
                for slot, number in effect.constants:
                    found.setdefault(slot, set()).add(number)
        return found

    def locks(self, leaves: Sequence[Leaf], opens: Callable[[Leaf], bool]) -> list[Lock]:
        """The locks of a guard that is open in the states of some leaves of a completed tree."""
        everywhere = {node.slot for leaf in leaves for node, _ in leaf.path if node.slot >= 0}
        opening = [leaf.numbers(self.values) for leaf in leaves if opens(leaf)]
        found = []
        for slot in sorted(everywhere):
            known = frozenset(range(len(self.values.values[slot])))
            allowed: frozenset[int] = frozenset().union(*(where.get(slot, known) for where in opening))
            if allowed != known and slot not in self.values.wide:
                found.append(Lock(slot, allowed, frozenset(b for b in self.writers[slot] if self._may_write(b, slot, allowed))))
        return found

    def _may_write(self, action: int, slot: int, numbers: frozenset[int]) -> bool:
        written = self._written[action]
        return written is None or not numbers.isdisjoint(written.get(slot, ()))

    def action_locks(self, action: int) -> list[Lock]:
        """What keeps an action from being enabled; empty if its tree is too wide."""
        if not self.footprints.actions[action].exact:
            return []
        return self.locks(self.footprints.leaves(action), lambda leaf: bool(leaf.result))

    def escape_locks(self, action: int) -> list[Lock]:
        """What keeps an action from having an outcome that leaves the bounds."""
        if not self.footprints.actions[action].exact:
            return []
        return self.locks(self.footprints.leaves(action), lambda leaf: any(effect.beyond for effect in leaf.result))

    def promise_locks(self, index: int) -> list[Lock]:
        """What keeps a promise about states from being broken."""
        return self.locks(self.footprints.property_leaves(index), lambda leaf: leaf.result == Truth.FALSE)
