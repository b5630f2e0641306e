"""Changes that would make claims fit: the smallest sets of rules to give up, each tried by solving the changed problem again."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence

import attrs
import z3

from dra_spec.allocation.errors import FatalAllocation, UnsupportedFeature
from dra_spec.allocation.z3_encoding import Encoding
from dra_spec.allocation.z3_leaf import Reason
from dra_spec.allocation.z3_problem import Call, Problem, WantedClaim
from dra_spec.allocation.z3_solve import holds, one
from dra_spec.resources.claims import ClaimSpec, DeviceRequest, ExactRequest, SubRequest
from dra_spec.resources.meta import Toleration
from dra_spec.resources.problems import Where

RELAXABLE = ("constraint", "taint", "fewer", "selector", "capacity", "in-use")
MAX_SIZE = 3
MAX_FOUND = 12


@attrs.frozen
class Change:
    """One rule given up. `kind` as in Reason; `key` says of what; `amount`: devices fewer."""

    kind: str
    key: tuple[object, ...]
    text: str = attrs.field(eq=False)
    amount: int = 0
    where: Where = attrs.field(eq=False, default=Where())

    def __str__(self) -> str:
        return f"{self.text} ({self.where.place})" if self.where.place else self.text


Relaxation = tuple[Change, ...]


def relaxations(encoding: Encoding) -> tuple[Relaxation, ...]:
    """The smallest sets of changes with which everything fits: all of the least size, up to a limit. Each was solved again.

    `encoding` is tracked and unsatisfiable. Nothing is returned if more than three changes are needed, or no change helps.
    """
    soft = [r for r in encoding.literals if r.kind in RELAXABLE]
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
                changes = tuple(_change(encoding, r, model) for r in chosen)
                changes = _least(encoding.problem, changes)
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


def _change(encoding: Encoding, reason: Reason, model: z3.ModelRef) -> Change:
    problem = encoding.problem
    amount = 0
    if reason.kind == "fewer":
        leaf = next(q for q in encoding.world.leaves if (q.claim, q.name) == reason.key)
        value = model.eval(encoding.fewer[leaf.index], model_completion=True)
        assert isinstance(value, z3.IntNumRef)
        amount = value.as_long()
        left = leaf.count - amount
        text = f"ask for {left} instead of {leaf.count} devices in {leaf.label}" if left else f"do without {leaf.label}"
    else:
        text = _text(problem, reason)
    return Change(reason.kind, reason.key, text, amount, reason.where)


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
    counts = [range(1, c.amount + 1) if c.kind == "fewer" else range(1) for c in changes]
    for amounts in sorted(itertools.product(*counts), key=sum):
        tried = tuple(_with_amount(c, a) for c, a in zip(changes, amounts, strict=True))
        if helps(problem, tried):
            return tried
    return ()


def _with_amount(change: Change, amount: int) -> Change:
    if change.kind != "fewer" or amount == change.amount:
        return change
    words = change.text.split(" instead of ")
    if len(words) == 1:  # "do without": fewer are enough here, so some are left
        return attrs.evolve(change, amount=amount, text=f"ask for {amount} fewer devices in {change.text.partition('do without ')[2]}")
    left = int(words[0].rpartition(" ")[2]) + change.amount - amount
    return attrs.evolve(change, amount=amount, text=f"ask for {left} instead of {words[1]}")


def helps(problem: Problem, changes: Relaxation) -> bool:
    """Whether the changed problem has an allocation."""
    try:
        return one(apply(problem, changes)) is not None
    except (FatalAllocation, UnsupportedFeature):
        return False


def apply(problem: Problem, changes: Sequence[Change]) -> Problem:
    """The problem with the changes made: claims edited, holders gone."""
    freed = {c.key[0] for c in changes if c.kind == "in-use"}
    holdings = tuple(h for h in problem.holdings if h.claim not in freed)
    calls, index = [], 0
    for call in problem.calls:
        claims = []
        for claim in call.claims:
            mine = [c for c in changes if c.kind != "in-use" and c.key[0] == index]
            claims.append(WantedClaim(claim.label, _edited(claim.spec, mine)) if mine else claim)
            index += 1
        calls.append(Call(call.label, tuple(claims), call.nodes))
    return attrs.evolve(problem, holdings=holdings, calls=tuple(calls))


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
