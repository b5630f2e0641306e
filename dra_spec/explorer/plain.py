"""The oracle: breadth-first search in plain Python, a dictionary of states and nothing clever."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import partial

from dra_spec.explorer import lasso
from dra_spec.explorer.control import Control, expands_all
from dra_spec.explorer.model import AlwaysPossible, DeadlockFree, LeadsTo, Model, StateInvariant, StepInvariant, Truth, View
from dra_spec.explorer.result import NO_GOAL, Explored, Found
from dra_spec.explorer.semantics import Move, Semantics, State

_BYTES = 400  # a rough figure of a state in a dictionary and three lists, for the progress line


class PlainSearch:
    """One search. `run` does it; what was found up to an interrupt is kept."""

    def __init__(self, model: Model, control: Control) -> None:
        self.model, self.control = model, control
        self.semantics = Semantics(model)
        self.numbers: dict[Hashable, int] = {}
        self.states: list[State] = []
        self.parents: list[tuple[int, int, int] | None] = []  # parent, action, outcome
        self.violating: set[int] = set()
        self.stuck: list[int] = []
        self.escaping: set[int] = set()  # states with an outcome beyond the bounds
        self.edges: list[tuple[int, int, int]] = []  # from, to, action
        self.expanded: set[int] = set()
        self.found = [Found() for _ in model.properties]
        self.taken = [0] * len(model.actions)
        self.enabled = [False] * len(model.actions)
        self.beyond: dict[str, None] = {}
        self.depth = 0
        self.calls = 0
        self.stopped: str | None = None
        self._all = expands_all(model, control.limits)
        self._graph = any(isinstance(p, (AlwaysPossible, LeadsTo)) for p in model.properties)
        self._action = {action: i for i, action in enumerate(model.actions)}
        self._steps = [(i, p) for i, p in enumerate(model.properties) if isinstance(p, StepInvariant)]

    def run(self) -> Explored:
        """Searches until nothing is left or a limit is met."""
        try:
            self._search()
        except KeyboardInterrupt:
            self.stopped = "interrupted"
        self._judge_graph()
        return Explored(
            engine="plain",
            states=len(self.states),
            transitions=sum(self.taken),
            depth=self.depth,
            stuck=len(self.stuck),
            unexpanded=len(self.violating) if not self._all else 0,
            exhausted=self.stopped is None,
            stopped=self.stopped,
            beyond=list(self.beyond),
            taken=self.taken,
            enabled=self.enabled,
            found=self.found,
            python_calls=self.calls + self.semantics.calls,
            bytes_per_state=float(_BYTES),
            memory=_BYTES * len(self.states),
            path=self._path,
            state=lambda i: self.states[i],
        )

    def _search(self) -> None:
        limits = self.control.limits
        for state in self.semantics.initial_states():
            self._add(state, None)
        level = 0, len(self.states)
        while level[0] < level[1] and self.stopped is None:
            if limits.depth is not None and self.depth >= limits.depth:
                if self._all or any(i not in self.violating for i in range(*level)):
                    self.stopped = "depth"
                return
            for i in range(*level):
                self.stopped = self.stopped or self.control.stop()
                if self.stopped is not None:
                    break
                if self._all or i not in self.violating:
                    self._expand(i)
                self.control.report(len(self.states), len(self.states) - level[1], self.depth, _BYTES * len(self.states))
            level = level[1], len(self.states)
            self.depth += level[0] < level[1]

    def _expand(self, i: int) -> None:
        moves = list(self.semantics.moves(self.states[i]))
        for move in moves:
            action = self._action[move.action]
            self.enabled[action] = True
            if move.beyond is not None:
                self.beyond[move.beyond] = None
                self.escaping.add(i)
                continue
            number = self._add(move.after, (i, action, move.index))
            if number is None:
                return
            self.taken[action] += 1
            if self._graph:
                self.edges.append((i, number, action))
            self._judge_step(i, move, action)
        self.expanded.add(i)
        if not moves:
            self.stuck.append(i)

    def _add(self, state: State, parent: tuple[int, int, int] | None) -> int | None:
        """The number of a state, new or not; None if the limit forbids to store it."""
        identity = self.semantics.identity(state)
        if identity in self.numbers:
            return self.numbers[identity]
        if self.control.limits.max_states is not None and len(self.states) >= self.control.limits.max_states:
            self.stopped = "max-states"
            return None
        number = self.numbers[identity] = len(self.states)
        self.states.append(state)
        self.parents.append(parent)
        self._judge_state(number)
        return number

    def _judge_state(self, number: int) -> None:
        view = self.semantics.view(self.states[number])
        for i, promise in enumerate(self.model.properties):
            if not isinstance(promise, StateInvariant):
                continue
            self.calls += 1
            truth = self.semantics.ask(promise.promise, self.states[number], partial(promise.fn, view))
            if truth == Truth.FALSE:
                self.violating.add(number)
                if self.found[i].state is None:
                    self.found[i].state = number
            self.found[i].tested |= truth == Truth.TRUE

    def _judge_step(self, before: int, move: Move, action: int) -> None:
        for i, promise in self._steps:
            if not promise.applies(move.action):
                continue
            self.calls += 1
            judge = partial(promise.fn, self.semantics.view(self.states[before]), self.semantics.view(move.raw), move.action, move.label)
            truth = self.semantics.ask(promise.promise, self.states[before], judge)
            if truth == Truth.FALSE and self.found[i].state is None:
                self.found[i].state, self.found[i].step = before, (action, move.index)
            self.found[i].tested |= truth == Truth.TRUE

    def _judge_graph(self) -> None:
        for i, promise in enumerate(self.model.properties):
            if isinstance(promise, DeadlockFree):
                for number in self.stuck:
                    if self._truth(promise.promise, promise.final, number) == Truth.FALSE:
                        self.found[i].state = number
                        break
            elif isinstance(promise, AlwaysPossible):
                self._judge_possible(self.found[i], promise)
            elif isinstance(promise, LeadsTo):
                self._judge_leads(self.found[i], promise)

    def _judge_possible(self, found: Found, promise: AlwaysPossible) -> None:
        """Backwards from the goals. What was not expanded may lead anywhere, so it counts as a goal: a violation is one all the same."""
        truths = [self._truth(promise.promise, promise.goal, n) for n in range(len(self.states))]
        found.tested = Truth.FALSE in truths  # the goal was ahead somewhere
        allowed = [promise.allowed(action) for action in self.model.actions]
        back: dict[int, list[int]] = {}
        for start, end, action in self.edges:
            if allowed[action]:
                back.setdefault(end, []).append(start)
        good = {n for n, truth in enumerate(truths) if truth != Truth.FALSE or n not in self.expanded or n in self.escaping}
        todo = list(good)
        while todo:
            for start in back.get(todo.pop(), ()):
                if start not in good:
                    good.add(start)
                    todo.append(start)
        bad = next((n for n in range(len(self.states)) if n not in good), None)
        if bad is not None:
            found.state, found.note = bad, NO_GOAL

    def _judge_leads(self, found: Found, promise: LeadsTo) -> None:
        """Looks for runs without the goal into a fair loop. What was not expanded, or leaves the bounds, may reach the goal."""
        owed = [self._truth(promise.promise, promise.goal, n) == Truth.FALSE for n in range(len(self.states))]
        due = [n for n, open_ in enumerate(owed) if open_ and self._truth(promise.promise, promise.when, n) != Truth.FALSE]
        found.tested = bool(due)
        fair = [i for i, action in enumerate(self.model.actions) if promise.fair(action)]
        region = {n for n in self.expanded if owed[n] and n not in self.escaping}
        ahead: dict[int, list[tuple[int, int]]] = {n: [] for n in region}
        back: dict[int, list[int]] = {n: [] for n in region}
        for start, end, action in self.edges:
            if start in region:
                ahead[start].append((action, end))
                if end in region:
                    back[end].append(start)
        graph = lasso.Graph(region, ahead.__getitem__, fair)
        good = set(graph.core)
        todo = list(good)
        while todo:
            for start in back[todo.pop()]:
                if start not in good:
                    good.add(start)
                    todo.append(start)
        bad = next((n for n in due if n in good), None)
        if bad is not None:
            found.state, found.note = bad, lasso.NOTE
            found.lasso = graph.lasso(bad, self.semantics, self.states.__getitem__)

    def _truth(self, promise: str, fn: Callable[[View], Truth], number: int) -> Truth:
        self.calls += 1
        return self.semantics.ask(promise, self.states[number], partial(fn, self.semantics.view(self.states[number])))

    def _path(self, number: int) -> tuple[State, list[tuple[int, int]]]:
        steps: list[tuple[int, int]] = []
        while (parent := self.parents[number]) is not None:
            number = parent[0]
            steps.append(parent[1:])
        return self.states[number], steps[::-1]
