"""The rules of allocation as a formula that is satisfiable exactly when an allocation exists.

Variables: how many devices of a group a leaf request takes (a Boolean if the group has one), which alternative of a prioritized list is
active, on which node each call is. In tracked form every rule that somebody could change hangs on a literal, so that an unsatisfiable core
names rules. Source: k8s.io/dynamic-resource-allocation v0.37.2 (incubating and experimental), KEP-4381 and the KEPs of its features.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import attrs
import z3

from dra_spec.allocation.z3_groups import Group, World
from dra_spec.allocation.z3_leaf import MAX_RESULTS, Leaf, Reason
from dra_spec.allocation.z3_problem import Pick, Problem, Solution, WantedClaim

ONCE = Reason("once", (), "a device serves one request only")


@attrs.define(eq=False)
class Encoding:
    """One formula. `tracked`: rules are literals (`literals`); else they hold. `optional`: a call wants its devices only if its literal
    in `wanted` is assumed."""

    world: World
    tracked: bool = False
    solver: z3.Solver = attrs.field(factory=z3.Solver)
    optional: bool = False
    wanted: list[z3.BoolRef] = attrs.field(factory=list)  # by call
    literals: dict[Reason, z3.BoolRef] = attrs.field(factory=dict)
    active: dict[int, z3.BoolRef] = attrs.field(factory=dict)  # by leaf
    fewer: dict[int, z3.ArithRef] = attrs.field(factory=dict)  # by leaf: how many devices less are enough (tracked only)
    at: list[dict[str, z3.BoolRef]] = attrs.field(factory=list)  # by call: node -> the call is there
    used: dict[tuple[int, int], z3.BoolRef] = attrs.field(factory=dict)  # (leaf, group) -> takes any
    number: dict[tuple[int, int], z3.ArithRef] = attrs.field(factory=dict)  # of groups with more than one device

    def __attrs_post_init__(self) -> None:
        from dra_spec.allocation.z3_resources import resource_rules
        from dra_spec.allocation.z3_rules import shared_rules

        self._variables()
        for leaf in self.world.leaves:
            self._count(leaf)
        self._requests()
        self._once()
        self._limit()
        shared_rules(self)
        resource_rules(self)

    @property
    def problem(self) -> Problem:
        return self.world.problem

    # --- building blocks ------------------------------------------------------------------------------------------------

    def literal(self, reason: Reason) -> z3.BoolRef:
        """The literal of a rule; true while rules are not tracked."""
        if not self.tracked:
            return z3.BoolVal(True)
        if reason not in self.literals:
            self.literals[reason] = z3.Bool(f"rule {len(self.literals)}")
        return self.literals[reason]

    def rule(self, reason: Reason | None, formula: z3.BoolRef) -> None:
        """Asserts the formula, as long as the rule is in force."""
        if reason is None or not self.tracked:
            self.solver.add(formula)
        else:
            self.solver.add(z3.Implies(self.literal(reason), formula))

    def takers(self, group: Group) -> list[Leaf]:
        """The leaves that can take from the group."""
        return [leaf for leaf in self.world.leaves if (leaf.index, group.index) in self.used]

    def terms(self, pairs: Iterable[tuple[Leaf, Group]]) -> list[tuple[int, int]]:
        """The pairs that have a variable."""
        return [(q.index, g.index) for q, g in pairs if (q.index, g.index) in self.used]

    def at_most(self, weighted: Sequence[tuple[int, tuple[int, int]]], bound: int) -> z3.BoolRef:
        """The weighted sum of what the pairs take is at most the bound. Weights are not negative."""
        if not any(pair in self.number for _, pair in weighted):
            return z3.PbLe([(self.used[pair], w) for w, pair in weighted if w], bound) if bound >= 0 else z3.BoolVal(False)
        return z3.Sum([w * self.amount(pair) for w, pair in weighted]) <= bound

    def exists(self, leaf: Leaf) -> z3.BoolRef | None:
        """That the leaf's pod is on a node where there is such a claim; None if there is one wherever it is."""
        places = self.at[leaf.call]
        nodes = self.world.where.get(leaf.claim)
        return None if nodes is None or len(nodes) == len(places) else z3.Or([places[n] for n in nodes])

    def amount(self, pair: tuple[int, int]) -> z3.ArithRef:
        """How many devices the leaf takes from the group."""
        return self.number.get(pair, z3.If(self.used[pair], z3.IntVal(1), z3.IntVal(0)))

    # --- rules about one request ----------------------------------------------------------------------------------------

    def _variables(self) -> None:
        for i, call in enumerate(self.problem.calls):
            self.wanted.append(z3.Bool(f"call {i} is wanted"))
            if len(call.nodes) == 1:
                self.at.append({call.nodes[0]: z3.BoolVal(True)})
                continue
            there = {name: z3.Bool(f"call {i} on {name}") for name in call.nodes}
            self.at.append(there)
            self.solver.add(z3.PbEq([(b, 1) for b in there.values()], 1))
        for leaf in self.world.leaves:
            active = self.active[leaf.index] = z3.Bool(f"active {leaf.index}")
            exists = self.exists(leaf)
            if exists is not None:  # a claim that the scheduler makes on some nodes only
                self.solver.add(z3.Implies(active, exists))
            for group in self.world.groups:
                reasons = group.reasons(leaf)
                if reasons and not self.tracked:
                    continue
                self._variable(leaf, group)

    def _variable(self, leaf: Leaf, group: Group) -> None:
        pair = (leaf.index, group.index)
        used = self.used[pair] = z3.Bool(f"leaf {leaf.index} uses group {group.index}")
        if group.size > 1:
            number = self.number[pair] = z3.Int(f"leaf {leaf.index} takes of group {group.index}")
            self.solver.add(number >= 0, number <= group.size, used == (number >= 1))
        self.solver.add(z3.Implies(used, self.active[leaf.index]))
        there = self.at[leaf.call]
        if len(there) > 1:
            self.solver.add(z3.Implies(used, z3.Or([b for name, b in there.items() if name in group.nodes])))
        barred = group.refused[leaf.index] if leaf.request.all_devices else group.reasons(leaf)
        for reason in barred if self.tracked else ():
            self.rule(reason, z3.Not(used))

    def _count(self, leaf: Leaf) -> None:
        active = self.active[leaf.index]
        if leaf.request.all_devices:
            self._all(leaf)
            return
        pairs = self.terms((leaf, g) for g in self.world.groups)
        wanted = leaf.count
        available = sum(g.size for g in self.world.groups if (leaf.index, g.index) in self.used)
        if self.tracked:
            fewer = self.fewer[leaf.index] = z3.Int(f"fewer {leaf.index}")
            self.solver.add(fewer >= 0, fewer <= self._spare(leaf))
            reason = Reason("fewer", (leaf.claim, leaf.name), f"{leaf.label} wants {_devices(wanted)}", leaf.request.at)
            self.rule(reason, fewer == 0)
            self.solver.add(z3.Implies(active, z3.Sum([self.amount(p) for p in pairs] or [z3.IntVal(0)]) == wanted - fewer))
        elif available < wanted:
            self.solver.add(z3.Not(active))
        elif not any(p in self.number for p in pairs):
            self.solver.add(z3.Implies(active, z3.PbEq([(self.used[p], 1) for p in pairs], wanted)))
        else:
            self.solver.add(z3.Implies(active, z3.Sum([self.amount(p) for p in pairs]) == wanted))

    def _spare(self, leaf: Leaf) -> int:
        """How many devices the leaf can do without: all but one, or all of a request beside which there are others."""
        request = self.problem.claims[leaf.claim].spec.requests[leaf.number]
        beside = sum(len(c.spec.requests) for c in self.problem.claims)
        return leaf.count if beside > 1 and request.exactly is not None else max(leaf.count - 1, 0)

    def _all(self, leaf: Leaf) -> None:
        """Every device on the list, whatever else stands against it, and at least one."""
        active = self.active[leaf.index]
        there = self.at[leaf.call]
        listed = []
        for group in self.world.groups:
            pair = (leaf.index, group.index)
            if not self.tracked and group.listed[leaf.index]:
                continue
            on_list = z3.And(active, *(z3.Not(self.literal(r)) for r in group.listed[leaf.index]))
            if len(there) > 1:
                on_list = z3.And(on_list, z3.Or([b for name, b in there.items() if name in group.nodes]))
            if pair not in self.used:  # something stands against it
                self.solver.add(z3.Not(on_list))
                continue
            listed.append(self.used[pair])
            self.solver.add(self.used[pair] == on_list, z3.Implies(on_list, self.amount(pair) == group.size))
        self.solver.add(z3.Implies(active, z3.Or(listed)))
        if self.tracked:
            for seen in self.world.views.values():
                for pool in seen.broken():
                    text = f"{leaf.label} asks for all devices, and {pool.problem}"
                    self.rule(Reason("pool", (pool.label,), text), z3.BoolVal(False))

    def _requests(self) -> None:
        """Exactly one alternative of each request."""
        by_request: dict[tuple[int, int], list[Leaf]] = {}
        for leaf in self.world.leaves:
            by_request.setdefault((leaf.claim, leaf.number), []).append(leaf)
        for leaves in by_request.values():
            active = [self.active[leaf.index] for leaf in leaves]
            if len(active) > 1:
                self.solver.add(z3.AtMost(*active, 1))
            first = leaves[0]
            claim = self.problem.claims[first.claim]
            request = claim.spec.requests[first.number]
            exists = self.exists(first)
            satisfied = z3.Or(active) if exists is None else z3.Implies(exists, z3.Or(active))
            if self.optional:
                satisfied = z3.Implies(self.wanted[first.call], satisfied)
            text = wish(leaves, claim.label) + purpose(claim, first.main)
            self.rule(Reason("request", (first.claim, first.main), text, request.at), satisfied)

    # --- rules about several --------------------------------------------------------------------------------------------

    def _once(self) -> None:
        """A device that is not shared serves one request; admin access may join it later, from another claim."""
        leaves = self.world.leaves
        for group in self.world.groups:
            if group.shared:
                continue
            takers = self.takers(group)
            ordinary = [q for q in takers if not q.admin]
            if sum(q.count if not q.request.all_devices else group.size for q in ordinary) > group.size or len(ordinary) > 1:
                self.rule(ONCE, self.at_most([(1, (q.index, group.index)) for q in ordinary], group.size))
            for later in takers:
                for earlier in leaves[: later.index]:
                    if (earlier.index, group.index) not in self.used or not (earlier.admin or later.admin):
                        continue
                    if earlier.call == later.call and (earlier.claim == later.claim or not later.admin):
                        both = z3.And(self.used[earlier.index, group.index], self.used[later.index, group.index])
                        self.rule(ONCE, z3.Not(both))

    def _limit(self) -> None:
        for index, claim in enumerate(self.problem.claims):
            mine = self.terms((q, g) for q in self.world.leaves if q.claim == index for g in self.world.groups)
            most = sum(self.world.groups[g].size for _, g in mine)
            if most > MAX_RESULTS:
                reason = Reason("limit", (index,), f"{claim.label} may have at most {MAX_RESULTS} devices")
                self.rule(reason, self.at_most([(1, pair) for pair in mine], MAX_RESULTS))

    # --- answers --------------------------------------------------------------------------------------------------------

    def solution(self, model: z3.ModelRef) -> Solution:
        """The allocation that a model stands for: counts become devices, in search order."""
        free = {g.index: list(g.members) for g in self.world.groups}
        picks: list[tuple[int, tuple[object, ...], Pick]] = []
        for leaf in self.world.leaves:
            for group in self.world.groups:
                pair = (leaf.index, group.index)
                if pair not in self.used or not z3.is_true(model.eval(self.used[pair], model_completion=True)):
                    continue
                if pair not in self.number:
                    members = list(group.members)
                else:
                    number = model.eval(self.number[pair], model_completion=True)
                    assert isinstance(number, z3.IntNumRef)
                    members, free[group.index] = free[group.index][: number.as_long()], free[group.index][number.as_long() :]
                for device in members:
                    taken = self.world.table.amounts(leaf, device).consumed if group.shared else {}
                    pick = Pick(leaf.claim, leaf.name, device.name, leaf.admin, tuple(sorted(taken.items())))
                    picks.append((leaf.index, device.order, pick))
        nodes = []
        for there in self.at:
            nodes.append(next(n for n, b in there.items() if z3.is_true(model.eval(b, model_completion=True))))
        return Solution(tuple(nodes), tuple(p for _, _, p in sorted(picks, key=lambda p: p[:2])))


def wish(leaves: Sequence[Leaf], claim: str) -> str:
    """What a request wants, in words."""

    def one(leaf: Leaf) -> str:
        number = "all devices" if leaf.request.all_devices else _devices(leaf.count)
        return f"{number} of class {leaf.request.device_class_name}{' (admin access)' if leaf.admin else ''}"

    return f"request {leaves[0].main} of {claim} wants " + ", or else ".join(one(leaf) for leaf in leaves)


def purpose(claim: WantedClaim, request: str) -> str:
    """For which container's extended resource a request of a special claim is, in words; "" for other claims."""
    uses = [u for u in claim.special.uses if u.request == request] if claim.special is not None else []
    return f" for {uses[0].resource} in {' and '.join(u.container for u in uses)}" if uses else ""


def _devices(count: int) -> str:
    return "1 device" if count == 1 else f"{count} devices"
