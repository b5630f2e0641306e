"""Random small models, and what two engines must agree on."""

from __future__ import annotations

import random
from collections.abc import Iterator
from functools import partial
from typing import Any

import attrs

from dra_spec.explorer import Result
from dra_spec.explorer.model import (
    Action,
    ActionType,
    AlwaysPossible,
    DeadlockFree,
    Kind,
    LeadsTo,
    Model,
    Outcome,
    PartView,
    Property,
    Slot,
    StateInvariant,
    StepInvariant,
    Truth,
    View,
)
from dra_spec.explorer.values import Version

ROOM = frozenset({"room"})


@attrs.frozen
class Pair:
    """A value with fields."""

    left: int
    right: int

    @property
    def total(self) -> int:
        return self.left + self.right


@attrs.frozen
class Held:
    """A value that bears versions of two objects."""

    first: Version
    second: Version | None
    mark: int = 0


def _flip(value: Any, salt: int) -> int:
    return sum(map(ord, repr(value))) % (salt + 2)


class Maker:
    """Makes a random model out of a seed: small domains, guards that read fields one by one, constants, parts, versions.

    With every third seed some outcomes are called otherwise in some states.
    """

    def __init__(self, seed: int, versions: bool, beyond: bool, name: str = "") -> None:
        """`name`: in front of the names of the objects of which there are versions, where several models become one."""
        self.random = random.Random(seed)
        self.labels = random.Random(-1 - seed) if seed % 3 == 1 else None  # dice of their own: other seeds make what they made before
        self.with_beyond = beyond
        self.plain = [Slot(f"n{i}", self.random.choice([0, 1]), "room") for i in range(self.random.randint(1, 4))]
        self.mixed = [Slot(f"m{i}", self.random.choice([0, False, 1, True, "a"]), "room") for i in range(self.random.randint(0, 1))]
        self.pairs = [Slot(f"p{i}", Pair(0, 0), "room") for i in range(self.random.randint(0, 2))]
        count = self.random.randint(1, 3) if versions else 0
        starts = [Held(Version(f"{name}a", 3 * i), Version(f"{name}b", 7) if i else None) for i in range(count)]
        self.held = [Slot(f"v{i}", start, "room") for i, start in enumerate(starts)]
        self.slots: list[Slot[Any]] = [*self.plain, *self.mixed, *self.pairs, *self.held]

    def model(self) -> Model:
        actions = [
            Action(ActionType(f"act{i}", self._function(), "writer", kind=self.random.choice(list(Kind))), {"index": i}, ROOM)
            for i in range(self.random.randint(2, 7))
        ]
        properties: list[Property] = []
        for i in range(self.random.randint(0, 3)):
            properties.append(StateInvariant(f"state{i % 2}", self._predicate(0.93), {"n": str(i)}))
        for i in range(self.random.randint(0, 2)):
            kinds = self.random.sample(list(Kind), 3)
            properties.append(
                StepInvariant(f"step{i}", partial(_kind_in, kinds), partial(_step, self._predicate(0.9), self._predicate(0.5)))
            )
        if self.random.random() < 0.4:
            properties.append(AlwaysPossible("goal", self._predicate(0.2), partial(_kind_in, self.random.sample(list(Kind), 3))))
        if self.random.random() < 0.3:
            properties.append(DeadlockFree("stuck", self._predicate(0.5)))
        initial = [{}] if self.random.random() < 0.7 else [{}, {self.plain[0]: 5}, {self.plain[0]: 5}]
        return Model("random", self.slots, actions, properties, initial)

    def model_with_runs(self) -> Model:
        """The same with leads-to promises, so that all states are expanded."""
        made = self.model()
        wanted: list[Property] = []
        for i in range(self.random.randint(1, 3)):
            fair = set(self.random.sample([a.name for a in made.actions], self.random.randint(0, len(made.actions))))
            if self.random.random() < 0.4:
                fair = {a.name for a in made.actions}
            when, goal = self._predicate(0.4), self._predicate(self.random.choice([0.2, 0.5]))
            wanted.append(LeadsTo(f"leads{i % 2}", when, goal, partial(_named, fair), {"n": str(i)}))
        return attrs.evolve(made, properties=[*made.properties, *wanted])

    def _glance(self) -> Any:
        """A random look at the state: a function of a view."""
        slot = self.random.choice(self.slots)
        if slot in self.pairs:
            kind = self.random.choice(["left", "right", "total", "whole", "project"])
            if kind == "whole":
                return lambda v: _flip(v.value(slot), 1)
            if kind == "project":
                salt = self.random.randint(0, 1)
                return lambda v: v.project(slot, _flip, salt)
            return lambda v: getattr(v[slot], kind) % 2
        if slot in self.held:
            other = self.random.choice(self.held)
            kind = self.random.choice(["equal", "less", "mark", "none"])
            if kind == "equal":
                return lambda v: int(v[slot].first == v[other].first)
            if kind == "less":
                return lambda v: int(v[slot].first < v[other].first)
            if kind == "none":
                return lambda v: int(v.project(slot, lambda held: held.second is None))
            return lambda v: v[slot].mark
        return lambda v: _flip(v.value(slot), 0)

    def _writes(self, many: int) -> list[tuple[Slot[Any], Any]]:
        """Slots with functions of a view that give their new values."""
        return [
            (slot, self._new_value(slot)) for slot in self.random.sample(self.slots, min(len(self.slots), self.random.randint(0, many)))
        ]

    def _new_value(self, slot: Slot[Any]) -> Any:
        if slot in self.plain:
            fixed = self.random.randint(0, 3)
            return self.random.choice([lambda v: fixed, lambda v: (v.value(slot) + 1) % 4])
        if slot in self.mixed:
            mixed = self.random.choice([0, False, 1, True, "a", 1.0])
            return lambda v: mixed
        if slot in self.pairs:
            left, right = self.random.randint(0, 2), self.random.randint(0, 1)
            return self.random.choice([lambda v: Pair(left, right), lambda v: Pair(v[slot].right % 3, left)])
        other = self.random.choice(self.held)
        mark = self.random.randint(0, 1)
        return self.random.choice(
            [
                lambda v: Held(self._newest(v, "first").next(), v[slot].second, mark),
                lambda v: Held(v[slot].first, v[other].second, v[slot].mark),
                lambda v: Held(v[other].first, v[other].second and self._newest(v, "second").next(), mark),
                lambda v: Held(v[slot].first, None, mark),
            ]
        )

    def _newest(self, v: View, field: str) -> Version:
        """The newest version of an object: new ones are made of that."""
        found = [version for slot in self.held if (version := getattr(v[slot], field)) is not None]
        return max(found)

    def _function(self) -> Any:
        guards = [(self._glance(), self.random.randint(0, 1)) for _ in range(self.random.choice([0, 1, 1, 2]))]
        outcomes = []
        for i in range(self.random.randint(1, 3)):
            writes = self._writes(2)
            free = [slot for slot in self.slots if slot not in dict(writes)]
            parts = []
            for _ in range(self.random.randint(0, 2)):
                if free:
                    target = free.pop(self.random.randrange(len(free)))
                    parts.append((self._glance(), target, self._new_value(target)))
            only_if = self._glance() if self.random.random() < 0.3 else None
            escape = self._glance() if self.with_beyond and self.random.random() < 0.3 else None
            outcomes.append((self._label(f"out{i}"), writes, parts, only_if, escape))

        def function(v: View, context: None, index: int) -> Iterator[Outcome]:
            """A random action."""
            for glance, wanted in guards:
                if glance(v) != wanted:
                    return
            for label, writes, parts, only_if, escape in outcomes:
                if only_if is not None and not only_if(v):
                    continue
                outcome = v.outcome(label(v))
                for slot, value in writes:
                    outcome[slot] = value(v)
                for part in parts:
                    outcome.part(_part, *part)
                if escape is not None and escape(v):
                    outcome.beyond_bounds(f"{label(v)} escapes")
                yield outcome

        return function

    def _label(self, usual: str) -> Any:
        """How an outcome is called: a function of a view."""
        if self.labels is None or self.labels.random() < 0.6:
            return lambda v: usual
        slot, other = self.labels.choice(self.plain), self.labels.choice(["out0", "out2", "other"])
        return lambda v: other if v.value(slot) % 2 else usual

    def _predicate(self, often: float) -> Any:
        """A random function of three looks that is mostly not false."""
        first, second, third = self._glance(), self._glance(), self._glance()
        table = {
            (a, b, c): self.random.choice([Truth.TRUE, Truth.TRIVIAL]) if self.random.random() < often else Truth.FALSE
            for a in (0, 1)
            for b in (0, 1)
            for c in (0, 1)
        }
        return lambda v: table[int(bool(first(v))), int(bool(second(v))), int(bool(third(v)))]


def _part(p: PartView, glance: Any, target: Slot[Any], value: Any) -> None:
    if glance(p):
        p.write(target, value(p))


def _kind_in(kinds: list[Kind], action: Action) -> bool:
    return action.type.kind in kinds


def _named(names: set[str], action: Action) -> bool:
    return action.name in names


def _step(before: Any, after: Any, view: View, later: View, action: Action, label: str) -> Truth:
    return Truth(max(before(view), after(later))) if label != "out2" else Truth.TRUE


def agree(plain: Result, explicit: Result) -> None:
    """All that must be the same."""
    for name in ("states", "transitions", "depth", "complete", "stopped", "stuck", "unexpanded", "actions", "warnings", "verdict"):
        assert getattr(explicit, name) == getattr(plain, name), name
    for one, other in zip(plain.properties, explicit.properties, strict=True):
        assert (other.promise, other.verdict, other.vacuous, other.reason) == (one.promise, one.verdict, one.vacuous, one.reason)
        assert (other.trace is None) == (one.trace is None)
        if one.trace is not None and other.trace is not None:
            assert other.trace.due == one.trace.due
            if one.trace.due is None:
                assert len(other.trace) == len(one.trace)  # lassos are as short as can be only up to where the goal is owed
