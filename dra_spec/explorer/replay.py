"""Stored states whose rows are gone, found again: the steps to them are taken once more in the plain semantics."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from dra_spec.explorer.growing import Ints
from dra_spec.explorer.machine import Machine
from dra_spec.explorer.result import EngineError
from dra_spec.explorer.semantics import Semantics, State

Steps = list[tuple[int, int]]  # action, outcome


class Replay:
    """`initial`: the rows of the stored initial states; `path`: (state) -> the steps between stored states to it, and their numbers;
    `normal`: what is stored for a state that a step leads to."""

    def __init__(
        self,
        machine: Machine,
        initial: Mapping[int, Ints],
        path: Callable[[int], tuple[Steps, list[int]]],
        normal: Callable[[State], State],
    ) -> None:
        self._machine, self._initial, self._path, self._normal = machine, initial, path, normal
        self._semantics = Semantics(machine.model)
        self._found: dict[int, State] = {}

    def state(self, number: int) -> State:
        """A stored state. Raises `EngineError` if the steps cannot be taken or lead to a state with another fingerprint."""
        steps, numbers = self._path(number)
        state = self._machine.domains.state(self._initial[numbers[0]])
        for step, reached in zip(steps, numbers[1:], strict=True):
            if reached not in self._found:
                self._found[reached] = self._after(state, step)
                self._compare(reached, self._found[reached])
            state = self._found[reached]
        self._compare(number, state)
        return state

    def _after(self, state: State, step: tuple[int, int]) -> State:
        act = self._semantics.model.actions[step[0]]
        outcome = self._semantics.outcome(act, step[1], state)
        if outcome is None:
            raise EngineError(f"a step on the way to a stored state cannot be taken again: {act}, outcome {step[1]}")
        return self._normal(self._semantics.apply(act, outcome, state))

    def _compare(self, number: int, state: State) -> None:
        if not self._machine.store.is_stored_as(number, self._machine.domains.numbers(state)):
            raise EngineError(f"the steps to a stored state lead to one with another fingerprint:\n{self._semantics.describe(state)}")
