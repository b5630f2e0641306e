"""Devices that no rule of the problem tells apart, as one group with a size: a count for the solver instead of a choice.

Without this, "nine requests for eight equal devices" is a pigeonhole problem, which takes a solver of clauses exponential time.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import attrs

from dra_spec.allocation.errors import FatalAllocation, UnsupportedFeature
from dra_spec.allocation.z3_leaf import Answers, Leaf, Reason, Table, derived_values, leaves_of, special_nodes
from dra_spec.allocation.z3_problem import Problem
from dra_spec.allocation.z3_view import Candidate, NodeView, PoolFacts, draws, view
from dra_spec.resources.semver import SemVer
from dra_spec.resources.slices import AttributeValue
from dra_spec.selectors import SelectorError

Values = frozenset[tuple[str, object]]


@attrs.frozen(eq=False)
class Group:
    """`members` in search order; `nodes`: where they can be used; `listed` and `refused`, by leaf: the reasons that keep a device off the
    list of a request for all, and the other ones."""

    index: int
    members: tuple[Candidate, ...]
    nodes: frozenset[str]
    shared: bool
    listed: Mapping[int, tuple[Reason, ...]]
    refused: Mapping[int, tuple[Reason, ...]]

    @property
    def size(self) -> int:
        return len(self.members)

    @property
    def first(self) -> Candidate:
        return self.members[0]

    def reasons(self, leaf: Leaf) -> tuple[Reason, ...]:
        """All that keeps the devices from the leaf, in the order of upstream's tests."""
        return self.listed[leaf.index] + self.refused[leaf.index]


