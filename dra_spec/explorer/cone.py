"""Sub-models: for a promise, the part of a model that can influence it (its cone of influence).

The slots that matter are those that the promise looks at, and those that decide what the actions do that may write a slot that matters.
Actions that write none of them are left out, and the others write only those. What is left is the model seen through the slots that
matter, exactly: a step of an action that is left out changes nothing there, and an action that is kept decides by nothing else. So each
run of the sub-model is the trace of a run of the model, of the same or a shorter length, and the other way round.

Promises about states, about steps and about what stays possible have such a part. Whether a state is stuck, or an action must happen,
hangs on all actions, so `DeadlockFree` and `LeadsTo` get the whole model. Docs: docs/decisions/0026-sub-models.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import attrs

from dra_spec.explorer.derived import about_originals
from dra_spec.explorer.footprints import Footprints
from dra_spec.explorer.model import (
    Action,
    AlwaysPossible,
    LiveWhen,
    Model,
    Outcome,
    PartFunction,
    PartView,
    Property,
    Slot,
    StateInvariant,
    StepInvariant,
    View,
)
from dra_spec.explorer.result import EngineError
from dra_spec.explorer.semantics import Semantics, State
from dra_spec.explorer.values import key

NAME = "cone"


@attrs.frozen(eq=False)
class SubModel:
    """A part of a model: `original` gives, for an action of the part, the action of the model. `whole`: nothing was left out."""

    model: Model
    original: Mapping[Action, Action]
    whole: bool

    def fewer_writers(self, model: Model) -> bool:
        """Whether some writer is left out altogether."""
        return len({action.type.writer for action in self.original.values()}) < len({action.type.writer for action in model.actions})

    def left_out(self, model: Model) -> str:
        """Which writers, or actions of writers that stay, are not in it."""
        kept = {action.type.writer for action in self.original.values()}
        gone = sorted({action.type.writer for action in model.actions} - kept)
        told = [f"writers left out: {', '.join(gone)}"] if gone else []
        for what, all_of_it, kept_of_it in (
            ("actions", len(model.actions), len(self.original)),
            ("slots", len(model.slots), len(self.model.slots)),
        ):
            if kept_of_it < all_of_it:
                told.append(f"{all_of_it - kept_of_it} of {all_of_it} {what} left out")
        return "; ".join(told) or "nothing left out"


def cones(model: Model, footprints: Footprints) -> list[SubModel]:
    """Sub-models that together have all promises of a model. A promise is in the sub-model of another one if its own is a part of that."""
    wanted = dict.fromkeys(promise.promise for promise in model.properties)
    found: list[tuple[frozenset[int], frozenset[int], list[str]]] = []
    for name in wanted:
        slots, actions = _cone(model, footprints, [i for i, p in enumerate(model.properties) if p.promise == name])
        found.append((slots, actions, [name]))
    found.sort(key=lambda cone: (-len(cone[0]), -len(cone[1])))
    groups: list[tuple[frozenset[int], frozenset[int], list[str]]] = []
    for slots, actions, names in found:
        around = next((group for group in groups if slots <= group[0] and actions <= group[1]), None)
        if around is None:
            groups.append((slots, actions, names))
        else:
            around[2].extend(names)
    return [_part(model, footprints, slots, actions, frozenset(names)) for slots, actions, names in groups] or [
        whole(model, model.properties)
    ]


def _cone(model: Model, footprints: Footprints, promises: Iterable[int]) -> tuple[frozenset[int], frozenset[int]]:
    """Slots that matter and actions that are kept, for some promises together."""
    everything = frozenset(range(len(model.slots))), frozenset(range(len(model.actions)))
    slots: set[int] = set()
    kept: set[int] = set()
    for index in promises:
        promise = model.properties[index]
        if not isinstance(promise, (StateInvariant, StepInvariant, AlwaysPossible)):
            return everything
        slots |= footprints.property(index).reads
        if isinstance(promise, StepInvariant):
            kept.update(a for a, action in enumerate(model.actions) if promise.applies(action))
    size = -1
    while size != (size := len(slots) + len(kept)):
        for a in range(len(model.actions)):
            if a in kept or not slots.isdisjoint(footprints.may_write(a)):
                kept.add(a)
                slots |= footprints.decides(a, frozenset(slots))
    return frozenset(slots), frozenset(kept)


def whole(model: Model, promises: Sequence[Property]) -> SubModel:
    """The model as a part of itself."""
    part = model if promises is model.properties else attrs.evolve(model, properties=promises)
    return SubModel(part, {action: action for action in model.actions}, True)


def _part(model: Model, footprints: Footprints, slots: frozenset[int], actions: frozenset[int], names: frozenset[str]) -> SubModel:
    promises = [promise for promise in model.properties if promise.promise in names]
    if len(slots) == len(model.slots) and len(actions) == len(model.actions):
        return whole(model, promises)
    kept = _Kept(frozenset(model.slots[slot] for slot in slots), footprints)
    original = {
        attrs.evolve(
            model.actions[a], type=attrs.evolve(model.actions[a].type, fn=partial(_narrowed, kept, model.actions[a]))
        ): model.actions[a]
        for a in sorted(actions)
    }
    initial: list[dict[Slot[Any], Any]] = []
    for override in model.initial:
        initial.append({slot: value for slot, value in override.items() if slot in kept.slots})
    live = [
        LiveWhen([slot for slot in said.slots if slot in kept.slots], said.predicate)
        for said in model.live
        if not kept.slots.isdisjoint(said.slots) and (looks := footprints.looks_at(said.predicate)) is not None and looks <= slots
    ]
    part = attrs.evolve(
        model,
        live=live,
        slots=[slot for slot in model.slots if slot in kept.slots],
        actions=list(original),
        properties=[about_originals(promise, original) for promise in promises],
        initial=initial,
    )
    return SubModel(part, original, False)


@attrs.frozen(eq=False)
class _Kept:
    """The slots that stay."""

    slots: frozenset[Slot[Any]]
    footprints: Footprints


def _narrowed(kept: _Kept, action: Action, v: View, context: Any, **params: Any) -> Iterator[Outcome]:
    """The action's outcomes, as far as they are about the slots that stay."""
    for outcome in action.type.fn(v, context, **params):
        narrow = Outcome(outcome.label)
        narrow.beyond = outcome.beyond
        narrow.updates = {slot: value for slot, value in outcome.updates.items() if slot in kept.slots}
        for part in outcome.parts:
            written = {kept.footprints.model.slots[i] for i in kept.footprints.part(part, action.rooms).writes}
            if written and written <= kept.slots:
                narrow.parts.append(part)
            elif written & kept.slots:
                narrow.part(_narrow_part, kept, part.fn, *part.args)
        yield narrow


def _narrow_part(p: PartView, kept: _Kept, fn: PartFunction, *args: Any) -> None:
    inner = PartView(p.read)
    fn(inner, *args)
    for slot, value in inner.updates.items():
        if slot in kept.slots:
            p.write(slot, value)


def full_initial(model: Model, part: SubModel, state: State) -> State:
    """An initial state of the model that looks like an initial state of the sub-model."""
    index = [i for i, slot in enumerate(model.slots) if slot in set(part.model.slots)]
    seen = Semantics(part.model)
    for full in Semantics(model).initial_states():
        if key(seen.renumber(tuple(full[i] for i in index))) == key(state):
            return full
    raise EngineError("a trace of a sub-model begins in a state that is not initial")
