"""Random models with compound values: queues of objects, pairs of objects in a cache, tuples of counted things; objects bear versions."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import attrs

from dra_spec.explorer.model import (
    Action,
    ActionType,
    AlwaysPossible,
    DeadlockFree,
    Model,
    Outcome,
    PartView,
    Slot,
    StateInvariant,
    StepInvariant,
    Truth,
    View,
)
from dra_spec.explorer.values import Version


@attrs.frozen
class Item:
    """Who has it, what it says; `twin`: an object in an object."""

    rv: Version
    uid: Version
    tag: str = "a"
    mark: bool = False
    twin: Tag | None = None


@attrs.frozen
class Tag:
    name: str


@attrs.frozen
class Pair:
    """What a watcher has of an item: what it takes for the newest, and what it had before."""

    latest: Item | None = None
    before: Item | None = None

    @property
    def marked(self) -> bool:
        return self.latest is not None and self.latest.mark


@attrs.frozen
class Share:
    """Something that is counted."""

    of: Version
    tag: Tag
    count: int = 1


def _first(events: tuple[Item, ...] | None) -> Item | None:
    return events[0] if events else None


def _full(events: tuple[Item, ...] | None, lag: int) -> bool:
    return events is not None and len(events) >= lag


def _push(p: PartView, queue: Slot[Any], lag: int, item: Item) -> None:
    events = p.value(queue)
    if events is not None and len(events) < lag:
        p.write(queue, (*events, item))


def _pop(p: PartView, queue: Slot[Any]) -> None:
    if events := p.value(queue):
        p.write(queue, events[1:])


def _copy(p: PartView, pair: Slot[Pair], copy: Slot[Item | None]) -> None:
    p.write(copy, p.value(pair).latest)


class Queues:
    """Writers of items, and watchers with a queue, a cache, a copy and shares; each watcher has some steps of its own."""

    def __init__(self, seed: int) -> None:
        self.dice = random.Random(seed)
        dice = self.dice
        self.lag = dice.choice([1, 2, 2])
        self.moves_uid = dice.random() < 0.3
        self.items: list[Slot[Item]] = []
        for i in range(dice.choice([1, 1, 2])):
            self.items.append(Slot(f"item{i}", Item(Version(f"rv{i}", 0), Version(f"uid{i}", 0)), "api"))
        self.budget: Slot[int] = Slot("budget", dice.choice([1, 2, 3]), "api")
        self.watchers = range(dice.choice([1, 2]))
        self.queue: list[Slot[Any]] = [Slot(f"queue{w}", () if dice.random() < 0.9 else None, "api") for w in self.watchers]
        self.pair: list[Slot[Pair]] = [Slot(f"pair{w}", Pair(), f"w{w}") for w in self.watchers]
        self.copy: list[Slot[Item | None]] = [Slot(f"copy{w}", None, f"w{w}") for w in self.watchers]
        self.shares: list[Slot[tuple[Share, ...]]] = [Slot(f"shares{w}", (), f"w{w}") for w in self.watchers]
        self.turn: list[Slot[int]] = [Slot(f"turn{w}", 0, f"w{w}") for w in self.watchers]

    def model(self, runs: bool = False) -> Model:
        """`runs`: with promises about what stays possible too."""
        dice, actions = self.dice, []
        for i in range(len(self.items)):
            actions += [self._action(f"write{i}{tag}", "api", self._write, i, tag) for tag in dice.choice(["a", "ab"])]
        for w in self.watchers:
            steps = [self._restore, self._use, self._share, self._release, self._count, self._keep]
            chosen = [self._take, *dice.sample(steps, dice.choice([2, 3, 4]))]
            actions += [self._action(f"{step.__name__}{w}", f"w{w}", step, w) for step in chosen]
        slots = [*self.items, self.budget, *self.queue, *self.pair, *self.copy, *self.shares, *self.turn]
        dice.shuffle(actions)
        dice.shuffle(slots)
        promises: list[Any] = [StateInvariant(f"state{n}", self._promise()) for n in range(dice.choice([1, 2]))]
        if dice.random() < 0.5:
            promises.append(DeadlockFree("stuck", self._promise()))
        if dice.random() < 0.3:
            promises.append(StepInvariant("step", lambda a: a.name.startswith("_take"), self._step))
        if runs:
            promises.append(AlwaysPossible("possible", self._promise(), lambda a: not a.name.startswith("_count")))
        return Model("queues", slots, actions, promises)

    def _action(self, name: str, writer: str, fn: Any, *args: Any) -> Action:
        def run(v: View, context: Any) -> Iterator[Outcome]:
            return fn(v, *args)

        return Action(ActionType(name, run, writer), {}, frozenset({"api", *(f"w{w}" for w in self.watchers)}))

    # steps

    def _write(self, v: View, i: int, tag: str) -> Iterator[Outcome]:
        item = v.value(self.items[i])
        if not v.value(self.budget) or any(v.project(queue, _full, self.lag) for queue in self.queue):
            return
        uid = item.uid.next() if self.moves_uid and item.mark else item.uid
        new = Item(item.rv.next(), uid, tag, not item.mark, Tag(tag) if item.mark else None)
        out = v.outcome()
        out[self.items[i]], out[self.budget] = new, v.value(self.budget) - 1
        for queue in self.queue:
            out.part(_push, queue, self.lag, new)
        yield out

    def _take(self, v: View, w: int) -> Iterator[Outcome]:
        head = v.project(self.queue[w], _first)
        if head is None:
            return
        old = v.value(self.pair[w])
        out = v.outcome("first" if old.latest is None else "next")
        if old.latest is None or old.latest.rv.of != head.rv.of or old.latest.rv < head.rv:
            out[self.pair[w]] = Pair(head, None if old.latest == head else old.latest)
        out.part(_pop, self.queue[w])
        yield out

    def _restore(self, v: View, w: int) -> Iterator[Outcome]:
        pair = v.value(self.pair[w])
        if pair.before is not None and pair.before != pair.latest:
            out = v.outcome()
            out[self.pair[w]] = Pair(pair.before)
            yield out

    def _use(self, v: View, w: int) -> Iterator[Outcome]:
        if v[self.pair[w]].marked and v.value(self.copy[w]) is None:
            out = v.outcome()
            out.part(_copy, self.pair[w], self.copy[w])
            yield out

    def _share(self, v: View, w: int) -> Iterator[Outcome]:
        latest = v[self.pair[w]].latest
        if not isinstance(latest, Item) or latest.twin is None or not v.value(self.budget):
            return
        shares = v.value(self.shares[w])
        found = next((share for share in shares if share.of.of == latest.uid.of and share.of == latest.uid), None)
        out = v.outcome("new" if found is None else "more")
        out[self.budget] = v.value(self.budget) - 1
        if found is not None:
            out[self.shares[w]] = tuple(attrs.evolve(s, count=s.count + 1) if s is found else s for s in shares)
        elif len(shares) < 2:
            out[self.shares[w]] = (*shares, Share(latest.uid, latest.twin))
        yield out

    def _release(self, v: View, w: int) -> Iterator[Outcome]:
        shares = v.value(self.shares[w])
        if shares:
            last = shares[-1]
            out = v.outcome("one" if last.count > 1 else "last")
            left = (Share(last.of, last.tag, last.count - 1),) if last.count > 1 else ()
            out[self.shares[w]] = (*shares[:-1], *left)
            yield out

    def _count(self, v: View, w: int) -> Iterator[Outcome]:
        turn = v.value(self.turn[w])
        if turn < 3:
            out = v.outcome()
            out[self.turn[w]] = turn + 1
            yield out

    def _keep(self, v: View, w: int) -> Iterator[Outcome]:
        copy = v.value(self.copy[w])
        if copy is not None and v.value(self.turn[w]) > 0:
            out = (
                v.outcome("same" if v[self.items[0]].uid == copy.uid or copy.uid.of != "uid0" else "other")
                if copy.uid.of == "uid0"
                else v.outcome()
            )
            out[self.copy[w]], out[self.turn[w]] = None, 0
            yield out

    # promises

    def _promise(self) -> Any:
        w, tag, turn = self.dice.choice(list(self.watchers)), self.dice.choice("abc"), self.dice.choice([1, 2, 3])
        kind = self.dice.randrange(4)

        def judge(v: View) -> Truth:
            copy = v.value(self.copy[w])
            if kind == 0:
                return Truth(2 * (copy is None or copy.tag != tag or copy.twin is None))
            if kind == 1:
                return Truth(2 * (not v[self.pair[w]].marked or v.value(self.turn[w]) != turn))
            if kind == 2:
                return Truth(2 * (sum(share.count for share in v.value(self.shares[w])) < turn))
            return Truth(2 * (v.value(self.budget) > 0 or v.value(self.turn[w]) != turn))

        return judge

    def _step(self, before: View, after: View, action: Action, label: str) -> Truth:
        return Truth(2 * (label != "next" or before.value(self.budget) > 0))


def queues(seed: int, runs: bool = False) -> Model:
    """A random model with queues."""
    return Queues(seed).model(runs)
