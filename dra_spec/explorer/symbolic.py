"""The symbolic engine: sets of states as decision diagrams, reachability as a fixed point over the learned trees.

By chaining: each action's image is added at once, until nothing changes. That gives the reachable set, its size and the verdicts, but no
lengths. Where a depth is asked for, the set is built in layers instead. Where a promise is broken, a shortest trace is found inside the set
(`symbolic_traces`); `report` runs it through the plain semantics before it is shown.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import TypeVar

import numpy as np
from oxidd.util import DDMemoryError

from dra_spec.explorer import symbolic_sample
from dra_spec.explorer.control import Control, expands_all
from dra_spec.explorer.growing import Ints
from dra_spec.explorer.model import AlwaysPossible, DeadlockFree, LeadsTo, Model, StateInvariant, Truth
from dra_spec.explorer.result import Explored, Found, Stopped
from dra_spec.explorer.scout import Scout, Walker
from dra_spec.explorer.semantics import State
from dra_spec.explorer.symbolic_order import slot_order
from dra_spec.explorer.symbolic_promises import Promises
from dra_spec.explorer.symbolic_relation import Relation
from dra_spec.explorer.symbolic_sample import Lesson
from dra_spec.explorer.symbolic_sets import NODE_BYTES, Encoding, Grown, Set, fresh
from dra_spec.explorer.symbolic_sift import sifted
from dra_spec.explorer.symbolic_steps import SymbolicSteps
from dra_spec.explorer.symbolic_traces import Way, ways
from dra_spec.explorer.symbolic_trees import SymbolicTrees, union
from dra_spec.explorer.symbolic_versions import Closing, Renumbering

NODES, CACHE = 1 << 26, 1 << 21  # most nodes; entries of the cache of operations
UNKNOWN_DEPTH = -1
_SCATTERED = 16  # states per node
SAMPLE = 30_000  # states of a look ahead
LARGE = 3000  # nodes of a set for which another order may pay
UNTRACED = "states that break it can be reached, but the search was stopped before it had a shortest run to one"
_INTERVAL, _DEAR = 0.25, 20  # seconds between two counts for the progress line; at least so many times what a count takes

T = TypeVar("T")


class SymbolicSearch:
    """One search. `run` does it; what was found up to a limit is kept."""

    def __init__(self, model: Model, control: Control) -> None:
        self.model, self.control = model, control
        self._calls = 0  # of the model's Python code, for trees that are gone
        self._take(symbolic_sample.first(model))
        self._look_ahead()
        self._encode()
        self.found = [Found() for _ in model.properties]
        self.stopped: str | None = None
        self.depth = UNKNOWN_DEPTH
        self._all = expands_all(model, control.limits)
        self.rings: list[Set] = []
        self._done: dict[int, Set] = {}  # per action: what it was last applied to
        self._promises = Promises(self)
        self._ways: list[Way] = []
        self._closed = False  # the search came to its end, and all promises were judged
        self._recorded: dict[int, tuple[int, list[Closing], Set]] = {}  # per action: epoch, what was closed, the image
        self._count_at = time.monotonic()
        self._peak = 0
        self._taught = False

    def _take(self, lesson: Lesson) -> None:
        """Goes on with other trees and domains."""
        self.semantics, self.domains, self.trees, self.versions = lesson.semantics, lesson.domains, lesson.trees, lesson.versions
        self.initial = lesson.initial
        self.goals = self._goals(lesson.predicates)
        self.due = {  # of leads-to promises, beside their goals
            i: self.trees.add_property(i, p.promise, p.when) for i, p in enumerate(self.model.properties) if isinstance(p, LeadsTo)
        }
        self.walker = Walker(self.trees)
        self.scout = Scout(self.walker, self.semantics, self.initial, self.versions)

    def _goals(self, known: Mapping[int, int]) -> dict[int, int]:
        """The trees of what promises say of states."""
        made = dict(known)
        for i, promise in enumerate(self.model.properties):
            if i in known:
                continue
            if isinstance(promise, StateInvariant):
                made[i] = self.trees.add_property(i, promise.promise, promise.fn)
            elif isinstance(promise, (AlwaysPossible, LeadsTo)):
                made[i] = self.trees.add_property(i, promise.promise, promise.goal)
            elif isinstance(promise, DeadlockFree):
                made[i] = self.trees.add_property(i, promise.promise, promise.final)
        return made

    def _look_ahead(self) -> None:
        """Fills the trees with what most states ask for, so that the variables can be put in order."""
        rows = self.scout.run()
        for i, tree in self.goals.items():
            if isinstance(self.model.properties[i], StateInvariant):
                for row in rows:
                    self.walker.reach(tree, row)

    def _encode(self, rows: Ints | None = None) -> None:
        """Puts the variables in an order that fits what is known of the trees now, or some states, and begins with no set."""
        memory = self.control.limits.memory
        nodes = NODES if memory is None else max(1 << 16, min(NODES, memory // (2 * NODE_BYTES)))
        self._placed = frozenset(np.flatnonzero(self.domains.sizes > 1).tolist())
        order = slot_order(len(self.domains.slots), self.walker.groups())
        if rows is not None:
            order = sifted(rows, order)
        self.encoding = Encoding(self.domains, order, nodes, min(CACHE, nodes))
        self.symbolic = SymbolicTrees(self.scout, self.encoding)
        self.relation = Relation(self.symbolic, self.semantics)
        self.renumbering = Renumbering(self.versions, self.encoding)
        self.steps = SymbolicSteps(self.symbolic)
        self.encoding.on_bit.append(self._narrow)
        self.reached = self.expanded = self._sources = self._new = self.encoding.false

    def _encode_anew(self) -> bool:
        """Orders the variables again if the set is large, and either hardly smaller than a list of its states, so that some of them are
        worth a look ahead, or has slots that have begun to vary and whose place was a guess. Else false.

        All sets are lost.
        """
        if self.reached.node_count() < LARGE:
            return False
        rows = None
        if not self._taught and self._scattered():
            self._taught = True
            self._calls += self.semantics.calls + self.trees.calls
            lesson = symbolic_sample.ahead(self.model, self.control, SAMPLE)
            self._take(lesson)
            rows = lesson.rows
        elif self._taught or not np.any(np.delete(self.domains.sizes, list(self._placed)) > 1):
            return False
        self.encoding.close()
        self._done.clear()
        self._recorded.clear()
        self._encode(rows)
        return True

    def _narrow(self, to: Set) -> None:
        """A slot got another bit: it is 0 in all states so far."""
        self.reached, self.expanded = self.reached & to, self.expanded & to
        self._sources, self._new = self._sources & to, self._new & to
        self.rings = [ring & to for ring in self.rings]
        self._promises.narrow(to)
        self._recorded.clear()
        self._done.clear()  # the same diagram would mean more states now

    def retry(self, compute: Callable[[], T]) -> T:
        """Computes, and again after a domain has grown."""
        while True:
            try:
                return compute()
            except Grown:
                pass

    # the search

    def run(self) -> Explored:
        """Searches until nothing is left or a limit is met."""
        startup = self.control.seconds
        for phase in (self._search, self._judge, self._trace):
            try:
                phase()
            except Stopped as stop:
                self.stopped = self.stopped or str(stop)
            except DDMemoryError:
                self.stopped = self.stopped or "memory"
            except KeyboardInterrupt:
                self.stopped = "interrupted"
        return self._explored(startup)

    def _search(self) -> None:
        if self.control.limits.depth is not None:
            self._layer()
        elif not self._chain(careful=False):
            self._chain(careful=True)

    def _judge(self) -> None:
        if self.stopped is None or self.rings:
            self._promises.judge()
            self._closed = self.stopped is None

    def _initial_states(self) -> Set:
        return union([self.encoding.row(row) for row in self.initial], self.encoding)

    def _begin(self, careful: bool) -> None:
        self._done.clear()
        self.reached, self._sources = self.encoding.false, self.encoding.false
        self._reach(self._initial_states(), careful)

    def _chain(self, careful: bool) -> bool:
        """The reachable set. Careful: violating states are not expanded where they must not be; else false if there are such states."""
        self._begin(careful)
        changed = True
        while changed:
            if self._encode_anew():
                self._begin(careful)
            if not careful and not self._all and self.retry(lambda: self._violating(self.reached)).satisfiable():
                return False
            changed = False
            scattered = self._scattered()
            for action in range(len(self.model.actions)):
                if self._done.get(action) == self._sources:
                    continue
                self.check()
                after = self.retry(lambda a=action, new=scattered: self._wider(a, new))  # type: ignore[misc]
                self._done[action] = self._sources
                if after != self.reached:
                    self._reach(after, careful)
                    changed = True
        self.expanded = self._sources
        return True

    def _reach(self, after: Set, careful: bool) -> None:
        """Goes on with a wider set."""
        if careful:
            self._new, self.reached = self.reached.imp_strict(after), after
            sources = self.retry(lambda: self._source(self._new))
            self._sources |= sources
        else:
            self.reached = self._sources = after

    def _wider(self, action: int, only_new: bool) -> Set:
        """The reachable set with what an action makes of it. What it made of an earlier one is in it already."""
        return self._image(action, fresh(self._done.get(action) if only_new else None, self._sources)) | self.reached

    def _scattered(self) -> bool:
        """Whether the diagram is hardly smaller than a list of its states: then images of what is new cost less than images of all.

        Where the set is nearly a product the whole is simpler than its parts.
        """
        return self.reached.node_count() * _SCATTERED > self.encoding.count(self.reached)

    def _layer(self) -> None:
        """The reachable set by layers, up to the limit of the depth."""
        self._begin_layers()
        while True:
            if self._encode_anew():
                self._begin_layers()
            source = self.retry(lambda: self._source(self.rings[-1]))
            limit = self.control.limits.depth
            if limit is not None and self.depth >= limit:
                if source.satisfiable():
                    raise Stopped("depth")
                break
            new = self._next(source)
            self.expanded |= self.retry(lambda: self._source(self.rings[-1]))
            if not new.satisfiable():
                break
            self.reached |= new
            self.rings.append(new)
            self.depth += 1

    def _begin_layers(self) -> None:
        self.reached = self._initial_states()
        self.rings, self.depth, self.expanded = [self.reached], 0, self.encoding.false

    def _next(self, source: Set) -> Set:
        """The next layer."""
        self.rings += [source, self.encoding.false]  # kept there, so that they are narrowed when a domain grows
        try:
            for action in range(len(self.model.actions)):
                self.check()
                image = self.retry(lambda a=action: self._image(a, self.rings[-2]))  # type: ignore[misc]
                self.rings[-1] |= self.reached.imp_strict(image)
            return self.rings[-1]
        finally:
            del self.rings[-2:]

    def _source(self, states: Set) -> Set:
        """Those of the states that are expanded."""
        return states if self._all else self._violating(states).imp_strict(states)

    def _image(self, action: int, states: Set, record: list[Closing] | None = None) -> Set:
        if self._taught:  # where a set is nearly a product, its parts are no simpler
            states = self.relation.awake(action, states)
        effects = self.relation.effects(action, states)
        raw = self.relation.image(effects, self.relation.enabled(action, states))
        if not self.renumbering.needed:
            return raw
        return self.renumbering.normal(raw, self.renumbering.objects({slot for e in effects for slot in e.slots}), record)

    def _violating(self, states: Set) -> Set:
        violating = self.encoding.false
        for i, tree in self.goals.items():
            if isinstance(self.model.properties[i], StateInvariant):
                violating |= self.relation.truth(tree, states, Truth.FALSE)
        return violating

    def check(self) -> None:
        """Raises `Stopped` if a limit is met."""
        reason = self.control.stop()
        if reason is not None:
            raise Stopped(reason)
        self._peak = max(self._peak, self.encoding.tidy())
        now = time.monotonic()
        if now >= self._count_at:
            states = self.encoding.count(self.reached)
            self._count_at = now + max(_INTERVAL, _DEAR * (time.monotonic() - now))
            self.control.report(states, 0, max(self.depth, 0), self._peak)
            if self.control.limits.max_states is not None and states > self.control.limits.max_states:
                raise Stopped("max-states")

    # for what is judged when the set is there

    def image(self, action: int, states: Set) -> Set:
        """The states after an action."""
        return self._image(action, states)

    def preimage(self, action: int, target: Set, within: Set) -> Set:
        """Those of some expanded states that an action brings into the target."""
        return self._preimage(action, target, self.expanded, within)

    def pick(self, states: Set) -> State:
        """A state of a set that is not empty."""
        return self.domains.state(self.encoding.pick(states))

    def only(self, state: State) -> Set:
        """The set of one state."""
        return self.encoding.row(self.domains.numbers(state))

    def _preimage(self, action: int, target: Set, states: Set, within: Set | None = None) -> Set:
        """Those of the states that the action brings into the target. Everything is known about them: they were expanded.

        `within`: some of the states, if only those are asked about; what is known of all of them is kept for the next call.
        """
        effects, keep = self.relation.effects(action, states), within is not None
        asked = self.relation.enabled(action, states if within is None else within)
        if not asked.satisfiable():
            return asked
        if self.renumbering.needed:
            record = self._recorded.get(action) if keep else None
            if record is None or record[0] != self.encoding.epoch:
                closings: list[Closing] = []
                record = self.encoding.epoch, closings, self._image(action, states, closings)
                if keep:
                    self._recorded[action] = record
            target = target & record[2]
            if not target.satisfiable():
                return target
            target = self.renumbering.undo(target, record[1])
        return self.relation.preimage(effects, target, asked)

    # traces

    def _trace(self) -> None:
        """A shortest trace to what is broken, one for all instances of a promise."""
        for way in ways(self, self._promises.broken, self.rings or [self._initial_states()]):
            found = self.found[way.witness.property]
            found.lasso = self._promises.lasso(way.witness.property, way.last)
            found.state, found.step = len(self._ways), way.witness.step
            self._ways.append(way)

    def before(self, action: int, after: State, states: Set) -> Set:
        """Those of some expanded states that an action brings to a state. They differ from it only where the action may write, and in the
        versions of the objects there."""
        slots = self.relation.writes(action)
        slots |= self.renumbering.bearing(self.renumbering.objects(slots))
        others = [(slot, int(number)) for slot, number in enumerate(self.domains.numbers(after)) if slot not in slots]
        near = states & self.encoding.constants(others)
        return self._preimage(action, self.only(after), near) if near.satisfiable() else near

    def _untraced(self) -> None:
        """A promise that is known to be broken, but by no run that could be shown before the search was stopped, is left undecided."""
        for one in self._promises.broken:
            if self.found[one.property].state is None:
                self.found[one.property].unjudged = f"{self.stopped}; {UNTRACED}"

    # what is handed over

    def _explored(self, startup: float) -> Explored:
        count = len(self.model.actions)
        taken, enabled, reasons, stuck, violating, states = [0] * count, [False] * count, set[int](), 0, 0, 0
        try:
            states = self.encoding.count(self.reached)
            if self.expanded.satisfiable():
                for action in range(count):
                    taken[action] = self.relation.taken(action, self.expanded)
                    enabled[action] = self.relation.alive(action, self.expanded).satisfiable()
                    reasons |= self.relation.escaping(action, self.expanded)[1]
                stuck = self.encoding.count(self._promises.stuck())
            if not self._all and (self._closed or self.rings or self.expanded.satisfiable()):
                violating = self.encoding.count(self.retry(lambda: self._violating(self.reached)))
        except DDMemoryError:
            self.stopped, self._closed = self.stopped or "memory", False  # the figures are those that could be counted
        self._untraced()
        self._peak = max(self._peak, self.encoding.memory)
        return Explored(
            engine="symbolic",
            states=states,
            transitions=sum(taken),
            depth=self.depth,
            stuck=stuck,
            unexpanded=violating,
            exhausted=self._closed,
            stopped=self.stopped,
            beyond=[reason for reason, i in self.trees.reasons.items() if i in reasons],
            taken=taken,
            enabled=enabled,
            found=self.found,
            python_calls=self._calls + self.semantics.calls + self.trees.calls,
            bytes_per_state=self._peak / max(states, 1),
            memory=self._peak,
            path=lambda i: (self._ways[i].first, list(self._ways[i].steps)),
            state=lambda i: self._ways[i].last,
            startup=startup,
        )
