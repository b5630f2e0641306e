"""The bounded cluster that a model is about: what is fixed in a run, as plain data.

`scenario` makes an `Instance` from manifests; the writers' modules read it and never change it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, TypeVar, cast

import attrs

from dra_spec.protocol.objects import Allocation

T = TypeVar("T")


@attrs.frozen
class ClaimRef:
    """One entry of a pod's `spec.resourceClaims`. `claim` is the name of the claim: the one that the entry names or, for an entry with a
    `template`, the name that the generated claim will get (one name per pod and entry)."""

    entry: str
    claim: str
    template: str | None = None


@attrs.frozen
class PodSpec:
    """A pod: its claims in order; `present` false: somebody creates it during the run; `node`: bound from the start;
    `scheduler`: spec.schedulerName, None = the first of the instance."""

    name: str
    claims: tuple[ClaimRef, ...]
    present: bool = True
    node: str | None = None
    scheduler: str | None = None


@attrs.frozen
class ClaimSpec:
    """A claim; `pod`: the pod for which it is generated, None if it is named and present from the start."""

    name: str
    pod: str | None = None
    requests: tuple[str, ...] = ()


@attrs.frozen
class DeviceSpec:
    """A device of some node-local pool; `node` None: reachable from every node."""

    name: str  # driver/pool/device
    node: str | None
    binding_conditions: tuple[str, ...] = ()
    binding_failure_conditions: tuple[str, ...] = ()

    @property
    def driver(self) -> str:
        return self.name.partition("/")[0]


# (claims to allocate in order, node, devices in use) -> one allocation per claim; raises what dra_spec.allocation.errors has
Allocate = Callable[[tuple[str, ...], str, frozenset[str]], tuple[Allocation, ...]]


@attrs.frozen
class Others:
    """What another allocator may answer than upstream's: one allocation per claim each, in a fixed order. `beyond`: the bound that was
    reached, so that there are more; "" if these are all."""

    allocations: tuple[tuple[Allocation, ...], ...] = ()
    beyond: str = ""


NO_OTHERS = Others()


class AnyAllocation(Protocol):
    """Knows every feasible allocation (`allocation: any`). The arguments are those of `Allocate`."""

    @property
    def departed(self) -> bool:
        """Whether there was a choice so far: some call had another answer than upstream's."""

    def others(self, claims: tuple[str, ...], node: str, in_use: frozenset[str]) -> Others:
        """All feasible allocations but the one that `allocate` returns."""

    def problem(self, claims: tuple[str, ...], node: str, in_use: frozenset[str]) -> Any:
        """The same question as the validator takes it (allocation.z3_problem.Problem), for who checks an answer."""

    def written(self, claims: tuple[str, ...], node: str, picks: Sequence[Any]) -> tuple[Allocation, ...]:
        """The allocations that devices chosen by somebody (allocation.z3_problem.Pick) make."""


@attrs.frozen(eq=False)
class Instance:
    """A bounded cluster.

    `lag`: most undelivered events per watcher and kind. `budgets`: how often each fault and environment event may happen, by
    name ("kubelet-crash", "api-refused", "delete-pod", ...); an absent name means never. `writers`: the writers that take part.
    `schedulers`: by name, in order. `any_node`: a scheduler may choose any node that fits, not only the first. `any_allocation`: it may
    choose any feasible allocation, not only the one that upstream's search finds (None: only that one).
    """

    pods: Sequence[PodSpec]
    claims: Sequence[ClaimSpec]
    nodes: Sequence[str]
    devices: Sequence[DeviceSpec]
    allocate: Allocate
    writers: frozenset[str]
    schedulers: Sequence[str] = ("scheduler",)
    lag: int = 2
    budgets: Mapping[str, int] = attrs.field(factory=dict)
    binding_conditions: bool = False
    any_node: bool = False
    any_allocation: AnyAllocation | None = None
    _made: dict[Any, Any] = attrs.field(factory=dict, init=False, repr=False)

    def others(self, claims: tuple[str, ...], node: str, in_use: frozenset[str]) -> Others:
        """What else than the answer of `allocate` is allowed."""
        return self.any_allocation.others(claims, node, in_use) if self.any_allocation else NO_OTHERS

    def memo(self, make: Callable[[Instance], T]) -> T:
        """`make(instance)`, made once: the slots of a writer are the same objects for all who ask."""
        if make not in self._made:
            self._made[make] = make(self)
        return cast(T, self._made[make])

    def pods_for(self, scheduler: str) -> tuple[str, ...]:
        """The pods that a scheduler is responsible for, in order."""
        return tuple(p.name for p in self.pods if (p.scheduler or self.schedulers[0]) == scheduler and p.node is None)

    def pod(self, name: str) -> PodSpec:
        return next(p for p in self.pods if p.name == name)

    def claim(self, name: str) -> ClaimSpec:
        return next(c for c in self.claims if c.name == name)

    def pods_of(self, claim: str) -> tuple[str, ...]:
        """The pods that name the claim, in order."""
        return tuple(p.name for p in self.pods if any(r.claim == claim for r in p.claims))

    def budget(self, name: str) -> int:
        return self.budgets.get(name, 0)

    @property
    def drivers(self) -> tuple[str, ...]:
        return tuple(sorted({d.driver for d in self.devices}))
