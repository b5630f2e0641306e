"""Leads-to promises over sets: the states from which a weakly fair run avoids the goal, and one such run.

The greatest set Z of states without the goal such that, for each action that must be fair, every state of Z reaches inside Z a state where
the action is disabled, or one from which it leads to a state of Z (Emerson, Lei 1986). Whoever goes on doing that for one action after the
other makes a fair run; where all of them are disabled at once the run may end. Only what can be reached from where the goal is owed counts.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from dra_spec.explorer.lasso import outcome_to
from dra_spec.explorer.result import EngineError, Lasso
from dra_spec.explorer.semantics import Semantics, State
from dra_spec.explorer.symbolic_relation import Relation
from dra_spec.explorer.symbolic_sets import Set, fresh


class Moves(Protocol):
    """What a search offers. `preimage`: those of some expanded states that an action brings into the target."""

    semantics: Semantics
    relation: Relation
    expanded: Set

    def image(self, action: int, states: Set) -> Set: ...
    def preimage(self, action: int, target: Set, within: Set) -> Set: ...
    def check(self) -> None: ...
    def pick(self, states: Set) -> State: ...
    def only(self, state: State) -> Set: ...


class FairRuns:
    """The runs that avoid one goal. `region`: states where it is not reached; `due`: where it is owed; `fair`: numbers of actions."""

    def __init__(self, moves: Moves, region: Set, due: Set, fair: list[int]) -> None:
        self.moves, self.fair = moves, fair
        self.alive = {action: moves.relation.alive(action, moves.expanded) for action in fair}
        self.states = self._settle(self._forward(due & region, region))

    def _forward(self, states: Set, region: Set) -> Set:
        """What can be reached from the states inside a region."""
        done: dict[int, Set] = {}
        actions = range(len(self.moves.semantics.model.actions))
        while any(done.get(action) != states for action in actions):
            for action in actions:
                if done.get(action) != states:
                    new, done[action] = fresh(done.get(action), states), states
                    states |= self._image(action, new) & region
        return states

    def _backward(self, states: Set, region: Set) -> Set:
        """From where the states can be reached inside a region. What happens late in a run is done first."""
        done: dict[int, Set] = {}
        actions = range(len(self.moves.semantics.model.actions) - 1, -1, -1)
        while any(done.get(action) != states for action in actions):
            for action in actions:
                if done.get(action) != states:
                    self.moves.check()
                    new, done[action] = fresh(done.get(action), states), states
                    states |= self.moves.preimage(action, new, states.imp_strict(region))
        return states

    def _idle(self, action: int, states: Set) -> Set:
        return self.alive[action].imp_strict(states)

    def _takers(self, action: int, states: Set) -> Set:
        """Where the action can be taken without leaving the states."""
        return self.moves.preimage(action, states, states)

    def _settle(self, states: Set) -> Set:
        while True:
            before = states
            for action in self.fair:
                self.moves.check()
                served = self._idle(action, states)
                if served != states:
                    served |= self._takers(action, states)
                if served != states:
                    states = self._backward(served, states)
            if states == before:
                return states

    # one run

    def lasso(self, start: State) -> Lasso:
        """A run from a state of `states` into a fair loop, and through it. Raises `EngineError` if there is none."""
        component = self._component(start)
        entry, stem = self._way(start, component, self.states)
        here, loop, met = entry, list[tuple[int, int]](), self.moves.only(entry)
        for action in self.fair:
            idle = self._idle(action, component)
            if (idle & met).satisfiable() or any(taken == action for taken, _ in loop):
                continue
            here, way = self._way(here, idle | self._takers(action, component), component)
            loop += way
            if not (idle & self.moves.only(here)).satisfiable():
                here = self._step(here, action, component, loop)
            met |= self.moves.only(here)
        _, way = self._way(here, self.moves.only(entry), component)
        return Lasso(tuple(stem), (*loop, *way))

    def _step(self, before: State, action: int, region: Set, way: list[tuple[int, int]]) -> State:
        """Takes an action without leaving a region."""
        after = self.moves.pick(self.moves.image(action, self.moves.only(before)) & region)
        way.append((action, outcome_to(self.moves.semantics, action, before, after)))
        return after

    def _component(self, start: State) -> Set:
        """A fair strongly connected component that can be reached inside the states: downwards until one is fair; the last one is."""
        region, here = self.states, start
        while True:
            ahead = self._rings(self.moves.only(here), region, lambda ring: False)
            region = self._union(ahead)
            component = self._backward(self.moves.only(here), region)
            if all(self._idle(action, component).satisfiable() or self._takers(action, component).satisfiable() for action in self.fair):
                return component
            rest = next((left for ring in reversed(ahead) if (left := component.imp_strict(ring)).satisfiable()), None)
            if rest is None:
                raise EngineError("a state from which a fair run was found has no way into a fair loop")
            here = self.moves.pick(rest)

    def _union(self, sets: list[Set]) -> Set:
        made = sets[0]
        for one in sets[1:]:
            made |= one
        return made

    def _rings(self, start: Set, region: Set, enough: Callable[[Set], bool]) -> list[Set]:
        """Layer by layer what can be reached inside a region, until a layer is enough or nothing is new."""
        rings, reached = [start], start
        while not enough(rings[-1]):
            new = [self._image(action, rings[-1]) & region for action in range(len(self.moves.semantics.model.actions))]
            if not new:  # a model without actions
                break
            ring = reached.imp_strict(self._union(new))
            if not ring.satisfiable():
                break
            rings.append(ring)
            reached |= ring
        return rings

    def _image(self, action: int, states: Set) -> Set:
        self.moves.check()
        return self.moves.image(action, states)

    def _way(self, start: State, target: Set, region: Set) -> tuple[State, list[tuple[int, int]]]:
        """A shortest way inside a region to one of the target's states."""
        rings = self._rings(self.moves.only(start), region, lambda ring: (ring & target).satisfiable())
        end = after = self.moves.pick(rings[-1] & target)
        way: list[tuple[int, int]] = []
        for ring in reversed(rings[:-1]):
            only = self.moves.only(after)
            for action in range(len(self.moves.semantics.model.actions)):
                found = self.moves.preimage(action, only, ring)
                if found.satisfiable():
                    before = self.moves.pick(found)
                    way.append((action, outcome_to(self.moves.semantics, action, before, after)))
                    after = before
                    break
            else:
                raise EngineError(f"no action leads from one layer to a state of the next:\n{self.moves.semantics.describe(after)}")
        return end, way[::-1]
