"""Places for several pods at once: a node and devices for each, if there is any way.

Three ways, each sound, the last two complete: one pod after the other; if the nodes are independent, numbers of pods per kind of node
(see `whatif`); else one formula over all nodes.
"""

from __future__ import annotations

import attrs

from dra_spec.allocation.errors import UnsupportedFeature
from dra_spec.allocation.extended_answer import placed
from dra_spec.allocation.whatif import spread
from dra_spec.allocation.z3_encoding import Encoding
from dra_spec.allocation.z3_groups import World
from dra_spec.allocation.z3_leaf import Answers
from dra_spec.allocation.z3_problem import Call, Holding, Pick, Problem, Solution
from dra_spec.allocation.z3_solve import Doubt, checked, encoded, holds, one


def place(problem: Problem) -> Solution | None:
    """An allocation of all calls together, None if there is none. Raises FatalAllocation and UnsupportedFeature."""
    nodes = {n for c in problem.calls for n in c.nodes}
    if len(problem.calls) == 1 or len(nodes) == 1:
        return one(problem)
    found = _in_turn(problem)
    if found is not None:
        return checked(problem, found)
    try:
        by_node = spread(problem)
    except UnsupportedFeature:
        return one(problem)
    return None if by_node is None else checked(problem, _together(problem, by_node))


def _in_turn(problem: Problem) -> Solution | None:
    """Each call on the first node where it fits beside those before it; None if one does not, which says nothing."""
    answers: Answers = {}
    held, running = problem.holdings, problem.running
    nodes: list[str] = []
    picks: list[Pick] = []
    first_claim = 0
    for call in problem.calls:
        for name in call.nodes:
            # in search order, so that pods pack as upstream packs them
            here = attrs.evolve(problem, holdings=held, running=running, calls=(attrs.evolve(call, nodes=(name,)),))
            encoding = encoded(World(here, answers=answers))
            if holds(encoding):
                break
        else:
            return None
        mine = _picks(encoding, first_claim)
        nodes.append(name)
        picks += mine
        held += tuple(Holding(p.device, call.label, _shared(encoding, p), p.consumed) for p in mine if not p.admin)
        running += placed(call, name)
        first_claim += len(call.claims)
    return Solution(tuple(nodes), tuple(picks))


def _picks(encoding: Encoding, first_claim: int) -> list[Pick]:
    solution = encoding.solution(encoding.solver.model())
    return [attrs.evolve(p, claim=p.claim + first_claim) for p in solution.picks]


def _shared(encoding: Encoding, pick: Pick) -> bool:
    return any(g.shared for g in encoding.world.groups if g.first.name == pick.device)


def _together(problem: Problem, by_node: dict[str, list[Call]]) -> Solution:
    """Devices for the calls of each node."""
    starts, position = {}, 0
    for call in problem.calls:
        starts[id(call)] = position
        position += len(call.claims)
    nodes: dict[int, str] = {}
    picks: list[Pick] = []
    for name, calls in by_node.items():
        here = attrs.evolve(problem, calls=tuple(attrs.evolve(c, nodes=(name,)) for c in calls))
        found = one(here)
        if found is None:
            raise Doubt(f"pods that fit on node {name} do not fit when asked again")
        owners = [(id(c), i) for c in calls for i in range(len(c.claims))]
        for pick in found.picks:
            call_id, index = owners[pick.claim]
            picks.append(attrs.evolve(pick, claim=starts[call_id] + index))
        nodes |= {id(c): name for c in calls}
    return Solution(tuple(nodes[id(c)] for c in problem.calls), tuple(sorted(picks, key=lambda p: p.claim)))
