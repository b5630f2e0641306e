"""From a set of violating states and layers to a shortest trace: walked back from a state of the nearest layer that has one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import attrs

from dra_spec.explorer.lasso import outcome_to
from dra_spec.explorer.result import EngineError
from dra_spec.explorer.semantics import Semantics, State
from dra_spec.explorer.symbolic_sets import Set


@attrs.frozen(eq=False)
class Broken:
    """A promise's witnesses: states, and the step out of them that violates it (action, outcome)."""

    property: int
    states: Set
    step: tuple[int, int] | None = None


class Layers(Protocol):
    """A search with layers."""

    semantics: Semantics

    def before(self, action: int, after: State, depth: int) -> Set: ...
    def pick(self, states: Set) -> State: ...


def nearest(broken: Sequence[Broken], index: int, rings: Sequence[Set]) -> tuple[int, Set, tuple[int, int] | None]:
    """The first layer with witnesses of a property, those witnesses, and the step out of them."""
    for depth, ring in enumerate(rings):
        for one in broken:
            if one.property == index and (here := one.states & ring).satisfiable():
                return depth, here, one.step
    raise EngineError("a violating state is in no layer")


def walk_back(layers: Layers, last: State, depth: int) -> tuple[State, list[tuple[int, int]]]:
    """An initial state, and the steps (action, outcome) from it to a state of a layer."""
    after = last
    steps: list[tuple[int, int]] = []
    for d in range(depth - 1, -1, -1):
        after, step = _before(layers, after, d)
        steps.append(step)
    return after, steps[::-1]


def _before(layers: Layers, after: State, depth: int) -> tuple[State, tuple[int, int]]:
    """A state of a layer that leads to the given one, and by which outcome of which action."""
    for action in range(len(layers.semantics.model.actions)):
        found = layers.before(action, after, depth)
        if found.satisfiable():
            state = layers.pick(found)
            return state, (action, outcome_to(layers.semantics, action, state, after))
    raise EngineError(f"no action leads to a state of layer {depth + 1}:\n{layers.semantics.describe(after)}")
