"""What a model means, in plain Python: how one action changes one state.

This is the oracle: slow, obvious, and used wherever being right matters more than being fast (the plain engine, traces before
they are shown, replay and lockstep). The fast engines learn their decision trees by calling `observe` here.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import attrs

from dra_spec.explorer.model import (
    WHOLE,
    Action,
    Model,
    ModelError,
    Outcome,
    Part,
    PartView,
    Projection,
    Slot,
    Truth,
    View,
)
from dra_spec.explorer.values import Version, key, made, rename, versions

State = tuple[Any, ...]
Read = tuple[Slot[Any], Projection, Any]  # slot, what of it, what was found


class Recorder:
    """Answers a view's reads from a state and keeps the list of them, each observation once."""

    def __init__(self, state: State, index: Mapping[Slot[Any], int], rooms: frozenset[str] | None, who: object) -> None:
        self._state, self._index, self._rooms, self._who = state, index, rooms, who
        self._seen: dict[tuple[Slot[Any], Projection], Any] = {}
        self.reads: list[Read] = []

    def read(self, slot: Slot[Any], what: Projection) -> Any:
        check_room(slot, self._rooms, self._who)
        seen = (slot, what)
        if seen in self._seen:
            return self._seen[seen]
        try:
            found = what.of(self._state[self._index[slot]])
        except KeyError:
            raise ModelError(f"{self._who}: slot {slot} is not part of the model") from None
        self._seen[seen] = found
        self.reads.append((slot, what, found))
        return found


def check_room(slot: Slot[Any], rooms: frozenset[str] | None, who: object) -> None:
    """Raises `ModelError` if an action touches a slot of a room that it may not enter."""
    if rooms is not None and slot.room not in rooms:
        raise ModelError(f"{who}: touches {slot}, which belongs to {slot.room}")


def _holds_newer(value: object, version: Version) -> bool:
    return any(other.of == version.of and other.n > version.n for other in versions(value))


@attrs.frozen
class Observation:
    """What an action read in a state, in order, the outcomes that follow from it, and the versions that it made (`values.made`)."""

    reads: Sequence[Read]
    outcomes: Sequence[Outcome]
    made: Sequence[tuple[Version, Version]] = ()


@attrs.frozen
class Move:
    """One transition: the action, which of its outcomes, and the state reached (versions renumbered).

    `raw` is the same state before renumbering: its versions can be compared with those of the state before the step.
    """

    action: Action
    index: int
    label: str
    after: State
    beyond: str | None = None
    raw: State = ()


