"""A vendor's node plugin: one per node and driver, as the reference the order of NVIDIA's GPU plugin (plugin.md, P1 to P19).

The record (its checkpoint) says Started before the device is touched and Completed after the CDI file is written; a claim whose record is
Completed is answered from the record; a claim whose devices are in the completed record of another claim is refused.

Thin in these places:

- One lock from after the GETs to the reply, for all claims of a call; waiting for it does not end by itself.
- The look-up (P6), the overlap and inventory check (P7) and the write of Started (P8) are one step: only the lock's holder writes records.
- Setting up the device (P9) is one step. An unprepare never finds a device busy; a file write never fails.
- No garbage collection of Started records (P20 to P22), no publishing (P23), no health (P24), no rolling update (P26).
- Records are kept by claim name with the UID inside. A second UID of one name while the first still has a record leaves the bounds.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import attrs

from dra_spec.explorer.model import Action, ActionType, Kind, Outcome, PartView, Slot, View, action
from dra_spec.protocol.instance import Instance
from dra_spec.protocol.node import At, Call, CdiFile, Held, Method, answered, device_actions
from dra_spec.protocol.plugin_state import Plugin, Plugins, Record, Setup, plugins, slots

__all__ = ["actions", "slots"]

NV = "dra-driver-nvidia-gpu cmd/gpu-kubelet-plugin/device_state.go"


@action("plugin.get_claim", writer="plugin", step="P4", source="kubeletplugin/draplugin.go:NodePrepareResources")
def get_claim(v: View, plugins: Plugins, node: str, driver: str, pod: str, index: int) -> Iterator[Outcome]:
    """Prepare: receives the call (P3), or goes on with it: a live GET of one claim. A failure is the answer for the whole call.

    Neither reservedFor nor deletionTimestamp is looked at. (`index`: the lane of the call.)
    """
    me = plugins[node, driver]
    call = me.handling(v, pod, index, Method.PREPARE, At.SENT)
    if call is None:
        return
    name, uid = call.claims[call.index]
    claim = v[me.api.claim[name]]
    label = "ok"
    if not claim.exists:
        label = "not-found"
    elif claim.uid != uid:
        label = "uid-differs"
    elif claim.allocation is None:
        label = "not-allocated"
    outcome = v.outcome(label)
    if label != "ok" or claim.allocation is None:
        outcome[me.call(pod, index)] = answered(call, failed=True)
    else:
        fetched = (*call.fetched, Held.by(claim.allocation, driver))
        more = call.index + 1 < len(call.claims)
        outcome[me.call(pod, index)] = attrs.evolve(
            call, at=At.SENT if more else At.LOCK, index=call.index + 1 if more else 0, fetched=fetched
        )
    yield outcome


def take_lock(v: View, me: Plugin, pod: str, index: int, call: Call) -> Iterator[Outcome]:
    """P5, P14: the handler gets the lock if it is free; waiting has no order."""
    if v.value(me.lock) is not None:
        return
    ok = v.outcome()
    ok[me.lock] = (pod, index)
    ok[me.call(pod, index)] = attrs.evolve(call, at=At.LOOKUP)
    yield ok


@action("plugin.lock_prepare", writer="plugin", step="P5", source="kubeletplugin/draplugin.go:serializationLock")
def lock_prepare(v: View, plugins: Plugins, node: str, driver: str, pod: str, index: int) -> Iterator[Outcome]:
    """Prepare: takes the plugin's lock. Whether the client still waits is not looked at."""
    me = plugins[node, driver]
    call = me.handling(v, pod, index, Method.PREPARE, At.LOCK)
    if call is not None:
        yield from take_lock(v, me, pod, index, call)


def _blocks(record: Record | None, devices: frozenset[str]) -> bool:
    return record is not None and bool(record.blocks & devices)


def next_claim(call: Call, devices: frozenset[str], failed: bool = False) -> Call:
    """The call after one claim was handled; `devices`: what the answer says for it."""
    more = call.index + 1 < len(call.claims)
    return attrs.evolve(
        call,
        at=At.LOOKUP if more else At.REPLY,
        index=call.index + 1 if more else 0,
        fetched=call.fetched if more else (),
        devices=(*call.devices, devices) if call.method is Method.PREPARE else (),
        failed=call.failed or failed,
    )


