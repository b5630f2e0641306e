"""Small instances for the tests of the API server and the scheduler, and promises about them in Python."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from dra_spec.allocation.errors import DoesNotFit
from dra_spec.explorer import Limits, Result, explore
from dra_spec.explorer.model import AlwaysPossible, Kind, Model, Property, StateInvariant, Truth, View
from dra_spec.protocol.apiserver import Api
from dra_spec.protocol.assembly import assemble
from dra_spec.protocol.instance import Allocate, ClaimRef, ClaimSpec, DeviceSpec, Instance, PodSpec
from dra_spec.protocol.objects import Allocation, DeviceResult
from dra_spec.variants.base import Variant

SCHEDULING = frozenset({"apiserver", "scheduler"})
H1 = {"p1": "c1 c2", "p2": "c3"}  # two devices, one refused write


def first_fit(devices: Sequence[DeviceSpec]) -> Allocate:
    """One device per claim, the first free one of the node."""

    def allocate(claims: tuple[str, ...], node: str, used: frozenset[str]) -> tuple[Allocation, ...]:
        free = [d for d in devices if d.node in (None, node) and d.name not in used]
        if len(free) < len(claims):
            raise DoesNotFit
        return tuple(
            Allocation(
                (
                    DeviceResult(
                        "r", d.name, binding_conditions=d.binding_conditions, binding_failure_conditions=d.binding_failure_conditions
                    ),
                ),
                None if d.node is None else frozenset({d.node}),
            )
            for d in free[: len(claims)]
        )

    return allocate


def cluster(
    pods: Mapping[str, str],
    devices: int = 1,
    *,
    nodes: tuple[str, ...] = ("n1",),
    conditions: bool = False,
    writers: Iterable[str] = SCHEDULING,
    scheduler_of: Mapping[str, str] | None = None,
    budgets: Mapping[str, int] | None = None,
    **more: Any,
) -> Instance:
    """`pods`: pod -> names of its claims; a name that starts with "t:" is made from a template. `devices`: on each node."""
    refs = {p: tuple(ClaimRef(c, c, "template" if c.startswith("t:") else None) for c in names.split()) for p, names in pods.items()}
    owners = {ref.claim: (p if ref.template else None) for p, of in refs.items() for ref in of}
    on, off = (("ready",), ("failed",)) if conditions else ((), ())
    specs = tuple(DeviceSpec(f"gpu/{n}/d{i + 1}", n, on, off) for n in nodes for i in range(devices))
    return Instance(
        pods=tuple(PodSpec(p, of, scheduler=(scheduler_of or {}).get(p)) for p, of in refs.items()),
        claims=tuple(ClaimSpec(c, owner) for c, owner in owners.items()),
        nodes=nodes,
        devices=specs,
        allocate=first_fit(specs),
        writers=frozenset(writers),
        budgets=budgets or {},
        **more,
    )


def no_double_allocation(instance: Instance) -> list[Property]:
    """No device in two claims' allocations."""
    api = Api.of(instance)

    def differ(first: str, second: str) -> Callable[[View], Truth]:
        def judge(v: View) -> Truth:
            one, two = v[api.claim[first]].devices, v[api.claim[second]].devices
            return Truth.TRIVIAL if not one or not two else Truth(2 * (not one & two))

        return judge

    return [StateInvariant("no-double-allocation", differ(a, b)) for a, b in itertools.combinations(api.claim, 2)]


def bound_implies_reserved(instance: Instance) -> list[Property]:
    """A pod with a node, and not done, is a consumer of each of its claims."""
    api = Api.of(instance)

    def listed(pod: str, claim: str) -> Callable[[View], Truth]:
        def judge(v: View) -> Truth:
            p = v[api.pod[pod]]
            return Truth.TRIVIAL if not p.exists or p.node is None or p.terminal else Truth(2 * (pod in v[api.claim[claim]].reserved_for))

        return judge

    return [StateInvariant("bound-implies-reserved", listed(p.name, ref.claim)) for p in instance.pods for ref in p.claims]


def all_can_be_bound(instance: Instance) -> list[Property]:
    """Without faults and users, all pods can still get a node."""
    api = Api.of(instance)

    def goal(v: View) -> Truth:
        return Truth(2 * all(v[slot].node is not None for slot in api.pod.values()))

    return [AlwaysPossible("all-can-be-bound", goal, lambda a: a.type.kind not in (Kind.FAULT, Kind.USER))]


def model(instance: Instance, *variants: Variant, promises: Iterable[Property] = ()) -> Model:
    """The model of an instance."""
    parts = assemble(instance, variants)
    return Model("test", parts.slots, parts.actions, tuple(promises))


def check(instance: Instance, *variants: Variant, promises: Iterable[Property] = (), engine: str = "explicit") -> Result:
    """The whole state space of an instance, up to a limit that a test never needs."""
    return explore(model(instance, *variants, promises=promises), Limits(max_states=600_000), engine)


def story(result: Result, promise: str) -> list[str]:
    """The shortest trace that breaks the promise: action, pod or claim, outcome."""
    trace = result.property(promise).trace
    assert trace is not None
    return [f"{s.action.name.partition('.')[2]} {s.action.params.get('pod') or s.action.params['claim']} {s.label}" for s in trace.steps]
