"""Shortest traces to violating states: layers ahead of the initial states and layers behind the violating ones, until they meet.

The side whose newest layer is smaller grows. After `n` layers ahead and `m` behind, the two newest ones have a state in common exactly if
a shortest run has `n + m` steps, as long as none had before: a shortest run of that length has a state at these two distances, and a
common state makes a run of that length. Layers ahead are made once for all promises.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
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


class Searched(Protocol):
    """A search whose reachable set is there. `before`: those of some expanded states that an action brings to one state."""

    semantics: Semantics
    expanded: Set

    def image(self, action: int, states: Set) -> Set: ...
    def preimage(self, action: int, target: Set, within: Set) -> Set: ...
    def before(self, action: int, after: State, states: Set) -> Set: ...
    def check(self) -> None: ...
    def pick(self, states: Set) -> State: ...
    def only(self, state: State) -> Set: ...


@attrs.frozen(eq=False)
class Way:
    """A shortest run to a witness: its first and its last state, the steps (action, outcome) between them."""

    first: State
    last: State
    steps: Sequence[tuple[int, int]]
    witness: Broken


def ways(search: Searched, broken: Sequence[Broken], ahead: Sequence[Set]) -> Iterator[Way]:
    """Shortest runs, one for all instances of a promise. `ahead`: the layers that are there already, at least the initial states."""
    groups: dict[tuple[str, bool], list[Broken]] = {}
    for one in broken:
        groups.setdefault((search.semantics.model.properties[one.property].promise, one.step is None), []).append(one)
    layers = Layers(search, ahead)
    for group in groups.values():
        yield layers.way(group)


class Layers:
    """The layers of one search."""

    def __init__(self, search: Searched, ahead: Sequence[Set]) -> None:
        self.search, self.ahead = search, list(ahead)
        self._seen = self.ahead[0]
        for ring in self.ahead[1:]:
            self._seen |= ring
        self._actions = range(len(search.semantics.model.actions))

    def way(self, broken: Sequence[Broken]) -> Way:
        """A shortest run to one of the witnesses of a promise."""
        wanted = broken[0].states
        for one in broken[1:]:
            wanted |= one.states
        depth, behind, met = self._meet(wanted)
        middle = self.search.pick(met)
        first, steps = self._back(middle, depth)
        last, more = self._on(middle, behind)
        only = self.search.only(last)
        return Way(first, last, (*steps, *more), next(one for one in broken if (one.states & only).satisfiable()))

    def _meet(self, wanted: Set) -> tuple[int, list[Set], Set]:
        """The depth of a layer ahead, the layers from there to what is wanted, and where the first of them meets the layer ahead."""
        for depth, ring in enumerate(self.ahead):
            if (met := ring & wanted).satisfiable():
                return depth, [wanted], met
        behind, seen = [wanted], wanted
        while True:
            if self.ahead[-1].node_count() <= behind[-1].node_count():
                self._further()
            else:
                behind.append(self._before(behind[-1], seen))
                seen |= behind[-1]
            if (met := self.ahead[-1] & behind[-1]).satisfiable():
                return len(self.ahead) - 1, behind[::-1], met

    def _further(self) -> None:
        """One more layer ahead."""
        source = self.ahead[-1] & self.search.expanded
        new = self._seen
        for action in self._actions:
            self.search.check()
            new |= self.search.image(action, source)
        new = self._seen.imp_strict(new)
        self._refuse_none(new)
        self.ahead.append(new)
        self._seen |= new

    def _before(self, states: Set, seen: Set) -> Set:
        """One more layer behind."""
        left, before = seen.imp_strict(self.search.expanded), states
        for action in self._actions:
            self.search.check()
            before |= self.search.preimage(action, states, left)
        before = states.imp_strict(before)
        self._refuse_none(before)
        return before

    def _refuse_none(self, layer: Set) -> None:
        if not layer.satisfiable():
            raise EngineError("no run leads to a violating state")

    def _back(self, last: State, depth: int) -> tuple[State, list[tuple[int, int]]]:
        """An initial state, and the steps from it to a state of a layer ahead."""
        after = last
        steps: list[tuple[int, int]] = []
        for d in range(depth - 1, -1, -1):
            after, step = self._step_to(after, self.ahead[d] & self.search.expanded, d)
            steps.append(step)
        return after, steps[::-1]

    def _step_to(self, after: State, layer: Set, depth: int) -> tuple[State, tuple[int, int]]:
        """A state of a layer that leads to the given one, and by which outcome of which action."""
        for action in self._actions:
            found = self.search.before(action, after, layer)
            if found.satisfiable():
                state = self.search.pick(found)
                return state, (action, outcome_to(self.search.semantics, action, state, after))
        raise EngineError(f"no action leads to a state of layer {depth + 1}:\n{self.search.semantics.describe(after)}")

    def _on(self, first: State, behind: Sequence[Set]) -> tuple[State, list[tuple[int, int]]]:
        """A violating state, and the steps to it from a state of the first of the layers behind."""
        before = first
        steps: list[tuple[int, int]] = []
        for layer in behind[1:]:
            before, step = self._step_into(before, layer)
            steps.append(step)
        return before, steps

    def _step_into(self, before: State, layer: Set) -> tuple[State, tuple[int, int]]:
        """A state of a layer to which the given one leads, and by which outcome of which action."""
        only = self.search.only(before)
        for action in self._actions:
            found = self.search.image(action, only) & layer
            if found.satisfiable():
                after = self.search.pick(found)
                return after, (action, outcome_to(self.search.semantics, action, before, after))
        raise EngineError(f"no action leads on from a state of a layer:\n{self.search.semantics.describe(before)}")