@action("plugin.record_started", writer="plugin", step="P8", source=f"{NV}:Prepare")
def record_started(v: View, plugins: Plugins, node: str, driver: str, pod: str, index: int) -> Iterator[Outcome]:
    """Prepare: looks the claim up (P6), checks (P7) and records Started (P8).

    Labels: `ok`; `hit` (Completed: answered from the record, without a look at allocation or CDI file); `overlap` (a device belongs to
    another completed claim) and `no-device` (it has vanished): an error for this claim.
    """
    me = plugins[node, driver]
    yield from lookup(v, me, pod, index)


def lookup(v: View, me: Plugin, pod: str, index: int, *, overlap: bool = True, inventory: bool = True) -> Iterator[Outcome]:
    """P6 to P8; `overlap`: whether other claims' devices are looked at; `inventory`: whether the devices must be there."""
    call = me.handling(v, pod, index, Method.PREPARE, At.LOOKUP)
    if call is None or call.index >= len(call.fetched):
        return
    name, uid = call.claims[call.index]
    if name not in me.records:
        return
    record, held = v.value(me.records[name]), call.fetched[call.index]
    slot = me.call(pod, index)
    if record is not None and record.completed and record.uid == uid:
        hit = v.outcome("hit")
        hit[slot] = next_claim(call, record.held.all)
        yield hit
        return
    foreign = record is not None and record.uid != uid and _blocks(record, held.devices)
    others = [other for claim, other in me.records.items() if claim != name]
    label = "ok"
    if overlap and (foreign or any(v.project(other, _blocks, held.devices) for other in others)):
        label = "overlap"
    elif inventory and not _all_present(v, me, held):
        label = "no-device"
    outcome = v.outcome(label)
    if label != "ok":
        outcome[slot] = next_claim(call, frozenset(), failed=True)
    elif record is not None and record.uid != uid:
        outcome.beyond_bounds(f"driver {me.driver} has records of two claims called {name}")
    else:
        outcome[me.records[name]] = Record(uid, False, held)
        outcome[slot] = attrs.evolve(call, at=At.HARDWARE)
    yield outcome


@action("plugin.set_up", writer="plugin", step="P9", source=f"{NV}:prepareDevices")
def set_up(v: View, plugins: Plugins, node: str, driver: str, pod: str, index: int) -> Iterator[Outcome]:
    """Prepare: sets the devices up for the claim, after leftovers of an earlier attempt were rolled back.

    A device that has vanished (`no-device`): an error for this claim, the record stays Started.
    """
    yield from set_up_devices(v, plugins[node, driver], pod, index)


def _all_present(v: View, me: Plugin, held: Held) -> bool:
    return all(device in me.present and v.value(me.present[device]) for device in sorted(held.all))


def set_up_devices(v: View, me: Plugin, pod: str, index: int, *, inventory: bool = True) -> Iterator[Outcome]:
    """P9; `inventory`: whether the devices must be there."""
    call = me.handling(v, pod, index, Method.PREPARE, At.HARDWARE)
    if call is None or call.index >= len(call.fetched) or call.claim not in me.hardware:
        return
    name, uid = call.claims[call.index]
    held = call.fetched[call.index]
    if inventory and not _all_present(v, me, held):
        failed = v.outcome("no-device")
        failed[me.call(pod, index)] = next_claim(call, frozenset(), failed=True)
        yield failed
        return
    ok = v.outcome()
    ok[me.hardware[name]] = Setup(uid, held)
    ok[me.call(pod, index)] = attrs.evolve(call, at=At.CDI)
    yield ok


@action("plugin.write_cdi", writer="plugin", step="P10", source=f"{NV}:CreateClaimSpecFile")
def write_cdi(v: View, plugins: Plugins, node: str, driver: str, pod: str, index: int) -> Iterator[Outcome]:
    """Prepare: writes the claim's CDI spec file, by temporary file and rename."""
    me = plugins[node, driver]
    call = me.handling(v, pod, index, Method.PREPARE, At.CDI)
    if call is None or call.index >= len(call.fetched) or call.claim not in me.records:
        return
    name, uid = call.claims[call.index]
    ok = v.outcome()
    ok[me.cdi(name)] = CdiFile(uid, call.fetched[call.index].all)
    ok[me.call(pod, index)] = attrs.evolve(call, at=At.RECORD)
    yield ok


