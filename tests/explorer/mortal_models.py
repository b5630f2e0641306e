"""Random models some of whose slots are dead where a program counter stands elsewhere; with lies among the declarations if asked for."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from random_models import Maker

from dra_spec.explorer.model import Action, ActionType, LiveWhen, Model, Outcome, Slot, StateInvariant, StepInvariant, Truth, View
from dra_spec.explorer.values import Version

ROOM = frozenset({"room"})
STEPS = 3  # of each process: fill, use, leave


class MortalMaker(Maker):
    """A random model with processes beside it: each fills a slot of its own, uses it, and leaves it behind filled, or cleans up."""

    def __init__(self, seed: int, versions: bool, honest: bool) -> None:
        super().__init__(seed, False, False)
        self.honest = honest
        self.newest = Slot[Any]("newest", Version("w", 0), "room") if versions else None  # each new version is above all others
        count = self.random.randint(1, 2)
        self.at = [Slot[Any](f"at{i}", 0, "room") for i in range(count)]
        self.cleans = versions and seed % 3 == 0  # leaves nothing behind, and begins with a version
        self.store = [Slot[Any](f"store{i}", Version("w", 0) if self.cleans else 0, "room") for i in range(count)]
        self.base = list(self.slots)

    def model(self) -> Model:
        made = super().model()
        extra: list[Action] = []
        for i in range(len(self.at)):
            target = self.random.choice([slot for slot in self.plain if slot in self.base])
            for step, fn in enumerate((fill, use, leave)):
                kind = ActionType(f"{fn.__name__}{i}", fn, "process")
                extra.append(Action(kind, {"i": i, "target": target.name}, ROOM, (self, step)))
        pairs = enumerate(zip(self.at, self.store, strict=True))
        live = [LiveWhen([store], partial(_at, at, self._true_at(i))) for i, (at, store) in pairs]
        properties = list(made.properties)
        if self.random.random() < 0.4:
            properties.append(StateInvariant("store", partial(_small, self.at[0], self.store[0], self.newest, self.random.random() < 0.3)))
        if self.random.random() < 0.4:
            properties.append(StepInvariant("kept", lambda a: a.type.writer == "process", partial(_kept, self.at[0], self.store[0])))
        slots = [*made.slots, *self.at, *self.store]
        if self.newest is not None:
            slots.append(self.newest)
            extra.append(Action(ActionType("renew", renew, "process"), {}, ROOM, (self, 0)))
        return Model("mortal", slots, [*made.actions, *extra], properties, made.initial, live=live)

    def _true_at(self, i: int) -> frozenset[int]:
        """Where the store is said to be needed: after it was filled, until it was used. A lie leaves that out."""
        return frozenset({1}) if self.honest or self.random.random() < 0.5 else self.random.choice([frozenset[int](), frozenset({2})])


def _slot(maker: MortalMaker, name: str) -> Slot[Any]:
    return next(slot for slot in maker.base if slot.name == name)


def fill(v: View, context: tuple[MortalMaker, int], i: int, target: str) -> Iterator[Outcome]:
    """The process copies what it finds."""
    maker, _ = context
    if v.value(maker.at[i]) == 0:
        out = v.outcome("ok")
        out[maker.store[i]] = v.value(maker.newest) if maker.newest else v.value(_slot(maker, target)) + 1
        out[maker.at[i]] = 1
        yield out


def use(v: View, context: tuple[MortalMaker, int], i: int, target: str) -> Iterator[Outcome]:
    """It writes what it copied, and does not clean up."""
    maker, _ = context
    if v.value(maker.at[i]) == 1:
        out = v.outcome("ok")
        kept = v.value(maker.store[i])
        out[_slot(maker, target)] = int(kept == v.value(maker.newest)) if maker.newest else kept % 4
        out[maker.at[i]] = 2
        yield out


def renew(v: View, context: tuple[MortalMaker, int]) -> Iterator[Outcome]:
    """A new version."""
    maker, _ = context
    assert maker.newest is not None
    out = v.outcome("ok")
    out[maker.newest] = v.value(maker.newest).next()
    yield out


def leave(v: View, context: tuple[MortalMaker, int], i: int, target: str) -> Iterator[Outcome]:
    """It begins again."""
    maker, _ = context
    if v.value(maker.at[i]) == 2:
        out = v.outcome("ok")
        out[maker.at[i]] = 0
        if maker.cleans:
            out[maker.store[i]] = None
        yield out


def _at(at: Slot[Any], where: frozenset[int], v: View) -> bool:
    return v.value(at) in where


def _small(at: Slot[Any], store: Slot[Any], newest: Slot[Any] | None, careless: bool, v: View) -> Truth:
    """About the store: only where it is live, or (careless) everywhere. A version must be the newest one."""
    if not careless and v.value(at) != 1:
        return Truth.TRIVIAL
    kept = v.value(store)
    wrong = kept != v.value(newest) if newest is not None and isinstance(kept, Version) else kept == 3
    return Truth.FALSE if wrong else Truth.TRUE


def _kept(at: Slot[Any], store: Slot[Any], before: View, after: View, action: Action, label: str) -> Truth:
    if before.value(at) == 0 and after.value(at) == 1:
        return Truth.FALSE if after.value(store) == 2 else Truth.TRUE
    return Truth.TRIVIAL
