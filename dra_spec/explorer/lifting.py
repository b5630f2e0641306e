"""Traces of a reduced search as runs of the full model: dead slots as they are, names as the run has them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from dra_spec.explorer.naming import Renaming
from dra_spec.explorer.result import EngineError
from dra_spec.explorer.semantics import Semantics, State
from dra_spec.explorer.symmetry_images import Element
from dra_spec.explorer.values import key

Pair = tuple[int, int]  # action, outcome


class Lifting:
    """`settle`: a state of the full model with its dead slots reset and versions counted; `elements`: the group without the identity."""

    def __init__(self, semantics: Semantics, settle: Callable[[State], State], elements: Sequence[Element]) -> None:
        self.semantics, self.settle, self.elements = semantics, settle, elements

    def steps(self, initial: State, steps: Sequence[Pair], stored: Sequence[State]) -> list[Pair]:
        """The run of the full model from `initial`. `stored[i]`: the state that the engine stored before step i."""
        found: list[Pair] = []
        state = initial
        for step, before in zip(steps, stored, strict=True):
            twin, state = self._twin(state, before, step)
            found.append(twin)
        return found

    def _twin(self, state: State, stored: State, step: Pair) -> tuple[Pair, State]:
        """The step that does in a state of the full model what `step` does in its representative, and where it leads."""
        number, outcome = step
        act = self.semantics.model.actions[number]
        end = self.settle(self.semantics.apply(act, self.semantics.observe(act, stored).outcomes[outcome], stored))
        settled = key(self.settle(state))
        for element in (None, *self.elements):
            if key(_image(element, stored)) != settled:
                continue
            image = number if element is None else element.actions[number]
            act, wanted = self.semantics.model.actions[image], key(_image(element, end))
            outcomes = self.semantics.observe(act, state).outcomes
            for i in sorted(range(len(outcomes)), key=lambda i: i != outcome):
                if outcomes[i].beyond is None:
                    after = self.semantics.apply(act, outcomes[i], state)
                    if key(self.settle(after)) == wanted:
                        return (image, i), after
        name = self.semantics.model.actions[number]
        raise EngineError(f"{name}: the full model has no such step in the state\n{self.semantics.describe(state)}")


def _image(element: Element | None, state: State) -> State:
    if element is None:
        return state
    image: list[object] = [None] * len(state)
    renaming: Renaming = element.renaming
    for slot, value in zip(element.slots, state, strict=True):
        image[slot] = renaming.value(value)
    return tuple(image)