@action("plugin.record_completed", writer="plugin", step="P11", source=f"{NV}:Prepare")
def record_completed(v: View, plugins: Plugins, node: str, driver: str, pod: str, index: int) -> Iterator[Outcome]:
    """Prepare: records Completed with the devices; on to the next claim of the call."""
    me = plugins[node, driver]
    call = me.handling(v, pod, index, Method.PREPARE, At.RECORD)
    if call is None or call.index >= len(call.fetched) or call.claim not in me.records:
        return
    name, uid = call.claims[call.index]
    held = call.fetched[call.index]
    ok = v.outcome()
    ok[me.records[name]] = Record(uid, True, held)
    ok[me.call(pod, index)] = next_claim(call, held.all)
    yield ok


def reply(v: View, me: Plugin, pod: str, index: int, method: Method) -> Iterator[Outcome]:
    """P12, P19: gives the lock back and answers. Label `lost` (fault "rpc-lost"): the kubelet sees an error instead of the answer."""
    call = me.handling(v, pod, index, method, At.REPLY)
    if call is None:
        return
    ok = v.outcome()
    ok[me.lock] = None
    ok[me.call(pod, index)] = answered(call, call.failed, call.devices)
    yield ok
    if call.client and not call.failed and me.budgets.left(v, "rpc-lost"):
        lost = v.outcome("lost")
        lost[me.lock] = None
        lost[me.call(pod, index)] = answered(call, failed=True)
        me.budgets.spend(lost, "rpc-lost")
        yield lost


@action("plugin.reply_prepare", writer="plugin", step="P12", source="kubeletplugin/draplugin.go:NodePrepareResources")
def reply_prepare(v: View, plugins: Plugins, node: str, driver: str, pod: str, index: int) -> Iterator[Outcome]:
    """Prepare: gives the lock back and answers; nobody reads the answer if the client has gone. Label `lost`: fault "rpc-lost"."""
    yield from reply(v, plugins[node, driver], pod, index, Method.PREPARE)


@action("plugin.lock_unprepare", writer="plugin", step="P14", source="kubeletplugin/draplugin.go:serializationLock")
def lock_unprepare(v: View, plugins: Plugins, node: str, driver: str, pod: str, index: int) -> Iterator[Outcome]:
    """Unprepare: receives the call (P13) and takes the plugin's lock. The API server is not asked."""
    me = plugins[node, driver]
    call = me.handling(v, pod, index, Method.UNPREPARE, At.SENT)
    if call is not None:
        yield from take_lock(v, me, pod, index, call)


@action("plugin.free_device", writer="plugin", step="P16", source=f"{NV}:Unprepare")
def free_device(v: View, plugins: Plugins, node: str, driver: str, pod: str, index: int) -> Iterator[Outcome]:
    """Unprepare: looks the claim up (P15); a claim without a record is a success (`absent`), else its devices are freed (P16)."""
    me = plugins[node, driver]
    call = me.handling(v, pod, index, Method.UNPREPARE, At.LOOKUP)
    if call is None or call.claim not in me.records:
        return
    name, uid = call.claims[call.index]
    record = v.value(me.records[name])
    known = record is not None and record.uid == uid
    outcome = v.outcome("ok" if known else "absent")
    if known:
        outcome[me.hardware[name]] = None
    outcome[me.call(pod, index)] = attrs.evolve(call, at=At.CDI) if known else next_claim(call, frozenset())
    yield outcome


@action("plugin.remove_cdi", writer="plugin", step="P17", source=f"{NV}:DeleteClaimSpecFile")
def remove_cdi(v: View, plugins: Plugins, node: str, driver: str, pod: str, index: int) -> Iterator[Outcome]:
    """Unprepare: removes the claim's CDI spec file."""
    me = plugins[node, driver]
    call = me.handling(v, pod, index, Method.UNPREPARE, At.CDI)
    if call is None or call.claim not in me.records:
        return
    ok = v.outcome()
    ok[me.cdi(call.claims[call.index][0])] = None
    ok[me.call(pod, index)] = attrs.evolve(call, at=At.RECORD)
    yield ok


