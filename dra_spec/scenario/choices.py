"""`allocation: any`: every feasible allocation, from Z3, beside the one that upstream's search finds.

What Z3 finds is compared with upstream's answer always, and with what the plain validator accepts where that can be tried out; a
difference is a `Doubt` of the tool about itself, never an answer.
"""

from __future__ import annotations

import contextlib
import itertools
import math
from collections.abc import Iterable, Iterator, Sequence

import attrs

from dra_spec.allocation.allocator import Allocator
from dra_spec.allocation.errors import DoesNotFit, FatalAllocation, UnsupportedFeature
from dra_spec.allocation.injected import written
from dra_spec.allocation.rules import Rules
from dra_spec.allocation.validator import broken_rules
from dra_spec.allocation.z3_problem import Call, Holding, Pick, Problem, Solution, WantedClaim
from dra_spec.allocation.z3_solve import Doubt, every
from dra_spec.protocol.instance import NO_OTHERS, Allocate, Others
from dra_spec.protocol.objects import Allocation
from dra_spec.scenario.allocator import as_allocation, note
from dra_spec.scenario.cluster import Cluster

TRIED_OUT = 300  # most combinations of devices that are all put to the validator
_Question = tuple[tuple[str, ...], str, frozenset[str]]
_Devices = tuple[frozenset[tuple[str, str]], ...]  # by claim: (request, device)


@attrs.frozen(eq=False)
class EveryAllocation:
    """All feasible allocations of whole devices; each question is asked once. See `protocol.instance.AnyAllocation`.

    `limit`: most allocations that one call may have; `notes` grows by what is not encoded. `others` raises `Doubt`.
    """

    found: Cluster
    engine: Allocator
    allocate: Allocate
    notes: list[str]
    limit: int
    _known: dict[_Question, Others] = attrs.field(factory=dict, init=False, repr=False)

    def others(self, claims: tuple[str, ...], node: str, in_use: frozenset[str]) -> Others:
        """All allocations but upstream's; the bound instead if there are too many, as which ones Z3 finds first is open."""
        key = (claims, node, in_use)
        if key not in self._known:
            try:
                self._known[key] = self._others(*key)
            except UnsupportedFeature as error:
                note(self.notes, error)
                self._known[key] = NO_OTHERS
        return self._known[key]

    @property
    def departed(self) -> bool:
        """Whether another allocation than upstream's was feasible in some call so far, so that there was a choice.

        Also if nothing was asked here at all: then somebody else may have been asked.
        """
        return not self._known or any(found.allocations or found.beyond for found in self._known.values())

    def problem(self, claims: tuple[str, ...], node: str, in_use: frozenset[str]) -> Problem:
        """The question for solver and validator; devices in use are held by another claim."""
        loaded = self.found.loaded
        wanted = tuple(WantedClaim(name, self.found.sources[name]) for name in claims)
        return Problem(
            {each.name: each for each in loaded.classes},
            tuple(loaded.slices),
            {each.name: each for each in loaded.nodes},
            (Call("the pod", wanted, (node,)),),
            tuple(Holding(name, "another claim") for name in sorted(in_use)),
            tuple(loaded.taint_rules),
            frozenset(self.engine.settings.features),
            version=self.engine.settings.version,
        )

    def written(self, claims: tuple[str, ...], node: str, picks: Sequence[Pick]) -> tuple[Allocation, ...]:
        """The allocations that these devices make. Raises FatalAllocation if upstream cannot write them."""
        made = written(self.engine.inventory, self.engine.settings, node, len(claims), picks)
        return tuple(as_allocation(result) for result in made)

    def _others(self, claims: tuple[str, ...], node: str, in_use: frozenset[str]) -> Others:
        own: tuple[Allocation, ...] | None = None
        with contextlib.suppress(DoesNotFit, FatalAllocation):  # there may be an allocation all the same
            own = self.allocate(claims, node, in_use)
        if self.notes:
            return NO_OTHERS  # no verdict but undecided
        problem = self.problem(claims, node, in_use)
        try:
            solutions = every(problem, self.limit + 1)
        except FatalAllocation:
            solutions = []  # refused before anything is searched
        if len(solutions) > self.limit:
            names = ", ".join(claims)
            return Others((), f"there are more than {self.limit} allocations of {names} on node {node} (bound allocations={self.limit})")
        self._whole(problem, solutions)
        by_devices = {_devices(len(claims), solution.picks): solution for solution in solutions}
        self._compare_with_validator(problem, set(by_devices))
        if own is not None:
            self._compare_with_upstream(claims, node, own, by_devices.pop(_taken(own), None))
        return Others(tuple(self._writable(claims, node, by_devices.values())))

    def _writable(self, claims: tuple[str, ...], node: str, solutions: Iterable[Solution]) -> Iterator[tuple[Allocation, ...]]:
        for solution in solutions:
            try:
                yield self.written(claims, node, solution.picks)
            except FatalAllocation:
                continue  # devices that together have no node selector

    def _whole(self, problem: Problem, solutions: Sequence[Solution]) -> None:
        """The protocol knows whole devices only. Raises UnsupportedFeature."""
        shared = {
            f"{s.spec.driver}/{s.spec.pool.name}/{d.name}": d
            for s in problem.slices
            for d in s.spec.devices
            if d.allow_multiple_allocations
        }
        for pick in itertools.chain.from_iterable(solution.picks for solution in solutions):
            if pick.device in shared:
                raise UnsupportedFeature("devices that several claims share", shared[pick.device].at)

    def _compare_with_upstream(self, claims: tuple[str, ...], node: str, own: tuple[Allocation, ...], same: Solution | None) -> None:
        if same is None:
            if self.engine.settings.rules != Rules():
                return  # an old release: its answer may break a rule of today, and stays an outcome
            raise Doubt(f"upstream's allocation of {', '.join(claims)} on node {node} is not among the solver's: {own}")
        made = self.written(claims, node, same.picks)
        if [(set(a.results), a.nodes) for a in made] != [(set(a.results), a.nodes) for a in own]:
            raise Doubt(f"the allocation of {', '.join(claims)} on node {node} is {own}; the same devices chosen make {made}")

    def _compare_with_validator(self, problem: Problem, solved: set[_Devices]) -> None:
        """Puts every combination of devices to the validator, if they are few."""
        (call,) = problem.calls
        accepted = accepted_by_validator(problem, self._seen(call.nodes[0]))
        if accepted is not None and accepted != solved:
            wrong = sorted(sorted(each) for found in accepted ^ solved for each in found)
            raise Doubt(f"solver and validator disagree about {', '.join(c.label for c in call.claims)} on {call.nodes[0]}: {wrong}")

    def _seen(self, node: str) -> list[str]:
        pools = self.engine.inventory.pools(self.engine.inventory.node(node), self.engine.settings.features)
        return sorted(device.name for pool in pools for device in pool.devices)


