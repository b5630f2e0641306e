"""The rules about what devices share: counters, capacity, compatibility groups, constraints. Parts of the encoding."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from fractions import Fraction

import z3

from dra_spec.allocation.errors import UnsupportedFeature
from dra_spec.allocation.z3_capacity import untold
from dra_spec.allocation.z3_encoding import Encoding
from dra_spec.allocation.z3_groups import Group, Values
from dra_spec.allocation.z3_leaf import Leaf, Reason, held
from dra_spec.allocation.z3_view import CounterName, PoolFacts, draws
from dra_spec.resources.claims import Constraint
from dra_spec.resources.problems import NOWHERE, Where
from dra_spec.resources.quantity import Quantity

_Weighted = list[tuple[Fraction, z3.ArithRef | z3.BoolRef]]


def shared_rules(e: Encoding) -> None:
    """Adds all of them."""
    by_pool: dict[str, list[Group]] = {}
    for group in e.world.groups:
        if group.first.device.consumes_counters:
            by_pool.setdefault(group.first.pool, []).append(group)
    for groups in by_pool.values():
        pool = e.world.pool(groups[0])
        if pool is not None and not pool.problem:
            _counters(e, pool, groups)
            if "CompatibilityGroups" in e.problem.features:
                _compatible(e, pool, groups)
    for group in e.world.groups:
        if group.shared:
            _capacity(e, group)
    for index, claim in enumerate(e.problem.claims):
        for number, constraint in enumerate(claim.spec.devices.constraints):
            name = constraint.match_attribute or constraint.distinct_attribute
            kind = "matchAttribute" if constraint.match_attribute else "distinctAttribute"
            over = f" over {', '.join(constraint.requests)}" if constraint.requests else ""
            reason = Reason("constraint", (index, number), f"{claim.label}: {kind} {name}{over}", constraint.at)
            leaves = [q for q in e.world.leaves if q.claim == index and covers(constraint, q)]
            if constraint.match_attribute:
                _match(e, reason, name, leaves)
            else:
                _distinct(e, reason, name, leaves)


def covers(constraint: Constraint, leaf: Leaf) -> bool:
    """Whether a constraint of the leaf's claim speaks of the leaf."""
    return not constraint.requests or leaf.main in constraint.requests or leaf.name in constraint.requests


