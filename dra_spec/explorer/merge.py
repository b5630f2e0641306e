"""Merging of invisible steps: a step that nobody else can see or prevent is taken together with the step before it.

An action may be merged if in every state that enables it
- it has one outcome, within the bounds;
- it accords with all other actions (independence.py): whatever they do, it stays enabled and does the same, and nothing is different for
  them;
- it sets no slot at which a promise looks (promises about its own steps included), and every always-possible promise allows it.

Then a state and the one after the step are branching bisimilar (confluence: Groote and van de Pol 2000), so promises about states and
steps, stuck states and what stays possible are the same with the first one left out. The engine never stores it: the outcome of the step
before is composed with the step that follows, in a model made for that. Shortest lengths are not kept, as merged steps count as one. A
loop of such steps is broken where it would begin again, and the state there is stored. Docs: docs/decisions/0025-merged-steps.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import attrs

from dra_spec.explorer.derived import about_originals
from dra_spec.explorer.footprints import Footprints
from dra_spec.explorer.independence import Independence
from dra_spec.explorer.model import (
    Action,
    AlwaysPossible,
    DeadlockFree,
    LeadsTo,
    Model,
    ModelError,
    Outcome,
    Part,
    PartView,
    Projection,
    Slot,
    StepInvariant,
    View,
)

NAME = "merge"
_MOST = 32  # steps merged into one

Read = Callable[[Slot[Any], Projection], Any]


class MergedOutcome(Outcome):
    """An outcome with the steps that follow it in it. `followed`: those actions of the model, in order."""

    __slots__ = ("followed",)

    def __init__(self, label: str, followed: Sequence[Action]) -> None:
        super().__init__(label)
        self.followed = tuple(followed)


@attrs.frozen(eq=False)
class Merged:
    """A model in which steps are merged. `original`: per action the one of the model; `merged`: the actions that follow others."""

    model: Model
    original: Mapping[Action, Action]
    merged: Sequence[Action]


def mergeable(relations: Independence) -> list[int]:
    """The actions that may be merged into the step before them."""
    model, footprints = relations.model, relations.footprints
    if any(isinstance(promise, LeadsTo) for promise in model.properties):
        return []
    seen: frozenset[int] = frozenset()
    forbidden: set[int] = set()
    for index, promise in enumerate(model.properties):
        if isinstance(promise, StepInvariant):
            forbidden.update(a for a, action in enumerate(model.actions) if promise.applies(action))
        elif isinstance(promise, AlwaysPossible):
            forbidden.update(a for a, action in enumerate(model.actions) if not promise.allowed(action))
        if not isinstance(promise, (StepInvariant, DeadlockFree)):
            seen |= footprints.property(index).reads
    found = []
    for a, footprint in enumerate(footprints.actions):
        unseen = footprint.writes and seen.isdisjoint(footprint.writes) and not relations.in_the_way[a] and a not in forbidden
        if unseen and footprint.exact and not footprint.escapes and all(len(leaf.result) <= 1 for leaf in footprints.leaves(a)):
            found.append(a)
    return found


def merged(relations: Independence) -> Merged | None:
    """The model with merged steps; None if no step can be merged."""
    model, chosen = relations.model, mergeable(relations)
    if not chosen:
        return None
    original = {}
    for a, action in enumerate(model.actions):
        after = _followers(relations, a, chosen)
        wrapped = action
        if after:
            rooms = action.rooms.union(*(model.actions[b].rooms for b in after))
            fn = partial(_with_followers, relations.footprints, action, tuple(model.actions[b] for b in after))
            wrapped = attrs.evolve(action, type=attrs.evolve(action.type, fn=fn), rooms=rooms)
        original[wrapped] = action
    promises = [about_originals(promise, original) for promise in model.properties]
    made = attrs.evolve(model, actions=list(original), properties=promises)
    return Merged(made, original, [model.actions[a] for a in chosen])


def _followers(relations: Independence, action: int, chosen: Sequence[int]) -> list[int]:
    """The actions that an action, or one that follows it, may enable."""
    judged = relations.judged.get(action, frozenset())
    fit = [b for b in chosen if judged.isdisjoint(relations.footprints.actions[b].writes)]
    found: dict[int, None] = {}
    todo = [action]
    while todo:
        writes = relations.footprints.actions[todo.pop()].writes
        for b in fit:
            if b not in found and not writes.isdisjoint(relations.footprints.actions[b].reads):
                found[b] = None
                todo.append(b)
    return sorted(found)


def _with_followers(
    footprints: Footprints, action: Action, after: Sequence[Action], v: View, context: Any, **params: Any
) -> Iterator[Outcome]:
    """The outcomes of an action, each with the steps that follow it."""
    for outcome in action.type.fn(v, context, **params):
        if outcome.beyond is not None:
            yield outcome
            continue
        state = _After(footprints, action, outcome, v.read)
        followed: list[Action] = []
        enabled: Action | None = action
        while enabled is not None and len(followed) < _MOST:
            enabled = next((a for a in after if a not in followed and state.take(a)), None)
            followed += [enabled] if enabled is not None else []
        made = MergedOutcome(outcome.label, followed)
        made.updates.update(state.updates)
        made.parts.extend(state.parts)
        yield made


class _After:
    """The state after an outcome: what it set, its parts (worked out where somebody looks), and the state before."""

    def __init__(self, footprints: Footprints, action: Action, outcome: Outcome, before: Read) -> None:
        self._footprints, self._rooms, self._before = footprints, action.rooms, before
        self.updates = dict(outcome.updates)
        self.parts: list[Part] = list(outcome.parts)

    def read(self, slot: Slot[Any], what: Projection) -> Any:
        self._settle(slot)
        return what.of(self.updates[slot]) if slot in self.updates else self._before(slot, what)

    def take(self, action: Action) -> bool:
        """Takes the one outcome of an action; False if it is not enabled."""
        outcomes = action.run(View(self.read))
        if not outcomes:
            return False
        found = dict(outcomes[0].updates)
        for part in outcomes[0].parts:
            _add(found, part, self.read)
        for slot in found:
            self._settle(slot)
        self.updates.update(found)
        return True

    def _settle(self, slot: Slot[Any]) -> None:
        """Works out the parts that may set a slot."""
        at = self._footprints.values.index[slot]
        for part in list(self.parts):
            if at in self._footprints.part(part, self._rooms).writes:
                self.parts.remove(part)
                _add(self.updates, part, self._before)


def _add(updates: dict[Slot[Any], Any], part: Part, read: Read) -> None:
    view = PartView(read)
    part.fn(view, *part.args)
    for slot, value in view.updates.items():
        if slot in updates:
            raise ModelError(f"{slot} is written twice, last by {part}")
        updates[slot] = value