def accepted_by_validator(problem: Problem, devices: Sequence[str]) -> set[_Devices] | None:
    """What the validator accepts of all ways to give the requests of one pod some of the devices; None if there are too many ways, or if
    it refuses to judge one."""
    ways: list[list[tuple[Pick, ...]]] = []
    for claim, wanted in enumerate(problem.claims):
        for request in wanted.spec.requests:
            picks: list[tuple[Pick, ...]] = []
            for name, leaf in request.leaves:
                sizes = range(1, len(devices) + 1) if leaf.all_devices else [leaf.number]
                if sum(math.comb(len(devices), size) for size in sizes) > TRIED_OUT:
                    return None
                sets = itertools.chain.from_iterable(itertools.combinations(devices, size) for size in sizes)
                picks += [tuple(Pick(claim, name, device, bool(leaf.admin_access)) for device in chosen) for chosen in sets]
            ways.append(picks)
    if math.prod(len(each) for each in ways) > TRIED_OUT:
        return None
    found = set()
    for combination in itertools.product(*ways):
        picks_of_all = tuple(itertools.chain.from_iterable(combination))
        try:
            if not broken_rules(problem, Solution(problem.calls[0].nodes, picks_of_all)):
                found.add(_devices(len(problem.claims), picks_of_all))
        except (FatalAllocation, UnsupportedFeature):
            return None
    return found


def _devices(claims: int, picks: Sequence[Pick]) -> _Devices:
    return tuple(frozenset((p.request, p.device) for p in picks if p.claim == claim) for claim in range(claims))


def _taken(allocations: Sequence[Allocation]) -> _Devices:
    return tuple(frozenset(each.picks) for each in allocations)
