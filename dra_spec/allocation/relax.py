"""Changes that would make claims fit: the smallest sets of rules to give up, each tried by solving the changed problem again."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence

import attrs
import z3

from dra_spec.allocation.errors import FatalAllocation, UnsupportedFeature
from dra_spec.allocation.explain_upstream import Upstream
from dra_spec.allocation.relax_change import Change, Relaxation
from dra_spec.allocation.relax_resources import edit, of_request, options, with_amount
from dra_spec.allocation.z3_encoding import Encoding
from dra_spec.allocation.z3_groups import World
from dra_spec.allocation.z3_leaf import Leaf, Reason
from dra_spec.allocation.z3_problem import Problem
from dra_spec.allocation.z3_solve import holds, one
from dra_spec.resources.claims import ClaimSpec, DeviceRequest, ExactRequest, SubRequest
from dra_spec.resources.meta import Toleration

RELAXABLE = ("constraint", "taint", "fewer", "selector", "capacity", "in-use", "resource")
MAX_SIZE = 3
MAX_FOUND = 12


def relaxations(encoding: Encoding) -> tuple[Relaxation, ...]:
    """The smallest sets of changes with which everything fits: all of the least size, up to a limit. Each was solved again.

    `encoding` is tracked and unsatisfiable. Nothing is returned if more than three changes are needed, or no change helps.
    """
    soft = [r for r in encoding.literals if r.kind in RELAXABLE and not (r.kind == "taint" and _special(encoding.problem, r))]
    if len(encoding.world.views) > 1:  # what helps against a device plugin's lack is known for one node only
        soft = [r for r in soft if r.kind != "resource"]
    hard = [lit for r, lit in encoding.literals.items() if r not in soft]
    given_up = [z3.Not(encoding.literals[r]) for r in soft]
    found: list[Relaxation] = []
    encoding.solver.push()
    try:
        for size in range(1, min(MAX_SIZE, len(soft)) + 1):
            within = z3.AtMost(*given_up, size)
            while len(found) < MAX_FOUND and holds(encoding, *hard, _name(encoding, within)):
                model = encoding.solver.model()
                chosen = [r for r in soft if z3.is_false(model.eval(encoding.literals[r], model_completion=True))]
                encoding.solver.add(z3.Or([encoding.literals[r] for r in chosen]))
                for parts in itertools.product(*(_changes(encoding, r, model) for r in chosen)):
                    changes = _least(encoding.problem, tuple(c for part in parts for c in part))
                    if changes and changes not in found:
                        found.append(changes)
            if found:
                break
    finally:
        encoding.solver.pop()
    return tuple(found)


def _name(encoding: Encoding, formula: z3.BoolRef) -> z3.BoolRef:
    """A literal that stands for the formula, to be used as an assumption."""
    literal = z3.FreshBool("within")
    encoding.solver.add(z3.Implies(literal, formula))
    return literal


def _special(problem: Problem, reason: Reason) -> bool:
    """Whether the rule is one of a claim that the scheduler makes, in which nobody can write a toleration."""
    index = reason.key[0]
    return isinstance(index, int) and problem.claims[index].special is not None


def _changes(encoding: Encoding, reason: Reason, model: z3.ModelRef) -> list[Relaxation]:
    """The ways to give up a rule; more than one only for what a device plugin lacks."""
    if reason.kind == "resource":
        return list(options(encoding.problem, encoding.problem.calls[0].nodes[0], str(reason.key[0])))
    return [(_change(encoding, reason, model),)]


def _change(encoding: Encoding, reason: Reason, model: z3.ModelRef) -> Change:
    problem = encoding.problem
    amount = 0
    if reason.kind == "fewer":
        leaf = next(q for q in encoding.world.leaves if (q.claim, q.name) == reason.key)
        value = model.eval(encoding.fewer[leaf.index], model_completion=True)
        assert isinstance(value, z3.IntNumRef)
        amount = value.as_long()
        special = of_request(problem, leaf.claim, leaf.name, amount)
        if special is not None:
            return special
        left = leaf.count - amount
        text = f"ask for {left} instead of {leaf.count} devices in {leaf.label}" if left else f"do without {_whole(problem, leaf)}"
    else:
        text = _text(problem, reason)
    return Change(reason.kind, reason.key, text, amount, reason.where)


def _whole(problem: Problem, leaf: Leaf) -> str:
    """What goes if a request goes: its claim if it has no other one, the pod if that leaves it nothing."""
    call, claim = problem.calls[leaf.call], problem.claims[leaf.claim]
    if len(claim.spec.requests) > 1:
        return leaf.label
    return call.label if len(call.claims) == 1 and not any(p.asks for p in call.pods) else claim.label


def _text(problem: Problem, reason: Reason) -> str:
    index = reason.key[0]
    claim = problem.claims[index].label if isinstance(index, int) else ""
    match reason.kind:
        case "constraint":
            return f"drop the constraint {reason.text.partition(': ')[2]} of {claim}"
        case "taint":
            _, request, key, value, effect = reason.key
            return f"tolerate the taint {key}{'=' + str(value) if value else ''}:{effect} in request {request} of {claim}"
        case "selector":
            _, request, number = reason.key
            assert isinstance(number, int)
            return f"drop selector {number + 1} of request {request} of {claim}"
        case "capacity":
            return f"ask for no capacity {reason.key[2]} in request {reason.key[1]} of {claim}"
    return f"free {reason.key[0] or 'the other claim'}"


def _least(problem: Problem, changes: Relaxation) -> Relaxation:
    """The changes if they help, with as few devices less as possible; else nothing."""
    counts = [range(1, c.amount + 1) if c.kind in ("fewer", "ask") else range(1) for c in changes]
    for amounts in sorted(itertools.product(*counts), key=sum):
        tried = tuple(_with_amount(problem, c, a) for c, a in zip(changes, amounts, strict=True))
        if helps(problem, tried):
            return tried
    return ()


def _with_amount(problem: Problem, change: Change, amount: int) -> Change:
    if change.kind == "ask":
        return with_amount(problem, change, amount)
    if change.kind != "fewer" or amount == change.amount:
        return change
    words = change.text.split(" instead of ")
    if len(words) == 1:  # "do without": fewer are enough here, so some are left
        return attrs.evolve(change, amount=amount, text=f"ask for {amount} fewer devices in {change.text.partition('do without ')[2]}")
    left = int(words[0].rpartition(" ")[2]) + change.amount - amount
    return attrs.evolve(change, amount=amount, text=f"ask for {left} instead of {words[1]}")


def helps(problem: Problem, changes: Relaxation) -> bool:
    """Whether the changed problem has an allocation that is not empty, and one pod's search does not meet an error on the way to it."""
    changed = apply(problem, changes)
    if not any(any(c.spec.requests for c in call.claims) or any(p.asks for p in call.pods) for call in changed.calls):
        return False
    try:
        if one(changed) is None:
            return False
        if len(changed.calls) > 1 or not World(changed).table.errors:
            return True
        return Upstream.of(changed).says(changed, changed.calls[0].nodes[0])[0] != "gives-up"
    except (FatalAllocation, UnsupportedFeature):
        return False


