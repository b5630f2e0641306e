"""The world as invariants see it: plain data in the shape of the CEL schema (claims, pods, nodes, schedulers)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dra_spec.reference import cdi
from dra_spec.reference.apiserver import CLAIM, POD
from dra_spec.reference.claiminfo import ClaimInfo
from dra_spec.reference.kubelet import Kubelet
from dra_spec.reference.machine import RUNNING, Machine
from dra_spec.reference.plugin import Plugin
from dra_spec.reference.scheduler import Scheduler
from dra_spec.reference.shapes import (
    Object,
    allocation,
    conditions,
    consumers,
    deleting,
    device_id,
    exclusive,
    finalizer,
    known_claims,
    name_of,
    node_name,
    owner_pod,
    phase,
    results,
    selected_nodes,
    uid_of,
)

if TYPE_CHECKING:
    from dra_spec.reference.world import World

Plain = dict[str, Any]


def snapshot(world: World) -> Plain:
    """The whole world. Sections of writers that do not take part are missing."""
    claims = [world.api.find(CLAIM, spec.name) for spec in world.instance.claims]
    pods = [world.api.find(POD, spec.name) for spec in world.instance.pods]
    found: Plain = {
        "claims": [_claim(claim) for claim in claims if claim is not None],
        "pods": [_pod(world, pod) for pod in pods if pod is not None],
        "nodes": [_node(world, name) for name in world.instance.nodes],
    }
    if world.schedulers:
        found["schedulers"] = [_scheduler(one) for one in world.schedulers.values()]
    return found


def _claim(claim: Object) -> Plain:
    found, owner = allocation(claim), owner_pod(claim)
    nodes = selected_nodes(found)
    return {
        "name": name_of(claim),
        "uid": uid_of(claim),
        "deleting": deleting(claim),
        "finalizer": finalizer(claim),
        "allocated": found is not None,
        "devices": sorted(exclusive(found)),
        "results": [_result(r) for r in results(found)],
        "nodes": None if nodes is None else sorted(nodes),
        "reservedFor": sorted(entry["name"] for entry in consumers(claim)),
        "conditions": [{"device": device, "type": kind} for device, kind in sorted(conditions(claim))],
        "owner": owner[0] if owner else "",
    }


def _result(result: Object) -> Plain:
    return {
        "request": result["request"],
        "device": device_id(result),
        "driver": result["driver"],
        "admin": bool(result.get("adminAccess")),
        "bindingConditions": list(result.get("bindingConditions", ())),
        "bindingFailureConditions": list(result.get("bindingFailureConditions", ())),
    }


def _pod(world: World, pod: Object) -> Plain:
    name = name_of(pod)
    running = phase(pod) == "Running"
    if world.kubelets:
        running = any(name in machine.sandboxes and machine.sandboxes[name].state == RUNNING for machine in world.machines.values())
    return {
        "name": name,
        "deleting": deleting(pod),
        "node": node_name(pod) or "",
        "phase": phase(pod),
        "claims": list(dict.fromkeys(known_claims(pod))),
        "running": running,
    }


def _node(world: World, name: str) -> Plain:
    found: Plain = {"name": name}
    if name in world.kubelets:
        found["kubelet"] = _kubelet(world.kubelets[name])
        sandboxes = world.machines[name].sandboxes
        found["containers"] = [
            {
                "pod": pod,
                "claims": sorted({c for c, _ in sandboxes[pod].devices}),
                "devices": sorted({d for _, d in sandboxes[pod].devices}),
            }
            for pod in world.machines[name].pods
            if pod in sandboxes and sandboxes[pod].state == RUNNING
        ]
    if "plugin" in world.instance.writers:
        machine = world.machines[name]
        found["plugins"] = [_plugin(world, machine, world.plugins[name, driver]) for driver in machine.drivers]
    return found


def _kubelet(kubelet: Kubelet) -> Plain:
    stored = kubelet.cache.stored()
    claims = kubelet.machine.claims
    return {
        "running": kubelet.running,
        "cache": [_entry(kubelet.cache.entries[c], memory=True) for c in claims if c in kubelet.cache.entries],
        "checkpoint": [_entry(stored[c], memory=False) for c in claims if c in stored],
    }


def _entry(info: ClaimInfo, memory: bool) -> Plain:
    pods = sorted(uid.rpartition(".")[0] for uid in info.pods)
    found: Plain = {"claim": info.name, "uid": info.uid, "pods": pods, "devices": sorted(info.devices)}
    return found | ({"prepared": info.prepared, "unpreparing": info.unpreparing} if memory else {})


def _plugin(world: World, machine: Machine, plugin: Plugin) -> Plain:
    reachable = [d.name for d in world.instance.devices if d.driver == plugin.driver and d.node in (None, machine.name)]
    order = {claim: i for i, claim in enumerate(machine.claims)}
    files = [spec["annotations"]["claim"] for spec in cdi.read_specs(machine.cdi) if spec["kind"] == cdi.kind(plugin.driver)]
    records = sorted(plugin.records().items(), key=lambda item: order[item[1]["name"]])
    hardware = sorted(plugin.hardware.items(), key=lambda item: order[item[1].name])
    return {
        "driver": plugin.driver,
        "running": machine.serving[plugin.driver],
        "inventory": [device for device in reachable if world.present[device]],
        "checkpoint": [{"claim": r["name"], "uid": uid, "state": r["state"], "devices": sorted(r["devices"])} for uid, r in records],
        "cdi": sorted(files, key=order.__getitem__),
        "prepared": [{"claim": s.name, "uid": uid, "devices": sorted(s.held.devices)} for uid, s in hardware],
    }


def _scheduler(scheduler: Scheduler) -> Plain:
    flying: dict[str, Plain] = {}
    for entry in scheduler.in_flight.entries.values():
        claim = name_of(entry.claim)
        one = flying.setdefault(claim, {"claim": claim, "devices": [], "sharers": 0})
        one["devices"] = sorted({*one["devices"], *exclusive(allocation(entry.claim))})
        one["sharers"] += entry.sharers
    return {
        "name": scheduler.name,
        "running": True,
        "inFlight": [flying[claim] for claim in scheduler.claim_names if claim in flying],
        "allocated": sorted(scheduler.allocated.ids),
    }
