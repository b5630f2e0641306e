"""A vendor's node plugin in the order of NVIDIA's GPU plugin: record Started, set up, CDI file, record Completed.

The record is a real checkpoint file that is read at each step; the hardware is what survives the process. One lock from after the GETs to
the reply; waiting for it has no order and does not look at whether the client still waits.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import attrs

from dra_spec.reference import cdi, disk
from dra_spec.reference.apiserver import CLAIM
from dra_spec.reference.errors import CorruptFile
from dra_spec.reference.machine import PREPARE, Call, Machine
from dra_spec.reference.shapes import allocation, device_id, results, uid_of
from dra_spec.reference.steps import Body, Move, Moves, Step, Thread, Turn

if TYPE_CHECKING:
    from dra_spec.reference.world import World

STARTED, COMPLETED = "Started", "Completed"


@attrs.define(eq=False)
class Held:
    """Devices of this driver in a claim: those that nobody else may have, and those with admin access."""

    devices: set[str]
    admin: set[str]

    @property
    def all(self) -> set[str]:
        return self.devices | self.admin


@attrs.define(eq=False)
class Setup:
    """What the hardware is set up for under a claim UID."""

    name: str
    held: Held


@attrs.define(eq=False)
class Handler:
    """The local variables of a call's handler: the claim at hand, what the GETs found, which claims have an answer, whether one is an
    error."""

    index: int = 0
    fetched: list[Held] = attrs.field(factory=list)
    handled: list[set[str]] = attrs.field(factory=list)
    failed: bool = False


class Plugin:
    """One plugin on one node."""

    def __init__(self, world: World, machine: Machine, driver: str) -> None:
        self.world, self.machine, self.driver = world, machine, driver
        self.directory = machine.plugin_directory(driver)
        self.lock: tuple[str, int] | None = None
        self.hardware: dict[str, Setup] = {}
        self._takes_part = "plugin" in world.instance.writers
        disk.save_plugin(self.directory, {}, machine.boot)

    # -- the process

    def moves(self) -> Moves:
        found: Moves = {}
        if not self._takes_part:
            return found
        for (driver, _), lanes in self.machine.lanes.items():
            for call in lanes if driver == self.driver else ():
                if call is not None and call.handler is not None:
                    found.update(call.handler.moves())
        where = {"node": self.machine.name, "driver": self.driver}
        if not self.machine.serving[self.driver]:
            found[Move.of("plugin.start", where)] = self._start
        elif self.world.left("plugin-crash"):
            found[Move.of("plugin.crash", where)] = self._crash
        return found

    def settle(self) -> None:
        """Nothing to do."""

    def stop(self) -> None:
        """The process ends: handlers and lock are gone, open calls fail; record, CDI files and hardware stay."""
        self.machine.serving[self.driver] = False
        self.lock = None
        self.machine.handlers_gone(self.driver)

    def _crash(self, turn: Turn) -> None:
        turn.spend("plugin-crash")
        self.stop()
        turn.took("crash")

    def _start(self, turn: Turn) -> None:
        """P1, P2: the record is emptied if the node was rebooted since it was written; with a corrupt one the plugin does not start."""
        try:
            claims, boot = disk.load_plugin(self.directory)
        except CorruptFile:
            turn.took("corrupt")
            return
        disk.save_plugin(self.directory, self.kept(claims, boot), self.machine.boot)
        self.machine.serving[self.driver] = True
        turn.took("ok")

    def kept(self, claims: disk.Json, boot: int) -> disk.Json:
        """What a start keeps of the record: nothing if the node was rebooted since it was written."""
        return claims if boot == self.machine.boot else {}

    def records(self) -> disk.Json:
        """The record as the file has it: claim UID -> {state, name, devices, admin}."""
        return disk.load_plugin(self.directory)[0]

    def rebooted(self) -> bool:
        """Whether the node was rebooted since the plugin last started."""
        return disk.load_plugin(self.directory)[1] != self.machine.boot

    def write_record(self, uid: str, record: disk.Json | None) -> None:
        """Sets or, with None, removes one claim of the record; the whole file is written."""
        claims = self.records()
        claims.pop(uid, None)
        if record is not None:
            claims[uid] = record
        disk.save_plugin(self.directory, claims, self.machine.boot)

    # -- calls

    def accept(self, pod: str, lane: int, call: Call) -> Thread:
        """A call has arrived: its handler."""
        call.local = Handler()
        body = self._prepare if call.method == PREPARE else self._unprepare
        return Thread(body(pod, lane, call, call.local))

    def step(self, verb: str, pod: str, lane: int) -> Step:
        """The announcement of a step of a handler."""
        return Step(f"plugin.{verb}", node=self.machine.name, driver=self.driver, pod=pod, index=lane)

    def _locked(self, verb: str, pod: str, lane: int, call: Call) -> Any:
        step = self.step(verb, pod, lane)
        step.needs = lambda: self.lock is None
        turn: Turn = yield step
        if self.cancelled(call):
            turn.took("cancelled")
            self.machine.reply(self.driver, pod, lane, failed=True)
            return False
        self.lock = (pod, lane)
        turn.took("ok")
        return True

    def cancelled(self, call: Call) -> bool:
        """Whether a handler that has got the lock gives up; it does not look at its client."""
        return False

    def _prepare(self, pod: str, lane: int, call: Call, local: Handler) -> Body:
        """P3 to P12."""
        for local.index, (name, uid) in enumerate(call.claims):
            turn = yield self.step("get_claim", pod, lane)
            held = self._fetch(turn, name, uid)
            if held is None:
                self.machine.reply(self.driver, pod, lane, failed=True)
                return
            local.fetched.append(held)
        local.index = 0
        if not (yield from self._locked("lock_prepare", pod, lane, call)):
            return
        for local.index, (name, uid) in enumerate(call.claims):
            yield from self.prepare_claim(pod, lane, call, local, name, uid)
        local.index = 0
        yield from self._reply("reply_prepare", pod, lane, call, local)

    def _fetch(self, turn: Turn, name: str, uid: str) -> Held | None:
        """P4: a live GET; what the claim's allocation has of this driver, None if the whole call fails."""
        claim = self.world.api.find(CLAIM, name)
        if claim is None:
            turn.took("not-found")
        elif uid_of(claim) != uid:
            turn.took("uid-differs")
        elif allocation(claim) is None:
            turn.took("not-allocated")
        else:
            mine = [r for r in results(allocation(claim)) if r["driver"] == self.driver]
            turn.took("ok")
            return Held({device_id(r) for r in mine if not r.get("adminAccess")}, {device_id(r) for r in mine if r.get("adminAccess")})
        return None

    def prepare_claim(self, pod: str, lane: int, call: Call, local: Handler, name: str, uid: str) -> Any:
        """P6 to P11 for one claim."""
        held = local.fetched[local.index]
        turn: Turn = yield self.step("record_started", pod, lane)
        record = self.records().get(uid)
        if record is not None and record["state"] == COMPLETED:
            turn.took("hit")
            self.answer(call, local, uid, set(record["devices"]) | set(record["admin"]))
            return
        problem = self.refusal(uid, held)
        if problem:
            turn.took(problem)
            self.answer(call, local, uid, None)
            return
        self.write_record(uid, self._record(STARTED, name, held))
        turn.took("ok")
        turn = yield self.step("set_up", pod, lane)
        if not self.all_present(held):
            turn.took("no-device")
            self.answer(call, local, uid, None)
            return
        self.hardware[uid] = Setup(name, held)
        turn.took("ok")
        turn = yield self.step("write_cdi", pod, lane)
        cdi.write_spec(self.machine.cdi, self.driver, uid, name, held.all)
        turn.took("ok")
        turn = yield self.step("record_completed", pod, lane)
        self.write_record(uid, self._record(COMPLETED, name, held))
        turn.took("ok")
        self.answer(call, local, uid, held.all)

    @staticmethod
    def _record(state: str, name: str, held: Held) -> disk.Json:
        return {"state": state, "name": name, "devices": sorted(held.devices), "admin": sorted(held.admin)}

    def refusal(self, uid: str, held: Held) -> str:
        """P7: "overlap", "no-device", or "" if the claim may be prepared."""
        if self.overlaps(uid, held):
            return "overlap"
        return "" if self.all_present(held) else "no-device"

    def overlaps(self, uid: str, held: Held) -> bool:
        """Whether another completed claim has one of the devices for itself."""
        others = [record for other, record in self.records().items() if other != uid and record["state"] == COMPLETED]
        return any(held.devices & set(record["devices"]) for record in others)

    def all_present(self, held: Held) -> bool:
        return all(self.world.present.get(device, False) for device in held.all)

    def answer(self, call: Call, local: Handler, uid: str, devices: set[str] | None) -> None:
        """What the response will say for one claim: its devices with CDI ids, or (None) an error."""
        local.handled.append(devices or set())
        local.failed = local.failed or devices is None
        if devices is not None:
            call.answer[uid] = {device: cdi.device_id(self.driver, uid, device) for device in devices}

    def _unprepare(self, pod: str, lane: int, call: Call, local: Handler) -> Body:
        """P13 to P19."""
        if not (yield from self._locked("lock_unprepare", pod, lane, call)):
            return
        for local.index, (_, uid) in enumerate(call.claims):
            yield from self.unprepare_claim(pod, lane, uid)
        local.index = 0
        yield from self._reply("reply_unprepare", pod, lane, call, local)

    def unprepare_claim(self, pod: str, lane: int, uid: str) -> Any:
        """P15 to P18 for one claim. A claim without a record is a success."""
        turn: Turn = yield self.step("free_device", pod, lane)
        if uid not in self.records():
            turn.took("absent")
            return
        self.hardware.pop(uid, None)
        turn.took("ok")
        turn = yield self.step("remove_cdi", pod, lane)
        cdi.remove_spec(self.machine.cdi, self.driver, uid)
        turn.took("ok")
        turn = yield self.step("remove_record", pod, lane)
        self.write_record(uid, None)
        turn.took("ok")

    def _reply(self, verb: str, pod: str, lane: int, call: Call, local: Handler) -> Any:
        """P12, P19: gives the lock back and answers; "lost": the kubelet sees an error."""
        turn: Turn = yield self.step(verb, pod, lane)
        lost = call.client and not local.failed and turn.inject("lost", "rpc-lost")
        self.lock = None
        turn.took("lost" if lost else "ok")
        self.machine.reply(self.driver, pod, lane, failed=local.failed or lost)
