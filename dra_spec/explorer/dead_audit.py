"""The audit of dead values: random values in dead slots must make no difference to any function of the model."""

from __future__ import annotations

import random
from collections.abc import Hashable, Sequence

from dra_spec.explorer.dead import Deaths
from dra_spec.explorer.growing import Ints
from dra_spec.explorer.intern import function_key
from dra_spec.explorer.model import Action, LiveWhen, Model, ModelError, Slot, StateInvariant
from dra_spec.explorer.result import EngineError
from dra_spec.explorer.semantics import Semantics, State
from dra_spec.explorer.values import identity, key

STATES = 60  # that are looked at


class DeadAudit:
    """Runs the functions of a model in stored states, and again with other values in the slots that are dead there."""

    def __init__(self, model: Model, deaths: Deaths) -> None:
        self.model, self.deaths = model, deaths
        self.semantics = Semantics(model)
        self._dice = random.Random(0)
        self._tries = 0

    def run(self, rows: Sequence[Ints]) -> str:
        """What was tried. Raises `EngineError`, which names the function and the slot, at the first difference."""
        domains = self.deaths.trees.domains
        for row in rows:
            state = domains.state(row)
            view = self.semantics.view(state)
            gone = [(live, slot) for live in self.deaths.live if not live.predicate(view) for slot in live.slots]
            if gone:
                self._compare(state, gone)
        return f"dead slots: {self._tries} runs with other values in them"

    def _compare(self, state: State, gone: Sequence[tuple[LiveWhen, Slot[object]]]) -> None:
        domains = self.deaths.trees.domains
        other = list(state)
        for _, slot in gone:
            other[domains.index[slot]] = self._dice.choice(domains.values[domains.index[slot]])
        functions: list[Action | StateInvariant] = [*self.model.actions]
        functions += [promise for promise in self.model.properties if isinstance(promise, StateInvariant)]
        for who in functions:
            self._tries += 1
            first = self._answer(who, state)
            if self._answer(who, tuple(other)) != first:
                self._blame(who, first, state, other, gone)

    def _blame(
        self,
        who: Action | StateInvariant,
        first: Hashable,
        state: State,
        other: Sequence[object],
        gone: Sequence[tuple[LiveWhen, Slot[object]]],
    ) -> None:
        """Finds a slot that makes the difference: takes the values one by one."""
        changed = list(state)
        for live, slot in gone:
            at = self.deaths.trees.domains.index[slot]
            changed[at] = other[at]
            if self._answer(who, tuple(changed)) != first:
                name = who if isinstance(who, Action) else f"promise {who.promise}"
                where = self.semantics.describe(tuple(changed))
                raise EngineError(
                    f"audit: {name} depends on {slot}, which is dead there by the declaration of {live}\nin the state\n{where}"
                )

    def _answer(self, who: Action | StateInvariant, state: State) -> Hashable:
        """What a function reads, and what follows; parts with what they write."""
        try:
            if isinstance(who, StateInvariant):
                return int(who.fn(self.semantics.view(state)))
            seen = self.semantics.observe(who, state)
            reads = tuple((slot.name, str(what), key(found)) for slot, what, found in seen.reads)
            outcomes = []
            for outcome in seen.outcomes:
                parts = []
                for part in outcome.parts:
                    _, written = self.semantics.observe_part(part, state, who.rooms)
                    parts.append((function_key(part.fn), identity(part.args), _writes(written)))
                outcomes.append((outcome.label, outcome.beyond is None, _writes(outcome.updates), tuple(parts)))
            return reads, tuple(outcomes)
        except ModelError as error:
            return str(error).splitlines()[0]


def _writes(updates: dict[Slot[object], object]) -> Hashable:
    return tuple((slot.name, key(value)) for slot, value in updates.items())