def apply(problem: Problem, changes: Sequence[Change]) -> Problem:
    """The problem with the changes made: claims edited, holders gone."""
    freed = {c.key[0] for c in changes if c.kind == "in-use"}
    holdings = tuple(h for h in problem.holdings if h.claim not in freed)
    gone = {c.key[0] for c in changes if c.kind == "running"}
    calls, index = [], 0
    for call in problem.calls:
        claims = []
        for claim in call.claims:
            mine = [c for c in changes if c.kind != "in-use" and c.key[0] == index]
            claims.append(attrs.evolve(claim, spec=_edited(claim.spec, mine)) if mine else claim)
            index += 1
        calls.append(edit(problem, attrs.evolve(call, claims=tuple(claims)), changes))
    running = tuple(p for p in problem.running if p.pod not in gone)
    return attrs.evolve(problem, holdings=holdings, calls=tuple(calls), running=running)


def _edited(spec: ClaimSpec, changes: Sequence[Change]) -> ClaimSpec:
    gone = {c.key[1] for c in changes if c.kind == "constraint"}
    constraints = [k for i, k in enumerate(spec.devices.constraints) if i not in gone]
    requests = []
    for request in spec.requests:
        edited = _request(request, changes)
        if edited is not None:
            requests.append(edited)
    names = {r.name for r in requests} | {n for r in requests for n, _ in r.leaves}
    kept = []
    for constraint in constraints:
        left = tuple(n for n in constraint.requests if n in names)
        if left or not constraint.requests:  # no name left would mean all requests
            kept.append(attrs.evolve(constraint, requests=left))
    return attrs.evolve(spec, devices=attrs.evolve(spec.devices, requests=tuple(requests), constraints=tuple(kept)))


def _request(request: DeviceRequest, changes: Sequence[Change]) -> DeviceRequest | None:
    if request.exactly is not None:
        leaf = _leaf(request.exactly, [c for c in changes if c.key[1] == request.name and c.kind != "constraint"])
        return None if leaf is None else attrs.evolve(request, exactly=leaf)
    alternatives: list[SubRequest] = []
    for name, sub in request.leaves:
        assert isinstance(sub, SubRequest)
        edited = _leaf(sub, [c for c in changes if c.key[1] == name and c.kind != "constraint"])
        assert isinstance(edited, SubRequest)
        alternatives.append(edited)
    return attrs.evolve(request, first_available=tuple(alternatives))


def _leaf(leaf: ExactRequest, changes: Sequence[Change]) -> ExactRequest | None:
    """The request after its changes; None if nothing of it is left."""
    edits: dict[str, Callable[[ExactRequest, Change], ExactRequest]] = {"taint": _tolerating, "capacity": _without_capacity}
    dropped = {c.key[2] for c in changes if c.kind == "selector"}
    count = leaf.number - sum(c.amount for c in changes if c.kind == "fewer")
    if not leaf.all_devices:
        if count <= 0:
            return None
        leaf = attrs.evolve(leaf, count=count)
    leaf = attrs.evolve(leaf, selectors=tuple(s for i, s in enumerate(leaf.selectors) if i not in dropped))
    for change in changes:
        if change.kind in edits:
            leaf = edits[change.kind](leaf, change)
    return leaf


def _tolerating(leaf: ExactRequest, change: Change) -> ExactRequest:
    _, _, key, value, effect = change.key
    return attrs.evolve(leaf, tolerations=(*leaf.tolerations, Toleration(key=str(key), value=str(value), effect=str(effect))))


def _without_capacity(leaf: ExactRequest, change: Change) -> ExactRequest:
    if leaf.capacity is None:
        return leaf
    left = {k: v for k, v in leaf.capacity.requests.items() if k != change.key[2]}
    return attrs.evolve(leaf, capacity=attrs.evolve(leaf.capacity, requests=left))


__all__ = ["Change", "Relaxation", "apply", "helps", "relaxations"]
