"""Writers as coroutines: a generator that announces its next atomic step, waits for its turn, takes it and says what came out.

    turn = yield Step("scheduler.write_allocation", pod="p1", claim="c1")
    ... the step ...
    turn.took("ok")

What runs between two `yield`s is one atomic step followed by the private computation that leads to the next announcement. `turn.asked` is
the outcome that the driver of the world wants: a fault label makes the environment misbehave ("refused": the request is not sent, the
caller sees an error), any other label is only compared with what happened.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from typing import TypeVar

import attrs

from dra_spec.reference.errors import ApiError, Unavailable, describe

T = TypeVar("T")

REFUSED, APPLIED_ERROR = "refused", "applied-error"


@attrs.frozen
class Move:
    """An enabled step: the action's name and its parameters, sorted by name."""

    action: str
    params: tuple[tuple[str, str | int], ...] = ()

    @classmethod
    def of(cls, action: str, params: Mapping[str, str | int]) -> Move:
        return cls(action, tuple(sorted(params.items())))

    def __str__(self) -> str:
        return describe(self.action, dict(self.params))


@attrs.define(eq=False)
class Turn:
    """One turn of a coroutine. `move`: which step; `asked`: the outcome wanted, "" = whatever comes; `label`: what came out, "" until the
    step has said so; `faults`: how many faults of each kind may still be injected (-1: without limit)."""

    move: Move
    asked: str = ""
    faults: dict[str, int] = attrs.field(factory=dict)
    label: str = ""

    def took(self, label: str) -> None:
        """Says what came out of the step."""
        self.label = label

    def inject(self, label: str, budget: str) -> bool:
        """Whether the environment is asked to fail in this way and still may; counts it."""
        if self.asked != label or self.faults.get(budget, 0) == 0:
            return False
        self.spend(budget)
        return True

    def spend(self, budget: str) -> None:
        """Counts a fault or an event of the environment."""
        left = self.faults.get(budget, 0)
        self.faults[budget] = left - (left > 0)

    def request(self, call: Callable[[], T]) -> T | None:
        """Sends one API request; None if it failed, in any way: the label says which. Injects refused and applied-error."""
        try:
            if self.inject(REFUSED, "api-refused"):
                raise Unavailable(applied=False)
            found = call()
            if self.inject(APPLIED_ERROR, "api-applied-error"):
                raise Unavailable(applied=True)
        except ApiError as error:
            self.label = error.label
            return None
        self.label = "ok"
        return found

    @property
    def params(self) -> dict[str, str | int]:
        """The parameters of the step that was taken."""
        return dict(self.move.params)


class Step:
    """An announcement: the next atomic step of a coroutine. `needs` delays it until it returns true (a lock, an answer)."""

    def __init__(self, action: str, needs: Callable[[], bool] | None = None, /, **params: str | int) -> None:
        self.move = Move.of(action, params)
        self.needs = needs

    @property
    def ready(self) -> bool:
        return self.needs is None or self.needs()


Announcement = Step | Sequence[Step]  # one step, or alternatives of which any may be taken
Body = Generator[Announcement, Turn, None]
Moves = dict[Move, Callable[[Turn], None]]


class Thread:
    """A running coroutine. `steps`: the announced step, or alternatives; empty once it has ended."""

    def __init__(self, body: Body) -> None:
        self._body = body
        self.steps: Sequence[Step] = ()
        self._advance(None)

    def _advance(self, turn: Turn | None) -> None:
        try:
            announced = next(self._body) if turn is None else self._body.send(turn)
        except StopIteration:
            self.steps = ()
            return
        self.steps = (announced,) if isinstance(announced, Step) else announced

    def take(self, turn: Turn) -> None:
        """Takes the announced step that `turn.move` says, up to the next announcement."""
        self._advance(turn)

    def moves(self) -> Moves:
        return {step.move: self.take for step in self.steps if step.ready}

    @property
    def ended(self) -> bool:
        return not self.steps

    @property
    def at(self) -> str:
        """The announced action's name, "" if ended."""
        return self.steps[0].move.action if self.steps else ""

    @property
    def params(self) -> dict[str, str | int]:
        """The announced step's parameters (of the first alternative)."""
        return dict(self.steps[0].move.params) if self.steps else {}
