"""Answers of the solver: one allocation, upstream's first one, several, the best node. Each is checked by the validator before it is given.

Public: `one`, `first`, `every`, `best`. All raise FatalAllocation (upstream refuses before it searches), UnsupportedFeature (not encoded,
or too long to tell).
"""

from __future__ import annotations

from collections.abc import Sequence

import attrs
import z3

from dra_spec.allocation.errors import FatalAllocation, UnsupportedFeature
from dra_spec.allocation.validator import broken_rules
from dra_spec.allocation.z3_encoding import Encoding
from dra_spec.allocation.z3_groups import Group, World
from dra_spec.allocation.z3_leaf import Leaf
from dra_spec.allocation.z3_problem import Problem, Solution

TIMEOUT = 60_000  # milliseconds for one question


class Doubt(RuntimeError):
    """The solver's allocation breaks a rule: one of the two is wrong."""


def one(problem: Problem) -> Solution | None:
    """Some allocation of all claims, None if there is none."""
    encoding = encoded(World(problem))
    return _answer(encoding) if holds(encoding) else None


def encoded(world: World, tracked: bool = False, optional: bool = False) -> Encoding:
    """The formula of a world, with the time limit set."""
    solver = z3.Solver()
    solver.set("timeout", TIMEOUT)
    return Encoding(world, tracked, solver, optional)


def holds(encoding: Encoding, *assumptions: z3.BoolRef) -> bool:
    """Whether the formula has a model. Raises UnsupportedFeature if the solver gives up."""
    answer = encoding.solver.check(*assumptions)
    if answer == z3.unknown:
        raise UnsupportedFeature(f"an allocation that the solver cannot decide ({encoding.solver.reason_unknown()})")
    return bool(answer == z3.sat)


def _answer(encoding: Encoding) -> Solution:
    return checked(encoding.problem, encoding.solution(encoding.solver.model()))


def checked(problem: Problem, solution: Solution) -> Solution:
    """The solution, if it breaks no rule. Raises Doubt."""
    broken = broken_rules(problem, solution)
    if broken:
        raise Doubt("the solver's allocation is refused by the validator: " + "; ".join(str(b) for b in broken))
    return solution


def first(problem: Problem) -> Solution | None:
    """The allocation that upstream's search finds: the smallest in order of claims, requests, alternatives and device positions.

    Only for one call on one node.
    """
    _one_call(problem)
    world = World(problem)
    encoding = encoded(world)
    if not holds(encoding):
        return None
    requests: dict[tuple[int, int], list[Leaf]] = {}
    for leaf in world.leaves:
        requests.setdefault((leaf.claim, leaf.number), []).append(leaf)
    taken: set[str] = set()
    for alternatives in requests.values():
        chosen = next(leaf for leaf in alternatives if holds(encoding, encoding.active[leaf.index]))
        encoding.solver.add(encoding.active[chosen.index])
        _fix(encoding, chosen, taken)
    if not holds(encoding):
        raise Doubt("the first allocation cannot be completed")
    found = _answer(encoding)
    _one_term(world, found)
    return found


def _one_term(world: World, solution: Solution) -> None:
    """Upstream builds a node selector from the devices, and aborts if one of them, before the first node-local one, has several terms."""
    devices = {d.name: d for g in world.groups for d in g.members}
    claim = -1
    for pick in solution.picks:
        device = devices[pick.device]
        where = device.device if device.slice.spec.per_device_node_selection else device.slice.spec
        if pick.claim == claim:
            continue  # this claim is pinned already
        if where.node_name or device.device.binds_to_node:
            claim = pick.claim
        elif where.node_selector is not None and len(where.node_selector.terms) > 1:
            raise FatalAllocation(f"device {device.name}: its node selector has {len(where.node_selector.terms)} terms, expected one")


def _fix(encoding: Encoding, leaf: Leaf, taken: set[str]) -> None:
    """Gives the leaf its devices, the earliest ones with which everything else still works."""
    if leaf.request.all_devices:
        return
    places: list[tuple[tuple[object, ...], str, Group]] = sorted(
        ((d.order, d.name, g) for g in encoding.world.groups if (leaf.index, g.index) in encoding.used for d in g.members),
        key=lambda p: p[0],
    )
    got: dict[int, int] = {}
    for _, name, group in places:
        if sum(got.values()) == leaf.count:
            break
        if name in taken and group.size > 1:
            continue
        pair = (leaf.index, group.index)
        more = encoding.amount(pair) >= got.get(group.index, 0) + 1
        if holds(encoding, more):
            got[group.index] = got.get(group.index, 0) + 1
            encoding.solver.add(more)
            if not group.shared:
                taken.add(name)


def every(problem: Problem, limit: int) -> list[Solution]:
    """Up to so many different allocations, in upstream's order among themselves (which ones, if there are more, is open)."""
    encoding = encoded(World(problem, merge=False))
    found: list[Solution] = []
    while len(found) < limit and holds(encoding):
        model = encoding.solver.model()
        found.append(_answer(encoding))
        variables = [*encoding.used.values(), *(b for there in encoding.at if len(there) > 1 for b in there.values())]
        encoding.solver.add(z3.Or([v != model.eval(v, model_completion=True) for v in variables]))
    positions = {(g.first.name): g.first.order for g in encoding.world.groups}
    ranks = {(leaf.claim, leaf.name): leaf.index for leaf in encoding.world.leaves}
    return sorted(found, key=lambda s: (s.nodes, [(ranks[p.claim, p.request], positions[p.device]) for p in s.picks]))


@attrs.frozen
class Best:
    """The best node and its allocation. `score`: what upstream adds up over prioritized lists, 8 for the first alternative."""

    node: str
    score: int
    solution: Solution


def best(problem: Problem, nodes: Sequence[str]) -> Best | None:
    """The node where the highest score can be reached, the earliest of equal ones. Only for one call."""
    if len(problem.calls) != 1:
        raise ValueError("the best node is a question about one pod")
    found: Best | None = None
    for name in nodes:
        here = attrs.evolve(problem, calls=(attrs.evolve(problem.calls[0], nodes=(name,)),))
        encoding = encoded(World(here))
        scores = [(encoding.active[q.index], 8 - q.alternative) for q in encoding.world.leaves if "/" in q.name]
        goal = z3.Sum([z3.If(b, z3.IntVal(w), z3.IntVal(0)) for b, w in scores] or [z3.IntVal(0)])
        while holds(encoding, goal >= (found.score + 1 if found else 0)):
            reached = encoding.solver.model().eval(goal, model_completion=True)
            assert isinstance(reached, z3.IntNumRef)
            found = Best(name, reached.as_long(), _answer(encoding))
    return found


def _one_call(problem: Problem) -> None:
    if len(problem.calls) != 1 or len(problem.calls[0].nodes) != 1:
        raise ValueError("upstream's order is defined for one pod on one node")
