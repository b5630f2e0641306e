"""The audit of what reductions rest on: footprints, and independence of actions, looked at in states that a search met.

In each state of a sample every action is run. What it looks at and writes must be in its footprint; and two actions that are said to
accord must both stay enabled after the other, with the same outcomes, and reach the same state in either order. It is a test, not a
proof: footprints.py and independence.py have the argument.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import combinations, islice

from dra_spec.explorer.independence import Independence
from dra_spec.explorer.model import Action, Model, ModelError, Outcome, Slot
from dra_spec.explorer.result import EngineError
from dra_spec.explorer.semantics import Semantics, State
from dra_spec.explorer.values import key, versions

MOST_STATES = 200
_MOST_PAIRS = 60  # per state
_WALK = 40  # steps of a random walk


def audit(relations: Independence, states: Sequence[State]) -> str:
    """What was tried. Raises `EngineError`, which names action and slot, at the first thing that is not as it must be."""
    auditor = _Auditor(relations)
    step = max(1, len(states) // MOST_STATES)
    sample = states[::step][:MOST_STATES]
    for state in sample:
        auditor.look(state)
    return f"footprints and order of actions in {len(sample)} states, {auditor.pairs} pairs"


def walked(model: Model, most: int = MOST_STATES) -> list[State]:
    """States of the full model, found by random walks from its initial states; always the same ones. Raises `EngineError` for a mistake
    in the model's text that is met on the way."""
    semantics, dice = Semantics(model), random.Random(0)
    found: list[State] = []
    while len(found) < most:
        state = dice.choice(semantics.initial_states())
        for _ in range(_WALK):
            found.append(state)
            try:
                ahead = [move.after for move in semantics.moves(state) if move.beyond is None]
            except ModelError as error:
                raise EngineError(f"audit: {error}") from error
            if not ahead or len(found) >= most:
                break
            state = dice.choice(ahead)
    return found


def versions_audited(model: Model) -> str:
    """Audits that versions are made of newest ones only, by random walks; "" if there are none. Raises `EngineError`."""
    if not any(True for state in model.initial_states() for _ in versions(state)):
        return ""
    return f"versions in {len(walked(model))} states"


class _Auditor:
    def __init__(self, relations: Independence) -> None:
        self.relations, self.model = relations, relations.model
        self.semantics = Semantics(self.model)
        self.pairs = 0

    def look(self, state: State) -> None:
        enabled: list[tuple[int, list[Outcome]]] = []
        for number, action in enumerate(self.model.actions):
            outcomes = self._watched(number, action, state)
            if outcomes:
                enabled.append((number, outcomes))
        independent = (pair for pair in combinations(enabled, 2) if pair[1][0] not in self.relations.in_the_way[pair[0][0]])
        for (a, ours), (b, theirs) in islice(independent, _MOST_PAIRS):
            self.pairs += 1
            self._in_any_order(state, a, ours, b, theirs)

    def _watched(self, number: int, action: Action, state: State) -> list[Outcome]:
        """The outcomes of an action, with all that it touches compared with its footprint."""
        footprint, index = self.relations.footprints.actions[number], self.semantics.index
        seen = self.semantics.observe(action, state)
        reads = [slot for slot, _, _ in seen.reads]
        writes: list[Slot[object]] = []
        for outcome in seen.outcomes:
            writes += outcome.updates
            for part in outcome.parts:
                looked, written = self.semantics.observe_part(part, state, action.rooms)
                reads += [slot for slot, _, _ in looked]
                writes += written
        for verb, slots, known in (("looks at", reads, footprint.reads), ("writes", writes, footprint.writes)):
            stray = next((slot for slot in slots if index[slot] not in known), None)
            if stray is not None:
                raise EngineError(
                    f"audit: {action} {verb} {stray}, which is not in its footprint\nin the state\n{self.semantics.describe(state)}"
                )
        return list(seen.outcomes)

    def _in_any_order(self, state: State, a: int, ours: list[Outcome], b: int, theirs: list[Outcome]) -> None:
        for i, mine in enumerate(ours):
            for j, other in enumerate(theirs):
                if mine.beyond is None and other.beyond is None:
                    one, another = self._both(state, a, mine, b, theirs, j), self._both(state, b, other, a, ours, i)
                    if one is None or another is None or key(one) != key(another):
                        names = f"{self.model.actions[a]} and {self.model.actions[b]}"
                        raise EngineError(
                            f"audit: {names} are said to accord, and do not{self._difference(one, another)}\n"
                            f"in the state\n{self.semantics.describe(state)}"
                        )

    def _both(self, state: State, first: int, outcome: Outcome, second: int, before: list[Outcome], then: int) -> State | None:
        """The state after both steps, versions counted; None if the second one has not the outcomes any more that it had before."""
        between = self.semantics.apply_raw(self.model.actions[first], outcome, state)
        after = self.semantics.observe(self.model.actions[second], between).outcomes
        if [(o.label, o.beyond is None) for o in after] != [(o.label, o.beyond is None) for o in before]:
            return None
        return self.semantics.apply(self.model.actions[second], after[then], between)

    def _difference(self, one: State | None, another: State | None) -> str:
        if one is None or another is None:
            return ": one prevents or changes the other"
        slot = next(s for s, x, y in zip(self.model.slots, one, another, strict=True) if key(x) != key(y))
        return f": {slot} depends on their order"
