"""Leads-to promises on the graph of the explicit engine: its stored edges. The class of an edge is the number of its action."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from dra_spec.explorer import arrays as k
from dra_spec.explorer import lasso
from dra_spec.explorer.machine import NOT_ASKED, Machine, Stopped
from dra_spec.explorer.model import LeadsTo, Truth
from dra_spec.explorer.native import Kernels
from dra_spec.explorer.result import Found

_PER_STATE, _PER_EDGE = 46, 6  # bytes

kernels_fair = Kernels("kernels_fair")


class FairGraph:
    """The edges of a search that has ended. Raises `Stopped` if there is no memory for them in order."""

    def __init__(self, machine: Machine, expanded: int, allow: Callable[[int], bool]) -> None:
        self.machine, self.expanded = machine, expanded
        states, edges = machine.states, int(machine.ctl[k.EDGES])
        if not allow(_PER_STATE * states + _PER_EDGE * edges):
            raise Stopped("memory")
        self.first, self.ends = np.zeros(states + 1, np.int64), np.zeros(edges, np.uint32)
        self.classes = np.zeros(edges, np.uint16)
        kernels_fair.sort_edges(machine.store.edges, machine.store.edge_class, edges, self.first, self.ends, self.classes)

    def judge(self, index: int, promise: LeadsTo, found: Found) -> None:
        """Looks for a run without the goal that is fair. What was not expanded, or leaves the bounds, may reach the goal."""
        states, machine = self.machine.states, self.machine
        when, goal = np.full(states, NOT_ASKED, np.uint8), np.full(states, NOT_ASKED, np.uint8)
        machine.label(index, promise.promise, promise.goal, goal)
        machine.label(-1 - index, promise.promise, promise.when, when)
        due = (when != Truth.FALSE) & (goal == Truth.FALSE)
        found.tested = bool(due.any())
        region = (goal == Truth.FALSE) & ((machine.store.flags[:states] & k.ESCAPING) == 0)
        region[self.expanded :] = False
        marks, name = np.zeros(states, np.uint8), np.zeros(states, np.int32)
        fair = [i for i, action in enumerate(machine.model.actions) if promise.fair(action)]
        self._components(region, fair, marks, name)
        bad = np.flatnonzero(due & (marks != 0))
        if len(bad):
            found.state, found.note = int(bad[0]), lasso.NOTE
            core = np.flatnonzero(marks == kernels_fair.CORE)
            graph = lasso.Graph(_Marked(region), self._ahead, fair, dict(zip(core.tolist(), name[core].tolist(), strict=True)))
            found.lasso = graph.lasso(found.state, machine.semantics, machine.state)

    def _components(self, region: NDArray[np.bool_], fair: list[int], marks: NDArray[np.uint8], name: NDArray[np.int32]) -> None:
        states, actions = len(region), len(self.machine.model.actions)
        is_fair = np.isin(np.arange(actions), fair)
        index, stack, calls = (np.zeros(states, np.int32) for _ in range(3))
        at, tally = np.zeros(states, np.int64), np.zeros((actions, 3), np.int64)
        kernels_fair.fair_states(self.first, self.ends, self.classes, region, is_fair, marks, name, index, at, stack, calls, tally)

    def _ahead(self, state: int) -> Iterator[tuple[int, int]]:
        for e in range(int(self.first[state]), int(self.first[state + 1])):
            yield int(self.classes[e]), int(self.ends[e])


class _Marked:
    """A set of states as an array of marks."""

    def __init__(self, marks: NDArray[np.bool_]) -> None:
        self._marks = marks

    def __contains__(self, state: object) -> bool:
        return isinstance(state, int) and bool(self._marks[state])
