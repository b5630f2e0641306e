"""Which actions get in each other's way, in all states; and what must happen before a thing that is not so can become so.

Two actions *accord* if in every state that enables both, either leaves the other as it was and the order of the two makes no difference.
Slots that neither writes while the other touches them cannot matter; where footprints overlap, all ways through both trees are compared,
if versions play no part and there are not too many of them.

A *guard* is something that is not the case in a state: an action that is not enabled, a promise that is not broken, an outcome that does
not leave the bounds. Where one slot alone keeps it so, an action must write another value to that slot first, and only some actions do.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence

import attrs

from dra_spec.explorer.completion import Leaf, Values
from dra_spec.explorer.footprints import Effect, Footprints
from dra_spec.explorer.footprints_versions import bears_versions
from dra_spec.explorer.model import StepInvariant, Truth

_MOST_CASES = 300  # ways through one action with its parts
_MOST_PAIRS = 30_000  # of cases, compared for two actions

Where = dict[int, frozenset[int]]  # per slot the numbers of values that it may have
Writes = tuple[tuple[int, int], ...]  # slot, number of the value


@attrs.frozen(eq=False)
class Case:
    """States that an action treats alike: which values the slots may have that it looks at, how the versions compare that it compares,
    and what each outcome writes (None: it leaves the bounds). `labels`: of the outcomes, since promises about steps see them. `versioned`:
    some written values bear versions, so that only their shape is known."""

    where: Where
    compared: Mapping[Hashable, bool]
    outcomes: tuple[Writes | None, ...]
    labels: tuple[str, ...]
    leaves: tuple[int, ...]  # which ways through the trees
    versioned: bool

    def meets(self, other: Case) -> bool:
        """Whether some state is in both."""
        return self.can_be(other.where, other.compared)

    def can_be(self, where: Where, compared: Mapping[Hashable, bool]) -> bool:
        """Whether some state of which this is known is in the case."""
        return all(where[slot] & numbers for slot, numbers in self.where.items() if slot in where) and all(
            compared[question] == answer for question, answer in self.compared.items() if question in compared
        )

    def does_the_same(self, other: Case) -> bool:
        """Whether the outcomes are the same, given that the slots with versions are."""
        if self.leaves == other.leaves:
            return True
        return not self.versioned and not other.versioned and (self.outcomes, self.labels) == (other.outcomes, other.labels)


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
        self._parts: dict[int, list[tuple[Leaf, Where]]] = {}
        self._cases = [self._cases_of(a) for a in range(count)]
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
        ours, theirs = self._cases[a], self._cases[b]
        if ours is None or theirs is None or len(ours) * len(theirs) > _MOST_PAIRS:
            return False
        together = [(mine, other) for mine in ours if mine.outcomes for other in theirs if other.outcomes and other.meets(mine)]
        if not together:
            return True
        if self.writes[a] & judged.get(b, frozenset()) or self.writes[b] & judged.get(a, frozenset()):
            return False  # in another order the promise would be asked about other states
        shared = (self.writes[a] & (self.reads[b] | self.writes[b])) | (self.writes[b] & self.reads[a])
        if any(slot in self.values.wide or any(map(bears_versions, self.values.values[slot])) for slot in shared):
            return False
        return all(self._undisturbed(mine, other, theirs) and self._undisturbed(other, mine, ours) for mine, other in together)

    def _undisturbed(self, mine: Case, other: Case, theirs: Sequence[Case]) -> bool:
        """Whether after each outcome of mine the other is as before, and no slot gets two values."""
        return all(self._leaves_alone(mine, other, dict(written), theirs) for written in mine.outcomes if written is not None)

    def _leaves_alone(self, mine: Case, other: Case, written: dict[int, int], theirs: Sequence[Case]) -> bool:
        for outcome in other.outcomes:
            if outcome is not None and any(written.get(slot, number) != number for slot, number in outcome):
                return False
        if not written.keys() & other.where.keys():
            return True
        after = {
            slot: other.where.get(slot, numbers) & mine.where.get(slot, numbers) for slot, numbers in (mine.where | other.where).items()
        }
        after.update((slot, frozenset({number})) for slot, number in written.items())
        compared = {**mine.compared, **other.compared}
        return all(case.does_the_same(other) for case in theirs if case.can_be(after, compared))

    def _cases_of(self, action: int) -> list[Case] | None:
        """All ways through an action, also those that do not enable it; None: not known, or too many."""
        if not self.footprints.actions[action].exact:
            return None
        cases: list[Case] = []
        for leaf in self.footprints.leaves(action):
            ways = self._with_parts(leaf.numbers(self.values), leaf.result)
            if len(ways) + len(cases) > _MOST_CASES:
                return None
            for where, parts in ways:
                outcomes = tuple(None if effect.beyond else self._writes(effect, parts) for effect in leaf.result)
                compared = {node.observer: bool(sight) for node, sight in leaf.path if node.slot < 0}
                versioned = any(self._versioned(outcome) for outcome in outcomes if outcome is not None)
                labels = tuple(effect.label for effect in leaf.result)
                cases.append(Case(where, compared, outcomes, labels, tuple(map(id, (leaf, *parts.values()))), versioned))
        return cases

    def _with_parts(self, where: Where, effects: Sequence[Effect]) -> list[tuple[Where, dict[int, Leaf]]]:
        """The ways through the parts of some outcomes that agree with each other. If there are too many, not with all parts."""
        todo: list[tuple[Where, dict[int, Leaf]]] = [(where, {})]
        for part in dict.fromkeys(part for effect in effects for part in effect.parts):
            todo = [
                (found | {slot: found.get(slot, numbers) & numbers for slot, numbers in more.items()}, chosen | {part: leaf})
                for found, chosen in todo
                for leaf, more in self._part_leaves(part)
                if all(found[slot] & numbers for slot, numbers in more.items() if slot in found)
            ]
            if len(todo) > _MOST_CASES:
                break
        return todo

    def _part_leaves(self, part: int) -> list[tuple[Leaf, Where]]:
        if part not in self._parts:
            self._parts[part] = [(leaf, leaf.numbers(self.values)) for leaf in self.footprints.part_leaves(part)]
        return self._parts[part]

    def _writes(self, effect: Effect, parts: dict[int, Leaf]) -> Writes:
        constants = [*effect.constants, *(constant for part in effect.parts for e in parts[part].result for constant in e.constants)]
        return tuple(sorted(constants))

    def _versioned(self, writes: Writes) -> bool:
        return any(number < 0 or bears_versions(self.values.values[slot][number]) for slot, number in writes)

    # what opens a guard

    def _values_written(self, action: int) -> dict[int, set[int]] | None:
        """Per slot the numbers of the values that an action may write; None: any."""
        if not self.footprints.actions[action].exact:
            return None
        found: dict[int, set[int]] = {}
        effects = [effect for leaf in self.footprints.leaves(action) for effect in leaf.result]
        parts = dict.fromkeys(part for effect in effects for part in effect.parts)
        for effect in (*effects, *(e for part in parts for leaf in self.footprints.part_leaves(part) for e in leaf.result)):
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
