"""Random small models in which there is something to reduce: alike objects, slots that die, steps that nobody sees, loose coupling.

`Maker` in random_models.py makes dense models: everything looks at everything. Here a model is a family of alike objects that go through
phases. Each has slots of its own and a scratch slot that is read in some phases only; a few slots are common. Functions are the same for
all objects, unless the family is lopsided: then some look at the name of their object, or take the first thing that is free, as an
allocator does, so that a symmetry that seems to be there is not.
"""

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
    LeadsTo,
    LiveWhen,
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
Glance = Callable[[View, str], int]  # a look at the state from the place of an object: 0 or 1


@attrs.frozen
class Copy:
    """An object's content with its version."""

    version: Version
    mark: int = 0


class Family:
    """Makes a random model out of a seed. `lopsided`: some functions tell the objects apart."""

    def __init__(self, seed: int, lopsided: bool = False) -> None:
        self.random = random.Random(seed)
        self.lopsided = lopsided
        self.labelled = seed % 4 == 1  # some outcomes are called otherwise in some states
        self.objects = tuple(f"x{i}" for i in range(self.random.choice([2, 2, 2, 3])))
        few = len(self.objects) == 2
        possible = ["goods", "scratch", "flag", "errand", "versions"] if few else ["goods", "scratch"]
        features = self.random.sample(possible, self.random.choice([1, 2, 2]) if few else 1)
        self.goods = tuple(f"d{i}" for i in range(self.random.choice([1, 2]))) if "goods" in features else ()
        self.phases = range(self.random.choice([2, 3, 3]))
        self.live = set(self.random.sample(self.phases, self.random.randint(1, len(self.phases) - 1)))
        self.slots: list[Slot[Any]] = []
        self.phase = self._each("phase", lambda x: 0)
        self.own = self._each("own", lambda x: None) if self.goods else {}
        self.scratch = self._each("scratch", lambda x: 0) if "scratch" in features else {}
        self.flag = self._each("flag", lambda x: False) if "flag" in features else {}
        self.api = self._each("api", lambda x: Copy(Version(x, 0))) if "versions" in features else {}
        self.seen = self._each("seen", lambda x: Copy(Version(x, 0))) if "versions" in features else {}
        self.errand = self._each("errand", lambda x: "none") if "errand" in features else {}
        self.holder: Slot[Any] = self._slot("holder", None)
        self.total: Slot[Any] = self._slot("total", 0)
        self.sources: list[Callable[[], Glance]] = [
            self._phase_is,
            self._another_is_in,
            self._total_is,
            lambda: lambda v, x: int(v.value(self.holder) is None),
            lambda: lambda v, x: int(v.value(self.holder) == x),
        ]
        if self.own:
            self.sources.append(lambda: lambda v, x: int(v.value(self.own[x]) is None))
        if self.flag:
            self.sources.append(lambda: lambda v, x: int(v.value(self.flag[x])))
        if self.api:
            self.sources.append(lambda: lambda v, x: int(v[self.api[x]].version == v[self.seen[x]].version))
            self.sources.append(lambda: lambda v, x: v[self.seen[x]].mark)

    def _slot(self, name: str, initial: Any) -> Slot[Any]:
        slot: Slot[Any] = Slot(name, initial, "room")
        self.slots.append(slot)
        return slot

    def _each(self, name: str, initial: Callable[[str], Any]) -> dict[str, Slot[Any]]:
        return {x: self._slot(f"{name}/{x}", initial(x)) for x in self.objects}

    # what a function looks at

    def _phase_is(self) -> Glance:
        wanted = self.random.choice(self.phases)
        return lambda v, x: int(v.value(self.phase[x]) == wanted)

    def _another_is_in(self) -> Glance:
        wanted = self.random.choice(self.phases)
        return lambda v, x: int(any(v.value(self.phase[y]) == wanted for y in self.objects if y != x))

    def _total_is(self) -> Glance:
        wanted = self.random.randint(0, 1)
        return lambda v, x: int(v.value(self.total) == wanted)

    def _glance(self) -> Glance:
        if self.lopsided and self.random.random() < 0.15:
            wanted = self.random.choice(self.objects)
            return lambda v, x: int(x == wanted)
        return self.random.choice(self.sources)()

    # what it does: writes of an object that goes from one phase to another

    def _writes(self, before: int, after: int) -> list[Callable[[View, Outcome, str], None]]:
        chance = self.random.random
        found: list[Callable[[View, Outcome, str], None]] = []
        if self.scratch and (after in self.live and (before not in self.live or chance() < 0.4)):
            note = self.random.randint(0, 2)
            found.append(lambda v, outcome, x: outcome.__setitem__(self.scratch[x], note))
        if self.flag and chance() < 0.3:
            found.append(lambda v, outcome, x: outcome.__setitem__(self.flag[x], not v.value(self.flag[x])))
        if self.own and chance() < 0.3:
            found.append(lambda v, outcome, x: outcome.__setitem__(self.own[x], None))
        if chance() < 0.3:
            take = chance() < 0.6
            found.append(lambda v, outcome, x: outcome.__setitem__(self.holder, x if take else None))
        if chance() < 0.3:
            found.append(lambda v, outcome, x: outcome.__setitem__(self.total, (v.value(self.total) + 1) % 2))
        if self.api and chance() < 0.5:
            if chance() < 0.5:
                found.append(lambda v, outcome, x: outcome.__setitem__(self.seen[x], v.value(self.api[x])))
            else:
                mark = self.random.randint(0, 1)
                found.append(lambda v, outcome, x: outcome.__setitem__(self.api[x], Copy(v[self.api[x]].version.next(), mark)))
        return found

    def _step(self, number: int, wanted: str = "", left: str = "") -> Any:
        """From one phase to another, under conditions. The first steps lead through all phases, most of them without a condition. `wanted`,
        `left`: what becomes of an errand."""
        first = number < len(self.phases)
        before = number if first else self.random.choice(self.phases)
        many = 0 if number == 0 else self.random.choice([0, 0, 0, 1] if first else [0, 1, 1, 2])
        guards = [(self._glance(), self.random.randint(0, 1)) for _ in range(many)]
        if self.scratch and before in self.live and self.random.random() < 0.6:
            note = self.random.randint(0, 2)
            guards.append((lambda v, x: int(v.value(self.scratch[x]) == note), self.random.randint(0, 1)))
        outcomes = []
        for i in range(self.random.choice([1, 1, 2])):
            after = (before + 1) % len(self.phases) if first and i == 0 else self.random.choice(self.phases)
            outcomes.append((after, self._writes(before, after)))
        takes = bool(self.own) and self.random.random() < 0.4
        first_fit = takes and self.lopsided and self.random.random() < 0.5
        touches = self.random.random() < 0.2
        counts = self.labelled and number % 2 == 0

        def function(v: View, context: None, obj: str) -> Iterator[Outcome]:
            """A random step of an object."""
            if v.value(self.phase[obj]) != before or any(glance(v, obj) != wanted for glance, wanted in guards):
                return
            if wanted and v.value(self.errand[obj]) != wanted:
                return
            for number, (after, writes) in enumerate(outcomes):
                for good in self._free(v, first_fit) if takes and number == 0 else [None]:
                    outcome = v.outcome(f"{after} with {good}" if good else f"{number}: {after}")
                    if counts and v.value(self.total):
                        outcome.label += " again"
                    if after != before:
                        outcome[self.phase[obj]] = after
                    if wanted:
                        outcome[self.errand[obj]] = left
                    for write in writes:
                        write(v, outcome, obj)
                    if good is not None and self.own[obj] not in outcome.updates:
                        outcome[self.own[obj]] = good
                    if touches and self.flag:
                        for other in self.objects:
                            if self.flag[other] not in outcome.updates:
                                outcome.part(self._clear, other)
                    yield outcome

        return function

    def _free(self, v: View, first: bool) -> list[str]:
        taken = {v.value(self.own[x]) for x in self.objects}
        free = [good for good in self.goods if good not in taken]
        return free[:1] if first else free

    def _clear(self, p: PartView, obj: str) -> None:
        if p.value(self.phase[obj]) != 0:
            p.write(self.flag[obj], False)

    def _run_errand(self, v: View, context: None, obj: str) -> Iterator[Outcome]:
        """A step that nobody else can see or prevent."""
        if v.value(self.errand[obj]) == "sent":
            outcome = v.outcome("ok")
            outcome[self.errand[obj]] = "done"
            yield outcome

    def _sync(self, v: View, context: None, obj: str) -> Iterator[Outcome]:
        """A cache takes over an object."""
        if v[self.api[obj]].version != v[self.seen[obj]].version:
            outcome = v.outcome("ok")
            outcome[self.seen[obj]] = v.value(self.api[obj])
            yield outcome

    # promises

    def _predicate(self, often: float) -> Callable[[str, View], Truth]:
        """A random function of three looks from the place of an object that is mostly not false."""
        looks = [self._glance() for _ in range(3)]
        table = {
            (a, b, c): self.random.choice([Truth.TRUE, Truth.TRIVIAL]) if self.random.random() < often else Truth.FALSE
            for a in (0, 1)
            for b in (0, 1)
            for c in (0, 1)
        }
        return lambda x, v: table[looks[0](v, x), looks[1](v, x), looks[2](v, x)]

    def _everywhere(self, often: float) -> Callable[[View], Truth]:
        """True of all objects."""
        one = self._predicate(often)
        return lambda v: min(one(x, v) for x in self.objects)

    def _properties(self) -> Iterator[Property]:
        for i in range(self.random.choice([1, 2, 2, 3])):
            one = self._predicate(self.random.choice([0.85, 0.95]))
            yield from (StateInvariant(f"state{i}", partial(one, x), {"object": x}) for x in self.objects)
        if self.random.random() < 0.3:
            kinds = self.random.sample(list(Kind), 3)
            before, after = self._predicate(0.9), self._predicate(0.6)
            yield from (
                StepInvariant("step", partial(_kind_in, kinds), partial(_judge_step, before, after, x), {"object": x}) for x in self.objects
            )
        if self.random.random() < 0.3:
            yield AlwaysPossible("goal", self._everywhere(0.4), partial(_kind_in, self.random.sample(list(Kind), 4)))
        if self.random.random() < 0.5:
            yield DeadlockFree("stuck", self._everywhere(0.7))
        if self.random.random() < 0.15:
            yield LeadsTo("leads", self._everywhere(0.6), self._everywhere(0.5), partial(_kind_in, self.random.sample(list(Kind), 4)))

    def model(self) -> Model:
        kinds = list(Kind)
        types = [ActionType(f"step{i}", self._step(i), "writer", kind=self.random.choice(kinds)) for i in range(self.random.randint(3, 6))]
        if self.errand:
            types.append(ActionType("send", self._step(len(self.phases), "none", "sent"), "writer"))
            types.append(ActionType("take", self._step(len(self.phases), "done", "none"), "writer"))
            types.append(ActionType("errand", self._run_errand, "writer", kind=self.random.choice(kinds)))
        if self.api:
            types.append(ActionType("sync", self._sync, "writer"))
        actions = [Action(kind, {"obj": x}, ROOM) for x in self.objects for kind in types]
        names = {"object": self.objects, "good": self.goods}
        live = [LiveWhen([self.scratch[x]], partial(_phase_in, self.phase[x], self._said())) for x in self.scratch]
        return Model("family", self.slots, actions, list(self._properties()), names=names, live=live)

    def _said(self) -> frozenset[int]:
        """The phases in which a scratch slot is said to be read. Of a lopsided family it is not always true."""
        told = set(self.live)
        if self.lopsided and self.random.random() < 0.2:
            told.discard(self.random.choice(self.phases))
        return frozenset(told)


def _phase_in(slot: Slot[Any], phases: frozenset[int], v: View) -> bool:
    return v.value(slot) in phases


def _kind_in(kinds: list[Kind], action: Action) -> bool:
    return action.type.kind in kinds


def _judge_step(before: Any, after: Any, x: str, view: View, later: View, action: Action, label: str) -> Truth:
    return before(x, view) if label.endswith("again") else Truth(max(before(x, view), after(x, later)))
