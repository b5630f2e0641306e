"""Dead values: slots that nobody will read again before they are written get one fixed value. Docs: docs/decisions/0022-dead-values.md.

A declaration (`LiveWhen`) is taken at its word only as far as it can be checked:
(a) no path of a decision tree that is possible where the predicate is false looks at the slot (actions with their parts, promises);
(b) a step that makes the predicate true writes the slot;
(c) a predicate looks at no slot that has a declaration itself.
(b) is checked at every step of the search; (a) and (c) ahead of it, on the trees of a short search, and afterwards, on all paths. A
declaration that fails is left out, and the search begins again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import attrs
import numpy as np
from numpy.typing import NDArray

from dra_spec.explorer import arrays as k
from dra_spec.explorer.ahead import Ahead
from dra_spec.explorer.growing import Ints
from dra_spec.explorer.model import LeadsTo, LiveWhen, Model, Slot, Truth
from dra_spec.explorer.reductions import ReductionReport, Refuted, refused
from dra_spec.explorer.scout import Walker
from dra_spec.explorer.semantics import State
from dra_spec.explorer.trees import Trees
from dra_spec.explorer.values import Version, rename, versions
from dra_spec.explorer.ways import TooMany, ways

NAME = "dead"
Known = Mapping[int, tuple[int, ...]]  # per position the numbers of the values that are possible


class Dead(NamedTuple):
    """For the kernel. Declarations are numbered; `affected[first[s]:first[s + 1]]`: those whose predicate may look at slot s, or that
    speak of it. `before`, `after`: their trees; `slots[slot_first[d]:slot_first[d + 1]]`: what they speak of."""

    first: Any
    affected: Any
    before: Any
    after: Any
    slot_first: Any
    slots: Any
    rest: Any  # per slot: number of the value that a dead one gets
    done: Any  # scratch: per declaration the stamp of the last outcome for which it was asked
    fault: Any  # how often (b) failed; state, action, declaration of the first time


_NONE = np.zeros(0, np.int32)
NO_DEAD = Dead(_NONE, _NONE, _NONE, _NONE, _NONE, _NONE, _NONE, np.zeros(0, np.int64), np.zeros(4, np.int64))


@attrs.frozen(eq=False)
class Plan:
    """The declarations that a search uses, and what the report says."""

    live: Sequence[LiveWhen]
    report: ReductionReport


def find(model: Model, excluded: Mapping[Hashable, str]) -> Plan:
    """The declarations that hold in a short search ahead, without those in `excluded` (by name, with the reason). Raises `ModelError`."""
    if any(isinstance(promise, LeadsTo) for promise in model.properties):
        return Plan((), refused(NAME, "a run that goes on for ever must come back to the same state, dead slots included (leads-to)"))
    there, reasons = set(model.slots), {str(name): why for name, why in excluded.items()}
    declared = [attrs.evolve(live, slots=[slot for slot in live.slots if slot in there]) for live in model.live]
    times = Counter(slot for live in declared for slot in live.slots)
    for live in declared:
        reasons.update({str(live): f"{slot} is in two declarations" for slot in live.slots if times[slot] > 1})
    left = [live for live in declared if live.slots and str(live) not in reasons]
    if not left:
        return Plan((), refused(NAME, _told(reasons) or "the model declares nothing"))
    ahead = Ahead(model)
    while left:
        deaths = Deaths(left, ahead.trees)
        try:
            for row in ahead.rows:
                deaths.learn(row)
            failed = next(deaths.failures(), None)
        except Refuted as error:
            failed = next(live for live in left if str(live) == error.what), str(error)
        if failed is None:
            break
        reasons[str(failed[0])] = failed[1]
        left = [live for live in left if live is not failed[0]]
    if not left:
        return Plan((), refused(NAME, _told(reasons)))
    count = sum(len(live.slots) for live in left)
    more = f"; not {_told(reasons)}" if reasons else ""
    return Plan(left, ReductionReport(NAME, True, f"{count} slots in {len(left)} declarations{more}"))


def at_rest(slot: Slot[Any]) -> Any:
    """What a dead slot holds: its initial value. Its versions become those of an object that nobody else knows, or it would hang on how a
    slot died which other versions they are equal to, and new versions would count up from there."""
    ranks: dict[str, list[int]] = {}
    for version in versions(slot.initial):
        ranks.setdefault(version.of, []).append(version.n)
    names = {Version(of, n): Version(f"at rest/{of}", rank) for of, numbers in ranks.items() for rank, n in enumerate(sorted(set(numbers)))}
    return rename(slot.initial, names)


def _told(reasons: Mapping[str, str]) -> str:
    return "; ".join(f"{name}: {reason}" for name, reason in reasons.items())


class Deaths:
    """The declarations at work on the trees of one search."""

    def __init__(self, live: Sequence[LiveWhen], trees: Trees) -> None:
        self.live, self.trees = live, trees
        self.walker = Walker(trees)
        self._index = trees.domains.index
        self.before = [trees.live_tree(declared, False) for declared in live]
        self.after = [trees.live_tree(declared, True) for declared in live]
        self._of = {self._index[slot]: d for d, declared in enumerate(live) for slot in declared.slots}
        self._resting = {slot: at_rest(slot) for declared in live for slot in declared.slots}
        self._rest = trees.domains.numbers([self._resting.get(slot, slot.initial) for slot in trees.domains.slots])
        self._known: dict[Hashable, bool] = {}
        self._asked: set[Hashable] = set()
        self._part_reads: dict[int, bool] = {}  # whether a part looks at a slot with a declaration
        self._arrays: Dead | None = None
        self._learned = 0  # paths of predicates, when they were made

    # -- resetting

    def settle(self, state: State) -> State:
        """A state with its dead slots at rest; versions as they are."""
        view = self.trees.semantics.view(state)
        settled = list(state)
        for declared in self.live:
            if not declared.predicate(view):
                for slot in declared.slots:
                    settled[self._index[slot]] = self._resting[slot]
        return tuple(settled)

    def rest_of(self, slot: int) -> int | None:
        """The number of the value that a slot gets when it dies; None if no declaration speaks of it."""
        return int(self._rest[slot]) if slot in self._of else None

    def learn(self, row: Ints) -> None:
        """Makes the predicates' paths in a state known."""
        for tree in self.before:
            self.walker.reach(tree, row)

    def arrays(self) -> Dead:
        """For the kernel; made anew when a path of a predicate was learned, as it may look at more slots now."""
        if self._arrays is None or self._learned != self.trees.learned_live:
            self._learned = self.trees.learned_live
            slots = len(self.trees.domains.slots)
            affected: list[list[int]] = [[] for _ in range(slots)]
            for d, declared in enumerate(self.live):
                for slot in self._support(d) | {self._index[slot] for slot in declared.slots}:
                    affected[slot].append(d)
            first, members = _flat(affected)
            slot_first, of = _flat([[self._index[slot] for slot in declared.slots] for declared in self.live])
            before, after = (np.array(trees, np.int32) for trees in (self.before, self.after))
            scratch = np.zeros(len(self.live), np.int64), np.zeros(4, np.int64)
            self._arrays = Dead(first, members, before, after, slot_first, of, self._rest, *scratch)
        return self._arrays

    @property
    def special(self) -> NDArray[np.uint8]:
        """The slots whose change may let a slot die, or is one of a slot that may be dead."""
        special: NDArray[np.uint8] = (np.diff(self.arrays().first) > 0).astype(np.uint8)
        return special

    def _support(self, d: int) -> frozenset[int]:
        return self.walker.reads(self.before[d]) | self.walker.reads(self.after[d])

    def check(self, faults: Sequence[Ints | NDArray[np.int64]] = ()) -> None:
        """Looks whether a step made a slot live without writing it. Raises `Refuted`. `faults`: noted by workers of their own."""
        found = [fault for fault in (self.arrays().fault, *faults) if fault[0]]
        if found:
            fault = min(found, key=lambda fault: int(fault[1]))
            declared, action = self.live[int(fault[3])], self.trees.model.actions[int(fault[2])]
            raise Refuted(NAME, str(declared), f"{action} makes it live without writing it")

    def finish(self) -> None:
        """Looks at all paths that are known when the search is over. Raises `Refuted`."""
        self.check()
        for declared, reason in self.failures():
            raise Refuted(NAME, str(declared), reason)

    # -- what is checked on the trees

    def failures(self) -> Iterator[tuple[LiveWhen, str]]:
        """Declarations that do not hold, with the reason."""
        for d, declared in enumerate(self.live):
            own = [slot for slot in self._support(d) if slot in self._of]
            if own:
                yield declared, f"its predicate looks at {self.trees.domains.slots[own[0]]}, which may itself be dead"
        self._asked.clear()
        supports: frozenset[int] = frozenset().union(*(self._support(d) for d in range(len(self.live))))
        for tree in range(len(self.trees.trees)):
            if self.trees.live_of(tree) is None and not self.trees.is_part(tree):  # parts: behind the paths of their actions
                for d, slot, who in self._looked_at_dead(tree, {}, supports):
                    yield self.live[d], f"{who} looks at {self.trees.domains.slots[slot]} where it need not be live"

    def _looked_at_dead(self, tree: int, begin: Known, supports: frozenset[int]) -> Iterator[tuple[int, int, str]]:
        """Declarations and slots at which some path looks although the predicate may be false there. `begin`: what is known before."""
        slots, domains = len(self.trees.domains.slots), self.trees.domains
        asked = (tree, frozenset(begin.items()))
        if asked in self._asked:
            return
        self._asked.add(asked)
        todo: list[tuple[int, Known, frozenset[int]]]
        todo = [(int(self.trees.child.data[self.trees.roots.data[tree]]), begin, frozenset())]
        while todo:
            code, known, looked = todo.pop()
            if code <= k.LEAF:
                for position in looked:
                    d = self._of[position % slots]
                    if not (self._live(d, known, 0) or (position >= slots and self._live(d, known, slots))):
                        yield d, position % slots, self._name(tree)
                for part in self._parts(tree, code):
                    yield from self._looked_at_dead(part, known, supports)
            elif code >= 0:
                position, base, child, observer = (int(n) for n in self.trees.nodes.data[code])
                slot = position % slots
                if slot in self._of:
                    looked |= {position}
                if slot in supports:
                    by_sight: dict[int, list[int]] = {}
                    for number in known.get(position, range(int(domains.sizes[slot]))):
                        seen = int(self.trees.seen.data[base + number])
                        if seen >= 0:
                            by_sight.setdefault(seen, []).append(number)
                    todo += [
                        (int(self.trees.child.data[child + seen]), {**known, position: tuple(alike)}, looked)
                        for seen, alike in by_sight.items()
                    ]
                else:
                    cells = self.trees.child.data[child : child + self.trees.width(observer)]
                    todo += [(int(cell), known, looked) for cell in cells if cell >= 0 or cell <= k.LEAF]

    def _parts(self, tree: int, code: int) -> Iterator[int]:
        """The parts in a leaf of an action that look at slots with a declaration."""
        if tree < len(self.trees.model.actions):
            for piece in self.walker.leaf(code):
                for part in piece.parts:
                    if part not in self._part_reads:
                        self._part_reads[part] = not self._of.keys().isdisjoint(self.walker.reads(part))
                    if self._part_reads[part]:
                        yield part

    def _name(self, tree: int) -> str:
        if self.trees.is_part(tree):
            return f"the part {self.trees.part_of(tree).fn.__name__} of an action"
        return self.trees.trees[tree].who

    def _live(self, d: int, known: Known, offset: int) -> bool:
        """Whether the predicate is true for all that is possible. `offset`: 0 for the state before, the number of slots for that after."""
        slots = len(self.trees.domains.slots)
        about = {p - offset: numbers for p, numbers in known.items() if offset <= p < offset + slots}
        asked = (d, frozenset(about.items()), self.trees.domains.sizes.tobytes())
        if asked not in self._known:
            self._known[asked] = self._always(d, about)
        return self._known[asked]

    def _always(self, d: int, about: Mapping[int, tuple[int, ...]]) -> bool:
        tree, domains = self.trees.trees[self.before[d]], self.trees.domains
        row = np.zeros(len(domains.slots), np.int32)
        try:
            found = ways(lambda rows: tree.run(domains.state(rows[0]), None), domains, (row, None), about)
            return all(code != k.LEAF - Truth.FALSE for _, code, _ in found)
        except TooMany:
            return False


def _flat(groups: Sequence[Sequence[int]]) -> tuple[Ints, Ints]:
    first = np.zeros(len(groups) + 1, np.int32)
    first[1:] = np.cumsum([len(group) for group in groups])
    return first, np.array([n for group in groups for n in group], np.int32)
