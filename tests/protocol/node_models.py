"""Small node models for the tests of kubelet, plugin and driver controller, and the node-side promises as Python predicates."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from dra_spec.allocation.errors import DoesNotFit
from dra_spec.explorer import Limits, explore
from dra_spec.explorer.model import Action, AlwaysPossible, Kind, Model, StateInvariant, StepInvariant, Truth, View
from dra_spec.explorer.result import Result
from dra_spec.protocol.apiserver import Api
from dra_spec.protocol.assembly import assemble
from dra_spec.protocol.instance import ClaimRef, ClaimSpec, DeviceSpec, Instance, PodSpec
from dra_spec.protocol.kubelet_state import kubelets
from dra_spec.protocol.node import nodes
from dra_spec.protocol.objects import Allocation, DeviceResult
from dra_spec.protocol.plugin_state import plugins

NODE_WRITERS = frozenset({"apiserver", "kubelet", "plugin", "workload"})


def instance(
    pods: Mapping[str, Iterable[str]],
    drivers: Mapping[str, Iterable[str]],
    devices: int = 1,
    nodes: Iterable[str] = ("n1",),
    writers: Iterable[str] = NODE_WRITERS,
    conditions: tuple[str, ...] = (),
    **budgets: int,
) -> Instance:
    """`pods`: pod -> claims (a claim "t:x" is generated for its pod); `drivers`: claim -> drivers, one device of each ("a|b": of a or else
    of b); `devices`: of each driver on each node. Budgets by name with underscores."""
    every = sorted({d for of in drivers.values() for choice in of for d in choice.split("|")})
    failures = tuple(f"not-{c}" for c in conditions)
    specs = [DeviceSpec(f"{d}/{n}/gpu-{i}", n, conditions, failures) for n in nodes for d in every for i in range(devices)]

    def allocate(claims: tuple[str, ...], node: str, used: frozenset[str]) -> tuple[Allocation, ...]:
        taken, made = set(used), []
        for claim in claims:
            results = []
            for choice in drivers[claim]:
                order = choice.split("|")
                free = [s.name for d in order for s in specs if s.driver == d and s.node == node and s.name not in taken]
                if not free:
                    raise DoesNotFit(f"no {choice} for {claim}")
                taken.add(free[0])
                results.append(DeviceResult(choice, free[0], binding_conditions=conditions, binding_failure_conditions=failures))
            made.append(Allocation(tuple(results), frozenset({node})))
        return tuple(made)

    refs = {p: tuple(ClaimRef(c, c, "template" if c.startswith("t:") else None) for c in of) for p, of in pods.items()}
    owner = {c: p for p, of in pods.items() for c in of if c.startswith("t:")}
    return Instance(
        pods=[PodSpec(p, of) for p, of in refs.items()],
        claims=[ClaimSpec(c, owner.get(c)) for c in drivers],
        nodes=tuple(nodes),
        devices=specs,
        allocate=allocate,
        writers=frozenset(writers),
        budgets={name.replace("_", "-"): n for name, n in budgets.items()},
    )


def _truth(value: bool) -> Truth:
    return Truth.TRUE if value else Truth.FALSE


def promises(inst: Instance) -> list[StateInvariant | StepInvariant | AlwaysPossible]:
    """The node-side promises, of all nodes together."""
    kub, plug, shared, api = kubelets(inst), plugins(inst), nodes(inst), Api.of(inst)

    def covers(v: View) -> Truth:
        for (node, _), plugin in plug.items():
            for claim, slot in plugin.hardware.items():
                setup = v.value(slot)
                entry = v.value(kub[node].disk[claim])
                if setup is not None and (entry is None or entry.uid != setup.uid):
                    return Truth.FALSE
        return Truth.TRUE

    def exclusive(v: View) -> Truth:
        for plugin in plug.values():
            held = [d for slot in plugin.hardware.values() for s in [v.value(slot)] if s for d in s.held.devices]
            if len(held) != len(set(held)):
                return Truth.FALSE
        return Truth.TRUE

    def container_is_prepared(v: View) -> Truth:
        for node, of in shared.items():
            for slot in of.sandboxes.values():
                sandbox = v.value(slot)
                for claim, device in sandbox.devices if sandbox else ():
                    setup = v.value(plug[node, device.partition("/")[0]].hardware[claim])
                    if setup is None or device not in setup.held.all:
                        return Truth.FALSE
        return Truth.TRUE

    def container_matches_allocation(v: View) -> Truth:
        for of in shared.values():
            for pod, slot in of.sandboxes.items():
                sandbox = v.value(slot)
                for claim, device in sandbox.devices if sandbox and v[api.pod[pod]].exists else ():
                    found = v.value(api.claim[claim])
                    if pod in found.reserved_for and device not in {r.device for r in found.allocation.results}:
                        return Truth.FALSE
        return Truth.TRUE

    def nothing_orphaned(v: View) -> Truth:
        for (node, _), plugin in plug.items():
            for claim in plugin.records:
                left = [found.uid for slot in (plugin.records[claim], plugin.hardware[claim]) if (found := v.value(slot)) is not None]
                users = any(v[api.pod[p]].exists and v[api.pod[p]].node == node for p in inst.pods_of(claim))
                if left and not (users and v[api.claim[claim]].exists and set(left) == {v[api.claim[claim]].uid}):
                    return Truth.FALSE
        return Truth.TRUE

    def unshared(before: View, after: View, action: Action, label: str) -> Truth:
        node, driver, pod, lane = (action.params[k] for k in ("node", "driver", "pod", "index"))
        call = before.value(shared[node].calls[driver, pod][lane])
        users = {c for slot in shared[node].sandboxes.values() for s in [before.value(slot)] if s and s.running for c, _ in s.devices}
        return _truth(call.claim not in users)

    def reserved(before: View, after: View, action: Action, label: str) -> Truth:
        claim = before.value(api.claim[inst.pod(action.params["pod"]).claims[action.params["index"]].claim])
        return _truth(label != "ok" or (action.params["pod"] in claim.reserved_for and claim.allocated))

    def done(v: View, pod: str) -> Truth:
        found = v[api.pod[pod]]
        running = any((s := v.value(of.sandboxes[pod])) is not None and s.running for of in shared.values())
        return _truth(not found.exists or found.deleting or found.terminal or running)

    def protocol(action: Action) -> bool:
        return action.type.kind in (Kind.PROTOCOL, Kind.TIMEOUT, Kind.WORKLOAD)

    made: list[StateInvariant | StepInvariant | AlwaysPossible] = [
        StateInvariant("checkpoint-covers-prepared", covers),
        StateInvariant("prepared-device-exclusive", exclusive),
        StateInvariant("container-needs-prepared", container_is_prepared),
        StateInvariant("cdi-matches-allocation", container_matches_allocation),
        StepInvariant("no-unprepare-while-shared", lambda a: a.name == "plugin.free_device", unshared),
        StepInvariant("kubelet-survives", lambda a: a.name == "kubelet.prepare_send", lambda b, a, c, label: _truth(label != "panic")),
        StepInvariant("prepare-only-when-reserved", lambda a: a.name == "kubelet.get_claim", reserved),
        AlwaysPossible("no-orphan-prepared", nothing_orphaned, protocol),
    ]
    made += [AlwaysPossible("pod-eventually-runs", lambda v, p=pod.name: done(v, p), protocol) for pod in inst.pods]
    return made


def model(inst: Instance, variants: Iterable[object] = (), only: Iterable[str] = ()) -> Model:
    """The model of an instance with the promises above, or those of `only`."""
    parts = assemble(inst, variants)
    wanted = set(only)
    return Model("node", parts.slots, parts.actions, [p for p in promises(inst) if not wanted or p.promise in wanted])


def check(
    inst: Instance, variants: Iterable[object] = (), only: Iterable[str] = (), max_states: int = 400_000
) -> tuple[Result, dict[str, str]]:
    """Explores; the result and promise -> verdict."""
    result = explore(model(inst, variants, only), Limits(max_states=max_states))
    return result, {p.promise: p.verdict for p in result.properties}
