"""The explicit engine: breadth first, level by level, in compiled kernels; Python is called only where a decision tree has no path yet."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dra_spec.explorer import arrays as k
from dra_spec.explorer import crew, fingerprints, parallel
from dra_spec.explorer.control import Control, expands_all
from dra_spec.explorer.crew import Crew
from dra_spec.explorer.dead_audit import STATES, DeadAudit
from dra_spec.explorer.explicit_fair import FairGraph
from dra_spec.explorer.growing import Ints
from dra_spec.explorer.machine import NOT_ASKED, Machine, Stopped
from dra_spec.explorer.model import AlwaysPossible, DeadlockFree, LeadsTo, LiveWhen, Model, ModelError, StateInvariant, StepInvariant, Truth
from dra_spec.explorer.native import Kernel
from dra_spec.explorer.parallel import Parallel
from dra_spec.explorer.reductions import Refuted
from dra_spec.explorer.replay import Replay
from dra_spec.explorer.result import NO_GOAL, Explored, Found
from dra_spec.explorer.semantics import Semantics, State
from dra_spec.explorer.values import key

if TYPE_CHECKING:  # what only some reductions need is loaded by them
    from dra_spec.explorer.lifting import Lifting
    from dra_spec.explorer.stubborn import StubbornSets
    from dra_spec.explorer.symmetry import Group

_HASH_OF, _SPREAD_BACK = Kernel("kernels_base", "hash_of"), Kernel("kernels_graph", "spread_back")
_INDEX_EDGES = Kernel("kernels_graph", "index_edges")
_CHUNK = 1 << 15  # states that are expanded before what is missing is learned, at most
_ARRANGED = 1 << 14  # states after which the trees are known well enough to arrange the rows
_MOST_CLASSES = 1 << 16  # of edges


class ExplicitSearch:
    """One search. `run` does it; what was found up to a limit is kept."""

    def __init__(self, model: Model, control: Control, group: Group | None = None, live: Sequence[LiveWhen] = ()) -> None:
        self.model, self.control = model, control
        self.found = [Found() for _ in model.properties]
        self.stopped: str | None = None
        self.depth = 0
        self.expanded = 0  # states below were expanded, with all their misses resolved
        self._all = expands_all(model, control.limits)
        self._classes, action_class = self._edge_classes()
        self._crew = Crew(crew.size(control.limits.threads))
        self.machine = Machine(model, action_class, self._allow, group, live, control.limits.fingerprints, self._crew)
        self._parallel = Parallel(self.machine, self._crew) if self._crew.size > 1 else None
        most = control.limits.max_states
        self.machine.ctl[k.MAX_STATES] = np.iinfo(np.int64).max if most is None else most
        self.machine.ctl[k.EXPAND_ALL] = self._all
        self.stubborn: StubbornSets | None = None  # where given, it says which actions are taken
        self._judged = 0  # states below were asked about all state invariants
        self._level_end = 0
        self._indexed_classes: tuple[bool, ...] = ()
        self._indexed = np.zeros(0, np.int64), np.zeros(0, np.uint32)
        self._fair: FairGraph | None = None
        self._stuck_judged = 0  # stuck states below were asked whether they are final
        self._initial_rows: dict[int, Ints] = {}
        self._replay = Replay(self.machine, self._initial_rows, self._stored_path, self._normal)

    def _edge_classes(self) -> tuple[list[tuple[bool, ...]], NDArray[np.int64]]:
        """Actions that the same always-possible properties allow make one class; edges that none allows are not stored.

        A leads-to property has to know each action that is enabled, so with one each action makes a class of its own.
        """
        wanted = [p for p in self.model.properties if isinstance(p, AlwaysPossible)]
        single = any(isinstance(p, LeadsTo) for p in self.model.properties)
        classes: dict[tuple[int, tuple[bool, ...]], int] = {}
        of_action = np.full(len(self.model.actions) + 1, -1, np.int64)
        for i, action in enumerate(self.model.actions):
            allowed = tuple(bool(p.allowed(action)) for p in wanted)
            if single or any(allowed):
                of_action[i] = classes.setdefault((i if single else -1, allowed), len(classes))
        if len(classes) > _MOST_CLASSES:
            raise ModelError(f"the promises about runs tell apart more than {_MOST_CLASSES} sets of actions")
        return [allowed for _, allowed in classes], of_action

    def _allow(self, extra: int) -> bool:
        return self.control.stop(extra) != "memory"

    # the search

    def run(self) -> Explored:
        """Searches until nothing is left or a limit is met."""
        startup = self.control.seconds
        try:
            self._search()
            self._judge_graph()
            self._finish()
        except Stopped as stop:
            self.stopped = str(stop)
            self._after_stop()
            self._finish_stopped()
        except KeyboardInterrupt:
            self.stopped = "interrupted"
        finally:
            self._crew.close()
        return self._explored(startup)

    def _finish(self) -> None:
        """What the reductions check when all paths are known. Raises `Refuted`."""
        if self.machine.orbits:
            self.machine.orbits.finish()
        if self.machine.deaths:
            self.machine.deaths.finish()

    def _finish_stopped(self) -> None:
        """The same for a search that was stopped. Other violations are asked of the plain semantics before they are shown; that a goal
        cannot be reached is not, so it must not rest on something that does not hold. Raises `Refuted` where it pays to begin again."""
        try:
            self._finish()
        except Refuted as error:
            if self.stopped in ("depth", "max-states"):
                raise
            for promise, found in zip(self.model.properties, self.found, strict=True):
                if isinstance(promise, AlwaysPossible) and found.state is not None:
                    found.state, found.unjudged = None, f"{self.stopped}; {error.name}: {error}"

    def look(self) -> None:
        """Searches and learns, and judges nothing about the whole graph. Raises `Stopped`; what was learned is whole then."""
        try:
            self._search()
        except Stopped:
            self.machine.ctl[k.BUFFERED] = 0
            self.machine.learn()
            raise

    def _search(self) -> None:
        try:
            self._levels()
        finally:
            self._settle()

    def _settle(self) -> None:
        """What several threads found is written; before one thread goes on."""
        if self._parallel:
            self._parallel.finish()

    def _levels(self) -> None:
        self._add_initial()
        level, arranged = (0, self.machine.states), False
        self._level_end = level[1]
        self._judge_level(*level)
        while level[0] < level[1]:
            if self.control.limits.depth is not None and self.depth >= self.control.limits.depth:
                if self._all or np.any((self.machine.store.flags[level[0] : level[1]] & k.VIOLATING) == 0):
                    raise Stopped("depth")
                self.expanded = level[1]
                return
            while self.expanded < level[1]:
                self._check()
                begin, end = self.expanded, min(self.expanded + self.machine.block(_CHUNK), level[1])
                self._expand(begin, end)
                self.expanded = end
                self.control.report(self.machine.states, self.machine.states - level[1], self.depth, self.machine.memory)
            self._settle()
            if self.machine.store.narrow:
                self._judge_stuck()
                self.machine.store.forget(self.expanded)
            level = level[1], self.machine.states
            self.depth += level[0] < level[1]
            self._level_end = level[1]
            if not arranged and level[1] > _ARRANGED:
                self.machine.arrange()
                arranged = True
            self._judge_level(*level)

    def _expand(self, begin: int, end: int) -> None:
        if self.stubborn is not None:
            self.stubborn.expand(begin, end)
        elif self._parallel and end - begin >= parallel.LEAST and self._parallel.expand(begin, end):
            if self.machine.ctl[k.RETRIES]:
                self._settle()
                self.machine.resolve(self.machine.expand, self._parallel.learned)
        else:
            self._settle()
            self.machine.drive(self.machine.expand, begin, end)

    def _check(self) -> None:
        reason = self.control.stop()
        if reason is not None:
            raise Stopped(reason)

    def _check_late(self) -> None:
        """When time is up, so is in the end what is left for judging what was found."""
        if self.stopped == "time" and self.control.stop() == "time":
            raise Stopped("time")

    def _add_initial(self) -> None:
        self.machine.fit()
        for numbers in self.machine.initial:
            before = self.machine.states
            row = self.machine.store.pack(numbers)
            self.machine.work.hashes[0] = _HASH_OF(row)
            self.machine.work.rows[0] = row
            self.machine.work.source[0], self.machine.work.via[0] = k.NO_PARENT, 0
            self.machine.ctl[k.BUFFERED] = 1
            self.machine.drive(self.machine.expand, 0, 0)
            if self.machine.states > before:
                self._initial_rows[before] = numbers

    def _judge_level(self, begin: int, end: int) -> None:
        if len(self.machine.state_trees):
            most = min(8 * _CHUNK, max(1, len(self.machine.work.retries) // len(self.machine.state_trees) - 1))
            for at in range(begin, end, most):
                self._check()
                last = min(at + most, end)
                if self._parallel and last - at >= 4 * parallel.LEAST:
                    self._parallel.judge(at, last)
                    self.machine.resolve(self.machine.judge)
                else:
                    self.machine.drive(self.machine.judge, at, last)
        self._judged = end

    # what is judged when the graph is there

    def _after_stop(self) -> None:
        """Brings the trees in order (nothing may stay requested) and judges what was stored but not judged yet, if that takes not long."""
        self.control.extend()
        self.machine.ctl[k.BUFFERED] = 0
        try:
            self.machine.learn()
            self.machine.ctl[k.RETRIES] = 0
            states = self.machine.states
            self.depth += self._level_end < states
            if len(self.machine.state_trees):
                self.machine.drive(self.machine.judge, self._judged, states)
            self._judge_graph()
        except Stopped:
            pass  # the first reason stands

    def _judge_graph(self) -> None:
        self._judge_stuck()
        for i, promise in enumerate(self.model.properties):
            self._check_late()
            if self.machine.store.narrow and isinstance(promise, (AlwaysPossible, LeadsTo)):
                self.found[i].unjudged = fingerprints.WHOLE_GRAPH
            elif isinstance(promise, AlwaysPossible) and not self._implied(i):
                self._judge_possible(i, promise)
            elif isinstance(promise, LeadsTo):
                if self._fair is None:
                    self._fair = FairGraph(self.machine, self.expanded, self._allow)
                self._fair.judge(i, promise, self.found[i])

    def _judge_stuck(self) -> None:
        """Asks the stuck states that were not asked yet whether they are final."""
        begin = self._stuck_judged
        for i, promise in enumerate(self.model.properties):
            if isinstance(promise, DeadlockFree):
                stuck = begin + np.flatnonzero(self._stuck(begin))
                marks = np.zeros(self.machine.states, np.uint8)
                marks[stuck] = NOT_ASKED
                self.machine.label(i, promise.promise, promise.final, marks, begin)
                wrong = stuck[marks[stuck] == Truth.FALSE]
                if len(wrong) and self.found[i].state is None:
                    self.found[i].state = int(wrong[0])
        self._stuck_judged = self.expanded

    def _implied(self, index: int) -> bool:
        """Whether another instance answers for a promise."""
        return self.machine.orbits is not None and index in self.machine.orbits.group.implied

    def _stuck(self, begin: int = 0) -> NDArray[np.bool_]:
        flags = self.machine.store.flags[begin : self.machine.states]
        wrong = k.ALIVE if self._all else k.ALIVE | k.VIOLATING
        stuck: NDArray[np.bool_] = (flags & wrong) == 0
        stuck[max(0, self.expanded - begin) :] = False
        return stuck

    def _judge_possible(self, index: int, promise: AlwaysPossible) -> None:
        """Backwards from the goals. What was not expanded may lead anywhere, so it counts as a goal: a violation is one all the same."""
        states = self.machine.states
        marks = np.full(states, NOT_ASKED, np.uint8)
        self.machine.label(index, promise.promise, promise.goal, marks, check=self._check_late)
        if not self._allow(17 * states + 4 * int(self.machine.ctl[k.EDGES])):
            raise Stopped("memory")
        self.found[index].tested = bool(np.any(marks == Truth.FALSE))  # the goal was ahead somewhere
        good = ((marks != Truth.FALSE) | ((self.machine.store.flags[:states] & k.ESCAPING) != 0)).astype(np.uint8)
        good[self.expanded :] = 1
        _SPREAD_BACK(*self._edges_back(promise), good, np.zeros(states, np.int64))
        bad = np.flatnonzero(good == 0)
        if len(bad):
            self.found[index].state, self.found[index].note = int(bad[0]), NO_GOAL

    def _edges_back(self, promise: AlwaysPossible) -> tuple[NDArray[np.int64], NDArray[np.uint32]]:
        """The edges that the promise allows, by where they lead; instances of one promise mostly allow the same."""
        at = [p for p in self.model.properties if isinstance(p, AlwaysPossible)].index(promise)
        classes = tuple(allowed[at] for allowed in self._classes) or (False,)
        if classes != self._indexed_classes:
            states, edges = self.machine.states, int(self.machine.ctl[k.EDGES])
            self._indexed_classes = classes
            self._indexed = np.zeros(states + 1, np.int64), np.zeros(edges, np.uint32)
            store = self.machine.store
            _INDEX_EDGES(store.edges, store.edge_class, edges, np.array(classes, np.bool_), *self._indexed)
        return self._indexed

    # what is handed over

    def _explored(self, startup: float) -> Explored:
        states = self.machine.states
        for i, promise in enumerate(self.model.properties):
            found = self.found[i]
            if isinstance(promise, StateInvariant):
                found.state = int(self.machine.first_bad[i]) if self.machine.first_bad[i] >= 0 else None
            elif isinstance(promise, StepInvariant) and self.machine.work.step_bad[i, 0] >= 0:
                found.state = int(self.machine.work.step_bad[i, 0])
                found.step = self._via(int(self.machine.work.step_bad[i, 1]))
            found.tested |= bool(self.machine.work.saw[i] >> Truth.TRUE & 1)
        return Explored(
            engine="explicit",
            states=states,
            transitions=int(self.machine.work.taken.sum()),
            depth=self.depth,
            stuck=int(self._stuck().sum()),
            unexpanded=0 if self._all else int(np.count_nonzero(self.machine.store.flags[:states] & k.VIOLATING)),
            exhausted=self.stopped is None,
            stopped=self.stopped,
            beyond=[reason for reason, i in self.machine.trees.reasons.items() if self.machine.work.beyond[i]],
            taken=[int(n) for n in self.machine.work.taken],
            enabled=[bool(n) for n in self.machine.work.enabled],
            found=self.found,
            python_calls=self.machine.calls,
            bytes_per_state=self.machine.store.memory_of_states / max(states, 1),
            memory=self.machine.memory,
            path=self._path,
            state=self.state,
            startup=startup,
            normal=self._normal,
            twin=self._twin if self.machine.orbits else None,
            audits=[self._audit_dead] if self.machine.deaths else [],
            fingerprints=self._fingerprints(),
        )

    def _fingerprints(self) -> fingerprints.Fingerprints | None:
        if not self.control.limits.fingerprints:
            return None
        return fingerprints.used(self.machine.states) if self.machine.store.narrow else fingerprints.unused(fingerprints.room())

    def state(self, number: int) -> State:
        """The values of a stored state; found again by its path where its row is gone."""
        return self._replay.state(number) if self.machine.store.narrow else self.machine.state(number)

    def _audit_dead(self) -> str:
        """Random values in dead slots of some stored states; raises `EngineError` if they make a difference."""
        assert self.machine.deaths is not None
        step = max(1, self.machine.states // STATES)
        rows = [self.machine.domains.numbers(self.state(number)) for number in range(0, self.machine.states, step)]
        return DeadAudit(self.model, self.machine.deaths).run(rows)

    def _via(self, via: int) -> tuple[int, int]:
        return via >> k.OUTCOME_BITS, via & ((1 << k.OUTCOME_BITS) - 1)

    def _path(self, number: int) -> tuple[State, list[tuple[int, int]]]:
        steps, numbers = self._stored_path(number)
        initial = self._initial(numbers[0])
        if not self._lifting:
            return initial, steps
        return initial, self._lifting.steps(initial, steps, [self.state(n) for n in numbers[:-1]])

    def _stored_path(self, number: int) -> tuple[list[tuple[int, int]], list[int]]:
        """Steps between stored states, and the states."""
        steps: list[tuple[int, int]] = []
        numbers = [number]
        while (parent := int(self.machine.store.parent[numbers[-1]])) != k.NO_PARENT:
            steps.append(self._via(int(self.machine.store.via[numbers[-1]])))
            numbers.append(parent)
        return steps[::-1], numbers[::-1]

    def _initial(self, number: int) -> State:
        """An initial state of the full model that the stored one stands for."""
        stored = key(self.state(number))
        return next(state for state in self.machine.semantics.initial_states() if key(self._normal(state)) == stored)

    @property
    def _lifting(self) -> Lifting | None:
        orbits = self.machine.orbits
        if orbits is None:
            return None
        from dra_spec.explorer.lifting import Lifting

        return Lifting(Semantics(self.model), self.machine.settle, orbits.group.in_use)

    def _normal(self, state: State) -> State:
        """What is stored for a state of the full model."""
        settled = self.machine.settle(state)
        return self.machine.orbits.normal(settled) if self.machine.orbits else settled

    def _twin(self, number: int, reached: State, step: tuple[int, int]) -> tuple[int, int]:
        """A step out of a stored state, as a state of the full model takes it."""
        assert self._lifting is not None
        return self._lifting.steps(reached, [step], [self.state(number)])[0]