@attrs.define(eq=False)
class World:
    """Leaves, what each node sees, and the groups. `everything`: also devices that the node cannot use, with the reason (for one call on
    one node only). Raises FatalAllocation and UnsupportedFeature."""

    problem: Problem
    everything: bool = False
    merge: bool = True
    answers: Answers = attrs.field(factory=dict)  # of selectors; to be shared by worlds with the same devices
    leaves: list[Leaf] = attrs.field(init=False)
    where: dict[int, tuple[str, ...]] = attrs.field(init=False)  # by claim of the scheduler: the nodes where it exists
    table: Table = attrs.field(init=False)
    views: dict[str, NodeView] = attrs.field(init=False)
    groups: list[Group] = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        problem = self.problem
        self.leaves = leaves_of(problem)
        self.where = special_nodes(problem)
        self.table = Table(problem, self.answers)
        self.views = {n: view(problem, problem.node(n)) for n in dict.fromkeys(n for c in problem.calls for n in c.nodes)}
        self._all_or_nothing()
        found: dict[str, tuple[Candidate, set[str], list[Reason]]] = {}
        for name, seen in self.views.items():
            for candidate in seen.candidates:
                broken = seen.pools[candidate.pool].problem
                if broken and not self.everything:
                    continue
                why = [Reason("pool", (candidate.pool,), broken, candidate.slice.where("spec.pool"))] if broken else []
                found.setdefault(candidate.name, (candidate, set(), why))[1].add(name)
            if self.everything:
                for candidate, text in seen.away:
                    place = candidate.slice.where("spec")
                    if candidate.name not in found:
                        kind = "pool" if candidate.name in seen.outdated else "node"
                        found[candidate.name] = (candidate, {name}, [Reason(kind, (name, text), text, place)])
        merge = self.merge and not any(leaf.admin for leaf in self.leaves)
        self.groups = self._grouped(found.values(), merge)
        for (index, device), text in self.table.errors.items():
            if self.leaves[index].request.all_devices and not self.everything:
                raise FatalAllocation(f"{self.leaves[index].label} asks for all devices, and device {device}: {text}")
        if len(problem.calls) > 1:
            self._several_calls()

    def _all_or_nothing(self) -> None:
        """Up to 1.37 a broken pool of whatever driver is fatal for a request for all."""
        for leaf in self.leaves:
            if leaf.request.all_devices and not self.everything:
                for name in self.problem.calls[leaf.call].nodes:
                    for pool in self.views[name].broken():
                        raise FatalAllocation(f"{leaf.label} asks for all devices, but {pool.problem}")

    def _several_calls(self) -> None:
        """Admin access of one pod is forgotten before the next, so with several pods the order would matter where it is charged."""
        for leaf in self.leaves:
            for group in self.groups:
                if leaf.admin and not group.reasons(leaf) and (group.shared or group.first.device.consumes_counters):
                    raise UnsupportedFeature("admin access to devices with counters or shares, with several pods at once", leaf.request.at)

    def pool(self, group: Group) -> PoolFacts | None:
        """The pool that the group's counters belong to; the nodes that see it see the same counters."""
        return next((v.pools[group.first.pool] for n, v in self.views.items() if n in group.nodes and group.first.pool in v.pools), None)

    def _grouped(self, found: Iterable[tuple[Candidate, set[str], list[Reason]]], merge: bool) -> list[Group]:
        alike: dict[object, list[tuple[Candidate, frozenset[str], list[list[Reason]], list[list[Reason]]]]] = {}
        for candidate, nodes, why in sorted(found, key=lambda f: f[0].order):
            listed, refused = [], []
            for leaf in self.leaves:
                away = [] if nodes & set(self.problem.calls[leaf.call].nodes) else [Reason("node", (), "it is on another node")]
                own = [*why, *away]
                # what is not there is not asked: its selectors could fail
                listed.append(own if own and not self.everything else [*own, *self.table.selectable(leaf, candidate)])
                refused.append([] if listed[-1] and not self.everything else self.table.others(leaf, candidate))
            key = self._signature(candidate, frozenset(nodes), listed, refused) if merge else candidate.name
            alike.setdefault(key, []).append((candidate, frozenset(nodes), listed, refused))
        groups = []
        for index, members in enumerate(alike.values()):
            first, where, listed, refused = members[0]
            groups.append(
                Group(
                    index,
                    tuple(m[0] for m in members),
                    where,
                    self.table.shared(first),
                    {leaf.index: tuple(r) for leaf, r in zip(self.leaves, listed, strict=True)},
                    {leaf.index: tuple(r) for leaf, r in zip(self.leaves, refused, strict=True)},
                )
            )
        return groups

    def _signature(self, candidate: Candidate, nodes: frozenset[str], listed: list[list[Reason]], refused: list[list[Reason]]) -> object:
        if self.table.shared(candidate):
            return candidate.name
        uses = draws(candidate.device)
        groups = tuple((c.counter_set, c.compatibility_groups) for c in candidate.device.consumes_counters)
        attributes = tuple(
            self.values(leaf, candidate, c.match_attribute or c.distinct_attribute)
            for leaf in self.leaves
            for c in self.problem.claims[leaf.claim].spec.devices.constraints
        )
        reasons = tuple(tuple((r, r.text if self.everything else "") for r in part) for part in (*listed, *refused))
        return (nodes, reasons, attributes, candidate.pool if uses else "", tuple(sorted(uses.items())), groups)

    def values(self, leaf: Leaf, candidate: Candidate, name: str) -> Values:
        """The values that a constraint on the attribute sees on the device; empty if it has none. A list whose feature is off gives one
        value of kind `list`, which equals nothing."""
        expression = next((d.expression for d in leaf.request.derived_attributes if d.name == name), None)
        if expression is not None:
            derived = derived_values(expression, candidate, self.problem.environment)
            if isinstance(derived, SelectorError):
                self.table.errors[leaf.index, candidate.name] = str(derived)
                return frozenset()
            return frozenset(_kind_of(v) for v in derived)
        domain, _, ident = name.partition("/")
        found: AttributeValue | None = candidate.device.attributes.get(name)
        if found is None and domain == candidate.driver:
            found = candidate.device.attributes.get(ident)
        if found is None:
            return frozenset()
        if not found.is_list:
            return frozenset({(found.kind, found.value)})
        if "ListTypeAttributes" not in self.problem.features:
            return frozenset({("list", candidate.name)})
        return frozenset((found.kind[:-1], v) for v in (found.value if isinstance(found.value, tuple) else ()))


def _kind_of(value: object) -> tuple[str, object]:
    """A computed value as a slice's attribute of the same kind would be compared."""
    if isinstance(value, SemVer):
        return "version", str(value)
    return ("bool" if isinstance(value, bool) else "int" if isinstance(value, int) else "string"), value
