"""Why claims do not fit on a node: the rules that together exclude every allocation, and for each device the first rule against it.

Public: `explain(problem, node)`, None if the claims fit there; `explain_together(problem)` for several pods. The reasons are an
unsatisfiable core of which no part can be left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import attrs

from dra_spec.allocation.errors import FatalAllocation, UnsupportedFeature
from dra_spec.allocation.explain_upstream import Upstream
from dra_spec.allocation.relax import Relaxation, relaxations
from dra_spec.allocation.z3_encoding import Encoding
from dra_spec.allocation.z3_groups import Group, World
from dra_spec.allocation.z3_leaf import Leaf, Reason
from dra_spec.allocation.z3_problem import Problem
from dra_spec.allocation.z3_rules import covers
from dra_spec.allocation.z3_solve import encoded, holds, one

# where several cores exist, reasons of the earlier kinds are left out first
# (what a device plugin lacks comes before anything that allocation could say, so it is never left out for that)
_LEAVE_OUT = ("node", "gate", "limit", "capacity-left", "once", "pool", "in-use", "class", "capacity", "selector", "taint", "compatibility")
MAX_TOGETHER = 24  # claims of several pods for which a core is looked for
QUICK = 3_000  # milliseconds for each question about several pods


@attrs.frozen
class Cause:
    """A rule of the core, and the devices that it keeps from a request (none for rules across devices). `values`: for a constraint
    the values of its attribute ("" without one), each with the devices that could be taken but for it."""

    reason: Reason
    devices: tuple[str, ...] = ()
    values: tuple[tuple[str, tuple[str, ...]], ...] = ()


@attrs.frozen
class Verdict:
    """A device and a request: the first rule that excludes the device, None if no rule about the device alone does."""

    device: str
    request: str
    reason: Reason | None


@attrs.frozen
class Explanation:
    """Why the claims of a pod do not fit on a node. `fatal`: why upstream gives up the pod on all nodes; without causes there is an
    allocation all the same, or upstream refuses before it looks at devices."""

    node: str
    causes: tuple[Cause, ...]
    devices: tuple[Verdict, ...] = ()
    relaxations: tuple[Relaxation, ...] = ()
    fatal: str = ""


def on_node(problem: Problem, node: str) -> Problem:
    """The first call of the problem, alone on one node."""
    return attrs.evolve(problem, calls=(attrs.evolve(problem.calls[0], nodes=(node,)),))


def explain(problem: Problem, node: str, relax: bool = True, upstream: Upstream | None = None) -> Explanation | None:
    """None if the claims of the first call fit on the node, by the rules and for upstream's search.

    `relax`: also look for changes that help; `upstream`: made of the same problem, to save making it. Raises UnsupportedFeature.
    """
    here = on_node(problem, node)
    upstream = upstream or Upstream.of(here)
    fatal = ""
    try:
        if one(here) is not None:
            says, words = upstream.says(here, node)
            if says == "no-fit":
                words = "its search finds no allocation, though one exists"
            return Explanation(node, (), fatal=words) if says in ("no-fit", "gives-up") else None
    except FatalAllocation as error:
        fatal = str(error)
    try:
        world = World(here, everything=True)
    except FatalAllocation:
        return Explanation(node, (), fatal=fatal)
    if world.table.errors and not fatal:  # without such errors upstream's search, which can be long, has nothing to add
        says, words = upstream.says(here, node)
        fatal = words if says == "gives-up" else ""
    encoding = encoded(world, tracked=True)
    core = _core(encoding, _background(encoding))
    if any(r.kind == "resource" for r in core):  # each of these is a reason by itself
        core |= {r for r, literal in encoding.literals.items() if r.kind == "resource" and not holds(encoding, literal)}
    causes = tuple(c for r in encoding.literals if r in core for c in _causes(world, r))
    found = relaxations(encoding) if relax and core else ()
    return Explanation(node, causes, _verdicts(encoding), found, fatal)


def explain_together(problem: Problem) -> Explanation | None:
    """Why several calls do not fit together on their nodes; None if that is not told: too many claims, or too hard a question.

    The devices have no verdicts where there are several nodes. Raises FatalAllocation.
    """
    if len(problem.claims) > MAX_TOGETHER:
        return None
    nodes = tuple(dict.fromkeys(n for c in problem.calls for n in c.nodes))
    try:
        encoding = encoded(World(problem, everything=len(nodes) == 1), tracked=True)
        encoding.solver.set("timeout", QUICK)
        core = _core(encoding, _background(encoding))
        if not core:
            return None
        causes = tuple(c for r in encoding.literals if r in core for c in _causes(encoding.world, r))
        verdicts = _verdicts(encoding) if len(nodes) == 1 else ()
        return Explanation(", ".join(nodes), causes, verdicts, relaxations(encoding))
    except UnsupportedFeature:
        return None


def _background(encoding: Encoding) -> list[Reason]:
    """Rules that are no news: counts belong to the requests; that other nodes have other devices, and that devices of other classes are
    no candidates, where this node has candidates for each request."""
    always = [r for r in encoding.literals if r.kind == "fewer"]
    world = encoding.world
    away = {c.name for v in world.views.values() for c, _ in v.away}
    for leaf in world.leaves:
        own = [g for g in world.groups if g.first.name not in away and not any(r.kind == "class" for r in g.listed[leaf.index])]
        if not own:
            return always
    return always + [r for r in encoding.literals if r.kind in ("node", "class")]


def _core(encoding: Encoding, background: Sequence[Reason]) -> set[Reason]:
    """A minimal set of rules that cannot all hold; empty if they can (then upstream aborts for another reason)."""
    assumed = {r: encoding.literals[r] for r in background}
    open_ = [r for r in encoding.literals if r not in assumed]
    rank = {kind: i for i, kind in enumerate(_LEAVE_OUT)}
    open_.sort(key=lambda r: rank.get(r.kind, len(rank)))
    if holds(encoding, *assumed.values(), *(encoding.literals[r] for r in open_)):
        return set()
    needed = list(open_)
    for reason in open_:
        rest = [r for r in needed if r != reason]
        if not holds(encoding, *assumed.values(), *(encoding.literals[r] for r in rest)):
            names = {str(c) for c in encoding.solver.unsat_core()}
            needed = [r for r in rest if str(encoding.literals[r]) in names]
        elif reason not in needed:
            continue
    return set(needed)


def _causes(world: World, reason: Reason) -> Iterator[Cause]:
    """One for each wording of the rule: a selector can be false on one device and fail on another."""
    told: dict[str, tuple[Reason, list[str]]] = {}
    for group in world.groups:
        found = next((r for leaf in world.leaves for r in group.reasons(leaf) if r == reason), None)
        if found is not None:
            told.setdefault(found.text, (found, []))[1].extend(d.name for d in group.members)
    if reason.kind == "in-use":
        held = {h.device for h in world.problem.holdings if h.claim == reason.key[0]}
        devices = told.setdefault(reason.text, (reason, []))[1]
        devices += sorted(held - set(devices))
    values = _values(world, reason)
    yield from [Cause(r, tuple(devices), values) for r, devices in told.values()] or [Cause(reason, (), values)]


def _values(world: World, reason: Reason) -> tuple[tuple[str, tuple[str, ...]], ...]:
    if reason.kind != "constraint":
        return ()
    claim, number = reason.key
    assert isinstance(claim, int)
    assert isinstance(number, int)
    constraint = world.problem.claims[claim].spec.devices.constraints[number]
    name = constraint.match_attribute or constraint.distinct_attribute
    found: dict[str, list[str]] = {}
    for leaf in world.leaves:
        for group in world.groups:
            if leaf.claim == claim and covers(constraint, leaf) and not group.reasons(leaf):
                for device in group.members:
                    shown = ", ".join(sorted(str(v) for _, v in world.values(leaf, device, name)))
                    if device.name not in found.setdefault(shown, []):
                        found[shown].append(device.name)
    return tuple((value, tuple(devices)) for value, devices in found.items())


def _verdicts(encoding: Encoding) -> tuple[Verdict, ...]:
    """For each device and each leaf request, in search order; devices that are away come last."""
    world = encoding.world
    members = [(d, g) for g in world.groups for d in g.members]
    away = {id(c) for v in world.views.values() for c, _ in v.away}
    members.sort(key=lambda m: (id(m[0]) in away, m[0].order))
    found = []
    for leaf in world.leaves:
        first = {g.index: _first(g.reasons(leaf), leaf) or _alone(encoding, leaf, g) for g in world.groups}
        found += [Verdict(d.name, leaf.label, first[g.index]) for d, g in members]
    return tuple(found)


def _alone(encoding: Encoding, leaf: Leaf, group: Group) -> Reason | None:
    """The rule that refuses the device even if no other is taken with it: what others hold, or an attribute that it lacks."""
    rules = {str(lit): r for r, lit in encoding.literals.items() if r.kind not in ("request", "fewer")}
    if leaf.request.all_devices or holds(encoding, *(encoding.literals[r] for r in rules.values()), encoding.used[leaf.index, group.index]):
        return None
    core = [rules[str(c)] for c in encoding.solver.unsat_core() if str(c) in rules]
    found = min(core, key=lambda r: r.kind == "in-use", default=None)
    return None if found is None else _lacking(encoding.world, leaf, group, found)


def _lacking(world: World, leaf: Leaf, group: Group, reason: Reason) -> Reason:
    """A constraint that refuses a device by itself does so because the device has no such attribute; then it says so."""
    if reason.kind != "constraint":
        return reason
    claim, number = reason.key
    assert isinstance(claim, int)
    assert isinstance(number, int)
    constraint = world.problem.claims[claim].spec.devices.constraints[number]
    name = constraint.match_attribute or constraint.distinct_attribute
    if world.values(leaf, group.first, name):
        return reason
    return attrs.evolve(reason, text=f"the device has no attribute {name}, for {reason.text.partition(': ')[2]} of {leaf.label}")


def _first(reasons: Sequence[Reason], leaf: Leaf) -> Reason | None:
    """Upstream looks first whether a device is in use, except for admin access and requests for all."""
    if not leaf.admin and not leaf.request.all_devices:
        for reason in reasons:
            if reason.kind in ("node", "pool"):
                return reason
        for reason in reasons:
            if reason.kind == "in-use":
                return reason
    return reasons[0] if reasons else None


__all__ = ["Cause", "Explanation", "Verdict", "explain", "explain_together", "on_node"]