@action("plugin.remove_record", writer="plugin", step="P18", source=f"{NV}:Unprepare")
def remove_record(v: View, plugins: Plugins, node: str, driver: str, pod: str, index: int) -> Iterator[Outcome]:
    """Unprepare: removes the claim from the record; nothing remembers that it was there. On to the next claim of the call."""
    me = plugins[node, driver]
    call = me.handling(v, pod, index, Method.UNPREPARE, At.RECORD)
    if call is None or call.claim not in me.records:
        return
    ok = v.outcome()
    ok[me.records[call.claims[call.index][0]]] = None
    ok[me.call(pod, index)] = next_claim(call, frozenset())
    yield ok


@action("plugin.reply_unprepare", writer="plugin", step="P19", source="kubeletplugin/draplugin.go:NodeUnprepareResources")
def reply_unprepare(v: View, plugins: Plugins, node: str, driver: str, pod: str, index: int) -> Iterator[Outcome]:
    """Unprepare: gives the lock back and answers. Label `lost`: fault "rpc-lost"."""
    yield from reply(v, plugins[node, driver], pod, index, Method.UNPREPARE)


def stopped(me: Plugin, outcome: Outcome) -> None:
    """The plugin's process ends: handlers and lock are gone, open calls fail; record, CDI files and devices stay."""
    outcome[me.serving] = False
    outcome[me.lock] = None
    me.node.handlers_gone(outcome, me.driver)


@action("plugin.crash", writer="plugin", step="P25", source="process end without clean-up", kind=Kind.FAULT)
def crash(v: View, plugins: Plugins, node: str, driver: str) -> Iterator[Outcome]:
    """The plugin's process dies (budget "plugin-crash")."""
    me = plugins[node, driver]
    if v.value(me.serving) and me.budgets.left(v, "plugin-crash"):
        out = v.outcome("crash")
        stopped(me, out)
        me.budgets.spend(out, "plugin-crash")
        yield out


def _empty(p: PartView, rebooted: Slot[bool], record: Slot[Record | None]) -> None:
    if p.value(rebooted):
        p.write(record, None)


@action("plugin.start", writer="plugin", step="P1", source="dra-driver-nvidia-gpu cmd/gpu-kubelet-plugin/device_state.go:NewDeviceState")
def start(v: View, plugins: Plugins, node: str, driver: str) -> Iterator[Outcome]:
    """The plugin starts: reads its record, empties it if the node was rebooted since (the boot id differs), and serves (P1, P2)."""
    me = plugins[node, driver]
    if v.value(me.serving):
        return
    ok = v.outcome()
    for record in me.records.values():
        ok.part(_empty, me.node.rebooted[driver], record)
    serve(me, ok)
    yield ok


def serve(me: Plugin, outcome: Outcome) -> None:
    """P2: the sockets are there, the kubelet registers the plugin; the current boot is noted."""
    outcome[me.serving] = True
    outcome[me.node.rebooted[me.driver]] = False


def actions(instance: Instance) -> Sequence[Action]:
    """All actions of the plugins; nothing if no plugin takes part."""
    if "plugin" not in instance.writers:
        return ()
    context = plugins(instance)
    made: list[Action] = []
    handler: list[ActionType] = [get_claim, lock_prepare, record_started, set_up, write_cdi, record_completed, reply_prepare]
    handler += [lock_unprepare, free_device, remove_cdi, remove_record, reply_unprepare]
    for (node, driver), me in context.items():
        where = {"node": node, "driver": driver}
        for pod in (p for p in me.node.pods if instance.pod(p).claims):
            for lane in range(len(me.node.calls[driver, pod])):
                made += [Action(kind, {**where, "pod": pod, "index": lane}, me.rooms, context) for kind in handler]
        if instance.budget("plugin-crash") or instance.budget("node-reboot"):
            made.append(Action(start, where, me.rooms, context))
        if instance.budget("plugin-crash"):
            made.append(Action(crash, where, me.rooms, context))
    return (*made, *device_actions(instance, "plugin"))
