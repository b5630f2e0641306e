"""Lockstep: the reference goes its own way at random, and the model must be able to follow, step by step.

Replay shows that the reference can do what the model does on one run. Lockstep asks the other question: may the model do what the
reference does? After each step of the concrete world some transition of the model with the same action, parameters and outcome must lead
to the abstraction of the new world; the state and step invariants are judged on the concrete world; and both sides must agree about
which steps are enabled. Hypothesis chooses the steps and shrinks what fails.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import attrs

from dra_spec.allocation.injected import parse
from dra_spec.explorer.model import Kind
from dra_spec.explorer.semantics import Move, Semantics, State
from dra_spec.properties.invariant import Invariant, Promise
from dra_spec.properties.judge import judge
from dra_spec.reference.snapshot import snapshot
from dra_spec.reference.steps import Move as ConcreteMove
from dra_spec.reference.world import World
from dra_spec.scenario.scenario import Scenario
from dra_spec.traces.abstraction import differences
from dra_spec.traces.cowalk import concrete_state

FAULTS = ("refused", "applied-error", "failed", "lost", "timeout")
DISTURBED = 12  # one step of so many is a disturbance, for a walk to get somewhere


class OutOfStep(AssertionError):
    """The reference did what the model does not allow, or what breaks a promise. The message has the way there."""


@attrs.define
class Seen:
    """What walks have met: steps, and how often each action ended how."""

    steps: int = 0
    taken: Counter[tuple[str, str]] = attrs.field(factory=Counter)


class Lockstep:
    """A concrete world and the model, side by side. Use as a context, or call `close`.

    `broken`: promises that may break in this scenario, such as those that Kubernetes 1.37 is known to break.
    """

    def __init__(self, scenario: Scenario, seen: Seen | None = None, broken: Sequence[str] = ()) -> None:
        self.scenario, self.seen = scenario, seen or Seen()
        self.semantics = Semantics(scenario.model)
        self.world = World(scenario.instance, scenario.variants)
        self.made: list[str] = []
        self._kinds = {action.name: action.type.kind for action in scenario.model.actions}
        self._taken: Counter[ConcreteMove] = Counter()
        kinds = (Promise.STATE, Promise.STEP)
        self._invariants: list[Invariant] = [i for i in scenario.invariants.values() if i.kind in kinds and i.name not in broken]
        self._plain = snapshot(self.world)
        self.state = concrete_state(self.semantics, self.world)
        if self.state not in self.semantics.initial_states():
            self._fail("the initial world is not an initial state of the model", self.semantics.initial_states()[0])

    def close(self) -> None:
        """Removes the world's files."""
        self.world.close()

    def __enter__(self) -> Lockstep:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def choices(self) -> list[ConcreteMove]:
        """The steps that the reference can take and the model can follow within its bounds: those first that this walk has taken least.

        Raises `OutOfStep` if one side enables what the other does not. Two differences do not count: a step that waits for room in a watch
        channel of the model, and a step that changes nothing, which the model leaves out.
        """
        model = self._enabled()
        world = self.world.enabled()
        missing = [move for move in model if move not in world]
        if missing:
            self._fail(f"the model enables {missing[0]}, the reference does not")
        surplus = [move for move in world if move not in model]
        if surplus and not self._waiting():
            self._stutter(surplus[0])
        inside = [move for move, bounded in model.items() if bounded]
        return sorted(inside, key=lambda move: (self._taken[move], str(move)))

    def _stutter(self, move: ConcreteMove) -> None:
        """Takes a step that the reference enables and the model does not: it must change nothing, since the model leaves such steps out."""
        label = self.world.step(move.action, dict(move.params))
        self.made.append(f"{move} -> {label} (not enabled in the model)")
        after = concrete_state(self.semantics, self.world)
        if after != self.state:
            self._fail(f"the reference takes {move}, which the model does not enable", self.state, after)

    def pick(self, choices: Sequence[ConcreteMove], number: int) -> ConcreteMove:
        """One of the choices by a number from 0 on: mostly one of the first, every twelfth a fault, a user's act or a clock."""
        loud = [move for move in choices if self._kinds[move.action] in (Kind.FAULT, Kind.USER, Kind.TIMEOUT)]
        quiet = [move for move in choices if move not in loud]
        if loud and (not quiet or number % DISTURBED == DISTURBED - 1):
            return loud[number // DISTURBED % len(loud)]
        return quiet[number % DISTURBED % len(quiet)]

    def _enabled(self) -> dict[ConcreteMove, bool]:
        """The enabled actions of the model; true: some outcome stays within the bounds."""
        found: dict[ConcreteMove, bool] = {}
        for action in self.semantics.model.actions:
            outcomes = self.semantics.observe(action, self.state).outcomes
            if outcomes:
                found[ConcreteMove.of(action.name, dict(action.params))] = any(o.beyond is None for o in outcomes)
        return found

    def _waiting(self) -> bool:
        """Whether some watch channel of the model is full, so that writes wait that the concrete API server would take."""
        for slot, value in zip(self.semantics.model.slots, self.state, strict=True):
            parts = slot.name.split("/")
            if parts[0] == "watch" and len(parts) == 3 and isinstance(value, tuple) and len(value) >= self.scenario.instance.lag:
                return True
        return False

    def faults(self, move: ConcreteMove) -> list[str]:
        """The ways in which the environment may make this step fail, and the allocations that may be chosen; "" is first: it behaves."""
        labels = {found.label for found in self._moves(move)}
        return ["", *(fault for fault in FAULTS if fault in labels), *sorted(label for label in labels if parse(label) is not None)]

    def step(self, move: ConcreteMove, fault: str = "") -> str:
        """Takes a step of the reference, with a fault of the environment or without, and asks the model. Returns the outcome's label."""
        allowed = self._moves(move)
        before = self._plain
        label = self.world.step(move.action, dict(move.params), fault)
        self.made.append(f"{move} -> {label}")
        self._taken[move] += 1
        after = concrete_state(self.semantics, self.world)
        found = [m for m in allowed if m.label == label]
        if not found:
            labels = ", ".join(sorted({m.label for m in allowed})) or "nothing"
            self._fail(f"{move} ended as {label!r} in the reference; the model allows {labels}")
        if after not in [m.after for m in found]:
            self._fail(f"{move} -> {label}: the worlds differ", found[0].after, after)
        self.state = after
        self._plain = snapshot(self.world)
        self._judge(before, found[0], label)
        self.seen.steps += 1
        self.seen.taken[move.action, label] += 1
        return label

    def _moves(self, move: ConcreteMove) -> list[Move]:
        """The transitions of the model for a step, within its bounds."""
        found = []
        for action in self.semantics.model.actions:
            if action.name == move.action and ConcreteMove.of(action.name, dict(action.params)) == move:
                for i, outcome in enumerate(self.semantics.observe(action, self.state).outcomes):
                    if outcome.beyond is None:
                        found.append(Move(action, i, outcome.label, self.semantics.apply(action, outcome, self.state)))
        return found

    def _judge(self, before: Mapping[str, Any], move: Move, label: str) -> None:
        kind = move.action.type
        params = {name: str(value) for name, value in move.action.params.items()}
        step = {"writer": kind.writer, "action": kind.name, "step": kind.step, "outcome": label, "params": params}
        for invariant in self._invariants:
            stepwise = invariant.kind is Promise.STEP
            said = judge(invariant, self._plain, before if stepwise else None, step if stepwise else None)
            if said.violated:
                self._fail(f"the concrete world breaks a promise: {said.explanation}")

    def _fail(self, reason: str, expected: State | None = None, found: State | None = None) -> None:
        lines = [reason]
        if expected is not None:
            lines += differences(self.semantics.model.slots, expected, self.state if found is None else found)
        made = [f"  {i}. {text}" for i, text in enumerate(self.made, 1)]
        raise OutOfStep("\n".join([*lines, "after", *made]) if made else "\n".join(lines))


def random_walk(lockstep: Lockstep, rng: random.Random, length: int) -> int:
    """Goes at random, at most `length` steps; returns how many were made. Raises `OutOfStep`."""
    for done in range(length):
        choices = lockstep.choices()
        if not choices:
            return done
        move = lockstep.pick(choices, rng.randrange(DISTURBED * DISTURBED))
        faults = lockstep.faults(move)
        lockstep.step(move, rng.choice(faults) if rng.random() < 0.2 else "")
    return length
