"""What is judged of the reachable set when it is there: states, steps, stuck states, and the fixed points of promises about runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

import attrs

from dra_spec.explorer import lasso
from dra_spec.explorer.model import AlwaysPossible, DeadlockFree, LeadsTo, Model, StateInvariant, StepInvariant, Truth
from dra_spec.explorer.result import NO_GOAL, Found, Lasso
from dra_spec.explorer.semantics import State
from dra_spec.explorer.symbolic_fair import FairRuns, Moves
from dra_spec.explorer.symbolic_sets import Encoding, Set, fresh
from dra_spec.explorer.symbolic_steps import SymbolicSteps
from dra_spec.explorer.symbolic_traces import Broken
from dra_spec.explorer.symbolic_trees import union

T = TypeVar("T")


class Searched(Moves, Protocol):
    """A search whose reachable set is there. `goals`, `due`: trees per property; `retry`: computes again after a domain has grown."""

    model: Model
    encoding: Encoding
    steps: SymbolicSteps
    reached: Set
    found: list[Found]
    goals: dict[int, int]
    due: dict[int, int]

    def retry(self, compute: Callable[[], T]) -> T: ...


class Promises:
    """The promises of one search. `broken`: the witnesses against them."""

    def __init__(self, search: Searched) -> None:
        self.search = search
        self.broken: list[Broken] = []
        self._fair: dict[int, tuple[int, FairRuns]] = {}  # per broken leads-to promise, with the epoch

    def narrow(self, to: Set) -> None:
        """A slot got another bit: it is 0 in all states so far."""
        self.broken = [attrs.evolve(broken, states=broken.states & to) for broken in self.broken]

    def judge(self) -> None:
        """Judges all of them."""
        search = self.search
        for i, promise in enumerate(search.model.properties):
            if isinstance(promise, StateInvariant):
                self._note(i, self._where(i, Truth.FALSE))
                search.found[i].tested = self._where(i, Truth.TRUE).satisfiable()
            elif isinstance(promise, DeadlockFree):
                self._note(i, search.retry(lambda i=i: search.relation.truth(search.goals[i], self.stuck(), Truth.FALSE)))  # type: ignore[misc]
            elif isinstance(promise, LeadsTo):
                self._judge_leads(i, promise)
        self._judge_possible()
        if any(isinstance(promise, StepInvariant) for promise in search.model.properties):
            for action in range(len(search.model.actions)):
                search.check()
                for judged in search.retry(lambda a=action: list(search.steps.judge(a, search.expanded))):  # type: ignore[misc]
                    search.found[judged.property].tested |= judged.true
                    self._note(judged.property, judged.false, (judged.action, judged.outcome))

    def _where(self, index: int, truth: Truth) -> Set:
        return self.search.retry(lambda: self.search.relation.truth(self.search.goals[index], self.search.reached, truth))

    def _note(self, index: int, states: Set, step: tuple[int, int] | None = None) -> None:
        if states.satisfiable():
            self.broken.append(Broken(index, states, step))

    def stuck(self) -> Set:
        """The expanded states where no action has an outcome."""
        stuck = self.search.expanded
        for action in range(len(self.search.model.actions)):
            if not stuck.satisfiable():
                break
            stuck = self.search.relation.alive(action, stuck).imp_strict(stuck)
        return stuck

    # promises about runs

    def _judge_possible(self) -> None:
        """Those that allow the same actions together: where a state in which all goals are reached stays possible, each of them does. Only
        the other states are asked about goal by goal."""
        search, groups = self.search, dict[tuple[int, ...], list[int]]()
        for i, promise in enumerate(search.model.properties):
            if isinstance(promise, AlwaysPossible):
                allowed = tuple(action for action, act in enumerate(search.model.actions) if promise.allowed(act))
                groups.setdefault(allowed, []).append(i)
        for allowed, members in groups.items():
            ahead = {i: self._where(i, Truth.FALSE) for i in members}
            bad = self._within_bounds(union(list(ahead.values()), search.encoding))
            if len(members) > 1:
                bad = self._hopeless(bad, allowed)
            for i in members:
                search.found[i].tested = ahead[i].satisfiable()
                hopeless = self._hopeless(bad & ahead[i], allowed)
                if hopeless.satisfiable():
                    search.found[i].note = NO_GOAL
                    self._note(i, hopeless)

    def _hopeless(self, bad: Set, allowed: Sequence[int]) -> Set:
        """From which of the states no other state can be reached by the allowed actions. Backwards from the goals. What was not expanded
        may lead anywhere, so it is none of the states: a violation is one all the same."""
        search = self.search
        good = bad.imp_strict(search.reached)
        done: dict[int, Set] = {}
        while bad.satisfiable() and any(done.get(action) != good for action in allowed):
            for action in reversed(allowed):  # later steps come first
                if done.get(action) != good:
                    search.check()
                    new, done[action] = fresh(done.get(action), good), good
                    good |= search.preimage(action, new, bad)
                    bad = good.imp_strict(bad)
        return bad

    def _within_bounds(self, states: Set) -> Set:
        """Those of the states that were expanded and have no outcome beyond the bounds."""
        search = self.search
        inside = states & search.expanded
        for action in range(len(search.model.actions)):
            inside = search.retry(lambda a=action: search.relation.escaping(a, search.expanded)[0]).imp_strict(inside)  # type: ignore[misc]
        return inside

    def _judge_leads(self, index: int, promise: LeadsTo) -> None:
        due = self.search.retry(lambda: self._owed(index))
        self.search.found[index].tested = due.satisfiable()
        if due.satisfiable():
            runs = self.fair_runs(index, promise)
            if (due & runs.states).satisfiable():
                self.search.found[index].note = lasso.NOTE
                self._note(index, due & runs.states)

    def _owed(self, index: int) -> Set:
        search = self.search
        early = search.relation.truth(search.due[index], search.reached, Truth.FALSE).imp_strict(search.reached)
        return search.relation.truth(search.goals[index], early, Truth.FALSE)

    def fair_runs(self, index: int, promise: LeadsTo) -> FairRuns:
        """The fair runs that avoid a promise's goal. What was not expanded, or leaves the bounds, may reach it."""
        return self.search.retry(lambda: self._fair_runs(index, promise))

    def _fair_runs(self, index: int, promise: LeadsTo) -> FairRuns:
        known = self._fair.get(index)
        if known is None or known[0] != self.search.encoding.epoch:
            fair = [action for action, act in enumerate(self.search.model.actions) if promise.fair(act)]
            region = self._within_bounds(self._where(index, Truth.FALSE))
            known = self._fair[index] = self.search.encoding.epoch, FairRuns(self.search, region, self._owed(index), fair)
        return known[1]

    def lasso(self, index: int, start: State) -> Lasso | None:
        """A fair run from a state that avoids a promise's goal; None if the promise is of another kind."""
        promise = self.search.model.properties[index]
        if not isinstance(promise, LeadsTo):
            return None
        return self.search.retry(lambda: self._fair_runs(index, promise).lasso(start))
