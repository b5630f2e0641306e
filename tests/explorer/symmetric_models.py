"""Random models with interchangeable objects, some of which are not quite interchangeable."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import attrs

from dra_spec.explorer.model import (
    Action,
    ActionType,
    AlwaysPossible,
    DeadlockFree,
    Kind,
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
Look = Callable[[View, "World", str], bool]


@attrs.frozen
class Copy:
    """A copy of an object: a version, and who made it."""

    version: Version
    by: str | None = None


@attrs.frozen(eq=False)
class World:
    """The slots: one of each kind for each object, and some for all."""

    names: tuple[str, ...]
    level: dict[str, Slot[int]]
    copy: dict[str, Slot[Copy]]
    owner: Slot[str | None]
    members: Slot[frozenset[str]]
    queue: Slot[tuple[str, ...]]
    special: str  # the object that asymmetric functions prefer

    @property
    def slots(self) -> list[Slot[Any]]:
        return [*self.level.values(), *self.copy.values(), self.owner, self.members, self.queue]


def _owner_is(owner: str | None, who: str) -> bool:
    return owner == who


def _has(members: frozenset[str], who: str) -> bool:
    return who in members


def _listed(members: frozenset[str]) -> tuple[str, ...]:
    return tuple(sorted(members))


# what a function may look at: relative to the object that it is about

LOOKS: dict[str, Look] = {
    "level": lambda v, w, who: v.value(w.level[who]) > 0,
    "high": lambda v, w, who: v.value(w.level[who]) == 2,
    "owner": lambda v, w, who: v.project(w.owner, _owner_is, who),
    "free": lambda v, w, who: v.value(w.owner) is None,
    "member": lambda v, w, who: v.project(w.members, _has, who),
    "sorted": lambda v, w, who: who in v.project(w.members, _listed),
    "empty": lambda v, w, who: not v.value(w.queue),
    "first": lambda v, w, who: v.value(w.queue)[:1] == (who,),
    "mine": lambda v, w, who: v[w.copy[who]].by == who,
    "any": lambda v, w, who: any(v.value(w.level[other]) == 2 for other in w.names),
    "others": lambda v, w, who: all(v.value(w.level[other]) == 0 for other in w.names if other != who),
    "newest": lambda v, w, who: v[w.copy[who]].version.n >= 1,
}
UNFAIR: dict[str, Look] = {
    "special": lambda v, w, who: who == w.special and v.value(w.level[who]) == 0,
    "special owner": lambda v, w, who: v.value(w.owner) == w.special,
    "least": lambda v, w, who: bool(v.value(w.members)) and min(v.value(w.members)) == who,
    "order": lambda v, w, who: v.value(w.queue) == tuple(sorted(v.value(w.queue))),
}


def _raise(p: PartView, w: World, other: str) -> None:
    p.write(w.level[other], min(p.value(w.level[other]) + 1, 2))


def _clear(p: PartView, w: World, other: str) -> None:
    if p.value(w.level[other]) == 2:
        p.write(w.level[other], 0)


def _write(v: View, w: World, who: str, out: Outcome, what: str) -> None:
    if what == "up":
        out[w.level[who]] = (v.value(w.level[who]) + 1) % 3
    elif what == "take":
        out[w.owner] = who
    elif what == "drop":
        out[w.owner] = None
    elif what == "join":
        out[w.members] = v.value(w.members) | {who}
    elif what == "leave":
        out[w.members] = v.value(w.members) - {who}
    elif what == "push" and len(v.value(w.queue)) < 2:
        out[w.queue] = (*v.value(w.queue), who)
    elif what == "pop":
        out[w.queue] = v.value(w.queue)[1:]
    elif what == "renew":
        out[w.copy[who]] = Copy(v[w.copy[who]].version.next(), who)
    elif what == "raise others":
        for other in w.names:
            if other != who:
                out.part(_raise, w, other)
    elif what == "clear all":
        for other in w.names:
            out.part(_clear, w, other)


WRITES = {
    "up": "level", "take": "owner", "drop": "owner", "join": "members", "leave": "members", "push": "queue", "pop": "queue",
    "renew": "copy", "raise others": "level", "clear all": "level",
}  # fmt: skip


class SymmetricMaker:
    """`fair`: no function prefers an object."""

    def __init__(self, seed: int, fair: bool) -> None:
        self.random = random.Random(seed)
        self.looks = LOOKS if fair else LOOKS | UNFAIR
        names = ("a", "b", "c")[: self.random.choice([2, 3, 3])]
        self.world = World(
            names,
            {name: Slot(f"level/{name}", 0, "room") for name in names},
            {name: Slot(f"copy/{name}", Copy(Version(f"v/{name}", 0)), "room") for name in names},
            Slot("owner", None, "room"),
            Slot("members", frozenset(), "room"),
            Slot("queue", (), "room"),
            self.random.choice(names),
        )

    def model(self) -> Model:
        w, actions = self.world, []
        for i in range(self.random.randint(2, 4)):
            kind = ActionType(f"act{i}", self._function(), "writer", kind=self.random.choice(list(Kind)))
            actions += [Action(kind, {"who": name}, ROOM, w) for name in w.names]
        properties: list[Property] = []
        for i in range(self.random.randint(0, 2)):
            judge = self._judge(0.85)
            properties += [StateInvariant(f"state{i}", partial(judge, w=w, who=name), {"o": name}) for name in w.names]
        if self.random.random() < 0.4:
            pair = self._judge(0.7)
            properties += [
                StateInvariant("pair", partial(_both, pair, w, one, other), {"a": one, "b": other}) for one in w.names for other in w.names
            ]
        if self.random.random() < 0.4:
            judge, kinds = self._judge(0.8), self.random.sample(list(Kind), 3)
            properties += [
                StepInvariant("step", lambda a, kinds=kinds: a.type.kind in kinds, partial(_step, judge, w, name), {"o": name})  # type: ignore[misc]
                for name in w.names
            ]
        if self.random.random() < 0.3:
            properties.append(
                AlwaysPossible("goal", partial(_some, self._judge(0.5), w), partial(_kinds, self.random.sample(list(Kind), 4)))
            )
        elif self.random.random() < 0.2:
            goal, allowed = self._judge(0.5), partial(_kinds, self.random.sample(list(Kind), 4))
            properties += [AlwaysPossible("goals", partial(goal, w=w, who=name), allowed, {"o": name}) for name in w.names]
        if self.random.random() < 0.3:
            properties.append(DeadlockFree("stuck", partial(_some, self._judge(0.6), w)))
        return Model("symmetric", w.slots, actions, properties, names={"object": w.names})

    def _function(self) -> Any:
        guards = [
            (self.looks[self.random.choice(list(self.looks))], self.random.random() < 0.5) for _ in range(self.random.choice([1, 1, 2]))
        ]
        outcomes = []
        for i in range(self.random.choice([1, 1, 2])):
            writes, taken = [], set()
            for what in self.random.sample(list(WRITES), self.random.randint(1, 3)):
                if WRITES[what] not in taken:
                    taken.add(WRITES[what])
                    writes.append(what)
            outcomes.append((f"out{i}", writes))

        def function(v: View, w: World, who: str) -> Iterator[Outcome]:
            """A random action of an object."""
            for look, wanted in guards:
                if look(v, w, who) != wanted:
                    return
            for label, writes in outcomes:
                out = v.outcome(label)
                for what in writes:
                    _write(v, w, who, out, what)
                yield out

        return function

    def _judge(self, often: float) -> Any:
        """A random function of two looks that is mostly not false."""
        first, second = (self.looks[self.random.choice(list(self.looks))] for _ in range(2))
        table = {
            (a, b): self.random.choice([Truth.TRUE, Truth.TRIVIAL]) if self.random.random() < often else Truth.FALSE
            for a in (False, True)
            for b in (False, True)
        }
        return lambda v, w, who: table[bool(first(v, w, who)), bool(second(v, w, who))]


def _both(judge: Any, w: World, one: str, other: str, v: View) -> Truth:
    """A promise about two objects that only one order of their names speaks of."""
    if one >= other:
        return Truth.TRIVIAL
    return Truth(max(judge(v, w, one), judge(v, w, other)))


def _some(judge: Any, w: World, v: View) -> Truth:
    return Truth(max(judge(v, w, who) for who in w.names))


def _step(judge: Any, w: World, who: str, before: View, after: View, action: Action, label: str) -> Truth:
    return Truth(max(judge(before, w, who), judge(after, w, who)))


def _kinds(kinds: list[Kind], action: Action) -> bool:
    return action.type.kind in kinds
