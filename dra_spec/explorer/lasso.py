"""Runs that go on for ever: the way from a state into a fair loop, and the loop, on a graph that is at hand.

A loop is weakly fair if each action that must be fair is taken in it or disabled in one of its states; a state where all of them are
disabled is a loop without steps (the run ends there). Of a strongly connected component it is enough that the whole of it is fair, since
a loop may go through all of its states and edges.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Container, Iterable, Iterator, Sequence

from dra_spec.explorer.model import Action, LeadsTo, Truth
from dra_spec.explorer.result import EngineError, Lasso
from dra_spec.explorer.semantics import Semantics, State
from dra_spec.explorer.values import key

NOTE = "the goal is owed from a nearest such state on, and the run that is shown may go on for ever without it"

Edge = tuple[int, int]  # action, state that it leads to
Step = tuple[int, int, int]  # state, action, state


class Graph:
    """Part of a graph (`region`, where a goal is not reached), and its fair components.

    `successors`: the edges out of a state of the region, also those that lead outside; `fair`: numbers of the actions that must be fair.
    `core`: the states of fair components, each with the name of its component; worked out here unless it is given.
    """

    def __init__(
        self, region: Container[int], successors: Callable[[int], Iterable[Edge]], fair: Sequence[int], core: dict[int, int] | None = None
    ) -> None:
        self.region, self.successors, self.fair = region, successors, fair
        self.core = self._make_core() if core is None else core

    def _make_core(self) -> dict[int, int]:
        assert isinstance(self.region, (set, frozenset))
        core = {}
        for name, component in enumerate(strong_components(self.region, self._inside)):
            if self._is_fair(set(component)):
                core.update(dict.fromkeys(component, name))
        return core

    def _inside(self, state: int) -> Iterator[int]:
        return (to for _, to in self.successors(state) if to in self.region)

    def _is_fair(self, component: set[int]) -> bool:
        taken = {action for n in component for action, to in self.successors(n) if to in component}
        return all(action in taken or any(self._disabled(action, n) for n in component) for action in self.fair)

    def _disabled(self, action: int, state: int) -> bool:
        return all(other != action for other, _ in self.successors(state))

    def lasso(self, start: int, semantics: Semantics, state: Callable[[int], State]) -> Lasso:
        """A run from a state of the region into a nearest fair loop, and through it. Raises `EngineError` if there is none."""
        stem = self._way(start, self.region, lambda _, to: to in self.core, start in self.core)
        entry = stem[-1][2] if stem else start
        name = self.core[entry]
        component = {n for n, of in self.core.items() if of == name}
        loop: list[Step] = []
        for wanted in self.fair:
            if any(action == wanted for _, action, _ in loop) or any(self._disabled(wanted, n) for n in (entry, *(s[2] for s in loop))):
                continue
            here = loop[-1][2] if loop else entry
            loop += self._way(here, component, lambda action, to, w=wanted: action == w or self._disabled(w, to))  # type: ignore[misc]
        if loop:
            here = loop[-1][2]
            loop += self._way(here, component, lambda _, to: to == entry, here == entry)
        return Lasso(retrace(semantics, state, stem), retrace(semantics, state, loop))

    def _way(self, start: int, region: Container[int], ends: Callable[[int, int], bool], there: bool = False) -> list[Step]:
        """A shortest way inside a region that ends with a wanted edge; none if the start is where it should lead."""
        came: dict[int, Step] = {}
        seen, todo = {start}, deque([] if there else [start])
        while todo:
            state = todo.popleft()
            for action, to in self.successors(state):
                if to not in region:
                    continue
                if ends(action, to):
                    way = [(state, action, to)]
                    while way[-1][0] != start:
                        way.append(came[way[-1][0]])
                    return way[::-1]
                if to not in seen:
                    seen.add(to)
                    came[to] = state, action, to
                    todo.append(to)
        if not there:
            raise EngineError("a state from which a fair run was found has no way into a fair loop")
        return []


def strong_components(states: Iterable[int], successors: Callable[[int], Iterable[int]]) -> Iterator[list[int]]:
    """The strongly connected components of a graph, by two depth-first searches (Sharir 1981). `successors` stay inside `states`."""
    nodes = list(states)
    back: dict[int, list[int]] = {n: [] for n in nodes}
    for n in nodes:
        for after in successors(n):
            back[after].append(n)
    seen: set[int] = set()
    order = [n for root in nodes for n in _post_order(root, successors, seen)]
    done: set[int] = set()
    for root in reversed(order):
        component = list(_post_order(root, back.__getitem__, done))
        if component:
            yield component


def _post_order(root: int, successors: Callable[[int], Iterable[int]], seen: set[int]) -> Iterator[int]:
    if root in seen:
        return
    seen.add(root)
    stack = [(root, iter(successors(root)))]
    while stack:
        node, ahead = stack[-1]
        for after in ahead:
            if after not in seen:
                seen.add(after)
                stack.append((after, iter(successors(after))))
                break
        else:
            stack.pop()
            yield node


def retrace(semantics: Semantics, state: Callable[[int], State], way: Iterable[Step]) -> tuple[tuple[int, int], ...]:
    """The steps (action, outcome) of a way. Raises `EngineError` if the plain semantics does not take them."""
    return tuple((action, outcome_to(semantics, action, state(before), state(after))) for before, action, after in way)


def outcome_to(semantics: Semantics, action: int, before: State, after: State) -> int:
    """Which outcome of an action leads from one state to another. Raises `EngineError` if none does."""
    act, wanted = semantics.model.actions[action], key(after)
    for number, outcome in enumerate(semantics.observe(act, before).outcomes):
        if outcome.beyond is None and key(semantics.apply(act, outcome, before)) == wanted:
            return number
    raise EngineError(f"{act}: the plain semantics does not lead where the engine does, from\n{semantics.describe(before)}")


def owed(promise: LeadsTo, semantics: Semantics, states: Sequence[State]) -> int | None:
    """From which state of a run on the goal is owed and not reached; None if it is not owed at the end."""
    found = None
    for n in range(len(states) - 1, -1, -1):
        view = semantics.view(states[n])
        if promise.goal(view) != Truth.FALSE:
            break
        if promise.when(view) != Truth.FALSE:
            found = n
    return found


def not_fair(promise: LeadsTo, semantics: Semantics, states: Sequence[State], taken: Iterable[Action]) -> Action | None:
    """An action that is enabled in all these states of a loop, is not taken in it, and must be fair; None if there is none."""
    done = set(taken)
    for act in semantics.model.actions:
        if promise.fair(act) and act not in done and all(semantics.observe(act, state).outcomes for state in states):
            return act
    return None