def _sum_at_most(e: Encoding, terms: _Weighted, bound: Fraction) -> z3.BoolRef:
    """The weighted sum is at most the bound, with whole numbers."""
    scale = math.lcm(bound.denominator, *(w.denominator for w, _ in terms))
    weights = [int(w * scale) for w, _ in terms]
    limit = math.floor(bound * scale)
    divisor = math.gcd(*weights) or 1
    weights, limit = [w // divisor for w in weights], limit // divisor
    if all(z3.is_bool(t) for _, t in terms) and all(w >= 0 for w in weights):
        if limit < 0:
            return z3.BoolVal(False)
        if sum(weights) <= limit:
            return z3.BoolVal(True)
        return z3.PbLe([(t, w) for w, (_, t) in zip(weights, terms, strict=True) if w], limit)
    parts = [w * (z3.If(t, z3.IntVal(1), z3.IntVal(0)) if z3.is_bool(t) else t) for w, (_, t) in zip(weights, terms, strict=True)]
    return z3.Sum(parts) <= limit


def _holders(e: Encoding, device: str) -> list[Reason]:
    return [held(h.claim) for h in e.problem.holdings if h.device == device]


def _drawn(e: Encoding, pool: PoolFacts, counter: CounterName) -> tuple[Fraction, _Weighted]:
    """What allocated devices already take: a fixed amount, or while rules are tracked an amount for each that can be freed."""
    fixed, terms = Fraction(0), list[tuple[Fraction, z3.ArithRef | z3.BoolRef]]()
    for device in pool.listed:
        amount = draws(device).get(counter, Fraction(0))
        holders = _holders(e, f"{pool.label}/{device.name}")
        if not amount or not holders:
            continue
        if e.tracked:
            terms.append((amount, z3.Or([e.literal(r) for r in holders])))
        else:
            fixed += amount
    return fixed, terms


def _counters(e: Encoding, pool: PoolFacts, groups: Sequence[Group]) -> None:
    """As soon as a counter-consuming device is taken, every counter of the pool must cover what is drawn from it in all."""
    charges: list[tuple[Group, list[z3.ArithRef | z3.BoolRef]]] = []
    any_charge: list[z3.BoolRef] = []
    for group in groups:
        takers = [(q.index, group.index) for q in e.takers(group)]
        if not takers or (group.shared and e.world.table.live(group.first)):
            continue
        any_charge += [e.used[p] for p in takers]
        if group.shared:
            charges.append((group, [z3.Or([e.used[p] for p in takers])]))
        else:
            charges.append((group, [e.number[p] if p in e.number else e.used[p] for p in takers]))
    if not charges:
        return
    for counter, value in pool.counters.items():
        fixed, terms = _drawn(e, pool, counter)
        for group, takes in charges:
            amount = draws(group.first.device).get(counter, Fraction(0))
            if amount:
                terms += [(amount, take) for take in takes]
        shown = _shown(e, pool, counter)
        taken = sum((draws(d).get(counter, Fraction(0)) for d in pool.listed if _holders(e, f"{pool.label}/{d.name}")), Fraction(0))
        wanted = [draws(g.first.device).get(counter, Fraction(0)) for g, _ in charges]
        overdrawn = taken > value
        text = f"pool {pool.label}: counter {counter[1]} of {counter[0]} has {shown}"
        text += _balance("a device", shown, taken, () if overdrawn else wanted)
        text += "; a counter that is overdrawn blocks its pool" if overdrawn else ""
        reason = Reason("counter", (pool.label, *counter), text, _counter_place(e, pool, counter))
        enough = _sum_at_most(e, terms, value - fixed) if terms else z3.BoolVal(fixed <= value)
        if any(w < 0 for w, _ in terms) or fixed > value or (e.tracked and terms):
            e.rule(reason, z3.Or(z3.Not(z3.Or(any_charge)), enough))
        else:
            e.rule(reason, enough)  # holds by itself as long as nothing is drawn


def _balance(taker: str, shown: Quantity, taken: Fraction, wanted: Iterable[Fraction]) -> str:
    """How much of an amount is taken, and how much a taker takes, in words."""
    text = f", {Quantity(taken, shown.style)} of it taken" if taken else ""
    amounts = sorted({w for w in wanted if w > 0})
    if amounts:
        most = f" to {Quantity(amounts[-1], shown.style)}" if len(amounts) > 1 else ""
        text += f"; {taker} takes {Quantity(amounts[0], shown.style)}{most}"
    return text


def _shown(e: Encoding, pool: PoolFacts, counter: CounterName) -> Quantity:
    """The counter's value as it is written."""
    sets = (c for s in e.problem.slices if "/".join(s.pool_id) == pool.label for c in s.spec.shared_counters if c.name == counter[0])
    return next((c.counters[counter[1]] for c in sets if c.counters.get(counter[1])), Quantity.of(pool.counters[counter]))


def _counter_place(e: Encoding, pool: PoolFacts, counter: CounterName) -> Where:
    sets = [c for s in e.problem.slices if "/".join(s.pool_id) == pool.label for c in s.spec.shared_counters if c.name == counter[0]]
    return sets[-1].at if sets else NOWHERE


def _capacity(e: Encoding, group: Group) -> None:
    """What a shared device gives to all its users together."""
    device = group.first
    takers = e.takers(group)
    by_leaf = {q.index: dict(e.world.table.amounts(q, device).consumed) for q in takers}
    for leaf in takers:  # what is too much is barred by a rule of its own; without that rule nothing is asked for
        for reason in group.reasons(leaf):
            if reason.kind == "capacity" and (name := str(reason.key[2])) in by_leaf[leaf.index]:
                by_leaf[leaf.index][name] = untold(e.problem, leaf.request, device.device, name)
    for name, capacity in device.device.capacity.items():
        terms: _Weighted = [(by_leaf[q.index].get(name, Fraction(0)), e.used[q.index, group.index]) for q in takers]
        fixed = Fraction(0)
        for holding in e.problem.holdings:
            amount = dict(holding.consumed).get(name, Fraction(0)) if holding.device == device.name else Fraction(0)
            if e.tracked and amount:
                terms.append((amount, e.literal(held(holding.claim))))
            else:
                fixed += amount
        if not terms:
            continue
        taken = sum((dict(h.consumed).get(name, Fraction(0)) for h in e.problem.holdings if h.device == device.name), Fraction(0))
        wanted = [amounts.get(name, Fraction(0)) for amounts in by_leaf.values()]
        text = f"device {device.name} has {capacity.value} of {name} for all its users"
        text += _balance("a request", capacity.value, taken, wanted)
        enough = _sum_at_most(e, terms, capacity.value.value - fixed)
        used = z3.Or([e.used[q.index, group.index] for q in takers])
        e.rule(Reason("capacity-left", (device.name, name), text, device.device.at), z3.Or(z3.Not(used), enough))


def _compatible(e: Encoding, pool: PoolFacts, groups: Sequence[Group]) -> None:
    """All that draws on a counter set has a compatibility group in common, or none of it has any."""
    held_names = {h.device for h in e.problem.holdings}
    for counter_set in sorted({s for s, _ in pool.counters}):

        def of(consumes: Iterable[object], wanted: str = counter_set) -> frozenset[str] | None:
            for use in consumes:
                if getattr(use, "counter_set", None) == wanted:
                    return frozenset(getattr(use, "compatibility_groups", ()))
            return None

        base = [of(d.consumes_counters) for d in pool.listed if f"{pool.label}/{d.name}" in held_names]
        taken = [b for b in base if b is not None]
        label = f"pool {pool.label}: what draws on {counter_set} must have a compatibility group in common"
        reason = Reason("compatibility", (pool.label, counter_set), label)
        plain = z3.Bool(f"{pool.label} {counter_set} without groups")
        names = sorted({n for g in groups for n in (of(g.first.device.consumes_counters) or ())})
        chosen = {n: z3.Bool(f"{pool.label} {counter_set} group {n}") for n in names}
        e.solver.add(z3.AtMost(plain, *chosen.values(), 1))
        if taken:
            common = frozenset.intersection(*taken)
            if any(taken):
                e.rule(reason, z3.And(z3.Not(plain), *(z3.Not(b) for n, b in chosen.items() if n not in common)))
            else:
                e.rule(reason, z3.And(*(z3.Not(b) for b in chosen.values())))
        for group in groups:
            mine = of(group.first.device.consumes_counters)
            if mine is None or (group.shared and e.world.table.live(group.first)):
                continue
            allowed = z3.Or([chosen[n] for n in sorted(mine)]) if mine else plain
            for leaf in e.takers(group):
                e.rule(reason, z3.Implies(e.used[leaf.index, group.index], allowed))


def _valued(e: Encoding, name: str, leaves: Sequence[Leaf]) -> list[tuple[tuple[int, int], Values]]:
    return [((q.index, g.index), e.world.values(q, g.first, name)) for q in leaves for g in e.world.groups if (q.index, g.index) in e.used]


def _match(e: Encoding, reason: Reason, name: str, leaves: Sequence[Leaf]) -> None:
    """Some value is common to all covered devices: the solver chooses it."""
    pairs = _valued(e, name, leaves)
    values = sorted({v for _, found in pairs for v in found}, key=repr)
    chosen = {v: z3.Bool(f"{reason.kind} {reason.key} {i}") for i, v in enumerate(values)}
    if len(chosen) > 1:
        e.solver.add(z3.AtMost(*chosen.values(), 1))
    for pair, found in pairs:
        e.rule(reason, z3.Implies(e.used[pair], z3.Or([chosen[v] for v in sorted(found, key=repr)])))
    for value, choice in chosen.items():
        if value[0] == "list":  # while its feature is off a list is equal to nothing: it passes alone
            e.rule(reason, z3.Implies(choice, e.at_most([(1, pair) for pair, _ in pairs], 1)))


def _distinct(e: Encoding, reason: Reason, name: str, leaves: Sequence[Leaf]) -> None:
    """Each value occurs at most once among the covered devices."""
    by_value: dict[tuple[str, object], list[tuple[int, int]]] = {}
    for pair, found in _valued(e, name, leaves):
        if not found:
            e.rule(reason, z3.Not(e.used[pair]))
        for value in found:
            if value[0] == "list":
                raise UnsupportedFeature(f"distinctAttribute on the list attribute {name} while its feature is off")
            by_value.setdefault(value, []).append(pair)
    for pairs in by_value.values():
        e.rule(reason, e.at_most([(1, pair) for pair in pairs], 1))
