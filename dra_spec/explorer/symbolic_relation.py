"""Transitions over sets of states: what an action makes of a set, and which states of a set it brings into another one.

The relation is partitioned: each leaf of an action's tree with the same assignment is one piece "guard, constants", whose image is
`exists(written bits, states & guard) & constants`. Pieces that write the same slots are taken together, as a relation between the states
before and a second set of variables of those slots, which takes the place of the first behind the image.

The parts of an outcome read the state before the action. If no two of them may write one slot, the outcome is one relation, too: they and
its constants, all at once. Where that relation is large they are applied one after the other, in an order in which nobody reads a slot that
an earlier one writes, so what a part reads is still what it was before; parts for which there is no such order are applied together, as the
product of their trees. The outcome's own constants come last.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import attrs

from dra_spec.explorer import arrays as k
from dra_spec.explorer.result import EngineError
from dra_spec.explorer.scout import raise_conflict
from dra_spec.explorer.semantics import Semantics
from dra_spec.explorer.symbolic_sets import AND, Encoding, Set
from dra_spec.explorer.symbolic_trees import Guards, SymbolicTrees, union
from dra_spec.explorer.trees import DISABLED

LARGEST = 5000  # nodes of the relation of an outcome with parts; beyond them its stages are taken one by one
Constants = tuple[tuple[int, int], ...]
Piecewise = tuple[Constants, tuple[int, ...], Set]  # constants, parts, and where an outcome has them


@attrs.frozen(eq=False)
class Assignment:
    """For the states of a guard: these slots get these values."""

    guard: Set
    written: Set  # the variables of the slots
    values: Set  # their cubes
    slots: frozenset[int]


Stage = Sequence[Assignment]  # guards that exclude each other and cover what comes in


@attrs.frozen(eq=False)
class Effect:
    """One outcome, or some that write the same slots: where it happens, which slots it writes, and how: either by a relation between the
    states before and the second variables of those slots, or in stages."""

    guard: Set
    slots: frozenset[int]
    relation: Set | None
    stages: Sequence[Stage] = ()


class Relation:
    """The actions of a model over sets."""

    def __init__(self, trees: SymbolicTrees, semantics: Semantics) -> None:
        self.trees, self.semantics = trees, semantics
        self.encoding: Encoding = trees.encoding
        self._pieces: dict[int, tuple[int, tuple[list[Piecewise], Set]]] = {}
        self._whole: dict[int, tuple[int, int, list[Effect]]] = {}
        self._latest: dict[int, tuple[int, int, Set, list[Effect]]] = {}  # with parts: of the states that were asked about last
        self._writes: dict[int, tuple[int, frozenset[int]]] = {}
        self._applied: dict[tuple[Constants, tuple[int, ...]], tuple[object, Effect, Set]] = {}
        self._assignments: dict[Constants, tuple[int, Set, Set, frozenset[int]]] = {}

    def effects(self, action: int, states: Set) -> list[Effect]:
        """What the action does to the states. Learns what is missing; raises `Grown`, and `ModelError` for a slot written twice."""
        guards = self.trees.cover(action, states)
        known = self._whole.get(action)
        if known is not None and known[:2] == (guards.change, self.encoding.epoch):
            return known[2]
        latest = self._latest.get(action)
        if latest is not None and latest[:2] == (guards.change, self.encoding.epoch) and latest[2] == states:
            return latest[3]
        made, plain = [], dict[tuple[int, ...], list[tuple[Constants, Set]]]()
        with_parts = False
        pieces, enabling = self._pieces_of(action, guards)
        enabled = states & enabling
        for constants, parts, guard in pieces:
            if parts:
                with_parts = True
                here = enabled & guard
                if here.satisfiable():
                    made.append(self._with_parts(action, here, guard, constants, parts))
            else:
                plain.setdefault(tuple(sorted(slot for slot, _ in constants)), []).append((constants, guard))
        for slots, members in plain.items():
            made += self._bundle(slots, members)
        if with_parts:
            self._latest[action] = guards.change, self.encoding.epoch, states, made
        else:
            self._whole[action] = guards.change, self.encoding.epoch, made
        return made

    def awake(self, action: int, states: Set) -> Set:
        """Those of the states where the action is not known to be disabled: mostly few, so all else begins with them."""
        asleep = self.trees.guards(action).leaves.get(DISABLED)
        return states if asleep is None else asleep.imp_strict(states)

    def enabled(self, action: int, states: Set) -> Set:
        """Those of the states, all of them covered, where the action has an outcome within the bounds."""
        return states & self._pieces_of(action, self.trees.guards(action))[1]

    def _pieces_of(self, action: int, guards: Guards) -> tuple[list[Piecewise], Set]:
        """Outcomes within the bounds with where they happen, equal ones of several leaves as one; where there is any."""
        known = self._pieces.get(action)
        if known is not None and known[0] == guards.change:
            return known[1]
        collected: dict[tuple[Constants, tuple[int, ...]], list[Set]] = {}
        for code, guard in guards.leaves.items():
            for piece in self.trees.walker.leaf(code):
                if piece.beyond < 0:
                    collected.setdefault((piece.constants, piece.parts), []).append(guard)
        made = [(constants, parts, union(sets, self.encoding)) for (constants, parts), sets in collected.items()]
        pieces = made, union([guard for _, _, guard in made], self.encoding)
        self._pieces[action] = guards.change, pieces
        return pieces

    def _bundle(self, slots: tuple[int, ...], members: Sequence[tuple[Constants, Set]]) -> list[Effect]:
        """Outcomes without parts that write the same slots."""
        if len(members) == 1 or not slots:
            true = self.encoding.true
            return [Effect(guard, frozenset(slots), None, [[self._assignment(true, constants)]]) for constants, guard in members]
        relation = union([guard & self.encoding.primed_constants(constants) for constants, guard in members], self.encoding)
        return [Effect(self.encoding.true, frozenset(slots), relation)]

    def _assignment(self, guard: Set, constants: Constants) -> Assignment:
        known = self._assignments.get(constants)
        if known is None or known[0] != self.encoding.epoch:
            slots = tuple(sorted(slot for slot, _ in constants))
            known = self.encoding.epoch, self.encoding.bits_of(slots), self.encoding.constants(constants), frozenset(slots)
            self._assignments[constants] = known
        return Assignment(guard, *known[1:])

    def _with_parts(self, action: int, here: Set, guard: Set, constants: Constants, parts: tuple[int, ...]) -> Effect:
        changes = tuple(self.trees.cover(part, here).change for part in parts)
        known = self._applied.get((constants, parts))
        if known is None or known[0] != (self.encoding.epoch, changes):
            by_part = {part: self._part(part) for part in parts}
            known = (self.encoding.epoch, changes), self._apply(constants, by_part), self._clash(constants, by_part)
            self._applied[constants, parts] = known
        self._refuse(action, here & known[2])
        return attrs.evolve(known[1], guard=guard)

    def _apply(self, constants: Constants, by_part: dict[int, list[tuple[Constants, Set]]]) -> Effect:
        """The outcome as a relation if it can be one, else in stages; its guard is left open."""
        slots = {slot for slot, _ in constants}.union(slot for leaves in by_part.values() for more, _ in leaves for slot, _ in more)
        relation, true = self._joint(constants, by_part), self.encoding.true
        if relation is not None:
            return Effect(true, frozenset(slots), relation)
        stages = [self._stage(by_part, group) for group in self._in_order(by_part)]
        return Effect(true, frozenset(slots), None, [*stages, [self._assignment(true, constants)]])

    def _joint(self, constants: Constants, by_part: Mapping[int, list[tuple[Constants, Set]]]) -> Set | None:
        """Constants and parts as one relation; None if it is large, or two of them may write one slot."""
        relation, written = self.encoding.primed_constants(constants), {slot for slot, _ in constants}
        for leaves in by_part.values():
            slots = {slot for more, _ in leaves for slot, _ in more}
            if slots & written:
                return None
            written |= slots
            cases = [
                where & self.encoding.primed_constants(more) & self.encoding.same(slots - {slot for slot, _ in more})
                for more, where in leaves
            ]
            relation &= union(cases, self.encoding)
            if relation.node_count() > LARGEST:
                return None
        return relation

    def _part(self, part: int) -> list[tuple[Constants, Set]]:
        collected: dict[Constants, list[Set]] = {}
        for code, states in self.trees.guards(part).leaves.items():
            collected.setdefault(self.trees.walker.leaf(code)[0].constants, []).append(states)
        return [(constants, union(sets, self.encoding)) for constants, sets in collected.items()]

    def _stage(self, by_part: Mapping[int, list[tuple[Constants, Set]]], group: Sequence[int]) -> Stage:
        """The parts of a group together: all combinations of their leaves."""
        combined: list[tuple[Constants, Set]] = [((), self.encoding.true)]
        for part in group:
            combined = [
                (constants + more, both)
                for constants, states in combined
                for more, where in by_part[part]
                if (both := states & where).satisfiable()
            ]
        clean = [(constants, states) for constants, states in combined if len({slot for slot, _ in constants}) == len(constants)]
        return [self._assignment(states, constants) for constants, states in clean]  # the others are refused where they occur

    def _in_order(self, by_part: dict[int, list[tuple[Constants, Set]]]) -> list[list[int]]:
        """Groups of parts, to be applied one after the other: a reader of a slot before its writer."""
        reads = {part: self.trees.walker.reads(part) for part in by_part}
        writes = {part: {slot for constants, _ in leaves for slot, _ in constants} for part, leaves in by_part.items()}
        left, order = list(by_part), []
        while left:
            free = next((p for p in left if not any(q != p and writes[p] & reads[q] for q in left)), None)
            if free is None:
                order.append(left)
                break
            order.append([free])
            left = [part for part in left if part != free]
        return order

    def _clash(self, constants: Constants, by_part: Mapping[int, list[tuple[Constants, Set]]]) -> Set:
        """Where two of them write one slot."""
        own = frozenset(slot for slot, _ in constants)
        writers = [(part, frozenset(slot for slot, _ in writes), states) for part, leaves in by_part.items() for writes, states in leaves]
        clash = self.encoding.false
        for i, (part, slots, states) in enumerate(writers):
            if slots & own:
                clash |= states
            for other, more, where in writers[:i]:
                if other != part and slots & more:
                    clash |= states & where
        return clash

    def _refuse(self, action: int, clash: Set) -> None:
        if clash.satisfiable():
            state = self.trees.trees.domains.state(self.encoding.pick(clash))
            raise_conflict(self.semantics, action, state)
            raise EngineError(f"{self.semantics.model.actions[action]}: a slot is written twice, but not in the plain semantics")

    # images

    def image(self, effects: Sequence[Effect], states: Set) -> Set:
        """The states after, versions as the action wrote them."""
        reached = []
        for effect in effects:
            if effect.relation is not None:
                slots = tuple(sorted(effect.slots))
                moved = (states & effect.guard).apply_exists(AND, effect.relation, self.encoding.bits_of(slots))
                reached.append(self.encoding.swap(moved, slots, to_primed=False))
            elif len(effect.stages) == 1:
                only = effect.stages[0][0]
                reached.append(states.apply_exists(AND, effect.guard, only.written) & only.values)
            elif (here := states & effect.guard).satisfiable():
                for stage in effect.stages:
                    here = union([here.apply_exists(AND, a.guard, a.written) & a.values for a in stage], self.encoding)
                reached.append(here)
        return union(reached, self.encoding)

    def preimage(self, effects: Sequence[Effect], target: Set, states: Set) -> Set:
        """Those of the states (all of them states for which the effects were made) that reach a state of the target, by some outcome."""
        found = []
        for effect in effects:
            here = effect.guard & states
            if not here.satisfiable():
                continue
            if effect.relation is not None:
                slots = tuple(sorted(effect.slots))
                wanted = self.encoding.swap(target, slots, to_primed=True)
                wanted = wanted.apply_exists(AND, effect.relation, self.encoding.primed_bits(slots))
            else:
                wanted = target
                for stage in reversed(effect.stages):
                    wanted = union([a.guard & wanted.apply_exists(AND, a.values, a.written) for a in stage], self.encoding)
            found.append(here & wanted)
        return union(found, self.encoding)

    # where

    def alive(self, action: int, states: Set) -> Set:
        """Those of the states where the action has an outcome, be it beyond the bounds."""
        guards = self.trees.cover(action, states)
        return union([g for code, g in guards.leaves.items() if self.trees.walker.leaf(code)], self.encoding) & states

    def escaping(self, action: int, states: Set) -> tuple[Set, set[int]]:
        """Those of the states where an outcome is beyond the bounds, and the numbers of the reasons."""
        guards = self.trees.cover(action, states)
        where, reasons = self.encoding.false, set()
        for code, guard in guards.leaves.items():
            beyond = {piece.beyond for piece in self.trees.walker.leaf(code) if piece.beyond >= 0}
            if beyond and (here := guard & states).satisfiable():
                where |= here
                reasons |= beyond
        return where, reasons

    def writes(self, action: int) -> frozenset[int]:
        """The slots that an outcome of the action may write, as far as its tree is known."""
        learned = self.trees.trees.learned
        known = self._writes.get(action)
        if known is None or known[0] != learned:
            walker, found = self.trees.walker, set[int]()
            for piece in (piece for code in walker.leaf_codes(action) for piece in walker.leaf(code)):
                found.update(slot for slot, _ in piece.constants)
                for part in piece.parts:
                    found.update(slot for code in walker.leaf_codes(part) for one in walker.leaf(code) for slot, _ in one.constants)
            known = self._writes[action] = learned, frozenset(found)
        return known[1]

    def taken(self, action: int, states: Set) -> int:
        """How many transitions the action makes out of the states."""
        guards = self.trees.cover(action, states)
        total = 0
        for code, guard in guards.leaves.items():
            outcomes = sum(piece.beyond < 0 for piece in self.trees.walker.leaf(code))
            if outcomes:
                total += outcomes * self.encoding.count(guard & states)
        return total

    def truth(self, tree: int, states: Set, truth: int) -> Set:
        """Those of the states of which a promise says so."""
        guards = self.trees.cover(tree, states)
        return guards.leaves.get(k.LEAF - truth, self.encoding.false) & states
