"""The kubelet's process, and its node's: crash, restart from the checkpoint, reboot (kubelet.md section 8)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import attrs

from dra_spec.explorer.model import Action, Kind, Outcome, PartView, Slot, View, action
from dra_spec.protocol.instance import Instance
from dra_spec.protocol.kubelet_site import Site, crashed, sites
from dra_spec.protocol.kubelet_state import Entry
from dra_spec.protocol.node import DEVICE_ROOM
from dra_spec.protocol.plugin_state import Plugin, plugins


@attrs.frozen(eq=False)
class Machine:
    """A node as a machine: its kubelet and all its plugins."""

    site: Site
    plugins: tuple[Plugin, ...]


Machines = Mapping[str, Machine]


def _make(instance: Instance) -> dict[str, Machine]:
    every = plugins(instance)
    return {name: Machine(site, tuple(p for (node, _), p in every.items() if node == name)) for name, site in sites(instance).items()}


@action("kubelet.crash", writer="kubelet", step="X1", source="pkg/kubelet/cm/dra", kind=Kind.FAULT)
def crash(v: View, machines: Machines, node: str) -> Iterator[Outcome]:
    """The kubelet's process dies (budget "kubelet-crash"): memory is lost; checkpoint, containers and the plugins' handlers stay."""
    site = machines[node].site
    if v.value(site.kubelet.running) and site.budgets.left(v, "kubelet-crash"):
        out = v.outcome("crash")
        crashed(site, out)
        site.budgets.spend(out, "kubelet-crash")
        yield out


def _restore(p: PartView, disk: Slot[Entry | None], cache: Slot[Entry | None]) -> None:
    entry = p.value(disk)
    p.write(cache, None if entry is None else entry.on_disk)


@action("kubelet.restart", writer="kubelet", step="X1", source="pkg/kubelet/cm/dra/claiminfo.go:newClaimInfoFromState")
def restart(v: View, machines: Machines, node: str) -> Iterator[Outcome]:
    """The kubelet starts: its cache is the checkpoint, with nothing prepared and nothing being unprepared."""
    me = machines[node].site.kubelet
    if v.value(me.running):
        return
    ok = v.outcome()
    ok[me.running] = True
    for claim, disk in me.disk.items():
        ok.part(_restore, disk, me.cache[claim])
    yield ok


@action("node.reboot", writer="kubelet", step="X1", source="kubelet.md section 16: node reboot", kind=Kind.FAULT)
def reboot(v: View, machines: Machines, node: str) -> Iterator[Outcome]:
    """The node reboots (budget "node-reboot"): processes, containers, device state and the CDI files (in a tmpfs) are gone; the kubelet's
    checkpoint and the plugins' records, on disk, stay."""
    machine = machines[node]
    site = machine.site
    if not site.budgets.left(v, "node-reboot"):
        return
    out = v.outcome("reboot")
    _lose_memory(site, out)
    for lanes in site.node.calls.values():
        for slot in lanes:
            out[slot] = None
    for sandbox in site.node.sandboxes.values():
        out[sandbox] = None
    for cdi in site.node.cdi.values():
        out[cdi] = None
    for plugin in machine.plugins:
        out[plugin.serving] = False
        out[plugin.lock] = None
        out[site.node.rebooted[plugin.driver]] = True
        for hardware in plugin.hardware.values():
            out[hardware] = None
    site.budgets.spend(out, "node-reboot")
    yield out


def _lose_memory(site: Site, out: Outcome) -> None:
    scratch = Outcome()
    crashed(site, scratch)
    for slot, value in scratch.updates.items():
        out[slot] = value


def actions(instance: Instance) -> Sequence[Action]:
    """Crash, restart and reboot of each node's kubelet. A kubelet can also die of a panic, so the restart is always there."""
    machines, made = instance.memo(_make), []
    for node, machine in machines.items():
        rooms = machine.site.rooms | {DEVICE_ROOM, *(plugin.room for plugin in machine.plugins)}
        kinds = [restart]
        if instance.budget("kubelet-crash"):
            kinds.append(crash)
        if instance.budget("node-reboot"):
            kinds.append(reboot)
        made += [Action(kind, {"node": node}, rooms, machines) for kind in kinds]
    return made
