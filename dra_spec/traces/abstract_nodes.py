"""Concrete nodes as the model's slots: kubelet, plugins, calls between them, CDI files, containers, and the drivers' controller."""

from __future__ import annotations

from dra_spec.explorer.values import Version
from dra_spec.protocol.kubelet_state import IDLE, Do, Entry, Life
from dra_spec.protocol.kubelet_state import Task as ModelTask
from dra_spec.protocol.kubelet_state import Want as ModelWant
from dra_spec.protocol.node import At, CdiFile, Containers, Method, Sandbox
from dra_spec.protocol.node import Call as ModelCall
from dra_spec.protocol.node import Held as ModelHeld
from dra_spec.protocol.plugin_state import Record, Setup
from dra_spec.reference import cdi
from dra_spec.reference.claiminfo import ClaimInfo
from dra_spec.reference.kubelet import Kubelet
from dra_spec.reference.kubelet_task import Task, Want
from dra_spec.reference.machine import PREPARE, Call, Machine
from dra_spec.reference.plugin import COMPLETED, Held, Plugin
from dra_spec.reference.steps import Thread
from dra_spec.reference.world import World
from dra_spec.traces import abstract_objects as objects
from dra_spec.traces.abstract_objects import Values

LANES = 8  # more than a model has

AT = {
    "get_claim": At.SENT,
    "lock_prepare": At.LOCK,
    "record_started": At.LOOKUP,
    "set_up": At.HARDWARE,
    "write_cdi": At.CDI,
    "record_completed": At.RECORD,
    "reply_prepare": At.REPLY,
    "lock_unprepare": At.SENT,
    "free_device": At.LOOKUP,
    "remove_cdi": At.CDI,
    "remove_record": At.RECORD,
    "reply_unprepare": At.REPLY,
}
DO = {
    "get_claim": Do.GET,
    "reference": Do.REFERENCE,
    "checkpoint_reference": Do.CHECKPOINT,
    "prepare_send": Do.PREPARE,
    "prepare_failed": Do.PREPARE,
    "mark_prepared": Do.PREPARED,
    "create_sandbox": Do.SANDBOX,
    "list_names": Do.STOPPED,
    "drop_reference": Do.DROP,
    "unprepare_send": Do.UNPREPARE,
    "unprepare_answer": Do.UNPREPARE,
    "delete_entries": Do.DELETE,
}
INDEXED = (Do.GET, Do.REFERENCE, Do.CHECKPOINT, Do.DROP)
CALLING = (Do.PREPARE, Do.UNPREPARE)


def nodes(world: World) -> Values:
    """All slots of the nodes, and of the driver controller."""
    found: Values = {f"device/{name}": there for name, there in world.present.items()}
    for name, machine in world.machines.items():
        plugins = {driver: plugin for (node, driver), plugin in world.plugins.items() if node == name}
        found.update(_machine(machine, plugins))
        if name in world.kubelets:
            found.update(_kubelet(world.kubelets[name]))
        for plugin in plugins.values():
            found.update(_plugin(plugin))
    if world.drivers is not None:
        for spec in world.instance.claims:
            copy = world.drivers.copies.get(spec.name)
            found[f"driver-controller/copy/{spec.name}"] = objects.claim(copy) if copy else None
    return found


def _held(held: Held) -> ModelHeld:
    return ModelHeld(frozenset(held.devices), frozenset(held.admin))


def _pod_name(uid: str) -> str:
    return uid.rpartition(".")[0]


# -- what the writers of a node share


def _machine(machine: Machine, plugins: dict[str, Plugin]) -> Values:
    room = f"node/{machine.name}"
    found: Values = {}
    for driver in machine.drivers:
        for pod in machine.pods:
            lanes = machine.lanes.get((driver, pod), [])
            for lane in range(LANES):
                call = lanes[lane] if lane < len(lanes) else None
                found[f"{room}/call/{driver}/{pod}/{lane}"] = _call(call) if call else None
        found[f"{room}/serving/{driver}"] = machine.serving[driver]
        found[f"{room}/rebooted/{driver}"] = plugins[driver].rebooted()
        found.update({f"{room}/cdi/{driver}/{claim}": None for claim in machine.claims})
    for spec in cdi.read_specs(machine.cdi):
        devices = frozenset(device["containerEdits"]["env"][0].partition("=")[2] for device in spec["devices"])
        driver, notes = spec["kind"].rpartition("/")[0], spec["annotations"]
        found[f"{room}/cdi/{driver}/{notes['claim']}"] = CdiFile(objects.uid_version(notes["uid"]), devices)
    for pod in machine.pods:
        sandbox = machine.sandboxes.get(pod)
        found[f"{room}/sandbox/{pod}"] = Sandbox(Containers(sandbox.state), frozenset(sandbox.devices)) if sandbox else None
    return found


