"""The kubelet of a node: pod workers as far as they decide when claims are prepared, and the way to a running container (K1 to K12).

It sees the API server's pods without a watch cache; that it sees them late is in `add_pod` and `begin_termination`, which may come at any
time. The way back is in `kubelet_stop`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dra_spec.reference import cdi
from dra_spec.reference.apiserver import CLAIM, POD
from dra_spec.reference.claiminfo import ClaimInfo, ClaimInfoCache
from dra_spec.reference.errors import CorruptFile, UnresolvedDevice
from dra_spec.reference.kubelet_stop import Stopping
from dra_spec.reference.kubelet_task import GONE, SYNCING, TERMINATED, TERMINATING, UNKNOWN, Task, Want
from dra_spec.reference.machine import CREATED, EXITED, PREPARE, RUNNING, Machine, Sandbox
from dra_spec.reference.plugin import Plugin
from dra_spec.reference.shapes import (
    Object,
    allocation,
    claim_name,
    controlled_by,
    deleting,
    node_name,
    reserved_for,
    results,
    terminal,
    uid_of,
)
from dra_spec.reference.steps import Body, Move, Moves, Thread, Turn

if TYPE_CHECKING:
    from dra_spec.reference.world import World


class Kubelet(Stopping):
    """One kubelet. Memory is gone after a crash; the checkpoint file, containers and the plugins' handlers stay."""

    def __init__(self, world: World, machine: Machine, plugins: list[Plugin]) -> None:
        self.world, self.machine, self.api, self.plugins = world, machine, world.api, plugins
        self.running = True
        self.forget_all()
        self.cache = ClaimInfoCache(machine.directory)

    def forget_all(self) -> None:
        """All memory but the cache at its initial value."""
        self.lock: str | None = None
        self.uids: dict[str, str] = {}
        self.lives = dict.fromkeys(self.machine.pods, UNKNOWN)
        self.workers: dict[str, tuple[Task, Thread]] = {}
        self.loops: dict[str, tuple[Task, Thread]] = {}

    # -- the process

    def crash(self) -> None:
        """The process ends."""
        self.running = False
        self.forget_all()
        self.cache.entries = {}
        self.machine.client_gone()

    def _crash(self, turn: Turn) -> None:
        turn.spend("kubelet-crash")
        self.crash()
        turn.took("crash")

    def _restart(self, turn: Turn) -> None:
        """The process starts from the checkpoint; with a corrupt one it does not start."""
        try:
            self.cache = ClaimInfoCache(self.machine.directory)
        except CorruptFile:
            turn.took("corrupt")
            return
        self.running = True
        turn.took("ok")

    def _reboot(self, turn: Turn) -> None:
        turn.spend("node-reboot")
        self.crash()
        self.machine.lose_power()
        for plugin in self.plugins:
            plugin.stop()
            plugin.hardware.clear()
        turn.took("reboot")

    def settle(self) -> None:
        """Nothing to do."""

    # -- moves

    def moves(self) -> Moves:
        found: Moves = {}
        if not self.running:
            found[Move.of("kubelet.restart", {"node": self.machine.name})] = self._restart
        elif self.world.left("kubelet-crash"):
            found[Move.of("kubelet.crash", {"node": self.machine.name})] = self._crash
        if self.world.left("node-reboot"):
            found[Move.of("node.reboot", {"node": self.machine.name})] = self._reboot
        for pod in self.machine.pods:
            found.update(self._pod_moves(pod))
        return found

    def move(self, verb: str, pod: str, **params: str | int) -> Move:
        return Move.of(f"kubelet.{verb}", {"node": self.machine.name, "pod": pod, **params})

    def _pod_moves(self, pod: str) -> Moves:
        found: Moves = {}
        obj = self.api.find(POD, pod)
        sandbox = self.machine.sandboxes.get(pod)
        if "workload" in self.world.instance.writers and sandbox is not None and sandbox.state == RUNNING and self.world.left("finish-pod"):
            found[Move.of("workload.exit_containers", {"node": self.machine.name, "pod": pod})] = self._exit
        if not self.running:
            return found
        if pod in self.workers:
            found.update(dict.fromkeys(self.workers[pod][1].moves(), self._work))
        else:
            found.update(self._idle_moves(pod, obj, sandbox))
        if self._may_add(pod, obj, sandbox):
            found[self.move("add_pod", pod)] = self._add
        found.update(self.stopping_moves(pod, obj, sandbox))
        return found

    def _idle_moves(self, pod: str, obj: Object | None, sandbox: Sandbox | None) -> Moves:
        """What an idle worker of a pod that is to run may start."""
        found: Moves = {}
        if self.lives[pod] != SYNCING:
            return found
        entries = self.machine.entries[pod]
        if sandbox is None and entries and isinstance(self.check(pod, obj, 0), Want):
            found[self.move("get_claim", pod, index=0)] = self._begin_prepare
        if sandbox is None and not entries:
            found[self.move("create_sandbox", pod)] = self._begin_sandbox
        if sandbox is not None and sandbox.state == CREATED and self.lock is None and self.injected(pod) is not None:
            found[self.move("start_container", pod)] = self._start_container
        return found

    def _work(self, turn: Turn) -> None:
        self._advance(self.workers, turn)

    def _advance(self, threads: dict[str, tuple[Task, Thread]], turn: Turn) -> None:
        pod = str(turn.params["pod"])
        thread = threads[pod][1]
        thread.take(turn)
        if thread.ended and pod in threads and threads[pod][1] is thread:
            del threads[pod]

    def _begin(self, pod: str, task: Task, body: Body, turn: Turn) -> None:
        self.workers[pod] = (task, Thread(body))
        self._work(turn)

    def _may_add(self, pod: str, obj: Object | None, sandbox: Sandbox | None) -> bool:
        if self.lives[pod] != UNKNOWN or obj is None or node_name(obj) != self.machine.name:
            return False
        return not deleting(obj) and not terminal(obj) and (sandbox is None or sandbox.state != EXITED)

    def _add(self, turn: Turn) -> None:
        pod = str(turn.params["pod"])
        self.lives[pod], self.uids[pod] = SYNCING, uid_of(self.api.get(POD, pod))
        turn.took("ok")

    def _exit(self, turn: Turn) -> None:
        turn.spend("finish-pod")
        self.machine.sandboxes[str(turn.params["pod"])] = Sandbox(EXITED)
        turn.took("ok")

    # -- prepare

    def _begin_prepare(self, turn: Turn) -> None:
        pod, task = str(turn.params["pod"]), Task()
        self._begin(pod, task, self._prepare(pod, task), turn)

    def _begin_sandbox(self, turn: Turn) -> None:
        pod, task = str(turn.params["pod"]), Task()
        self._begin(pod, task, self._sandbox(pod), turn)

    def _prepare(self, pod: str, task: Task) -> Body:
        """prepareResources and the sandbox."""
        if not (yield from self._validate(pod, task)) or not (yield from self.refer(pod, task)):
            return
        if not (yield from self._call_drivers(pod, task)):
            return
        turn = yield self.step("mark_prepared", pod, needs=self.unlocked)
        if not self.finish_prepare(task):
            turn.took("missing")
            return
        turn.took("ok")
        task.batch.clear()
        yield from self._sandbox(pod)

    def _validate(self, pod: str, task: Task) -> Any:
        """Phase A: K1 to K3 for each claim; the cache is not touched."""
        for task.index in range(len(self.machine.entries[pod])):
            turn: Turn = yield self.step("get_claim", pod, index=task.index)
            found = self.check(pod, self.api.find(POD, pod), task.index)
            if isinstance(found, str):
                turn.took(found)
                return False
            task.seen.append(found)
            turn.took("ok")
        return True

    def check(self, pod: str, obj: Object | None, index: int) -> Want | str:
        """A live GET of a claim and the checks: what was found, or why prepare fails."""
        entry, name = self.machine.entries[pod][index]
        generated = self._generated(pod, entry)
        if generated and (obj is None or claim_name(obj, {"name": entry}) is None):
            return "unresolved"
        claim = self.api.find(CLAIM, name)
        if claim is None:
            return "not-found"
        if generated and not controlled_by(claim, self.uid(pod)):
            return "not-owner"
        if not reserved_for(claim, self.uid(pod)):
            return "not-reserved"
        found = allocation(claim)
        if found is None:
            return "not-allocated"
        drivers = sorted({result["driver"] for result in results(found)})
        if not all(self.machine.serving.get(driver, False) for driver in drivers):
            return "no-plugin"
        return Want(name, uid_of(claim), drivers)

    def _generated(self, pod: str, entry: str) -> bool:
        spec = next(p for p in self.world.instance.pods if p.name == pod)
        return any(ref.entry == entry and ref.template is not None for ref in spec.claims)

    def refer(self, pod: str, task: Task) -> Any:
        """Phase B: the pod is entered in each claim's entry and the checkpoint is written, in one critical section."""
        for index, want in enumerate(task.seen):
            task.index = index
            turn: Turn = yield self.step("reference", pod, needs=self.unlocked if task.index == 0 else None, index=task.index)
            info = self.cache.get(want.claim)
            problem = self.refusal(info, want) if info is not None else ""
            if problem:
                turn.took(problem)
                self.lock = None
                return False
            self.lock = pod
            info = info or self.cache.add(want.claim, want.uid, want.drivers)
            info.pods.add(self.uid(pod))
            if not info.prepared:
                task.batch.append(Want(want.claim, info.uid, sorted(info.drivers)))
            turn.took("ok")
            yield from self.checkpoint(pod, task)
        self.lock = None
        known = {driver for want in task.seen for driver in want.drivers}
        task.missing = task.drivers - known
        task.seen.clear()
        return True

    def refusal(self, info: ClaimInfo, want: Want) -> str:
        """Why a pod may not join an entry: it is of another claim, or being unprepared; "" if it may. The allocation is not compared."""
        if info.uid != want.uid:
            return "uid-differs"
        return "unpreparing" if info.unpreparing else ""

    def checkpoint(self, pod: str, task: Task) -> Any:
        """K5."""
        turn: Turn = yield self.step("checkpoint_reference", pod, index=task.index)
        self.cache.save()
        turn.took("ok")

    def _call_drivers(self, pod: str, task: Task) -> Any:
        """Phase C: one call per driver, one after another, in any order."""
        while task.drivers - task.done:
            turn: Turn = yield [self.step("prepare_send", pod, driver=d) for d in sorted(task.drivers - task.done)]
            driver = str(turn.params["driver"])
            if driver in task.missing:
                self.crash()
                turn.took("panic")
                return False
            if not self.send(turn, pod, task, driver, PREPARE):
                return False
            if not (yield from self._take_answer(pod, task, driver)):
                return False
        return True

    def _take_answer(self, pod: str, task: Task, driver: str) -> Any:
        """K7 and K8: the answer's claims go into the cache, by name and in any order.

        A pod that names one claim twice asks for it twice and gets one result: fewer results than requests is an error (O-DUPREF).
        An answer with an error for one of its claims counts as an error for all: the real loop over the answer stores those that it meets
        before the error; no step decides by them before the retry replaces them.
        """
        requested = [want for want in task.batch if driver in want.drivers]
        wanted = list({want.claim: want for want in requested}.values())
        while len(task.stored) < len(wanted):
            steps = [self.step("prepare_failed", pod, needs=lambda: self.answer_is(pod, task, failed=True), driver=driver)]
            steps += [
                self.step(
                    "store_devices",
                    pod,
                    needs=lambda: self.answer_is(pod, task, failed=False) and self.unlocked(),
                    driver=driver,
                    claim=w.claim,
                )
                for w in wanted
                if w.claim not in task.stored
            ]
            steps.append(self.time_out_step(pod, task, driver, "worker"))
            turn: Turn = yield steps
            if turn.move.action != "kubelet.store_devices":
                self.give_up(turn, pod, task)
                return False
            claim = str(turn.params["claim"])
            info = self.cache.get(claim)
            if info is None:
                turn.took("missing")
                self.end_call(pod, task)
                return False
            uid = next(w.uid for w in wanted if w.claim == claim)
            self.store(info, driver, self.call(pod, task).answer.get(uid, {}))
            task.stored.add(claim)
            skipped = len(task.stored) == len(wanted) < len(requested)
            turn.took("skipped" if skipped else "ok")
            if skipped:
                self.end_call(pod, task)
                return False
        self.end_call(pod, task)
        self.answered(task, driver)
        return True

    def store(self, info: ClaimInfo, driver: str, devices: dict[str, str]) -> None:
        """Replaces the driver's devices in an entry."""
        info.drivers[driver] = dict(devices)

    def finish_prepare(self, task: Task) -> bool:
        """Phase D, one critical section: marks the entries as prepared and writes the checkpoint. False if an entry is missing."""
        found = [self.cache.get(want.claim) for want in task.batch]
        if any(info is None for info in found):
            return False
        for info in found:
            if info is not None:
                info.prepared = True
        self.cache.save()
        return True

    def _sandbox(self, pod: str) -> Body:
        turn = yield self.step("create_sandbox", pod, needs=lambda: pod not in self.machine.sandboxes)
        self.machine.sandboxes[pod] = Sandbox()
        turn.took("ok")

    # -- containers

    def injected(self, pod: str) -> set[tuple[str, str]] | None:
        """The devices that the containers get from the cached CDI ids, found by the claims' names; None if creation would fail."""
        given = set()
        for _, claim in self.machine.entries[pod]:
            info = self.cache.get(claim)
            if info is None:
                return None
            try:
                given |= {(claim, device) for device in cdi.resolve(self.machine.cdi, info.devices.values())}
            except UnresolvedDevice:
                return None
        return given

    def _start_container(self, turn: Turn) -> None:
        pod = str(turn.params["pod"])
        self.machine.sandboxes[pod] = Sandbox(RUNNING, self.injected(pod) or set())
        turn.took("ok")


__all__ = ["GONE", "TERMINATED", "TERMINATING", "Kubelet"]