class Semantics:
    """The transition relation of a model, one state at a time."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self.calls = 0  # of the model's Python code: actions and parts
        self.index: dict[Slot[Any], int] = {slot: i for i, slot in enumerate(model.slots)}
        if len({slot.name for slot in model.slots}) != len(model.slots):
            raise ModelError("two slots have one name")

    def initial_states(self) -> list[State]:
        """The initial states with versions renumbered."""
        return [self.renumber(state) for state in self.model.initial_states()]

    def observe(self, action: Action, state: State) -> Observation:
        """Runs an action in a state. An exception in the action becomes a `ModelError` that names action, parameters, state."""
        self.calls += 1
        recorder = Recorder(state, self.index, action.rooms, action)
        outcomes, new = made(lambda: self._guarded(action, state, lambda: action.run(View(recorder.read))))
        for outcome in outcomes:
            for slot in outcome.updates:
                check_room(slot, action.rooms, action)
        return Observation(recorder.reads, outcomes, new)

    def observe_part(self, part: Part, state: State, rooms: frozenset[str] | None) -> tuple[list[Read], dict[Slot[Any], Any]]:
        """Runs a part in the state before the action: its reads and its writes."""
        self.calls += 1
        recorder = Recorder(state, self.index, rooms, part)
        view = PartView(recorder.read)
        self._guarded(part, state, lambda: part.fn(view, *part.args))
        for slot in view.updates:
            check_room(slot, rooms, part)
        return recorder.reads, view.updates

    def _guarded(self, who: object, state: State, run: Callable[[], Any]) -> Any:
        try:
            return run()
        except ModelError:
            raise
        except Exception as error:
            raise ModelError(f"{who}: {type(error).__name__}: {error}\nin the state\n{self.describe(state)}") from error

    def ask(self, promise: str, state: State, judge: Callable[[], Truth]) -> Truth:
        """What a property says; an exception in it becomes a `ModelError` that names promise and state."""
        answer: Truth = self._guarded(f"promise {promise}", state, lambda: Truth(judge()))
        return answer

    def describe(self, state: State) -> str:
        """One line per slot that differs from its initial value."""
        lines = [f"  {s.name} = {v}" for s, v in zip(self.model.slots, state, strict=True) if v != s.initial]
        return "\n".join(lines) or "  (every slot has its initial value)"

    def outcome(self, action: Action, index: int, state: State) -> Outcome | None:
        """An outcome by its place among those of an action; None if there is none in this state, or it leaves the bounds."""
        outcomes = self.observe(action, state).outcomes
        return outcomes[index] if index < len(outcomes) and outcomes[index].beyond is None else None

    def apply(self, action: Action, outcome: Outcome, state: State) -> State:
        """The state after an outcome, versions renumbered. Two writes of one slot raise `ModelError`."""
        return self.renumber(self.apply_raw(action, outcome, state))

    def apply_raw(self, action: Action, outcome: Outcome, state: State) -> State:
        """The state after an outcome, versions as the action wrote them. Two writes of one slot raise `ModelError`."""
        updates = dict(outcome.updates)
        for part in outcome.parts:
            _, written = self.observe_part(part, state, action.rooms)
            for slot, value in written.items():
                if slot in updates:
                    raise ModelError(f"{action} [{outcome.label}]: {slot} is written twice, last by {part}")
                updates[slot] = value
        after = list(state)
        for slot, value in updates.items():
            if slot not in self.index:
                raise ModelError(f"{action} [{outcome.label}]: slot {slot} is not part of the model")
            after[self.index[slot]] = value
        return tuple(after)

    def renumber(self, state: State) -> State:
        """Renames the live versions of each object, in order, to 0, 1, 2, ..."""
        live: dict[str, set[int]] = {}
        for version in versions(state):
            live.setdefault(version.of, set()).add(version.n)
        names = {Version(of, n): Version(of, rank) for of, numbers in live.items() for rank, n in enumerate(sorted(numbers)) if rank != n}
        return tuple(rename(value, names) for value in state) if names else state

    def moves(self, state: State) -> Iterator[Move]:
        """All transitions out of a state, also those that leave the bounds (their `after` is the state itself).

        Raises `ModelError`, also for a step that makes a version of one that is not the newest of its object.
        """
        for act in self.model.actions:
            seen = self.observe(act, state)
            for i, outcome in enumerate(seen.outcomes):
                if outcome.beyond is not None:
                    yield Move(act, i, outcome.label, state, outcome.beyond)
                else:
                    raw, more = made(partial(self.apply_raw, act, outcome, state))
                    if seen.made or more:
                        self._check_newest(f"{act} [{outcome.label}]", state, raw, [*seen.made, *more])
                    yield Move(act, i, outcome.label, self.renumber(raw), None, raw)

    def _check_newest(self, who: str, before: State, after: State, new: Sequence[tuple[Version, Version]]) -> None:
        """Raises `ModelError` if a version that a step wrote was made of one that is not the newest of its object in the state before."""
        for slot, value in zip(self.model.slots, after, strict=True):
            for version in versions(value):
                of = next((old for old, made_of_it in new if made_of_it is version), version)
                newer = (other for other, kept in zip(self.model.slots, before, strict=True) if _holds_newer(kept, of))
                if of is not version and (other := next(newer, None)) is not None:
                    told = f"{who}: {slot} gets a version made of {of}, which is not the newest: {other} holds a newer one"
                    raise ModelError(f"{told}\nin the state\n{self.describe(before)}")

    def identity(self, state: State) -> Hashable:
        """The key of a state. Raises `ModelError` if a value has none."""
        try:
            found = key(state)
            hash(found)
        except TypeError:
            for slot, value in zip(self.model.slots, state, strict=True):
                try:
                    hash(key(value))
                except TypeError as error:
                    raise ModelError(f"{slot}: a value must be immutable and hashable, found {value!r} ({error})") from None
            raise
        return found

    def view(self, state: State) -> View:
        """A view of the whole state that records nothing, for properties."""
        return View(lambda slot, what: what.of(state[self.index[slot]]))

    def value(self, state: State, slot: Slot[Any]) -> Any:
        """The value of one slot in a state."""
        return WHOLE.of(state[self.index[slot]])