def _call(call: Call) -> ModelCall:
    method = Method(call.method)
    claims = tuple((name, objects.uid_version(uid)) for name, uid in call.claims)
    if call.answered:
        answers = tuple(frozenset(call.answer.get(uid, ())) for _, uid in call.claims) if call.method == PREPARE else ()
        return ModelCall(method, claims, At.ANSWERED, failed=call.failed, devices=() if call.failed else answers)
    if call.handler is None:
        return ModelCall(method, claims, client=call.client)
    at, local = AT[call.handler.at.partition(".")[2]], call.local
    handled = tuple(map(frozenset, local.handled)) if call.method == PREPARE else ()
    fetched = () if at is At.REPLY else tuple(map(_held, local.fetched))
    return ModelCall(method, claims, at, local.index, call.client, fetched, handled, local.failed)


# -- plugins


def _plugin(plugin: Plugin) -> Values:
    room = f"plugin/{plugin.machine.name}/{plugin.driver}"
    found: Values = {f"{room}/lock": plugin.lock}
    for claim in plugin.machine.claims:
        found[f"{room}/record/{claim}"] = found[f"{room}/hardware/{claim}"] = None
    for uid, record in plugin.records().items():
        held = ModelHeld(frozenset(record["devices"]), frozenset(record["admin"]))
        found[f"{room}/record/{record['name']}"] = Record(objects.uid_version(uid), record["state"] == COMPLETED, held)
    for uid, setup in plugin.hardware.items():
        found[f"{room}/hardware/{setup.name}"] = Setup(objects.uid_version(uid), _held(setup.held))
    return found


# -- kubelets


def _kubelet(kubelet: Kubelet) -> Values:
    room = f"kubelet/{kubelet.machine.name}"
    found: Values = {f"{room}/running": kubelet.running, f"{room}/lock": kubelet.lock}
    stored = kubelet.cache.stored()
    for claim in kubelet.machine.claims:
        found[f"{room}/cache/{claim}"] = _entry(kubelet.cache.get(claim))
        found[f"{room}/checkpoint/{claim}"] = _entry(stored.get(claim))
    for pod in kubelet.machine.pods:
        found[f"{room}/life/{pod}"] = Life(kubelet.lives[pod])
        found[f"{room}/worker/{pod}"] = _task(*kubelet.workers[pod]) if pod in kubelet.workers else IDLE
        found[f"{room}/loop/{pod}"] = _task(*kubelet.loops[pod]) if pod in kubelet.loops else IDLE
    return found


def _entry(info: ClaimInfo | None) -> Entry | None:
    if info is None:
        return None
    return Entry(
        objects.uid_version(info.uid),
        frozenset(map(_pod_name, info.pods)),
        tuple(sorted(info.drivers)),
        frozenset(info.devices),
        info.prepared,
        info.unpreparing,
    )


def _want(want: Want) -> ModelWant:
    uid: Version = objects.uid_version(want.uid)
    return ModelWant(want.claim, uid, tuple(want.drivers))


def _task(task: Task, thread: Thread) -> ModelTask:
    do = DO[thread.at.partition(".")[2]]
    calling = do in CALLING
    return ModelTask(
        do,
        task.index if do in INDEXED else 0,
        tuple(map(_want, task.seen)),
        tuple(task.names),
        tuple(map(_want, task.batch)),
        frozenset(task.done) if calling else frozenset(),
        task.waiting if calling else None,
        task.lane if calling else 0,
        frozenset(task.stored) if calling else frozenset(),
        frozenset(task.missing) if do is Do.PREPARE else frozenset(),
    )
