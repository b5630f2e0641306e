"""What is asked of the solver, and what it answers: plain data, no rule of the allocator.

A problem has calls. One call is one scheduling attempt of upstream: the claims of one pod, allocated together on one node. Several calls
are several pods; each gets a node of its own choice, and what one takes the others cannot have.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction

import attrs

from dra_spec.allocation.extended import PodAsks, Running, Special
from dra_spec.resources.claims import ClaimSpec, ResourceClaim
from dra_spec.resources.core import Node
from dra_spec.resources.meta import Metadata
from dra_spec.resources.reader import Loaded
from dra_spec.resources.slices import DeviceClass, DeviceTaintRule, ResourceSlice
from dra_spec.selectors import Environment

# what Kubernetes 1.37 has on by default, by the allocator's own names
DEFAULT_FEATURES = frozenset(
    {
        "AdminAccess",
        "ConsumableCapacity",
        "DeviceBindingAndStatus",
        "DeviceTaints",
        "FractionalCapacityRange",
        "PartitionableDevices",
        "PrioritizedList",
    }
)


@attrs.frozen
class Holding:
    """A device (driver/pool/device) that an allocated claim holds. `shared`: one share of it; `consumed`: what the share took."""

    device: str
    claim: str = ""
    shared: bool = False
    consumed: tuple[tuple[str, Fraction], ...] = ()


@attrs.frozen(eq=False)
class WantedClaim:
    """A claim that has no allocation yet. `label` is for messages; `special`: made by the scheduler for extended resources."""

    label: str
    spec: ClaimSpec
    special: Special | None = None


@attrs.frozen(eq=False)
class Call:
    """The claims of one pod. `nodes`: where the pod may go, by name; empty only for pods that wait for new nodes. `pods`: what its
    containers ask for of extended resources; pods that share a claim are one call."""

    label: str
    claims: tuple[WantedClaim, ...]
    nodes: tuple[str, ...]
    pods: tuple[PodAsks, ...] = ()


@attrs.frozen(eq=False)
class Problem:
    """Everything that the answer depends on. `features`: allocator features that are on; `version`: of Kubernetes, for the selectors.
    `backing`: extended resources and the classes that serve them by DRA; `unbacked`: the same for classes that would, but the gate is off;
    `running`: pods that have a node and use extended resources.

    The rules are those of 1.37 whatever the version: what older releases get wrong is no rule.
    """

    classes: Mapping[str, DeviceClass]
    slices: tuple[ResourceSlice, ...]
    nodes: Mapping[str, Node]
    calls: tuple[Call, ...]
    holdings: tuple[Holding, ...] = ()
    taint_rules: tuple[DeviceTaintRule, ...] = ()
    features: frozenset[str] = DEFAULT_FEATURES
    version: str = "1.37"
    backing: Mapping[str, str] = attrs.field(factory=dict)
    unbacked: Mapping[str, str] = attrs.field(factory=dict)
    running: tuple[Running, ...] = ()

    @property
    def environment(self) -> Environment:
        """How the scheduler compiles selectors."""
        return Environment.of(self.version)

    @classmethod
    def of(
        cls,
        classes: Iterable[DeviceClass],
        slices: Iterable[ResourceSlice],
        node: Node,
        claims: Sequence[ClaimSpec],
        in_use: Iterable[str] = (),
        features: frozenset[str] = DEFAULT_FEATURES,
    ) -> Problem:
        """One pod with these claims on one node."""
        wanted = tuple(WantedClaim(f"claim {i}", spec) for i, spec in enumerate(claims))
        return cls(
            {c.name: c for c in classes},
            tuple(slices),
            {node.name: node},
            (Call("pod", wanted, (node.name,)),),
            tuple(Holding(name, "another claim") for name in sorted(in_use)),
            features=features,
        )

    @property
    def claims(self) -> tuple[WantedClaim, ...]:
        """The claims of all calls, in order; picks count them from 0."""
        return tuple(claim for call in self.calls for claim in call.claims)

    @property
    def call_of(self) -> tuple[int, ...]:
        """For each claim the index of its call."""
        return tuple(i for i, call in enumerate(self.calls) for _ in call.claims)

    def node(self, name: str) -> Node:
        """The node object, or one without labels for a name that has none."""
        return self.nodes.get(name) or Node(metadata=Metadata(name=name))


@attrs.frozen
class Pick:
    """A device for a leaf request. `claim`: index in Problem.claims; `request`: main or main/sub; `consumed`: of a shared device."""

    claim: int
    request: str
    device: str  # driver/pool/device
    admin: bool = False
    consumed: tuple[tuple[str, Fraction], ...] = ()


@attrs.frozen
class Solution:
    """An allocation of every claim: the node of each call, and the devices in the order of upstream's search."""

    nodes: tuple[str, ...]
    picks: tuple[Pick, ...]


def holdings_of(claims: Iterable[ResourceClaim]) -> tuple[Holding, ...]:
    """What allocated claims hold; admin access holds nothing."""
    found = []
    for claim in claims:
        allocation = claim.status.allocation
        for r in allocation.devices.results if allocation else ():
            if not r.admin_access:
                consumed = tuple(sorted((k, q.value) for k, q in r.consumed_capacity.items()))
                found.append(Holding(f"{r.driver}/{r.pool}/{r.device}", claim.label, bool(r.share_id), consumed if r.share_id else ()))
    return tuple(found)


def node_names(loaded: Loaded) -> tuple[str, ...]:
    """The nodes of a set of manifests: Node objects in their order; without any, the nodes that slices name, else one for all."""
    found = [n.name for n in loaded.nodes]
    if not found:
        named = {s.spec.node_name for s in loaded.slices} | {d.node_name for s in loaded.slices for d in s.spec.devices}
        found = sorted(named - {""})
    return tuple(found) or ("node",)
