"""How many more nodes like this one would make all waiting pods fit: the question of Cluster Autoscaler and Karpenter.

Nodes whose devices are their own are independent of each other, so the answer needs no formula over the whole cluster: pods of equal claims
are one kind, nodes of equal devices are one kind, the solver says which numbers of pods fit on a kind of node (a pattern), and a small
integer problem combines patterns. The answer is exact.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence

import attrs
import z3

from dra_spec.allocation.errors import UnsupportedFeature
from dra_spec.allocation.extended import Running, served_by_dra
from dra_spec.allocation.extended_nodes import needs, stock, with_specials
from dra_spec.allocation.z3_encoding import Encoding
from dra_spec.allocation.z3_groups import World
from dra_spec.allocation.z3_leaf import Answers
from dra_spec.allocation.z3_problem import Call, Holding, Problem
from dra_spec.allocation.z3_solve import Doubt, encoded, holds, one
from dra_spec.resources.core import Node
from dra_spec.resources.problems import ManifestError
from dra_spec.resources.problems import Problem as Wrong
from dra_spec.resources.reader import Loaded
from dra_spec.resources.slices import Device, ResourceSlice

MAX_QUESTIONS = 3_000
QUICK = 100  # milliseconds for a question before the thorough formula is asked
Counts = tuple[int, ...]  # by kind of pod


@attrs.frozen(eq=False)
class Template:
    """A node with its slices, to be copied."""

    node: Node
    slices: tuple[ResourceSlice, ...]


@attrs.frozen
class Load:
    """What a node gets: so many pods of each kind. `number`: of nodes that get the same."""

    node: str
    number: int
    pods: tuple[tuple[str, int], ...]


@attrs.frozen
class WhatIf:
    """`needed`: how many template nodes; None if no number helps, because of `never`. `loads`: a way to place all pods."""

    needed: int | None
    loads: tuple[Load, ...] = ()
    never: tuple[str, ...] = ()


def template_of(loaded: Loaded) -> Template:
    """Exactly one Node, and slices that are only for it. Raises ManifestError."""
    if len(loaded.nodes) != 1:
        where = loaded.nodes[1].where("metadata.name") if loaded.nodes else loaded.objects[0].where()
        raise ManifestError([Wrong("DRA221", f"the template has {len(loaded.nodes)} Node objects, expected exactly one", where)])
    node = loaded.nodes[0]
    if not loaded.slices:
        raise ManifestError([Wrong("DRA221", f"the template has no ResourceSlice for node {node.name}", node.where("metadata.name"))])
    for each in loaded.slices:
        if each.spec.node_name != node.name:
            found = each.spec.node_name or "no nodeName"
            text = f"{each.label}: found {found}, expected nodeName {node.name}: a template is a node with devices of its own"
            raise ManifestError([Wrong("DRA221", text, each.where("spec.nodeName"), found, node.name)])
    return Template(node, loaded.slices)


def nodes_needed(problem: Problem, template: Template, pinned: Mapping[str, bool] | None = None, daemons: Sequence[Call] = ()) -> WhatIf:
    """The least number of template nodes with which all calls of the problem have an allocation together.

    `pinned`: by call label, that it cannot go to new nodes; `daemons`: what each new node brings along (pods of a DaemonSet). Raises
    UnsupportedFeature if nodes share devices or counters, and if there are too many kinds of pods.
    """
    if not problem.calls:
        return WhatIf(0)
    _independent(problem)
    places = [template.node]
    problem = attrs.evolve(problem, calls=tuple(with_specials(c, places, problem.backing) for c in problem.calls))
    kinds = _kinds_of_calls(problem, pinned or {})
    always = tuple(with_specials(c, places, problem.backing) for c in daemons)
    new = _Site(template.node.name, 0, template.node, template.slices, (), tuple(k.free for k in kinds), always=always)
    sites = [*_sites(problem, kinds), new]
    demand = tuple(len(k.calls) for k in kinds)
    asked = itertools.count()
    patterns = [_patterns(problem, site, kinds, demand, asked) for site in sites]
    never = [k.calls[0].label for i, k in enumerate(kinds) if not any(p[i] for found in patterns for p in found)]
    if never:
        return WhatIf(None, (), tuple(never))
    return _combine(problem, kinds, sites, patterns, demand)


@attrs.frozen(eq=False)
class _Kind:
    calls: tuple[Call, ...]
    free: bool  # may go to new nodes

    @property
    def label(self) -> str:
        return self.calls[0].label


@attrs.frozen(eq=False)
class _Site:
    """A kind of node. `number` 0: as many as are wanted. `open_to`: by kind of pod. `running`: pods that use extended resources there;
    `always`: calls that each such node takes besides."""

    name: str
    number: int
    node: Node
    slices: tuple[ResourceSlice, ...]
    holdings: tuple[Holding, ...]
    open_to: tuple[bool, ...]
    names: tuple[str, ...] = ()  # of all nodes that are like this one
    running: tuple[Running, ...] = ()
    always: tuple[Call, ...] = ()
    answers: Answers = attrs.field(factory=dict)


def _independent(problem: Problem) -> None:
    pools: dict[tuple[str, str], set[str]] = {}
    for each in problem.slices:
        names = {each.spec.node_name} if not each.spec.per_device_node_selection else {d.node_name for d in each.spec.devices}
        if "" in names and (each.spec.devices or each.spec.shared_counters):
            raise UnsupportedFeature("new nodes beside devices that several nodes can use", each.where("spec"))
        pools.setdefault(each.pool_id, set()).update(names)
    for each in problem.slices:
        if len(pools[each.pool_id]) > 1:
            raise UnsupportedFeature("new nodes beside a pool that several nodes share", each.where("spec.pool"))


def _kinds_of_calls(problem: Problem, pinned: Mapping[str, bool]) -> list[_Kind]:
    alike: dict[object, list[Call]] = {}
    for call in problem.calls:
        claims = tuple((_content(c.spec), c.special and (c.special.asked, c.special.served)) for c in call.claims)
        key = (claims, tuple(p.asks for p in call.pods), call.nodes, pinned.get(call.label, False))
        alike.setdefault(key, []).append(call)
    return [_Kind(tuple(calls), not pinned.get(calls[0].label, False)) for calls in alike.values()]


def _content(value: object) -> object:
    """A value without the places where it was read."""
    fields = getattr(type(value), "__attrs_attrs__", None)
    if fields is not None:
        return tuple(_content(getattr(value, f.name)) for f in fields if f.name not in ("at", "source"))
    if isinstance(value, tuple):
        return tuple(_content(v) for v in value)
    if isinstance(value, Mapping):
        return tuple(sorted((k, _content(v)) for k, v in value.items()))
    return value


def _sites(problem: Problem, kinds: Sequence[_Kind]) -> Iterator[_Site]:
    """The nodes that exist, those with equal devices together."""
    alike: dict[object, list[_Site]] = {}
    resources = sorted(needs(p for k in kinds for p in k.calls[0].pods))
    for name in dict.fromkeys(n for k in kinds for n in k.calls[0].nodes):
        slices = tuple(s for s in problem.slices if s.spec.node_name == name or any(d.node_name == name for d in s.spec.devices))
        labels = {"/".join(s.pool_id): i for i, s in enumerate(slices)}
        holdings = tuple(h for h in problem.holdings if h.device.rpartition("/")[0] in labels)
        open_to = tuple(name in k.calls[0].nodes for k in kinds)
        content: tuple[object, ...] = tuple(
            (
                s.spec.driver,
                s.spec.pool.generation,
                s.spec.pool.resource_slice_count,
                _devices(s.spec.devices),
                _content(s.spec.shared_counters),
            )
            for s in sorted(slices, key=lambda s: s.name)
        )
        taken = tuple(sorted((labels[h.device.rpartition("/")[0]], h.device.rpartition("/")[2], h.shared, h.consumed) for h in holdings))
        rules = name if problem.taint_rules else ""  # a rule may name this node's pool
        node = problem.node(name)
        by_dra = served_by_dra(node, resources, problem.backing)
        plugins = tuple((r, r in by_dra, None if r in by_dra else stock(problem, name, r).left) for r in resources)
        running = tuple(p for p in problem.running if p.node == name)
        site = _Site(name, 1, node, slices, holdings, open_to, running=running)
        alike.setdefault((content, taken, open_to, rules, plugins), []).append(site)
    for sites in alike.values():
        yield attrs.evolve(sites[0], number=len(sites), names=tuple(s.name for s in sites))


def _devices(devices: Sequence[Device]) -> object:
    """The devices as they matter to any claim; identities such as a serial number still tell nodes apart, which costs only time."""
    return tuple(_content(attrs.evolve(d, node_name="")) for d in devices)


@attrs.define(eq=False)
class _Room:
    """How many pods of each kind fit on a kind of node, asked of one formula in which each pod can be wanted or not.

    Most questions are easy; for the few others the formula with broken symmetry is better, which makes the easy ones slower.
    """

    here: Problem
    site: _Site
    most: Counts  # so many pods of each kind are in the formula
    asked: Iterator[int]
    quick: Encoding
    thorough: Encoding | None = None

    @classmethod
    def of(cls, problem: Problem, site: _Site, kinds: Sequence[_Kind], most: Counts, asked: Iterator[int]) -> _Room:
        here = _loaded(problem, site, kinds, most)
        quick = encoded(World(here, answers=site.answers), optional=True)
        quick.solver.set("timeout", QUICK)
        return cls(here, site, most, asked, quick)

    def fits(self, counts: Counts) -> bool:
        if next(self.asked) > MAX_QUESTIONS:
            raise UnsupportedFeature(f"new nodes for more kinds of pods than {MAX_QUESTIONS} questions can tell")
        answer = self.quick.solver.check(*self._wanted(self.quick, counts))
        if answer != z3.unknown:
            return bool(answer == z3.sat)
        if self.thorough is None:
            self.thorough = encoded(World(self.here, answers=self.site.answers), optional=True)
            start = len(self.site.always)
            for number in self.most:
                for i in range(start, start + number - 1):
                    _in_order(self.thorough, i, i + 1)
                start += number
        return holds(self.thorough, *self._wanted(self.thorough, counts))

    def _wanted(self, encoding: Encoding, counts: Counts) -> list[z3.BoolRef]:
        always = len(self.site.always)
        starts = itertools.accumulate(self.most, initial=always)
        return encoding.wanted[:always] + [encoding.wanted[s + i] for s, n in zip(starts, counts, strict=False) for i in range(n)]


def _loaded(problem: Problem, site: _Site, kinds: Sequence[_Kind], counts: Counts) -> Problem:
    """So many pods of each kind, on the one node."""
    wanted = (*site.always, *(c for k, n in zip(kinds, counts, strict=True) for c in k.calls[:n]))
    calls = tuple(attrs.evolve(c, nodes=(site.name,)) for c in wanted)
    nodes = {site.name: site.node}
    return attrs.evolve(problem, slices=site.slices, nodes=nodes, holdings=site.holdings, calls=calls, running=site.running)


def _in_order(encoding: Encoding, one_call: int, next_call: int) -> None:
    """Equal pods can change places, so of two of them the first may be asked to take devices that do not come later."""
    places = []
    if not any(q.call == one_call for q in encoding.world.leaves):
        return  # claims without requests
    for call in (one_call, next_call):
        leaf = next(q.index for q in encoding.world.leaves if q.call == call)
        terms = [g.index * encoding.amount((leaf, g.index)) for g in encoding.world.groups if (leaf, g.index) in encoding.used]
        places.append(z3.Sum(terms) if terms else z3.IntVal(0))
    encoding.solver.add(z3.Implies(encoding.wanted[next_call], places[0] <= places[1]))


def _patterns(problem: Problem, site: _Site, kinds: Sequence[_Kind], demand: Counts, asked: Iterator[int]) -> list[Counts]:
    """The largest numbers of pods of each kind that fit on such a node together. Fitting is monotone: fewer pods fit where more do."""
    alone = tuple(_alone(problem, site, kinds, i, demand[i], asked) if site.open_to[i] else 0 for i in range(len(kinds)))
    if not any(alone):
        return [alone]
    room = _Room.of(problem, site, kinds, alone, asked)
    # kinds of which few fit come first: then there are fewer prefixes, each of which takes a question that fails
    order = sorted(range(len(kinds)), key=lambda i: alone[i])
    found: list[Counts] = []

    def extend(prefix: Counts, reached: int) -> int:
        """All patterns that start so. `reached`: what the next kind can have at least. Returns what it can have at most."""
        if len(prefix) == len(kinds):
            counts = tuple(prefix[order.index(i)] for i in range(len(kinds)))
            if not any(all(a <= b for a, b in zip(counts, p, strict=True)) for p in found):
                found.append(counts)
            return 0
        while reached < alone[order[len(prefix)]] and fits((*prefix, reached + 1)):
            reached += 1
        next_reached = 0
        for count in range(reached, -1, -1):
            next_reached = extend((*prefix, count), next_reached)
        return reached

    def fits(prefix: Counts) -> bool:
        given = dict(zip(order, prefix, strict=False))
        return room.fits(tuple(given.get(i, 0) for i in range(len(kinds))))

    extend((), 0)
    return found


def _alone(problem: Problem, site: _Site, kinds: Sequence[_Kind], index: int, demand: int, asked: Iterator[int]) -> int:
    """How many pods of one kind the node takes if it takes no others."""
    size, reached = min(8, demand), 0
    while True:
        most = tuple(size if i == index else 0 for i in range(len(kinds)))
        room = _Room.of(problem, site, kinds, most, asked)
        while reached < size and room.fits(tuple(reached + 1 if i == index else 0 for i in range(len(kinds)))):
            reached += 1
        if reached < size or size == demand:
            return reached
        size = min(2 * size, demand)


def _again(problem: Problem, site: _Site, kinds: Sequence[_Kind], counts: Counts) -> None:
    """Solves a pattern that the answer uses once more, so that the validator sees it. Raises Doubt."""
    if one(_loaded(problem, site, kinds, counts)) is None:
        raise Doubt(f"pods that fit on node {site.name} do not fit when asked again")


def spread(problem: Problem) -> dict[str, list[Call]] | None:
    """For each node the calls that it takes, so that all calls have an allocation; None if there is no way. Exact, as `nodes_needed`."""
    _independent(problem)
    kinds = _kinds_of_calls(problem, {})
    sites = list(_sites(problem, kinds))
    demand = tuple(len(k.calls) for k in kinds)
    asked = itertools.count()
    patterns = [_patterns(problem, site, kinds, demand, asked) for site in sites]
    solver = z3.Solver()
    number = _numbers(solver, sites, patterns, demand)
    if solver.check() != z3.sat:
        return None
    waiting = [list(k.calls) for k in kinds]
    free = [list(site.names) for site in sites]
    found: dict[str, list[Call]] = {}
    for (i, j), variable in number.items():
        value = solver.model().eval(variable, model_completion=True)
        assert isinstance(value, z3.IntNumRef)
        for _ in range(value.as_long()):
            name = free[i].pop(0)
            for calls, n in zip(waiting, patterns[i][j], strict=True):
                found.setdefault(name, []).extend(calls[:n])
                del calls[:n]
    return found


def _numbers(
    solver: z3.Solver, sites: Sequence[_Site], patterns: Sequence[list[Counts]], demand: Counts
) -> dict[tuple[int, int], z3.ArithRef]:
    """How many nodes of each kind take each pattern, so that all pods have a place."""
    number = {(i, j): z3.Int(f"site {i} pattern {j}") for i, found in enumerate(patterns) for j in range(len(found))}
    for variable in number.values():
        solver.add(variable >= 0)
    for i, site in enumerate(sites):
        if site.number:
            solver.add(z3.Sum([number[i, j] for j in range(len(patterns[i]))]) <= site.number)
    for k, wanted in enumerate(demand):
        solver.add(z3.Sum([patterns[i][j][k] * v for (i, j), v in number.items()]) >= wanted)
    return number


def _combine(problem: Problem, kinds: Sequence[_Kind], sites: Sequence[_Site], patterns: Sequence[list[Counts]], demand: Counts) -> WhatIf:
    solver = z3.Optimize()
    number = _numbers(solver, sites, patterns, demand)
    new = z3.Sum([number[len(sites) - 1, j] for j in range(len(patterns[-1]))])
    solver.minimize(new)
    solver.maximize(z3.Sum([sum(patterns[i][j]) * v for (i, j), v in number.items() if i < len(sites) - 1] or [z3.IntVal(0)]))
    if solver.check() != z3.sat:
        # every kind fits somewhere, so only kinds that fit on existing nodes alone can be short
        stuck = tuple(k.label for i, k in enumerate(kinds) if not any(p[i] for p in patterns[-1]))
        return WhatIf(None, (), stuck)
    model = solver.model()
    missing = list(demand)
    loads = []
    for (i, j), variable in number.items():
        value = model.eval(variable, model_completion=True)
        assert isinstance(value, z3.IntNumRef)
        if value.as_long() and any(patterns[i][j]):
            _again(problem, sites[i], kinds, patterns[i][j])
        for _ in range(value.as_long()):
            given = tuple(min(a, b) for a, b in zip(missing, patterns[i][j], strict=True))
            missing = [a - b for a, b in zip(missing, given, strict=True)]
            name = sites[i].name if i < len(sites) - 1 else f"new {sites[i].name}"
            loads.append((name, tuple((k.label, n) for k, n in zip(kinds, given, strict=True) if n)))
    needed = model.eval(new, model_completion=True)
    assert isinstance(needed, z3.IntNumRef)
    counted = {load: loads.count(load) for load in dict.fromkeys(loads)}
    return WhatIf(needed.as_long(), tuple(Load(name, n, pods) for (name, pods), n in counted.items() if pods))
