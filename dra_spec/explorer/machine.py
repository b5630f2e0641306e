"""The explicit engine's machinery: calls the compiled kernels, learns what they miss, and makes room where they need it."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from operator import is_
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dra_spec.explorer import arrays as k
from dra_spec.explorer.crew import Crew
from dra_spec.explorer.dead import NO_DEAD, Dead, Deaths
from dra_spec.explorer.hand import longer
from dra_spec.explorer.intern import Domains, VersionTable
from dra_spec.explorer.merger import Merger
from dra_spec.explorer.model import LiveWhen, Model, ModelError, StateInvariant, StepInvariant, Truth, View
from dra_spec.explorer.native import Bound, Kernel
from dra_spec.explorer.result import EngineError, Stopped
from dra_spec.explorer.rows import Store
from dra_spec.explorer.semantics import Semantics, State
from dra_spec.explorer.symmetry_images import NO_SYMMETRY, Symmetry
from dra_spec.explorer.trees import Trees

if TYPE_CHECKING:  # loaded where it is asked for
    from dra_spec.explorer.symmetry import Group, Orbits

_PLACE_OF, _LABEL = Kernel("kernels_versions", "place_of"), Kernel("kernels_judge", "label")
_BUFFER = 1 << 10  # successors that are put into the table together, at least
_RETRIES = 1 << 22  # pairs that are tried again together, at most
_MOST_ACTIONS = 1 << 16
_LISTED = 1 << 17  # pairs that may be listed in any case
_SUCCESSORS = 1 << 22  # of a block, at most
_LABELLED = 1 << 20  # states that are asked about a predicate together
_REQUESTS = 1 << 11
_AGAIN = 8  # rows are arranged anew when there are so many times the states, and they must be packed anew in any case
_EFFECTS = 1 << 15  # effects of outcomes that are remembered, per thread
_LINE = 8  # numbers in a line of the cache
_NAMES = 1 << 12  # first size of the rename table
__all__ = ["NOT_ASKED", "Call", "Machine", "Stopped"]

NOT_ASKED = 3  # a mark beside the three truths

Call = Callable[[int, int, int], int]  # (begin, end, whether they are places in the list `again`): a status


class Machine:
    """Rows, trees and scratch space of one search."""

    def __init__(
        self,
        model: Model,
        action_class: NDArray[np.int64],
        allow: Callable[[int], bool],
        group: Group | None = None,
        live: Sequence[LiveWhen] = (),
        fingerprints: bool = False,
        crew: Crew | None = None,
    ) -> None:
        self.model = model
        self.semantics = Semantics(model)
        self.domains = Domains(model)
        self.trees = Trees(model, self.semantics, self.domains)
        self._merger = Merger(self.trees)
        self.versions = VersionTable(self.domains)
        self.orbits = _orbits(group, self.trees, live) if group else None
        self.deaths = Deaths(live, self.trees) if live else None
        self.initial = [self.domains.numbers(self.settle(state)) for state in self.semantics.initial_states()]
        if self.deaths:
            for row in self.initial:
                self.deaths.learn(row)
        if self.orbits:
            self.initial = [self.orbits.canonical(row) for row in self.initial]
        self.predicates: dict[int, int] = {}  # property: its tree
        for i, promise in enumerate(model.properties):
            if isinstance(promise, StateInvariant):
                self.predicates[i] = self.trees.add_property(i, promise.promise, promise.fn)
        self.state_trees = np.array(list(self.predicates.values()), np.int64)
        self.first_bad = np.full(len(model.properties) + 1, -1, np.int64)
        self.store = Store(self.domains.sizes, bool(np.any(action_class >= 0)), _BUFFER, allow, fingerprints, crew)
        self.ctl = np.zeros(k.COUNTERS, np.int64)
        self.work = self._make_work(action_class)
        self._known_trees = 0
        self._arranged: float = math.inf  # so many states were there when rows were arranged
        self._names_known = 0
        self._renames = self._new_names(_NAMES)
        self._bearers = self.versions.arrays()
        self._bearing: object = None  # another object whenever some slot bears versions of an object for the first time
        self._effects_for: tuple[Any, ...] = ()
        self.name_requests = np.zeros((_REQUESTS, 2), np.int64)
        self._expand, self._judge = Bound("kernels", "expand"), Bound("kernels_judge", "judge")
        self._warm_up()

    @property
    def states(self) -> int:
        """How many states are stored."""
        return int(self.ctl[k.STATES])

    @property
    def calls(self) -> int:
        """Calls of the model's Python code."""
        return self.semantics.calls + self.trees.calls

    def state(self, number: int) -> State:
        """The values of a stored state."""
        return self.domains.state(self.store.numbers(number))

    def settle(self, state: State) -> State:
        """A state of the full model with its dead slots at rest, versions counted anew."""
        return self.semantics.renumber(self.deaths.settle(state)) if self.deaths else state

    @property
    def memory(self) -> int:
        """Bytes of all arrays."""
        lists = self.work.retries, self.work.again  # as long as the longest block could make them, mostly untouched
        arrays = [a for a in (*self.work, *self._renames, *self.effects) if not any(a is untouched for untouched in lists)]
        return self.store.memory + self.trees.memory + sum(int(a.nbytes) for a in arrays)

    def _warm_up(self) -> None:
        """Loads the compiled kernels, so that the time of the search is that of the search."""
        self._prepare()
        self.expand(0, 0, 0)
        if len(self.state_trees):
            self.judge(0, 0, 0)

    def _make_work(self, action_class: NDArray[np.int64]) -> k.Work:
        slots, actions, properties = len(self.model.slots), len(self.model.actions), len(self.model.properties)
        if actions >= _MOST_ACTIONS:
            raise ModelError(f"{actions} actions; {_MOST_ACTIONS} are possible")
        self._pairs = max(_LISTED, _RETRIES) + actions + 1
        rows = np.zeros((self.store.buffer, self.store.layout.words), np.uint64)
        return k.Work(
            values=np.zeros(2 * slots, np.int32),
            written=np.zeros(3 * slots + 64, np.int32),
            stamps=np.zeros(slots + 64, np.int64),
            rows=rows,
            kept=np.zeros((self.store.buffer, 2), np.uint64) if self.store.narrow else rows,
            source=np.zeros(self.store.buffer, np.uint32),
            via=np.zeros(self.store.buffer, np.uint32),
            hashes=np.zeros(self.store.buffer, np.uint64),
            retries=np.zeros(self._pairs, np.int64),
            again=np.zeros(self._pairs, np.int64),
            ready=np.zeros(2 * actions + 2, np.int32),
            requests=np.zeros((_REQUESTS, 3), np.int64),
            request_after=np.zeros((_REQUESTS, slots), np.int32),
            asked=np.zeros(4 * _REQUESTS, np.int64),
            taken=np.zeros(actions, np.int64),
            enabled=np.zeros(actions, np.uint8),
            beyond=np.zeros(64, np.uint8),
            action_class=action_class,
            step_bad=np.full((properties + 1, 2), -1, np.int64),
            saw=np.zeros(properties + 1, np.uint8),
            tree_property=np.zeros(64, np.int64),
        )

    def _new_names(self, size: int) -> tuple[NDArray[np.int64], NDArray[np.uint64], NDArray[np.int32]]:
        return np.zeros(size, np.int64), np.zeros(size, np.uint64), np.full(size, -1, np.int32)

    def _prepare(self) -> None:
        """Sizes of scratch arrays follow what was learned; the arrays of bearers and the rename table too."""
        work, slots = self.work, len(self.model.slots)
        changes: dict[str, NDArray[Any]] = {}
        widest = int(self.trees.widest.sum())
        if 2 * widest > self.store.buffer:
            self.store.buffer = 2 * widest
            for name in ("source", "via", "hashes"):
                changes[name] = np.zeros(self.store.buffer, getattr(work, name).dtype)
        if len(work.tree_property) < len(self.trees.trees):
            changes["tree_property"] = np.concatenate([work.tree_property, np.zeros(len(self.trees.trees), np.int64)])
        properties = changes.get("tree_property", work.tree_property)
        for i in range(self._known_trees, len(self.trees.trees)):
            properties[i] = self.trees.trees[i].property
        self._known_trees = len(self.trees.trees)
        if len(work.beyond) < len(self.trees.reasons):
            changes["beyond"] = np.concatenate([work.beyond, np.zeros(len(self.trees.reasons), np.uint8)])
        if self.versions.changed:
            self.versions.changed = False
            before, self._bearers = self._bearers, self.versions.arrays()
            if not np.array_equal(before[2][:, :2], self._bearers[2][:, :2]):  # else only places have moved
                self._bearing = self._bearers[2]
            changes["written"] = np.zeros(3 * slots + len(self.versions.bearers) + 1, np.int32)
            changes["stamps"] = np.zeros(slots + len(self.versions.objects), np.int64)
        if work.rows.shape != (self.store.buffer, self.store.layout.words):
            changes["rows"] = np.zeros((self.store.buffer, self.store.layout.words), np.uint64)
        if not self.store.narrow:
            changes["kept"] = changes.get("rows", work.rows)
        elif work.kept is work.rows or len(work.kept) != self.store.buffer:
            changes["kept"] = np.zeros((self.store.buffer, 2), np.uint64)
        if changes:
            self.work = work._replace(**changes)
        self.ctl[k.WIDEST] = widest
        self.merged = self._merger.forest(self.store.layout.arrays, self.store.layout.chunks)
        special = (np.diff(self._bearers[0]) > 0).astype(np.uint8)
        if self.deaths:
            special |= self.deaths.special
        special |= self.orbits is not None  # whatever is written, another state may stand for the one that is reached
        self.packed = self._merger.packed(self.store.layout.arrays, special)
        depends = self.store.layout, self._bearing, self.dead_arrays()
        if len(depends) != len(self._effects_for) or not all(map(is_, depends, self._effects_for)):
            self._effects_for, self.effects = depends, self._new_effects()
        elif len(self.effects.need) < len(self.packed.keep):
            self.effects = longer(self.effects, len(self.packed.keep))

    def _new_effects(self) -> k.Effects:
        """Nothing is remembered: rows, or what outcomes have to look at, are others now."""
        lines = 0 if self.orbits else _EFFECTS  # images depend on all slots
        length = -(-(1 + 2 * self.store.layout.words) // _LINE) * _LINE
        return k.Effects(np.zeros_like(self.packed.keep), np.zeros((lines, length), np.uint64))

    def block(self, most: int) -> int:
        """How many states are expanded before what is missing is learned: so many that the list of retries is long enough."""
        return max(1, min(most, _RETRIES // (len(self.model.actions) + 1), _SUCCESSORS // max(1, int(self.ctl[k.WIDEST]))))

    def dead_arrays(self) -> Dead:
        """For the kernel."""
        return self.deaths.arrays() if self.deaths else NO_DEAD

    def symmetry_arrays(self) -> Symmetry:
        """For the kernel."""
        return self.orbits.images.arrays() if self.orbits else NO_SYMMETRY

    def version_arrays(self) -> k.Versions:
        """For the kernel."""
        slot_first, slot_bearers, bearers, object_first, object_bearers = self._bearers
        names, masks, values = self._renames
        return k.Versions(
            slot_first,
            slot_bearers,
            bearers,
            self.versions.masks.data,
            object_first,
            object_bearers,
            names,
            masks,
            values,
            self.name_requests,
        )

    def expand(self, begin: int, end: int, listed: int) -> int:
        """Fires the actions in a range of states, or the pairs on the list."""
        self.ctl[k.POS], self.ctl[k.END], self.ctl[k.LISTED] = begin, end, listed
        status = self._run_expand()
        while status == k.GROW:
            if not self.store.grow(int(self.ctl[k.STATES]), int(self.ctl[k.EDGES])):
                raise Stopped("memory")
            status = self._run_expand()
        if status == k.LIMIT:
            raise Stopped("max-states")
        if status == k.CONFLICT:
            self.raise_conflict(int(self.ctl[k.POS]), int(self.ctl[k.FAULTY]))
        return status

    def _run_expand(self) -> int:
        forest, layout, store = self.trees.forest(), self.store.layout.arrays, self.store.arrays()
        symmetry, versions, dead = self.symmetry_arrays(), self.version_arrays(), self.dead_arrays()
        status = self._expand(forest, self.merged, self.packed, self.effects, layout, store, self.work, versions, dead, symmetry, self.ctl)
        if self.deaths:
            self.deaths.check()
        return status

    def raise_conflict(self, state: int, action: int) -> None:
        """The plain semantics says it better: which slot is written twice, and by which part."""
        act, values = self.model.actions[action], self.state(state)
        for outcome in self.semantics.observe(act, values).outcomes:
            if outcome.beyond is None:
                self.semantics.apply_raw(act, outcome, values)
        raise EngineError(f"{act}: the kernel saw a slot written twice, the plain semantics does not")

    def judge(self, begin: int, end: int, listed: int) -> int:
        """Asks the state invariants about a range of states, or the pairs on the list."""
        self.ctl[k.POS], self.ctl[k.END], self.ctl[k.LISTED] = begin, end, listed
        forest, layout, store = self.trees.forest(), self.store.layout.arrays, self.store.arrays()
        return self._judge(forest, layout, store, self.work, self.ctl, self.state_trees, self.reads(), self.first_bad)

    def reads(self) -> NDArray[np.uint64]:
        """Per state invariant, and for all of them, the bits of a row that are known to matter; none where the rows of parents are gone."""
        word, shift, mask, _ = self.store.layout.arrays
        found = np.zeros((0 if self.store.narrow else len(self.state_trees) + 1, self.store.layout.words), np.uint64)
        for bits, tree in zip(found, self.state_trees, strict=False):
            for slot in self.trees.positions[tree]:
                bits[word[slot]] |= mask[slot] << shift[slot]
                found[-1, word[slot]] |= bits[word[slot]]
        return found

    def drive(self, call: Call, begin: int, end: int) -> None:
        """Calls a kernel for a range of states; learns what it misses and lets it try those pairs again, until nothing is missing."""
        while True:
            status = call(begin, end, 0)
            begin = int(self.ctl[k.POS])
            self.resolve(call)
            if status == k.DONE:
                return

    def fire(self, pairs: NDArray[np.int64]) -> None:
        """Fires pairs (state << ACTION_BITS | action), and learns what that takes."""
        self.work.again[: len(pairs)] = pairs
        self.expand(0, len(pairs), 1)
        self.resolve(self.expand)

    def resolve(self, call: Call, learned: bool = False) -> None:
        """Learns what is missing and tries those pairs again, until nothing is missing. `learned`: the first time that was done."""
        while self.ctl[k.RETRIES]:
            if not learned:
                if not self.ctl[k.REQUESTS] and not self.ctl[k.RENAMES]:
                    raise EngineError("a path is missing, but nothing is to be learned")
                self.learn_paths()
            learned = False
            self.fit()
            retries = int(self.ctl[k.RETRIES])
            self.work = self.work._replace(again=self.work.retries, retries=self.work.again)
            self.ctl[k.RETRIES] = 0
            call(0, retries, 1)

    def learn(self) -> None:
        """Learns what is missing, and makes room for it."""
        self.learn_paths()
        self.fit()

    def learn_paths(self) -> None:
        """Runs the model's Python code for each request, and finds the requested names. Of what is stored only rows are read."""
        for i in range(int(self.ctl[k.REQUESTS])):
            state, tree, _ = (int(n) for n in self.work.requests[i])
            self.trees.learn(tree, self.store.numbers(state), self.work.request_after[i] if self._about_step(tree) else None)
        self.ctl[k.REQUESTS] = 0
        self.work.asked[:] = 0
        for i in range(int(self.ctl[k.RENAMES])):
            self._learn_name(*(int(n) for n in self.name_requests[i]))
        self.ctl[k.RENAMES] = 0
        if self.orbits:
            self.orbits.check()

    def _about_step(self, tree: int) -> bool:
        live = self.trees.live_of(tree)
        return isinstance(self._promise(tree), StepInvariant) or (live is not None and live[1])

    def _promise(self, tree: int) -> object:
        index = self.trees.trees[tree].property
        return self.model.properties[index] if index >= 0 else None

    def _learn_name(self, name: int, mask: int) -> None:
        """`mask`: as a signed number."""
        if 2 * self._names_known > len(self._renames[0]):
            old, self._renames = self._renames, self._new_names(2 * len(self._renames[0]))
            for at in np.flatnonzero(old[0]):
                self._enter_name(old[0][at], old[1][at], old[2][at])
        bearer, value = divmod(name - 1, 1 << 32)
        versions = np.uint64(mask & (1 << 64) - 1)
        self._enter_name(np.int64(name), versions, self.versions.rename(bearer, value, int(versions)))
        self._names_known += 1

    def _enter_name(self, name: np.int64, mask: np.uint64, value: int) -> None:
        names, masks, values = self._renames
        at = _PLACE_OF(name, mask, len(names))
        while names[at]:
            at = (at + 1) & (len(names) - 1)
        names[at], masks[at], values[at] = name, mask, value

    def fit(self) -> None:
        """Makes rows and scratch space as wide as what was learned."""
        if not self.store.fits(self.domains.sizes, self.states):
            if self.states > self._arranged * _AGAIN:
                self.arrange()
            elif not self.store.repack(self.domains.sizes, self.states):
                raise Stopped("memory")
        self._prepare()

    def arrange(self) -> None:
        """Puts slots that are looked at after each other side by side; worth it once the trees are known well enough."""
        self._arranged = self.states
        self.store.groups = self._merger.groups(self.domains.sizes)
        if not self.store.repack(self.domains.sizes, self.states):
            raise Stopped("memory")
        self._prepare()

    def label(
        self,
        index: int,
        promise: str,
        fn: Callable[[View], Truth],
        marks: NDArray[np.uint8],
        begin: int = 0,
        check: Callable[[], None] = lambda: None,
    ) -> None:
        """Replaces the marks NOT_ASKED by what the predicate says of those states. `index`: of the property; -1 - index: its second one.

        Nothing below `begin` is looked at. `check` is called now and then, and may raise `Stopped`.
        """
        if index not in self.predicates:
            self.predicates[index] = self.trees.add_property(max(index, -1 - index), promise, fn)
            self._prepare()
        while begin < len(marks):
            check()
            end = min(begin + _LABELLED, len(marks))
            self.ctl[k.POS], self.ctl[k.END] = begin, end
            forest, layout, store = self.trees.forest(), self.store.layout.arrays, self.store.arrays()
            if _LABEL(forest, layout, store, self.work, self.ctl, self.predicates[index], marks):
                self.learn()
            else:
                begin = end


def _orbits(group: Group, trees: Trees, live: Sequence[LiveWhen]) -> Orbits:
    from dra_spec.explorer.symmetry import Orbits

    return Orbits(group, trees, live)
