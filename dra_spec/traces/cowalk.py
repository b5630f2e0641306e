"""Model and reference side by side: each move of the model is made on the concrete world, and all slots are compared after it."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable

import attrs

from dra_spec.explorer.model import Action, Kind
from dra_spec.explorer.semantics import Move, Semantics, State
from dra_spec.reference.errors import Divergence
from dra_spec.reference.world import World
from dra_spec.traces.abstraction import differences, state_of

DISTURBANCE = 0.1  # weight of faults and users
SLOWNESS = 0.01  # weight of what is slow in a walk
SLOW_PART = 0.12  # how many actions are
FAULTS = ("refused", "applied-error", "failed", "lost")


def parameters(move: Move) -> dict[str, str | int]:
    """The parameters of a model's move as the world takes them."""
    return dict(move.action.params)


def concrete_state(semantics: Semantics, world: World) -> State:
    """The world as a state of the model, versions renumbered."""
    return semantics.renumber(state_of(world, semantics.model.slots))


def mirror(semantics: Semantics, world: World, move: Move) -> None:
    """Makes a move of the model on the world and compares all slots. Raises Divergence."""
    world.step(move.action.name, parameters(move), move.label)
    compare(semantics, world, move.after, f"{move.action} [{move.label}]")


def compare(semantics: Semantics, world: World, expected: State, after: str) -> None:
    """Compares every slot. Raises Divergence."""
    found = differences(semantics.model.slots, expected, concrete_state(semantics, world))
    if found:
        raise Divergence(after, "the model's state", "another one", "; ".join(found))


def mirror_run(semantics: Semantics, world: World, start: State, moves: Iterable[Move]) -> None:
    """Replays a whole run, from an initial state on. Raises Divergence; its step begins with the number of the move."""
    compare(semantics, world, start, "0: the initial state")
    for number, move in enumerate(moves, start=1):
        try:
            mirror(semantics, world, move)
        except Divergence as error:
            raise Divergence(f"{number}: {error.step}", error.expected, error.observed, error.why) from error


@attrs.define
class Statistics:
    """What a random walk has seen: steps, walks, and how often each action ended how."""

    steps: int = 0
    walks: int = 0
    actions: Counter[str] = attrs.field(factory=Counter)
    taken: Counter[tuple[str, str]] = attrs.field(factory=Counter)

    def count(self, move: Move) -> None:
        self.steps += 1
        self.actions[move.action.name] += 1
        self.taken[move.action.name, move.label] += 1


def _weight(action: Action, seen: Statistics, slow: frozenset[str]) -> float:
    """Rare actions are preferred; faults and users come seldom, or no walk gets anywhere; those of `slow` hardly ever."""
    disturbs = action.type.kind in (Kind.FAULT, Kind.USER)
    pace = (DISTURBANCE if disturbs else 1.0) * (SLOWNESS if action.name in slow else 1.0)
    return pace / float((1 + seen.actions[action.name]) ** 0.5)


def random_move(
    semantics: Semantics, state: State, rng: random.Random, seen: Statistics, slow: frozenset[str] = frozenset()
) -> Move | None:
    """Some move inside the bounds, None if there is none. Actions are tried in a random order, so that not all of them are looked at."""
    order = sorted(semantics.model.actions, key=lambda action: rng.random() ** (1 / _weight(action, seen, slow)), reverse=True)
    for action in order:
        outcomes = [(i, o) for i, o in enumerate(semantics.observe(action, state).outcomes) if o.beyond is None]
        if outcomes:
            weights = [DISTURBANCE if o.label in FAULTS else 1.0 for _, o in outcomes]
            ((index, outcome),) = rng.choices(outcomes, weights)
            return Move(action, index, outcome.label, semantics.apply(action, outcome, state))
    return None


def random_walk(semantics: Semantics, world: World, rng: random.Random, length: int, seen: Statistics) -> list[str]:
    """Walks at random through the model, the world with it. The moves made, for a report.

    Each walk has some actions that come hardly ever: an informer that lags, a worker that sleeps. Ends early where the model has no move
    inside its bounds. Raises Divergence, which lists the moves.
    """
    slow = frozenset(name for name in sorted({action.name for action in semantics.model.actions}) if rng.random() < SLOW_PART)
    state = semantics.initial_states()[0]
    compare(semantics, world, state, "the initial state")
    seen.walks += 1
    made: list[str] = []
    for _ in range(length):
        move = random_move(semantics, state, rng, seen, slow)
        if move is None:
            break
        made.append(f"{move.action} [{move.label}]")
        try:
            mirror(semantics, world, move)
        except Divergence as error:
            raise Divergence(error.step, error.expected, error.observed, error.why + "\nafter\n  " + "\n  ".join(made)) from error
        seen.count(move)
        state = move.after
    return made
